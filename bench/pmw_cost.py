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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from bench.clock import clocked
from bench.curating import CellTruth, curator_over
from bench.interaction import BETA, BUDGET, opened, questioned, units
from bench.interaction_workloads import adult, conjunctions
from bench.tables import NotAtHand
from bench.verdict import Verdict, not_run, shown
from understudy.curator.curator import Curator
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.lectures.online import OnlineConstruction, warm_start
from understudy.lectures.online_terms import OnlineTerms, practical_terms, theorem_terms
from understudy.privacy.cost import UNITS
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.standin.multiplicative import ConsistentWeights, LearntWeights, MultiplicativeWeights

ATTRIBUTES = ("education", "age", "marital-status", "race", "sex", "income>50K")
GAP_SHARE = Fraction(1, 8)
"""Of α, what a measured answer of the projected PMW may be off by."""

Found = tuple[float, float, str]
"""Units, the worst error as a part of α, and what there is to say."""


def curator_of(truth: CellTruth) -> Curator:
    return curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5)


def asked_in(
    mechanism: OnlineConstruction, queries: Sequence[LinearQuery], truth: CellTruth, alpha: float
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


def direct(truth: CellTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    del unit
    session = opened(truth, alpha, (), "direct", questions=len(queries))
    sources, worst = questioned(conjunctions(truth.domain, len(queries), 0), session, truth)
    joint, flat = units(session)
    return [(flat, worst, said(sources)), (joint, worst, "the same with joint accounting")]


def automatic(truth: CellTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    del unit
    session = opened(truth, alpha, (), "auto", questions=len(queries))
    sources, worst = questioned(conjunctions(truth.domain, len(queries), 0), session, truth)
    return [(units(session)[0], worst, said(sources))]


def histogram(truth: CellTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
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


def textbook(truth: CellTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    curator, people = curator_of(truth), alpha * truth.rows

    def update(gap: Fraction) -> MultiplicativeWeights:
        return MultiplicativeWeights(domain=truth.domain, alpha=gap, step="textbook", threads=1)

    def terms(price: Fraction) -> OnlineTerms | None:
        try:
            return theorem_terms(curator, update, queries=len(queries), rho=price, beta=BETA)
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


def projected(truth: CellTruth, alpha: float, unit: float, queries: Sequence[LinearQuery]) -> list[Found]:
    curator = curator_of(truth)
    most = min(max(round(10 / alpha), 100), len(queries))
    terms = practical_terms(
        curator, alpha=alpha, queries=len(queries), updates=most, beta=BETA, gap_share=GAP_SHARE
    )
    update = ConsistentWeights(domain=truth.domain, margin=Fraction(terms.gap, 2 * truth.rows), threads=1)
    start = LearntWeights(warm_start(curator, error=terms.gap, request="start"))
    mechanism = OnlineConstruction(curator, update, terms, start=start)
    worst, sources = asked_in(mechanism, queries, truth, alpha)
    each = curator.ledger.spent.units / UNITS / unit / max(mechanism.updates, 1)
    told = f"{said(sources)}; {each:.0f} an update"
    return [(curator.ledger.spent.units / UNITS / unit, worst, told)]


WAYS: dict[str, Callable[[CellTruth, float, float, Sequence[LinearQuery]], list[Found]]] = {
    "direct": direct,
    "histogram": histogram,
    "textbook PMW": textbook,
    "projected PMW": projected,
    "session": automatic,
}


def report(questions: int, alphas: Sequence[float], ways: Sequence[str]) -> list[Verdict]:
    """Print what each way costs, and how many times what the session does."""
    try:
        truth = adult(ATTRIBUTES)
    except NotAtHand as missing:
        return shown(not_run("pmw, cost", str(missing)))
    queries = [marginal.where for marginal in conjunctions(truth.domain, questions, 0)]
    print(f"{questions:,} conjunctions on {truth.domain.size():,} cells of Adult, {truth.rows:,} rows; units")
    for alpha in alphas:
        unit = opened(truth, alpha, (), "direct", questions=questions)._buyer.policy._single_price
        found: dict[str, list[Found]] = {}
        for name in ways:
            found[name], seconds = clocked(lambda n=name, a=alpha, u=unit: WAYS[n](truth, a, u, queries))
            for paid, worst, told in found[name]:
                head = f"  α {alpha:<5g} {name:14} {paid:14,.0f}   worst {worst:.2f} α"
                print(f"{head}; {seconds:.0f} CPU s; {told}", flush=True)
        if "session" in found and len(found) > 1:
            [(ours, _, _)] = found.pop("session")
            ratios = ", ".join(
                f"{name} {paid / ours:.3g}" for name, costs in found.items() for paid, _, _ in costs
            )
            print(f"  α {alpha:<5g} times the session: {ratios}", flush=True)
    return []
