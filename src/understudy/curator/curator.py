"""The Curator: holds the truth and the ledger, and is the only door to the data.

Every request goes the same way: validate it without data, charge its event, look, keep the answer, release it.
What is charged is the event of the very mechanism object that then runs, so the two cannot differ.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.calibration import (
    Calibration,
    Mechanism,
    PreparedMeasurement,
    flat_events,
    noise_name,
)
from understudy.curator.charge_terms import ChargeTerms
from understudy.curator.question_text import changed_since, respelt, spelt
from understudy.curator.row_sums import RowSumReader
from understudy.curator.sparse_handle import SparseHandle, counting_query, whole_guess
from understudy.declaration.declaration import Declaration, Protect
from understudy.domain.domain import Clique
from understudy.domain.refinement import coarse_cells, refines
from understudy.errors import (
    ParameterError,
    ProtectionError,
    QueryError,
    RefusedError,
    RequestConflictError,
    UnderstudyError,
)
from understudy.ledger.books import Due, short_question
from understudy.ledger.interface import Debit, JournalStep, Ledger, WantedCharge, fresh_request
from understudy.ledger.journal import Journal
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.look import Look, check_known, checked_event, released
from understudy.mechanism.matrix.many_marginals import PartsNoise
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.mechanism.sparse_vector import HALF, AboveThreshold, NumericSparse, best_share
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, Located, SparseVector, Together, is_immovable
from understudy.privacy.price import Price
from understudy.privacy.region import located_stack
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.rational import Number, exact, probability
from understudy.table.read_record import ReadRecord
from understudy.table.truth import Truth

Result = TypeVar("Result")

SHARE = re.compile(r"sparse (?:numeric )?threshold -?\d+ hits \d+ share (\d+/\d+)")
"""How a sparse vector shares its price, as its handle's record says it; equally where it says nothing."""


PORTION_SECONDS = 0.05
"""How long the looks of `perform_all` may take before the answers that are there are kept and handed over."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query and a public guess of its count: a private selection looks for the worst guess."""

    query: LinearQuery
    guess: Fraction


class Paid(NamedTuple):
    """What a look released, and the debit that it was charged."""

    debit: Debit
    released: Any


@dataclass(frozen=True, slots=True)
class MeasurementOrder:
    """A measurement as `perform_all` takes it, with the arguments of `perform`."""

    prepared: PreparedMeasurement
    request: str | None = None
    analyst: str = ""
    words: str | None = None


class _Bought(NamedTuple):
    """A measurement that was checked: what is charged, under which names, and the look that is paid for."""

    measured: tuple[PreparedMeasurement, tuple[Event, ...]]
    event: Event
    question: str
    terms: ChargeTerms
    look: Callable[[], Any]


class Curator:
    """The only door to one table: it charges the ledger, durably, and only then looks and adds noise.

    A project has one (`Project.curator`). `measure` and `measure_all` give noisy counts, `choose` picks a
    candidate privately, `sparse` opens a handle that compares many counts with a threshold for one price; `quote`
    and `calibration` say beforehand what a measurement costs and how far off it can be. Prices are in epsilon
    or rho, errors in people. What decides a price, a refusal or the next step is public or was released before.

    Every call that charges takes two names. `request` is the caller's name for the purchase: the same name with
    the same question is charged once and gets the same answer again, and with another question raises
    `RequestConflictError`; without one, each call is a purchase of its own. `analyst` is whose share of the budget
    pays, where the declaration has shares. Where the ledger cannot pay, `InsufficientBudgetError` is raised; where
    the table changed under the program, `SourceChangedError`. Nothing is charged then.

    `noise` is the operating system's unless a test or a simulation passes another source. `reading` is what the
    custodian's own reading of the table has found; None where there was none.
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
        self._truth = truth
        self.reading = reading
        self._noise: NoiseSource = SystemNoise() if noise is None else noise
        self.ledger = ledger
        self.declaration = declaration
        self.domain = declaration.domain
        """The declared domain of the table."""
        self.relation = declaration.relation
        """The declared neighbours, which every look protects."""
        public = self.relation.rows_are_public
        self.calibration = Calibration(
            self.domain,
            self.relation,
            ledger.budget,
            lambda: truth.rows if public else declaration.rows_at_most,
        )
        """What a measurement costs and how far off it can be, before anything is charged."""
        self.row_sums = RowSumReader(
            ledger,
            self.relation,
            version=truth.version,
            is_file=truth.is_file,
            opening=declaration.opening,
        )
        """Whether all that was spent is noise on sums over rows, and what it adds up to."""
        self._known: WeakKeyDictionary[
            PreparedMeasurement, tuple[tuple[object, ...], tuple[tuple[Event, ...], str]]
        ] = WeakKeyDictionary()
        """Of measurements that were examined: all that they were examined with, their events and question."""

    def __repr__(self) -> str:
        return f"Curator({self.declaration.name!r})"

    def check_readable(self, marginals: Iterable[Marginal]) -> None:
        """Refuse a question about attributes that the custodian found to be unreadable. Reads no data."""
        if self.reading is not None:
            self.reading.check(name for marginal in marginals for name in marginal.reads)

    def check_all_readable(self) -> None:
        """Refuse what shows every attribute, where the custodian found one to be unreadable. Reads no data."""
        if self.reading is not None:
            self.reading.check(self.domain.names)

    @property
    def edition(self) -> str:
        """What is added to a question about a file: one that was answered from another version is another one.

        Frames have none, so that a notebook goes on with its frame, and neither have databases: there the caller
        sees to it that a name is not used again for other rows.
        """
        return f" @{self._truth.version}" if self._truth.is_file else ""

    def recorded(self, question: str, under: Callable[[str], Result]) -> Result:
        """What `under` makes of the question with its edition, as the ledger records it or will.

        Version 0.1 told a file's versions apart by less: modification time and inode. What it recorded goes on
        under the edition that it wrote, as long as these two are the same. What it charged and never answered is
        not looked at any more: by what is compared now, the rows may be others.
        """
        try:
            return under(question + self.edition)
        except RequestConflictError as conflict:
            before = f"{question} @{self._truth.former_version}"
            if self._truth.former_version is None or conflict.question != short_question(before):
                raise
            return under(before)

    def close(self) -> None:
        """Let go of the table: whatever would look at it, or charge for it, is refused from then on."""
        self._truth.close()

    @property
    def column_types(self) -> dict[str, str]:
        """The engine's names of the types of the table's columns; none of a file of text.

        A schema is taken for public: neighbouring tables have the same. Nothing is charged and no row is read.
        """
        return self._truth.column_types

    # ---- what is public about the number of rows

    @property
    def rows(self) -> int:
        """The number of rows, where it is public (`neighbours: replace`); else RefusedError."""
        if not self.relation.rows_are_public:
            raise RefusedError(
                "under `neighbours: add-remove` the number of rows is private", remedy="ask for it, `count`"
            )
        return self._truth.rows

    @property
    def rows_at_least(self) -> int:
        """A public lower bound on the number of rows: their number, or the declared one; RefusedError without."""
        if self.relation.rows_are_public:
            return self._truth.rows
        if self.declaration.rows_at_least is None:
            raise RefusedError(
                "this needs a public lower bound on the number of rows",
                remedy="declare `rows: {at_least: …}`",
            )
        return self.declaration.rows_at_least

    @property
    def rows_at_most(self) -> int | None:
        """A public upper bound on the number of rows: their number, or the declared one; None without."""
        return self.calibration.rows_at_most()

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """Refuse, with a `TooLargeError`, marginals that could not be counted at once. Reads no data."""
        self._truth.check_size(marginals)

    def anticipate(self, cliques: Iterable[Clique]) -> None:
        """Say which cliques will be looked at, each when it is paid for: they can be counted in one pass."""
        tell = getattr(self._truth, "anticipate", None)  # only what counts rows can count ahead
        if tell is not None:
            tell(cliques)

    def one_question(self, marginals: Sequence[Marginal]) -> AbstractContextManager[None]:
        """While this thread buys what a question needs, in several looks: rows of a database are scanned once.

        Each look is charged before it is told anything, as ever.
        """
        tell = getattr(self._truth, "one_question", None)
        declared = [one.clique for one in marginals if one.domain == self.domain and one.moment is None]
        return nullcontext() if tell is None else tell(declared)

    # ---- measuring

    def quote(self, marginal: Marginal, *, epsilon: Number | None = None, rho: Number | None = None) -> Cost:
        """What `measure` would be charged now, in the ledger's currency, given what was charged before.

        That may be more or less than the price: questions about different people share a cost. Reads no data.
        """
        mechanism, _ = self.calibration.mechanism(marginal, Price.of(epsilon=epsilon, rho=rho))
        return self.ledger.quote(self._located([marginal], mechanism))

    def _located(self, marginals: Sequence[Marginal], mechanism: Mechanism) -> Event:
        """What is charged for a stack: its noise, the cells that it is about, and the version of the table."""
        return self.versioned(self.located(marginals, mechanism))

    def located(self, marginals: Sequence[Marginal], mechanism: Mechanism) -> Event:
        """The noise of a stack with the declared cells that it is about, whatever the version of the table is."""
        if isinstance(mechanism, QuantileMechanism):
            return mechanism.event
        if isinstance(mechanism, QuantileHierarchy):  # its counts are those of a partition of these rows
            return _one_event(tuple(self.located(marginals, one) for one in mechanism.rounds))
        if marginals[0].domain == self.domain:
            return located_stack(marginals, mechanism.event, self.relation)
        # Rows of a person are left out, and a region must be about the same rows always.
        declared = [self._declared_cells(marginal) for marginal in marginals]
        alone = sum(m.size for m in declared) == 1 < sum(m.size for m in marginals)
        if self.declaration.unit is not None or alone:
            return mechanism.event
        return located_stack(declared, mechanism.event, self.relation)

    def _declared_cells(self, marginal: Marginal) -> Marginal:
        """The marginal of all rows in declared cells of which a part meets its condition: a larger region."""
        held: dict[str, NDArray[np.float64]] = {}
        for factor in marginal.where.factors:
            for axis, name in enumerate(factor.clique):
                others = tuple(i for i in range(factor.weights.ndim) if i != axis)
                cells = np.zeros(self.domain[name].size)
                some = np.atleast_1d(factor.weights.any(axis=others) if others else factor.weights > 0)
                cells[coarse_cells(marginal.domain, self.domain, name)[some]] = 1.0
                held[name] = cells
        return Marginal(self.domain, marginal.by, LinearQuery.conjunction(self.domain, held))

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

    def versioned(self, event: Event) -> Event:
        """The event with the version of the table in it; plain noise where nothing tells one version from another.

        A person may have another row in another version of the table, and other rows count where the declaration
        cuts them otherwise: such events must not be priced jointly.
        """
        if isinstance(event, Together):
            return Together(tuple(self.versioned(part) for part in event.events))
        if not isinstance(event, Located):
            return event
        version = self._truth.version
        return event.noise if version is None else replace(event, relation=f"{event.relation} @{version}")

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
        """Noisy counts, in people, for each cell of a marginal: Laplace noise for `epsilon`, Gaussian for `rho`.

        All cells are within the answer's `error` together, with probability 1 - `beta`. Raises ParameterError
        unless exactly one price is given, and where its noise cannot be drawn.
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
        """An answer for each of several marginals, each at the given price or its own, in one debit.

        All are paid and answered, or none. `beta` is the probability of failure of each answer on its own.
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

        A `step` of a journal is kept in the transaction of the debit. `words` are the question as it was
        asked, empty where it was not asked in words: the ledger keeps them for its readers, and does not
        compare them.
        """
        if not prepared.marginals:
            return []
        bought = self._checked(prepared, ChargeTerms(request, analyst, step, words))
        return self._answers(bought, self._paid(bought.event, bought.question, bought.terms, bought.look))

    def perform_all(
        self, orders: Sequence[MeasurementOrder]
    ) -> Iterator[list[tuple[int, list[Answer] | Exception]]]:
        """`perform` for several measurements, each charged and answered on its own, in two transactions for all.

        Yields portions: for each of some orders, its place among them and its answers, or what `perform` would
        raise for it. Portions come as soon as their answers are kept: all at once, unless looks take longer than
        `PORTION_SECONDS`. Charges come before looks, and all looks of an order after its own charge. A request
        that was charged before is performed by itself. Raises a LedgerError or a SourceError where nothing could
        be charged or kept, for all orders that are left.
        """
        self._truth.check_unchanged()
        told: list[tuple[int, list[Answer] | Exception]] = []
        bought: list[tuple[int, _Bought]] = []
        for place, order in enumerate(orders):
            terms = ChargeTerms(order.request or fresh_request(), order.analyst, None, order.words)
            try:
                if order.prepared.marginals:
                    bought.append((place, self._checked(order.prepared, terms)))
                else:
                    told.append((place, []))
            except UnderstudyError as refusal:
                told.append((place, refusal))
        debits = self.ledger.charge_all(
            [
                WantedCharge(
                    one.event,
                    spelt(one.terms.words or "", one.question) + self.edition,
                    one.terms.request or "",
                    one.terms.analyst,
                )
                for _, one in bought
            ]
        )
        kept: list[tuple[int, _Bought, Debit, bytes]] = []
        began = time.monotonic()
        for (place, one), debit in zip(bought, debits, strict=True):
            try:
                if isinstance(debit, Debit) and not debit.repeated:
                    kept.append((place, one, debit, _as_json(one.look())))
                elif isinstance(
                    debit, (Debit, RequestConflictError)
                ):  # charged before, perhaps in other words
                    told.append((place, self._answers(one, self._paid(*one[1:]))))
                else:
                    told.append((place, debit))
            except Exception as error:
                told.append((place, error))
            if time.monotonic() > began + PORTION_SECONDS:
                yield told + self._settled(kept)
                told, kept, began = [], [], time.monotonic()
        if told or kept:
            yield told + self._settled(kept)

    def _settled(
        self, looked: Sequence[tuple[int, _Bought, Debit, bytes]]
    ) -> list[tuple[int, list[Answer] | Exception]]:
        """Keep what some looks released, in one transaction; what is kept is released."""
        kept = self.ledger.settle_all([(debit, answer) for _, _, debit, answer in looked])
        return [
            (
                place,
                known if isinstance(known, Exception) else self._answers(one, Paid(debit, json.loads(known))),
            )
            for (place, one, debit, _), known in zip(looked, kept, strict=True)
        ]

    def _checked(self, prepared: PreparedMeasurement, terms: ChargeTerms) -> _Bought:
        """What is charged for a measurement and looked at for it, once it is certain that the two fit."""
        marginals, built = prepared.marginals, prepared.mechanisms
        if sorted(place for stack in prepared.stacks for place in stack) != list(range(len(marginals))):
            raise ParameterError(
                "a measurement was prepared in which some marginal is charged never or twice"
            )
        self._counted_by(marginals)  # what it refuses is refused here, and not when it was paid for
        drawn = tuple(_noise_of(prepared, stack) for stack in prepared.stacks)
        held = drawn, built, marginals, prepared.stacks
        known = self._known.get(prepared)
        if known is None or known[0] != held:  # what is known holds for the very noise that will be drawn
            known = self._known[prepared] = held, self._examined(prepared)
        events, question = known[1]

        def look() -> list[list[int]]:
            truth = self._counted_by(marginals)
            summed = [i for i, m in enumerate(marginals) if not isinstance(m.moment, QuantileEnd)]
            sums = self._sums(truth, [marginals[i] for i in summed], [built[i][1] for i in summed])
            values = dict(zip(summed, sums, strict=True))
            told = dict[int, list[int]]()
            for stack in prepared.stacks:
                mechanism = built[stack[0]][0]
                if isinstance(mechanism, QuantileMechanism):
                    tables = truth.step_tables(marginals[stack[0]])
                    told[stack[0]] = [mechanism.draw(*table, noise=self._noise) for table in tables]
                elif isinstance(mechanism, QuantileHierarchy):
                    drawn = mechanism.draw_all(truth.step_tables(marginals[stack[0]]), noise=self._noise)
                    told.update((place, _ends_of(marginals[place], mechanism, drawn)) for place in stack)
                else:
                    for place in stack:
                        told[place] = mechanism.release(values[place], noise=self._noise).ravel().tolist()
            return [told[place] for place in range(len(marginals))]

        return _Bought((prepared, events), _one_event(events), question, terms, look)

    def _examined(self, prepared: PreparedMeasurement) -> tuple[tuple[Event, ...], str]:
        """The events of a measurement and its question; refused where its noise is not the one that it needs.

        It depends on what is declared and on the measurement alone, which never change.
        """
        marginals, built = prepared.marginals, prepared.mechanisms
        for stack in prepared.stacks:
            members, (mechanism, resolution) = [marginals[i] for i in stack], built[stack[0]]
            one = all(built[i] == (mechanism, resolution) for i in stack)
            moved = self.calibration.sensitivity(*members, resolution=resolution)
            if not one or mechanism.event != mechanism.event_for(moved) or not self._fits(members, mechanism):
                raise ParameterError(
                    "a measurement was prepared with noise for another sensitivity than its counts have under "
                    f"`{self.relation}`: prepare it with this Curator"
                )
        self._counted_by(marginals).check_size(marginals)
        return self._events(prepared), "measure " + "; ".join(marginal.key for marginal in marginals)

    def _fits(self, members: Sequence[Marginal], mechanism: Mechanism) -> bool:
        """Whether a mechanism is of the kind that marginals are released by; of quantiles, for these very ends."""
        ends = [one.moment for one in members if isinstance(one.moment, QuantileEnd)]
        if isinstance(mechanism, QuantileHierarchy):
            levels = tuple(sorted({end.level for end in ends}))
            fits = len(ends) == len(members) > 1 and mechanism.levels == levels
            return fits and mechanism.steps == ends[0].measures(self.domain)[0].steps
        if not isinstance(mechanism, QuantileMechanism):
            return not ends
        return len(ends) == len(members) == 1 and (mechanism.level, mechanism.side, mechanism.steps) == (
            ends[0].level,
            ends[0].side,
            ends[0].measures(self.domain)[0].steps,
        )

    def _answers(self, bought: _Bought, paid: Paid) -> list[Answer]:
        """The answers of a measurement: what was released for each marginal, and its part of the cost."""
        prepared, events = bought.measured
        costs = self._shares(paid.debit.cost, prepared.stacks, events)
        return [
            self._answer(marginal, np.array(steps, np.int64), cost, built, error, prepared.beta)
            for marginal, steps, cost, built, error in zip(
                prepared.marginals, paid.released, costs, prepared.mechanisms, prepared.errors, strict=True
            )
        ]

    def _shares(self, cost: Cost, stacks: Sequence[Sequence[int]], events: Sequence[Event]) -> list[Cost]:
        """What was charged, shared out among the marginals; the parts add up to it.

        In proportion to what each stack costs on its own: those of a stack share its price equally.
        """
        whole = lcm(*map(len, stacks))
        weights: dict[int, int] = {}
        for stack, event in zip(stacks, events, strict=True):
            units = self.ledger.budget.price(event).units
            weights.update(dict.fromkeys(stack, units * (whole // len(stack))))
        shares: list[Cost] = []
        left, weight = cost.units, sum(weights.values())
        for place in range(len(weights)):
            part = left * weights[place] // weight if weight else 0
            shares.append(type(cost)(part))
            left, weight = left - part, weight - weights[place]
        return shares

    def due(self, prepared: PreparedMeasurement, *, request: str | None = None, analyst: str = "") -> Due:
        """What `perform` would be charged for a measurement now, and whether it could be paid. Writes nothing.

        A request that was charged before costs nothing more, and neither does a measurement of nothing.
        """
        nothing = request is not None and self.ledger.find(request) is not None
        events = () if nothing else self._events(prepared)
        due = self.ledger.due(_one_event(events), analyst=analyst)
        return due if events else replace(due, payable=True)

    def _events(self, prepared: PreparedMeasurement) -> tuple[Event, ...]:
        """What is charged for each stack: its noise, the cells that it is about, and the version of the table."""
        marginals, built = prepared.marginals, prepared.mechanisms
        return tuple(
            self._located([marginals[i] for i in stack], built[stack[0]][0]) for stack in prepared.stacks
        )

    def _sums(
        self, truth: Truth, marginals: Sequence[Marginal], resolutions: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Sums in steps of each marginal's own resolution; one pass for each resolution that occurs."""
        found: dict[int, NDArray[np.int64]] = {}
        for resolution in set(resolutions):
            places = [i for i, own in enumerate(resolutions) if own == resolution]
            sums = truth.sums_of([marginals[i] for i in places], resolution=resolution)
            found.update(zip(places, sums, strict=True))
        return [found[i] for i in range(len(marginals))]

    def _answer(
        self,
        marginal: Marginal,
        steps: NDArray[np.int64],
        cost: Cost,
        built: tuple[Mechanism, int],
        error: float,
        beta: Number,
    ) -> Answer:
        mechanism, resolution = built
        noisy = steps.reshape(marginal.shape) / resolution
        public = self.calibration.is_public(marginal)
        return Answer(
            query=marginal,
            value=self._possible(noisy, marginal.moment),
            error=np.full(marginal.shape, float(error)),
            noisy=noisy,
            cost=cost,
            beta=float(exact(beta)),
            source="public" if public else "measured",
            noise=None if public else noise_name(mechanism),
        )

    def _possible(
        self, noisy: NDArray[np.float64], moment: Moment | QuantileEnd | None
    ) -> NDArray[np.float64]:
        """Counts clipped to what is possible: never further from the truth than before."""
        if isinstance(moment, QuantileEnd):
            return noisy
        if moment is None:
            return np.clip(noisy, 0, self.rows_at_most)
        if self.rows_at_most is None:
            return noisy if moment.low else np.maximum(noisy, 0.0)
        return np.clip(noisy, float(moment.low) * self.rows_at_most, float(moment.high) * self.rows_at_most)

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

        Counts and guesses are in people; guesses are rounded to whole ones. Raises ParameterError without
        candidates and QueryError for a query whose weights are not 0 and 1.
        """
        if not candidates:
            raise ParameterError("a selection needs at least one candidate")
        marginals = [Marginal.of(candidate.query) for candidate in candidates]
        for candidate in candidates:
            counting_query(candidate.query, self.domain)
        moved = max(self.calibration.sensitivity(marginal).l1 for marginal in marginals)
        mechanism = ExponentialMechanism(epsilon=exact(epsilon, "epsilon"), sensitivity=moved)
        guesses = [whole_guess(candidate.guess) for candidate in candidates]
        self._truth.check_size(marginals)

        def look() -> int:
            counts = self._truth.sums_of(marginals)
            gaps = [abs(int(count) - guess) for count, guess in zip(counts, guesses, strict=True)]
            return mechanism.choose(np.array(gaps, dtype=np.int64), noise=self._noise)

        keys = " ".join(f"{m.key}?{guess}" for m, guess in zip(marginals, guesses, strict=True))
        return self._paid(mechanism.event, f"choose {keys}", ChargeTerms(request, analyst), look).released

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
        event = self._event_of(look)
        self._check_price(event, marginals)
        self._truth.check_size(marginals)
        return self._paid(
            self.versioned(event),
            look.key,
            ChargeTerms(request, analyst, step),
            lambda: released(look, self._truth.sums_of(marginals), noise=self._noise),
        )

    def _event_of(self, look: Look) -> Event:
        """The event that a look is charged here, without the version of the table; raises as `checked_event`.

        Noise of several variances is recorded as one of variance 1, at the same ρ; where the ledger's filter
        prices discrete noise by its variance, as one of the least variance that is drawn.
        """
        event, drawn = checked_event(look, self.relation), look.mechanism
        if isinstance(drawn, PartsNoise) and self.ledger.budget.filter.reads_variance:
            return drawn.at_scale(event)
        return event

    def _check_price(self, event: Event, marginals: Sequence[Marginal]) -> None:
        """Refuse a look that costs nothing, unless nobody can move what it reads or what gets the noise.

        The latter is so where all cells are merged into one and the number of rows is public: then the event is
        noise for a sensitivity of 0.
        """
        if self.ledger.budget.price(event).units or is_immovable(event):
            return
        if any(self.calibration.sensitivity(marginal).l1 for marginal in marginals):
            raise ParameterError(
                "a look at counts that a person can move has a price, and this one names none"
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
    ) -> SparseHandle:
        """Open a sparse vector: a handle that says of count after count whether it is above `threshold` people.

        `epsilon` is charged here, once, for everything that the handle will say until it has said "above" `hits`
        times. A `numeric` handle also tells the noisy counts that are above.

        Where `queries` says how many values it will be asked about, threshold and comparisons share the price so
        that all of these answers are right as near to the threshold as can be, except with probability `beta`;
        else they share it equally, or as `share` says, which is the threshold's part. How they share it is kept
        with the handle, and costs the same.

        The first noisy threshold, which no data go into, is drawn before the charge and kept with it.

        The same `request` gives the same handle again, where it stood. One whose opening was interrupted after
        the charge is opened now: nothing was ever said by it.
        """
        known = None if request is None else self.ledger.find(request)
        if share is None:
            share = HALF if queries is None else best_share(queries, float(probability(beta)), hits)
        if known is not None:  # a handle goes on as it was opened; without a word, in equal parts
            kept = SHARE.match(known.question)
            share = HALF if kept is None else Fraction(kept[1])
        mechanism = self._sparse_vector(
            threshold, exact(epsilon, "epsilon"), hits, numeric=numeric, share=share
        )
        question = f"sparse {'numeric ' if numeric else ''}threshold {threshold} hits {hits}"
        question += "" if share == HALF else f" share {share}"
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
        handle = SparseHandle(self._truth, journal, mechanism, self._noise)
        handle.check_open()
        return handle

    def _sparse_vector(
        self, threshold: int, epsilon: Fraction, hits: int, *, numeric: bool, share: Fraction
    ) -> AboveThreshold | NumericSparse:
        kind = NumericSparse if numeric else AboveThreshold
        moved = self.relation.moves(ONE_COUNT).of_distance.l1
        return kind(epsilon=epsilon, sensitivity=moved, threshold=threshold, hits=hits, share=share)

    # ---- the exact door

    def exact(self, marginal: Marginal, *, resolution: int = 1) -> NDArray[np.int64]:
        """Exact sums in steps of 1/`resolution`, for mechanisms that protect validity alone.

        Raises ProtectionError unless the project declares `protect: validity`.
        """
        if self.declaration.protect is not Protect.VALIDITY:
            raise ProtectionError(
                "exact values are for projects that declare `protect: validity`; this one protects privacy"
            )
        return self._truth.sums(marginal, resolution=resolution)

    # ---- the one way

    def _charge(self, event: Event, question: str, terms: ChargeTerms) -> Debit:
        """The debit of an event for a question about this version of the table: a new one, or the request's.

        Raises a `RequestConflictError` that says so where the request was answered from another version.
        """
        name = terms.request or fresh_request()

        def charged(text: str) -> Debit:
            return self.ledger.charge(
                event, question=text, request=name, analyst=terms.analyst, step=terms.step
            )

        try:
            try:
                return self.recorded(spelt(terms.words or "", question), charged)
            except RequestConflictError:  # nothing was charged: it may be this question in other words
                known = None if terms.words is None else self.ledger.find(name)
                if known is None:
                    raise
                return self.recorded(respelt(known.question, question), charged)
        except RequestConflictError as conflict:
            raise changed_since(conflict, question, self.edition) from None

    def _paid(self, event: Event, question: str, terms: ChargeTerms, look: Callable[[], Any]) -> Paid:
        """Charge, look, keep, release. A request that was answered before gets the same answer.

        What `look` returns is kept as JSON: whole numbers and lists of them, just as they were released.
        """
        self._truth.check_unchanged()
        debit = self._charge(event, question, terms)
        known = self.ledger.answered(debit) if debit.repeated else None
        if known is None and debit.event != event:
            # Other rows may have been charged for; so they may by version 0.1, which told versions apart by less.
            raise RequestConflictError(
                f"the request {debit.request!r} was charged for another version of the table, "
                "and never answered",
                remedy="take a new one",
            )
        if known is None:
            known = self.ledger.settle(debit, _as_json(look()))
        return Paid(debit, json.loads(known))


def _noise_of(prepared: PreparedMeasurement, stack: Sequence[int]) -> tuple[Event, ...]:
    """The events of the noise that is drawn for the marginals of a stack, as their mechanisms have it now."""
    mechanisms = [prepared.mechanisms[place][0] for place in stack]
    for mechanism in mechanisms:
        check_known(mechanism)
    return tuple(mechanism.event for mechanism in mechanisms)


def _as_json(told: Any) -> bytes:
    """What a look released, as it is kept."""
    return json.dumps(told, separators=(",", ":")).encode()


def _one_event(events: tuple[Event, ...]) -> Event:
    return events[0] if len(events) == 1 else flat_events(events)


def _ends_of(
    marginal: Marginal, mechanism: QuantileHierarchy, drawn: Sequence[Sequence[tuple[int, int, int]]]
) -> list[int]:
    """What was found for a marginal in each of its cells: one end of one level, or the estimate."""
    end = marginal.moment
    assert isinstance(end, QuantileEnd)
    level, side = mechanism.levels.index(end.level), ("low", "point", "high").index(end.side)
    return [cell[level][side] for cell in drawn]
