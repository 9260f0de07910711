"""An open sparse vector: charged once by the Curator, asked often."""

from __future__ import annotations

import re
from fractions import Fraction
from math import floor

from understudy.domain.domain import Domain
from understudy.errors import HandleClosedError, ParameterError, QueryError
from understudy.ledger.interface import Hidden
from understudy.ledger.journal import Journal
from understudy.mechanism.sparse_vector import HALF, AboveThreshold, NumericSparse, SparseState, best_share
from understudy.noise.samplers import NoiseSource
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, probability
from understudy.table.truth import Truth

MAX_GUESS = 2**60
"""Far above every count: a guess beyond would make the comparison overflow, or not, by what the count is."""

_SHARE = re.compile(r"sparse (?:numeric )?threshold -?\d+ hits \d+ share (\d+/\d+)")
"""How a sparse vector shares its price, as its record in the ledger says it; equally where it says nothing."""


def threshold_share(
    share: Fraction | None, queries: int | None, beta: Number, hits: int, *, known: str | None
) -> Fraction:
    """The threshold's part of a sparse vector's price.

    One that was opened before goes on as `known`, its recorded question, has it: in equal parts where that does
    not say. A new one has the given `share`, or the best one for so many `queries`, or an equal one.
    """
    if known is not None:
        kept = _SHARE.match(known)
        return HALF if kept is None else Fraction(kept[1])
    if share is not None:
        return share
    return HALF if queries is None else best_share(queries, float(probability(beta)), hits)


def sparse_question(threshold: int, hits: int, *, numeric: bool, share: Fraction) -> str:
    """A sparse vector and its public parameters, as a ledger records them."""
    question = f"sparse {'numeric ' if numeric else ''}threshold {threshold} hits {hits}"
    return question if share == HALF else f"{question} share {share}"


def counting_query(query: LinearQuery, domain: Domain) -> None:
    """Refuse, with a `QueryError`, a query that the sensitivity of a count would not be right for.

    It has to be about the declared `domain`, and its weights have to be 0 or 1.
    """
    if query.domain != domain:
        raise QueryError("the question is about another domain")
    if not query.is_counting:
        raise QueryError("selections and sparse vectors take counting queries: weights must be 0 or 1")


def whole_guess(guess: Fraction) -> int:
    """A public guess of a count, as a whole number."""
    if abs(guess) > MAX_GUESS:
        raise ParameterError("a guess of a count must be within 2^60 of 0")
    return floor(guess + Fraction(1, 2))


class OpenSparseVector:
    """A sparse vector that is open: `Curator.sparse` charges for it once, and `ask` may be called often.

    What it remembers, the noisy threshold and how often it has said "above", is hidden in its `journal` in the
    ledger; only its answers are seen. `mechanism` draws them, from the counts of `truth` and the bits of `noise`.
    """

    def __init__(
        self,
        truth: Truth,
        journal: Journal,
        mechanism: AboveThreshold | NumericSparse,
        noise: NoiseSource,
    ) -> None:
        self._truth = truth
        self._journal = journal
        self._mechanism = mechanism
        self._noise = noise

    def _latest(self) -> Hidden:
        latest = self._journal.latest()
        if latest is None:
            raise HandleClosedError(
                "this sparse vector's state was lost: it is closed, and its price is spent"
            )
        return latest

    def _open_state(self) -> SparseState:
        """Where it stands; refused once its hits are used up."""
        state = SparseState.from_bytes(self._latest().state)
        if state.above >= self._mechanism.hits:
            raise HandleClosedError(
                f"this sparse vector has given its {self._mechanism.hits} answers; open another"
            )
        return state

    def check_open(self) -> None:
        """Refuse, with a `HandleClosedError`, a sparse vector that was paid for but whose state is not stored."""
        self._latest()

    def alpha(self, k: int, beta: float) -> float:
        """How far from the threshold, in people, all of `k` answers are right, except with probability `beta`."""
        compared = self._mechanism.compare if isinstance(self._mechanism, NumericSparse) else self._mechanism
        return compared.alpha(k, beta)

    @property
    def hits_left(self) -> int:
        """How often it can still say "above" before it is closed; read from the ledger, and charged nothing.

        Raises a `HandleClosedError` where its state was lost.
        """
        return self._mechanism.hits - SparseState.from_bytes(self._latest().state).above

    def ask(self, query: LinearQuery, *, guess: Number | None = None) -> bool | int | None:
        """Whether the count of a `query`, or its distance from a public `guess`, is above the threshold.

        The query has weights 0 and 1; count and guess are in people, the guess rounded to a whole number. Returns
        True or False; where the sparse vector is numeric, the noisy value, or None when it is below. Nothing is
        charged here: opening it has paid. After a crash a question can be asked again: either its answer was kept,
        and the state moved on with it, or nothing was.

        Raises a `HandleClosedError` once it has said "above" as often as was paid for, a `QueryError` for a query
        of another domain or with other weights, and a `ParameterError` for a guess beyond 2^60.
        """
        state = self._open_state()
        counting_query(query, self._truth.domain)
        marginal = Marginal.of(query)
        target = None if guess is None else whole_guess(exact(guess, "guess"))
        count = int(self._truth.sums(marginal))
        value = count if target is None else abs(count - target)
        question = marginal.key if target is None else f"{marginal.key}?{target}"
        while True:
            answer, after = self._mechanism.ask(state, value, noise=self._noise)
            # Another thread's or process's answer may have come first: then this one was never released, and
            # the question is put again to the state that other answer left.
            if self._journal.add(question, answer, hidden=after.as_bytes()):
                return answer
            state = self._open_state()
