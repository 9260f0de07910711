"""What random conjunctions cost with private multiplicative weights, and with what else there is.

10,000 questions of `interaction_workloads.conjunctions` on six attributes of Adult (71,680 cells, 48,842 rows),
all answers within α together with probability .95. Unit: as in `bench.interaction`, the price of one count with
Gaussian noise that is within α except with probability β/k. The ways:

direct         each distinct question bought by itself, prices added up; then with joint accounting
histogram      noise on every cell once, so little that the widest sum asked for is within α
textbook PMW   the theorem's parameters, whose error is α: step α'/2, at most 4 ln|X|/α'² updates on gaps of α'
projected PMW  practical terms: noise calibrated to α, a start from the attributes' own marginals, projections on
               the measured answers until they are consistent
session        the automatic session

A way that spends the largest budget there is, ε = 1000 at δ = 1e-9, before the last question stops there.
UNDERSTUDY_BENCH_QUESTIONS (default 10000) and UNDERSTUDY_BENCH_ALPHAS (default .05,.02,.01) make a short run;
UNDERSTUDY_BENCH_WAYS names the ways to run (default all).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np

from bench.interaction import ALPHAS, BETA, QUESTIONS, opened, questioned, units
from bench.interaction_workloads import ArrayTruth, adult, attributes, conjunctions
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.interactive.online import (
    OnlineConstruction,
    OnlineTerms,
    practical_terms,
    theorem_terms,
    warm_start,
)
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.standin.multiplicative import ConsistentWeights, LearntWeights, MultiplicativeWeights

ATTRIBUTES = ("education", "age", "marital-status", "race", "sex", "income>50K")
WAYS = os.environ.get("UNDERSTUDY_BENCH_WAYS", "direct,histogram,textbook PMW,projected PMW,session").split(
    ","
)
GAP_SHARE = Fraction(1, 8)
"""Of α, what a measured answer of the projected PMW may be off by."""

Found = tuple[float, float, str]
"""Units, the worst error as a part of α, and what there is to say."""


class Remembering(ArrayTruth):
    """Counts of six attributes fit into memory: questions are answered from the table of all cells."""

    def __init__(self, truth: ArrayTruth) -> None:
        place = [truth.domain.names.index(name) for name in ATTRIBUTES]
        sizes = {name: truth.domain[name].size for name in ATTRIBUTES}
        super().__init__(attributes(sizes), truth.codes[:, place])
        flat = np.ravel_multi_index(tuple(self.codes.T), self.domain.shape())
        cells = np.bincount(flat, minlength=self.domain.size()).reshape(self.domain.shape())
        object.__setattr__(self, "cells", cells)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> Any:
        del resolution
        table = self.cells  # type: ignore[attr-defined]
        for i, name in enumerate(self.domain.names):
            if name not in marginal.clique:
                table = table.sum(axis=i, keepdims=True)
        table = table.reshape(self.domain.shape(marginal.clique))
        table = table * marginal.where.weights(marginal.clique).astype(np.int64)
        return table.sum(axis=tuple(i for i, name in enumerate(marginal.clique) if name not in marginal.by))


def curator_of(truth: ArrayTruth) -> Curator:
    declared = Declaration(
        name="adult",
        source=SourceSpec("-"),
        domain=truth.domain,
        budget=Budget.of(1000, 1e-9),
        neighbours=Neighbours.REPLACE,
    )
    return Curator(truth, MemoryLedger(declared.budget), declared, noise=SeededNoise(5))  # type: ignore[arg-type]


def asked_in(
    mechanism: OnlineConstruction, queries: Sequence[LinearQuery], truth: ArrayTruth, alpha: float
) -> tuple[float, Counter[str]]:
    """The worst error, of those that are certified, as a part of α; where the answers came from."""
    sources: Counter[str] = Counter()
    known: set[str] = set()
    worst = 0.0
    for query in queries:
        if query.key in known:
            sources["repeat"] += 1
            continue
        known.add(query.key)
        try:
            answer = mechanism.ask(query)
        except InsufficientBudgetError:
            sources["BEYOND THE BUDGET"] += 1
            continue
        sources[answer.source] += 1
        if answer.source != "uncertified":
            worst = max(worst, abs(float(answer.value) - int(truth.sums(Marginal.of(query)))))
    return worst / (alpha * truth.rows), sources


def said(sources: Counter[str]) -> str:
    return ", ".join(f"{count} {source}" for source, count in sources.most_common())


def direct(truth: ArrayTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    del unit, queries
    session = opened(truth, alpha, (), "direct")
    sources, worst = questioned(conjunctions(truth.domain, QUESTIONS, 0), session, truth)
    joint, flat = units(session)
    return [(flat, worst, said(sources)), (joint, worst, "the same with joint accounting")]


def automatic(truth: ArrayTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    del unit, queries
    session = opened(truth, alpha, (), "auto")
    sources, worst = questioned(conjunctions(truth.domain, QUESTIONS, 0), session, truth)
    return [(units(session)[0], worst, said(sources))]


def histogram(truth: ArrayTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    """One cell moves by 1 in each of two cells, a count in one: hence twice the price for the same noise."""
    domain = truth.domain
    tables = [query.weights() for query in queries]
    widest = 0
    for weights in tables:
        held = int(weights.sum()) * domain.size() // weights.size
        widest = max(widest, min(held, domain.size() - held))
    curator = curator_of(truth)
    noisy = curator.measure(Marginal(domain, domain.names), rho=2 * widest * unit).noisy
    off = 0.0
    for query, weights in zip(queries, tables, strict=True):
        table = noisy.sum(axis=tuple(i for i, name in enumerate(domain.names) if name not in query.clique))
        off = max(off, abs(float((table * weights).sum()) - int(truth.sums(Marginal.of(query)))))
    paid = curator.ledger.spent.units / UNITS / unit
    return [(paid, off / (alpha * truth.rows), f"sums of up to {widest:,} cells")]


def textbook(truth: ArrayTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    curator, people = curator_of(truth), alpha * truth.rows

    def update(gap: Fraction) -> MultiplicativeWeights:
        return MultiplicativeWeights(domain=truth.domain, alpha=gap, step="textbook", threads=1)

    def terms(price: Fraction) -> OnlineTerms | None:
        try:
            return theorem_terms(curator, update, queries=QUESTIONS, rho=price, beta=BETA)
        except RefusedError:
            return None

    low, high = -20, 40  # powers of two, then of its 32nd root: within 3% of the least price
    while high - low > 1 / 32:
        middle = (low + high) / 2
        found = terms(Fraction(2.0**middle))
        low, high = (low, middle) if found is not None and found.error <= people else (middle, high)
    price = Fraction(2.0**high)
    chosen = terms(price)
    assert chosen is not None
    mechanism = OnlineConstruction(curator, update(Fraction(chosen.gap, truth.rows)), chosen)
    worst, sources = asked_in(mechanism, queries, truth, alpha)
    told = f"{said(sources)}; the theorem reserves {float(price) / unit:.3g} for {chosen.updates:,} updates"
    return [(curator.ledger.spent.units / UNITS / unit, worst, told)]


def projected(truth: ArrayTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    curator = curator_of(truth)
    most = min(max(round(10 / alpha), 100), QUESTIONS)
    terms = practical_terms(
        curator, alpha=alpha, queries=QUESTIONS, updates=most, beta=BETA, gap_share=GAP_SHARE
    )
    update = ConsistentWeights(domain=truth.domain, margin=Fraction(terms.gap, 2 * truth.rows), threads=1)
    start = LearntWeights(warm_start(curator, error=terms.gap, request="start"))
    mechanism = OnlineConstruction(curator, update, terms, start=start)
    worst, sources = asked_in(mechanism, queries, truth, alpha)
    each = curator.ledger.spent.units / UNITS / unit / max(mechanism.updates, 1)
    told = f"{said(sources)}; {each:.0f} an update"
    return [(curator.ledger.spent.units / UNITS / unit, worst, told)]


NAMES: dict[str, Callable[[ArrayTruth, float, float, Sequence[LinearQuery]], list[Found]]] = {
    "direct": direct,
    "histogram": histogram,
    "textbook PMW": textbook,
    "projected PMW": projected,
    "session": automatic,
}


def main() -> None:
    whole = adult()
    if whole is None:
        print("  the Adult table is not there")
        return
    truth = Remembering(whole)
    queries = [marginal.where for marginal in conjunctions(truth.domain, QUESTIONS, 0)]
    print(f"{QUESTIONS:,} conjunctions on {truth.domain.size():,} cells of Adult, {truth.rows:,} rows; units")
    for alpha in ALPHAS:
        unit = opened(truth, alpha, (), "direct")._chooser._unit
        found: dict[str, list[Found]] = {}
        for name in WAYS:
            start = process_time()
            found[name] = NAMES[name](truth, alpha, unit, queries)
            for paid, worst, told in found[name]:
                took = f"{process_time() - start:.0f} CPU s"
                print(
                    f"  α {alpha:<5g} {name:14} {paid:14,.0f}   worst {worst:.2f} α; {took}; {told}",
                    flush=True,
                )
        if "session" in found and len(found) > 1:
            [(ours, _, _)] = found["session"]
            ratios = ", ".join(
                f"{name} {paid / ours:.3g}"
                for name in WAYS
                for paid, _, _ in found[name]
                if name != "session"
            )
            print(f"  α {alpha:<5g} times the session: {ratios}", flush=True)


if __name__ == "__main__":
    main()
