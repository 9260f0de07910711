"""The Curator: what can be bought of one table, each at a price that is charged before the table is looked at.

Every request is validated without data; then it goes the one way of `curator.charged_access`: its event is
charged, the table is looked at, the answer is kept and released. What is charged is the event of the very
mechanism object that then runs, so the two cannot differ. Of a measurement, `curator.examination` says whether its
noise is the one that it needs, `curator.stack_events` what is charged, `curator.drawing` what is told, and
`curator.measured_answers` what answers that makes; of any other look, `curator.look_events` what is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.batch import CheckedMeasurement, MeasurementOrder, Outcome, bought_together
from understudy.curator.calibration import Calibration
from understudy.curator.candidates import Candidate, WorstCandidate
from understudy.curator.charge_terms import ChargeTerms
from understudy.curator.charged_access import ChargedAccess, Paid
from understudy.curator.drawing import drawn
from understudy.curator.examination import check_noise_fits, noise_drawn
from understudy.curator.look_events import check_look_price, look_event
from understudy.curator.measured_answers import measured_answers
from understudy.curator.open_sparse_vector import (
    OpenSparseVector,
    counting_query,
    sparse_question,
    threshold_share,
)
from understudy.curator.prepared_measurement import Mechanism, PreparedMeasurement
from understudy.curator.stack_events import located_event, one_event
from understudy.declaration.declaration import Declaration, Protect
from understudy.domain.domain import Clique
from understudy.domain.refinement import refines
from understudy.errors import ProtectionError, QueryError, UnderstudyError
from understudy.ledger.books import Due, TriedCharge
from understudy.ledger.interface import JournalStep, Ledger, fresh_request
from understudy.ledger.journal import Journal
from understudy.mechanism.look import Look, released
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.noise.samplers import NoiseSource
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, SparseVector
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact
from understudy.table.read_record import ReadRecord
from understudy.table.truth import Truth

if TYPE_CHECKING:
    from understudy.curator.row_sums import RowSumReader


class Curator(ChargedAccess):
    """The only access to one table: it charges the ledger, durably, and only then looks and adds noise.

    A project has one (`Project.curator`). `measure` and `measure_all` give noisy counts, `choose` picks a
    candidate privately, `sparse` opens a sparse vector, which compares many counts with a threshold for one price;
    `quote` and `calibration` say beforehand what a measurement costs and how far off it can be. Prices are in
    epsilon or rho, errors in people. What decides a price, a refusal or the next step is public or was released
    before.

    Every call that charges takes two names. `request` is the caller's name for the purchase: the same name with
    the same question is charged once and gets the same answer again, and with another question raises
    `RequestConflictError`; without one, each call is a purchase of its own. `analyst` is whose share of the budget
    pays, where the declaration has shares. Where the ledger cannot pay, `InsufficientBudgetError` is raised; where
    the table changed under the program, `SourceChangedError`; after `close`, `ClosedError`. Nothing is charged
    then.

    It is made of `truth`, what counts the table's rows, the `ledger` and the `declaration`. `noise` is the
    operating system's unless a test or a simulation passes another source. `reading` is what the custodian's own
    reading of the table has found; None where there was none.
    """

    def __init__(
        self,
        truth: Truth,
        ledger: Ledger,
        declaration: Declaration,
        *,
        noise: NoiseSource | None = None,
        reading: ReadRecord | None = None,
    ) -> None:
        super().__init__(truth, ledger, declaration, noise=noise)
        self.reading = reading
        public = self.relation.rows_are_public
        self.calibration = Calibration(
            self.domain,
            self.relation,
            ledger.budget,
            lambda: truth.rows if public else declaration.rows_at_most,
        )
        """What a measurement costs and how far off it can be, before anything is charged."""
        self._known: WeakKeyDictionary[
            PreparedMeasurement, tuple[tuple[object, ...], tuple[tuple[Event, ...], str]]
        ] = WeakKeyDictionary()
        """Of measurements that were examined: all that they were examined with, their events and question."""

    @cached_property
    def row_sums(self) -> RowSumReader:
        """Whether all that was spent is noise on sums over rows, and what it adds up to."""
        from understudy.curator.row_sums import RowSumReader

        return RowSumReader(
            self.ledger,
            self.relation,
            version=self._truth.version,
            is_file=self._truth.is_file,
            opening=self.declaration.opening,
        )

    def __repr__(self) -> str:
        return f"Curator({self.declaration.name!r})"

    def check_readable(self, marginals: Iterable[Marginal]) -> None:
        """Refuse a question about attributes that the custodian found to be unreadable. Reads no data.

        `marginals` are what the question asks for. Returns nothing, or raises an `UnreadableError`.
        """
        if self.reading is not None:
            self.reading.check(name for marginal in marginals for name in marginal.reads)

    def check_all_readable(self) -> None:
        """Refuse what shows every attribute, where the custodian found one to be unreadable. Reads no data.

        Returns nothing, or raises an `UnreadableError`.
        """
        if self.reading is not None:
            self.reading.check(self.domain.names)

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """Refuse, with a `TooLargeError`, `marginals` that could not be counted at once. Reads no data.

        Raises a `QueryError` where one of them is about another domain than the declared one.
        """
        self._truth.check_size(marginals)

    def anticipate(self, cliques: Iterable[Clique]) -> None:
        """Say which `cliques` will be looked at, each when it is paid for: they can be counted in one pass.

        A clique is a tuple of names of attributes. Charges nothing, tells nothing, and changes no answer.
        """
        tell = getattr(self._truth, "anticipate", None)  # only what counts rows can count ahead
        if tell is not None:
            tell(cliques)

    def one_question(self, marginals: Sequence[Marginal]) -> AbstractContextManager[None]:
        """A context in which this thread buys what one question needs: a database is scanned once for all looks.

        `marginals` are what the question needs. Each look is charged before it is told anything, as outside of the
        context; nothing else changes.
        """
        tell = getattr(self._truth, "one_question", None)
        declared = [one.clique for one in marginals if one.domain == self.domain and one.moment is None]
        return nullcontext() if tell is None else tell(declared)

    # ---- measuring

    def quote(self, marginal: Marginal, *, epsilon: Number | None = None, rho: Number | None = None) -> Cost:
        """What `measure` would be charged for a `marginal` now, in the ledger's currency, given earlier charges.

        The price is an `epsilon`, for Laplace noise, or a `rho`, for Gaussian noise. The charge may be more or
        less than the price: questions about different people share a cost. Charges nothing and reads no data.
        Raises a `ParameterError` unless exactly one of the two is given, a `QueryError` for a marginal of another
        domain, and a `RefusedError` where the budget has no price for the noise.
        """
        mechanism, _ = self.calibration.mechanism(marginal, Price.of(epsilon=epsilon, rho=rho))
        return self.ledger.quote(self.versioned(self.located([marginal], mechanism)))

    def located(self, marginals: Sequence[Marginal], mechanism: Mechanism) -> Event:
        """The event that is charged for one `mechanism` on the stacked counts of several `marginals`.

        It says which noise is drawn and which declared cells it is about, so that noise about different people can
        share a cost. The version of the table is not in it (`versioned`). Charges nothing and reads no data.
        """
        return located_event(marginals, mechanism, self.declaration)

    def _counted_by(self, marginals: Sequence[Marginal]) -> Truth:
        """The truth that counts the cells of marginals: those that are declared, or parts of them."""
        domain = marginals[0].domain
        if any(marginal.domain != domain for marginal in marginals):
            raise QueryError("the parts of a question are about different cells")
        if domain == self.domain:
            return self._truth
        if not refines(domain, self.domain):
            raise QueryError("the question is about another domain")
        return self._truth.refined(domain)

    def measure(
        self,
        marginal: Marginal,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        beta: Number = 0.05,
        request: str | None = None,
        analyst: str = "",
    ) -> Answer:
        """Noisy counts, in people, for each cell of a `marginal`: Laplace noise for `epsilon`, Gaussian for `rho`.

        The price is charged before the table is read. All cells are within the `error` of the `Answer` together,
        with probability 1 - `beta`. `request` and `analyst` are as the class says. Raises a `ParameterError`
        unless exactly one price is given, and where its noise cannot be drawn, a `QueryError` for a marginal of
        another domain, a `TooLargeError` where it has too many cells, and a `RefusedError` where the budget has no
        price for the noise: nothing is charged then.
        """
        price = Price.of(epsilon=epsilon, rho=rho)
        return self.measure_all([marginal], price, beta=beta, request=request, analyst=analyst)[0]

    def measure_all(
        self,
        marginals: Sequence[Marginal],
        price: Price | Sequence[Price],
        *,
        beta: Number = 0.05,
        request: str | None = None,
        analyst: str = "",
    ) -> list[Answer]:
        """An `Answer` for each of several `marginals`, in one debit: all are paid and answered, or none.

        `price` is that of each marginal, or a list with one for each (`privacy.price.Price`, in ε or ρ): the debit
        is their sum, or less where they are about different people. `beta` is the probability of failure of each
        answer on its own. `request` and `analyst` are as the class says. Raises as `measure` does.
        """
        prepared = self.calibration.prepare(marginals, price, beta=beta)
        return self.perform(prepared, request=request, analyst=analyst)

    def perform(
        self,
        prepared: PreparedMeasurement,
        *,
        request: str | None = None,
        analyst: str = "",
        step: JournalStep | None = None,
        words: str | None = None,
    ) -> list[Answer]:
        """Charge for a measurement, make it, and give an answer for each marginal; all are paid, or none.

        `prepared` says what is measured, with which noise (`calibration.prepare` makes it); it is examined again
        before the charge, whoever made it. `request` and `analyst` are as the class says. A `step` of a journal is
        kept in the transaction of the debit. `words` are the question as it was asked, empty where it was not
        asked in words: the ledger keeps them for its readers, and does not compare them. Raises a `ParameterError`
        where the noise does not protect what is measured, a `QueryError` where that is about another domain, and a
        `TooLargeError` where it has too many cells: nothing is charged then.
        """
        if not prepared.marginals:
            return []
        return self._bought(self._checked(prepared, ChargeTerms(request, analyst, step, words)))

    def perform_all(self, orders: Sequence[MeasurementOrder]) -> Iterator[list[Outcome]]:
        """`perform` for several measurements, each charged and answered on its own, in two transactions for all.

        `orders` are the measurements, each with its request and its analyst. Yields portions: for each of some
        orders, its place among them, from 0, and its answers, or what `perform` would raise for it. Portions come
        as soon as their answers are kept: all at once, unless looks take longer than `batch.PORTION_SECONDS`.
        Charges come before looks, and all looks of an order after its own charge. A request that was charged
        before is performed by itself. Raises a `LedgerError` or a `SourceError` where nothing could be charged or
        kept, for all orders that are left.
        """
        self._truth.check_unchanged()
        told: list[Outcome] = []
        checked: list[tuple[int, CheckedMeasurement]] = []
        for place, order in enumerate(orders):
            terms = ChargeTerms(order.request or fresh_request(), order.analyst, None, order.words)
            try:
                if order.prepared.marginals:
                    checked.append((place, self._checked(order.prepared, terms)))
                else:
                    told.append((place, []))
            except UnderstudyError as refusal:
                told.append((place, refusal))
        yield from bought_together(
            checked, told, ledger=self.ledger, edition=self.edition, alone=self._bought
        )

    def _bought(self, one: CheckedMeasurement) -> list[Answer]:
        """The answers of one measurement: charged, made and kept by itself."""
        return one.answers(self._paid(one.event, one.question, one.terms, one.look))

    def _checked(self, prepared: PreparedMeasurement, terms: ChargeTerms) -> CheckedMeasurement:
        """What is charged for a measurement and looked at for it, once it is certain that the two fit."""
        marginals = prepared.marginals
        noise = noise_drawn(prepared)
        counting = self._counted_by(marginals)  # what it refuses is refused before it is paid for
        held = noise, prepared.mechanisms, marginals, prepared.stacks
        known = self._known.get(prepared)
        if known is None or known[0] != held:  # what is known holds for the very noise that will be drawn
            check_noise_fits(prepared, self.calibration)
            counting.check_size(marginals)
            question = f"measure {'; '.join(marginal.key for marginal in marginals)}"
            known = self._known[prepared] = held, (self._events(prepared), question)
        events, question = known[1]

        def answers(paid: Paid) -> list[Answer]:
            return measured_answers(prepared, paid.released, paid.debit.cost, events, self.calibration)

        def look() -> list[list[int]]:
            return drawn(prepared, self._counted_by(marginals), self._noise)

        return CheckedMeasurement(one_event(events), question, terms, look, answers)

    def due(self, prepared: PreparedMeasurement, *, request: str | None = None, analyst: str = "") -> Due:
        """What `perform` would be charged for a measurement now, and whether it could be paid. Writes nothing.

        `prepared`, `request` and `analyst` are those of `perform`. A request that was charged before costs nothing
        more, and neither does a measurement of nothing. Returns a `Due`. Raises a `RefusedError` where the budget
        has no price for the noise.
        """
        nothing = request is not None and self.ledger.find(request) is not None
        events = () if nothing else self._events(prepared)
        due = self.ledger.due(one_event(events), analyst=analyst)
        return due if events else replace(due, payable=True)

    def tried(self, orders: Sequence[MeasurementOrder]) -> list[TriedCharge]:
        """What `perform_all` would be charged for each of the `orders`, one by one, or why not. Writes nothing.

        A request that was charged before costs nothing more, and neither does a measurement of nothing. Raises as
        `due` does.
        """
        new = [
            () if one.request is not None and self.ledger.find(one.request) else self._events(one.prepared)
            for one in orders
        ]
        wanted = [(one_event(events), one.analyst) for events, one in zip(new, orders, strict=True) if events]
        tried, nothing = iter(self.ledger.tried(wanted)), type(self.ledger.budget.cap)(0)
        return [next(tried) if events else TriedCharge(nothing, None) for events in new]

    def _events(self, prepared: PreparedMeasurement) -> tuple[Event, ...]:
        """What is charged for each stack: its noise, the cells that it is about, and the version of the table."""
        marginals, built = prepared.marginals, prepared.mechanisms
        return tuple(
            self.versioned(self.located([marginals[i] for i in stack], built[stack[0]][0]))
            for stack in prepared.stacks
        )

    # ---- choosing

    def choose(
        self,
        candidates: Sequence[Candidate],
        *,
        epsilon: Number,
        request: str | None = None,
        analyst: str = "",
    ) -> int:
        """The index of a candidate whose guess is far off: the exponential mechanism on |count - guess|.

        `candidates` are queries with public guesses of their counts (`curator.candidates.Candidate`). Counts and
        guesses are in people; guesses are rounded to whole ones. The choice is ε-DP and ε²/8-zCDP with ε =
        `epsilon`, which is charged before the table is read. `request` and `analyst` are as the class says.

        Raises a `ParameterError` without candidates, for a guess beyond 2^60, and where nobody can move a count; a
        `QueryError` for a query of another domain or with weights other than 0 and 1. Nothing is charged then.
        """
        for candidate in candidates:
            counting_query(candidate.query, self.domain)
        look = WorstCandidate.of(candidates, epsilon, self.relation)
        return self._buy(look, request=request, analyst=analyst).released

    # ---- any other mechanism

    def _buy(
        self,
        look: Look,
        *,
        request: str | None = None,
        analyst: str = "",
        step: JournalStep | None = None,
    ) -> Paid:
        """Charge the event of a look, have its mechanism draw by the exact counts that it asks for, keep that.

        For the other rooms of this library, which build looks; no part of what a project offers. How far one
        person moves the values of a look is the look's own word. That its event is that of the noise which is
        drawn, for such values and this project's relation, is checked before the charge: ParameterError if not.
        A `step` of a journal is kept in the debit's transaction.
        """
        marginals = list(look.marginals)
        if any(marginal.moment is not None for marginal in marginals):
            raise QueryError("a look reads counts; moments are measured by `measure`")
        for marginal in marginals:
            counting_query(marginal.where, self.domain)
        event = look_event(look, self.relation, self.ledger.budget)
        check_look_price(event, marginals, self.ledger.budget, self.calibration)
        self._truth.check_size(marginals)
        return self._paid(
            self.versioned(event),
            look.key,
            ChargeTerms(request, analyst, step),
            lambda: released(look, self._truth.sums_of(marginals), noise=self._noise),
        )

    # ---- sparse vector

    def sparse(
        self,
        *,
        threshold: int,
        epsilon: Number,
        hits: int = 1,
        numeric: bool = False,
        queries: int | None = None,
        beta: Number = 0.05,
        share: Fraction | None = None,
        request: str | None = None,
        analyst: str = "",
    ) -> OpenSparseVector:
        """Open a sparse vector, which says of count after count whether it is above `threshold` people.

        `epsilon` is charged here, once, for everything that it will say until it has said "above" `hits` times;
        under a budget in ρ that costs ε²/(2·`hits`) at most. With `numeric` it also tells the noisy counts that
        are above.

        Where `queries` says how many values it will be asked about, threshold and comparisons share the price so
        that all of these answers are right as near to the threshold as can be, except with probability `beta`;
        else they share it equally, or as `share` says, which is the threshold's part, between 0 and 1. How they
        share it is kept with the sparse vector, and costs the same.

        The first noisy threshold, which no data go into, is drawn before the charge and kept with it.

        The same `request` gives the same sparse vector again, where it stood. One whose opening was interrupted
        after the charge is opened now: nothing was ever said by it. `analyst` is whose share of the budget pays.

        Returns an `OpenSparseVector`, whose `ask` puts the questions. Raises a `ParameterError` where a number is
        out of range, a `RequestConflictError` where the request was used for something else, and a
        `HandleClosedError` where the request's sparse vector has lost its state.
        """
        known = None if request is None else self.ledger.find(request)
        part = threshold_share(share, queries, beta, hits, known=None if known is None else known.question)
        mechanism = self._sparse_vector(
            threshold, exact(epsilon, "epsilon"), hits, numeric=numeric, share=part
        )
        question = sparse_question(threshold, hits, numeric=numeric, share=part)
        self._truth.check_unchanged()
        event: Event = mechanism.event
        if known is not None and known.event == SparseVector(epsilon=mechanism.epsilon):
            event = known.event  # opened by version 0.1, which recorded no hits and charged more
        journal = self.recorded(
            question,
            lambda text: Journal(
                self.ledger,
                text,
                name=request or "",
                analyst=analyst,
                event=event,
                start=lambda: mechanism.open(noise=self._noise).as_bytes(),
            ),
        )
        handle = OpenSparseVector(self._truth, journal, mechanism, self._noise)
        handle.check_open()
        return handle

    def _sparse_vector(
        self, threshold: int, epsilon: Fraction, hits: int, *, numeric: bool, share: Fraction
    ) -> AboveThreshold | NumericSparse:
        kind = NumericSparse if numeric else AboveThreshold
        moved = self.relation.moves(ONE_COUNT).of_distance.l1
        return kind(epsilon=epsilon, sensitivity=moved, threshold=threshold, hits=hits, share=share)

    # ---- exact values

    def exact(self, marginal: Marginal, *, resolution: int = 1) -> NDArray[np.int64]:
        """Exact sums over the rows of each cell of a `marginal`, for mechanisms that protect validity alone.

        They are whole numbers of steps of 1/`resolution`: counts of rows, where that is 1. They protect nobody's
        privacy, and nothing is charged. Raises a `ProtectionError` unless the project declares `protect:
        validity`, and a `TooLargeError` where the marginal has too many cells.
        """
        if self.declaration.protect is not Protect.VALIDITY:
            raise ProtectionError(
                "exact values are for projects that declare `protect: validity`; this one protects privacy"
            )
        return self._truth.sums(marginal, resolution=resolution)
