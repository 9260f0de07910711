"""Stability of a mechanism that answers questions, against every analyst of bounded depth at once, exactly.

For students of Lecture 4, and for auditors of stateful mechanisms (sparse vector, above-threshold), where the
usual bug, a coin used twice or one answer too many, shows only to an analyst who chooses the next query well.
That analyst is found, and returned as the counterexample.

[Lecture 4, Definition 3]  (c) M is (ε, δ)-DP-stable if for every analyst A the mechanism A∘M, which runs A
against M(S) and outputs the transcript and A's coins, is (ε, δ)-DP-stable.

Why a recursion over transcripts covers all analysts. Fix neighbours S, S′ and t = e^ε ≥ 1. Let P(τ) be the
probability, over M's coins alone, that M(S) gives the answers of the transcript τ to the queries of τ, and
Q(τ) the same for S′; neither depends on who asks. A deterministic analyst chooses one query at each transcript
that it can reach, so that its complete transcripts are disjoint events, and the best H against it has

    δ_A(t) = Σ_τ (P(τ) − tQ(τ))₊   over its complete transcripts τ.

Transcripts that go on from τ·(q, a) and from τ·(q, a′) are disjoint, and what A does after the answer a does
not bind it after a′. So the maximum over A may be taken one query at a time:

    value(τ) = max_q Σ_a value(τ·(q, a)),   value(τ) = (P(τ) − tQ(τ))₊ once the last query has been answered.

Stopping early is never better: P(τ) = Σ_a P(τ·(q, a)), likewise Q, and (x + y)₊ ≤ x₊ + y₊. An analyst that
tosses coins r, independent of S, outputs (r, τ), hence δ_A(t) = Σ_r Pr[r]·δ_{A_r}(t) ≤ max_r δ_{A_r}(t):
random analysts achieve no more than deterministic ones (the class exercise after Theorem 4).

`value` is computed as a function of t, not at one t: sums and maxima of curves are curves (`TradeOff`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from math import lcm
from typing import Any, NamedTuple, Protocol

from understudy.errors import ParameterError, QueryError
from understudy_textbook.stability import (
    Database,
    ExactLaw,
    Explanation,
    Law,
    Mechanism,
    Pairs,
    PrivacyCurve,
    Probability,
    Ratio,
    StabilityWitness,
    TradeOff,
    both_orders,
    exceeds,
)

Transcript = tuple[tuple[Any, Any], ...]
"""(query, answer) for each round so far."""

Analyst = Callable[[Transcript], Any]
"""A deterministic analyst: the next query after a transcript, or None to stop."""


class InteractiveMechanism(Protocol):
    """A mechanism with a hidden state. States, queries and answers are hashable; None is not a query."""

    def start(self, database: Database) -> Law:
        """The law of the hidden state before the first query."""
        ...

    def queries(self, transcript: Transcript) -> Sequence[Any]:
        """What may be asked next; nothing once M has halted.

        It sees only the transcript, since whether M has halted is visible to the analyst.
        """
        ...

    def answer(self, state: Any, query: Any) -> Law:
        """The law of (answer, next state)."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """A message towards the mechanism."""

    query: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """A message towards the analyst."""

    answer: Any


class Processor(Protocol):
    """F: stands between analyst and mechanism, sees every message, and never sees the data."""

    def start(self) -> Law:
        """The law of F's state before the first message."""
        ...

    def queries(self, transcript: Transcript) -> Sequence[Any]:
        """What the analyst may ask F next, given the transcript between the two."""
        ...

    def step(self, state: Any, message: Ask | Reply) -> Law:
        """The law of (next message, next state) on the analyst's Ask or the mechanism's Reply.

        The next message is an Ask for the mechanism or the Reply to the analyst.
        """
        ...


@dataclass(frozen=True, slots=True)
class PostProcessed:
    """F∘M: the analyst talks to `processor`, which puts at most `asks` queries to `mechanism` for each reply.

    Privacy  Against d queries, never above the curve of M against d·asks queries, at any ε: F is part of the
             analyst, and the transcript between A and F is post-processing of the one between F and M.
             [Lecture 4, Theorem 4], class exercise.
    """

    mechanism: InteractiveMechanism
    processor: Processor
    asks: int = 1

    def start(self, database: Database) -> Law:
        outer, inner = self.processor.start(), self.mechanism.start(database)
        return {(f, m, ()): outer[f] * inner[m] for f, m in product(outer, inner)}

    def queries(self, transcript: Transcript) -> Sequence[Any]:
        return self.processor.queries(transcript)

    def answer(self, state: Any, query: Any) -> Law:
        law: defaultdict[Any, Probability] = defaultdict(int)
        waiting: list[tuple[Any, Ask | Reply, Probability, int]] = [(state, Ask(query), 1, self.asks)]
        while waiting:
            (f, m, asked), message, weight, left = waiting.pop()
            for (next_message, next_f), chance in self.processor.step(f, message).items():
                if isinstance(next_message, Reply):
                    law[next_message.answer, (next_f, m, asked)] += weight * chance
                    continue
                if not left:
                    raise ParameterError(f"the processor put more than {self.asks} queries for one reply")
                offered(self.mechanism, asked, next_message.query)
                for (answer, next_m), likelihood in self.mechanism.answer(m, next_message.query).items():
                    told = (*asked, (next_message.query, answer))
                    following = (next_f, next_m, told), Reply(answer), weight * chance * likelihood, left - 1
                    waiting.append(following)
        return law


def interact(mechanism: InteractiveMechanism, analyst: Analyst, depth: int) -> Mechanism:
    """A∘M: the mechanism that outputs the transcript of `analyst` with M. [Lecture 4, Definition 3]

    The analyst puts at most `depth` queries. One that tosses coins is `then_both` of its coins and this: the
    coins are part of the output.
    """

    def law(database: Database) -> Law:
        finished: dict[Transcript, Probability] = {}
        live: dict[Transcript, Law] = {(): mechanism.start(database)}
        for _ in range(depth):
            extended: dict[Transcript, defaultdict[Any, Probability]] = {}
            for transcript, states in live.items():
                query = analyst(transcript) if mechanism.queries(transcript) else None
                if query is None:
                    finished[transcript] = sum(states.values())
                    continue
                offered(mechanism, transcript, query)
                for state, weight in states.items():
                    for (answer, following), chance in mechanism.answer(state, query).items():
                        told = (*transcript, (query, answer))
                        extended.setdefault(told, defaultdict(int))[following] += weight * chance
            live = dict(extended)
        return finished | {transcript: sum(states.values()) for transcript, states in live.items()}

    return law


def interactive_curve(mechanism: InteractiveMechanism, pairs: Pairs, depth: int) -> PrivacyCurve:
    """The privacy curve of M against all analysts, deterministic or not, that put at most `depth` queries.

    [Lecture 4, Definition 3]; the module says why. `worst(ε)` gives the analyst as well as the event.

    Complexity  For each pair, as many rational operations as transcripts times hidden states.
    """
    if depth < 1:
        raise ParameterError(f"the analyst must be allowed at least one query, not {depth}")
    game = _TranscriptTree(mechanism)
    cases: dict[TradeOff, Explanation] = {}
    for database, neighbour in both_orders(pairs):
        trade_off = game.trade_off((), game.opening(database, neighbour), depth)
        cases.setdefault(trade_off, partial(game.worst, database, neighbour, depth))
    return PrivacyCurve.worst_case(
        ((trade_off, [why] * len(trade_off.corners)) for trade_off, why in cases.items()),
        # The probability of a transcript is a product of this many.
        rounding=(depth + 1) * max((law.rounding for law in game.laws.values()), default=Fraction(0)),
    )


def offered(mechanism: InteractiveMechanism, transcript: Transcript, query: Any) -> None:
    """Refuse a query that `mechanism` does not take after `transcript`."""
    if query not in mechanism.queries(transcript):
        raise QueryError("this query is not among those the mechanism takes now; `queries` lists them")


@dataclass(frozen=True, slots=True)
class _Belief:
    """For each hidden state, its probability jointly with the transcript: under S, and under S′.

    Integers over one denominator, because sums and products of them need no greatest common divisors.
    """

    weights: dict[Any, tuple[int, int]]
    denominator: int

    def mass(self) -> tuple[Fraction, Fraction]:
        p, q = (sum(weight[side] for weight in self.weights.values()) for side in (0, 1))
        return Fraction(p, self.denominator), Fraction(q, self.denominator)


class _AnalystPlan(NamedTuple):
    """An analyst's choices from some transcript on, the event it bets on, and what that event is worth."""

    probability: Fraction
    neighbour_probability: Fraction
    event: tuple[Transcript, ...]
    analyst: dict[Transcript, Any]

    def gain(self, ratio: Ratio) -> Ratio:
        q = self.neighbour_probability
        return self.probability - ratio * q if q else self.probability


@dataclass(frozen=True, slots=True)
class _TranscriptTree:
    """The tree of transcripts of one mechanism, with the laws that were read off it so far."""

    mechanism: InteractiveMechanism
    laws: dict[tuple[Any, ...], ExactLaw] = field(default_factory=dict, compare=False, repr=False)

    def opening(self, database: Database, neighbour: Database) -> _Belief:
        for rows in (database, neighbour):
            if (rows,) not in self.laws:
                self.laws[(rows,)] = ExactLaw.of(self.mechanism.start(rows))
        own, other = self.laws[(database,)], self.laws[(neighbour,)]
        weights = {
            state: (
                own.numerators.get(state, 0) * other.denominator,
                other.numerators.get(state, 0) * own.denominator,
            )
            for state in own.numerators | other.numerators
        }
        return _Belief(weights, own.denominator * other.denominator)

    def moves(self, transcript: Transcript, belief: _Belief, depth: int) -> Sequence[Any]:
        """The queries worth asking: none once nothing that follows can change the best bet."""
        weights = belief.weights.values()
        if depth == 0 or all(p <= q for p, q in weights) or not any(q for _, q in weights):
            return ()
        return self.mechanism.queries(transcript)

    def branches(
        self, transcript: Transcript, belief: _Belief, query: Any
    ) -> Iterator[tuple[Transcript, _Belief]]:
        """What is known after each answer to `query`."""
        for state in belief.weights:
            if (state, query) not in self.laws:
                self.laws[state, query] = ExactLaw.of(self.mechanism.answer(state, query))
        scale = lcm(*(self.laws[state, query].denominator for state in belief.weights))
        after: dict[Any, dict[Any, tuple[int, int]]] = {}
        for state, (p, q) in belief.weights.items():
            law = self.laws[state, query]
            factor = scale // law.denominator
            p, q = p * factor, q * factor
            for (answer, following), chance in law.numerators.items():
                weights = after.setdefault(answer, {})
                p0, q0 = weights.get(following, (0, 0))
                weights[following] = p0 + p * chance, q0 + q * chance
        for answer, weights in after.items():
            yield (*transcript, (query, answer)), _Belief(weights, belief.denominator * scale)

    def trade_off(self, transcript: Transcript, belief: _Belief, depth: int) -> TradeOff:
        """value(τ) for every t at once."""
        queries = self.moves(transcript, belief, depth)
        if not queries:
            return TradeOff.outcome(*belief.mass())
        return TradeOff.best(
            TradeOff.total(
                self.trade_off(told, known, depth - 1)
                for told, known in self.branches(transcript, belief, query)
            )
            for query in queries
        )

    def plan(self, transcript: Transcript, belief: _Belief, depth: int, ratio: Ratio) -> _AnalystPlan:
        """value(τ) at t = `ratio`, with the choices that attain it."""
        queries = self.moves(transcript, belief, depth)
        if not queries:
            p, q = belief.mass()
            return _AnalystPlan(p, q, (transcript,), {}) if exceeds(p, q, ratio) else _NOTHING
        plans = []
        for query in queries:
            parts = [
                self.plan(told, known, depth - 1, ratio)
                for told, known in self.branches(transcript, belief, query)
            ]
            plan = _AnalystPlan(
                sum((part.probability for part in parts), Fraction(0)),
                sum((part.neighbour_probability for part in parts), Fraction(0)),
                tuple(told for part in parts for told in part.event),
                {transcript: query}
                | {told: choice for part in parts for told, choice in part.analyst.items()},
            )
            plans.append(plan)
        return max(plans, key=lambda plan: plan.gain(ratio))

    def worst(self, database: Database, neighbour: Database, depth: int, ratio: Ratio) -> StabilityWitness:
        plan = self.plan((), self.opening(database, neighbour), depth, ratio)
        return StabilityWitness(
            database, neighbour, plan.event, plan.probability, plan.neighbour_probability, plan.analyst
        )


_NOTHING = _AnalystPlan(Fraction(0), Fraction(0), (), {})
