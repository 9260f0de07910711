"""Interactive answering: what 10,000 questions cost under one joint promise, in direct answers.

Unit: the price of one count with Gaussian noise that is within α except with probability β/k. Every answer of a
session is within α, all together with probability 1 - β = .95. Exact discrete noise, replace-one neighbours.
Beside the automatic session: each distinct question bought by itself, added up; the same with joint accounting.

A session is held to its bar, and to the cheaper of the other ways and a twentieth; at α = .02 also to a tenth more
than sessions cost when they promised nothing to short ones.

With `--lengths` it prints instead what sessions cost after 5, 20, … 10,000 questions, for five seeds, beside
direct answers, all marginals bought first, and projected multiplicative weights (`bench.prefixes`). A run that was
stopped goes on.

Run: python -m bench.interaction [--workloads W1 W6] [--alphas .05 .02 .01] [--questions 10000] [--seeds 0]
                                 [--no-baselines] [--lengths]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from math import exp, inf, log
from typing import Any

import numpy as np

from bench.clock import clocked
from bench.curating import CellTruth, curator_over
from bench.interaction_workloads import (
    Analyst,
    adult,
    clinic,
    conjunctions,
    dashboards,
    group_bys,
    pool,
    rectangles,
    tree,
)
from bench.tables import NotAtHand
from bench.verdict import Bar, Verdict, at_most, ended, not_run, shown, verdict
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.relation import Neighbours
from understudy.query.workload import marginals
from understudy.sessions.opening import session
from understudy.sessions.session import Session
from understudy.sessions.terms import conjunctions as announced
from understudy.sessions.terms import ranges

QUESTIONS = 10_000
ALPHAS = (0.05, 0.02, 0.01)
BUDGET = Budget.of(1000, 1e-9)
BETA = 0.05
MARGIN = 1.05
"""A session may cost so many times the cheapest of the other ways."""

FORMER = {"W1": 1753, "W2": 562, "W3": 851, "W4": 91, "W5": 723, "W6": 35}
"""What 10,000 questions cost at α = .02 (seed 0) when a session promised nothing to short ones."""

FORMER_ALPHA, FORMER_MARGIN = 0.02, 1.1
"""A session that keeps that promise may cost so many times as much. W3 and W6 do not reach it: what the promise
permits them, if anything is possible, are the bars below."""

POOL = 66
"""The bar of W6: its class, 30 units, and what a session pays for counts until it may buy the class. A session
that costs at most 3/2·D + 3 units whatever comes next, D being the price of direct answers, buys the class once
30 ≤ (3/2 - κ)·D + 3 + G (`sessions/allowance.py`). Were later counts no dearer than directly (κ = 1, G about 4),
that would be at D = 47, where 36 were paid for counts (α .02, seed 0). It rests on the price of this class and of
these counts: other mechanisms may do with less. With the shares of β that counts get, κ = 1.15, and the class
waits until D = 57."""


def least_with_parts(direct: float, own: float, price: float) -> float:
    """The least that questions can cost a session that keeps 3/2 of direct answers and 3 units after each of them.

    All of them cost `direct` units directly and `own` in the session's own counts. A class that answers all costs
    `price`, and any part of it were to be had for that part of the price. Let g(t) be the part that is bought when
    the part t of the different questions was asked: price·g + own·∫(1 - g) ≤ 3/2·direct·t + 3. More of the class
    pays off only while own·(1 - t) > price, and the earlier the better: so g grows with equality until then.
    """
    rate, shift = own / price, 1.5 * direct / own - 1
    first = shift + 3 / price
    end = min(1 - price / own, log((1 + shift) / first) / rate)
    bought = first * exp(rate * end) - shift
    return 1.5 * direct * end + 3 + own * (1 - end) * (1 - bought)


GROUP_BYS = tuple(least_with_parts(1502 * part, 1273 * part, 780 * part) for part in (0.83, 1, 1.08))
"""The bars of W3, by what 575 marginals cost directly, in a session's own counts, and as a class, at α = .02; own
counts cost .83 and 1.08 of that at the other two, and the others are taken to. There is no class of some of them
at such a price: the 120 marginals of orders 1 and 2 alone cost about 175."""

WORKLOADS: dict[str, tuple[str, Callable[..., Analyst], tuple[Any, ...], tuple[float, ...]]] = {
    "W1": ("conjunctions on 1-3 attributes", conjunctions, (), (1400, 1800, 1950)),
    "W2": ("dashboards with drill-downs", dashboards, (), (720, 830, 880)),
    "W3": ("GROUP BYs", group_bys, (), GROUP_BYS),
    "W3d": ("GROUP BYs, announced", group_bys, (marginals(3),), (760, 860, 900)),
    "W4": ("rectangles", rectangles, (), (FORMER_MARGIN * FORMER["W4"],) * 3),
    "W4d": ("rectangles, announced", rectangles, (ranges("age", "hours-per-week"),), (75,) * 3),
    "W5": ("a decision tree", tree, (), (FORMER_MARGIN * FORMER["W5"],) * 3),
    "W6": ("a pool on 128 cells", pool, (), (POOL,) * 3),
    "W6d": (
        "a pool on 128 cells, announced",
        pool,
        (announced("positive", "sex", "age-group", "ethnicity"),),
        (28,) * 3,
    ),
}


def opened(
    truth: CellTruth,
    alpha: float,
    classes: tuple[Any, ...],
    mechanism: str,
    *,
    questions: int,
    seed: int = 0,
) -> Session:
    curator = curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5 + seed)
    return session(curator, alpha=alpha, beta=BETA, queries=questions, classes=classes, mechanism=mechanism)


def questioned(analyst: Analyst, asked: Session, truth: CellTruth) -> tuple[Counter[str], float]:
    """Where the answers came from, and the worst of their errors as a part of α."""
    sources: Counter[str] = Counter()
    worst, rows = 0.0, truth.rows
    question = next(analyst, None)
    while question is not None:
        answer = asked.ask_marginal(question)
        sources[answer.source] += 1
        if answer.source != "repeat":
            off = np.abs(answer.value - truth.sums(question)).max()
            worst = max(worst, float(off) / asked.width)
        try:
            question = analyst.send(answer.value / rows)
        except StopIteration:
            question = None
    return sources, worst


def units(asked: Session) -> tuple[float, float]:
    """What was spent, jointly and added up, in direct answers."""
    ledger = asked.curator.ledger
    unit = asked._buyer.policy._single_price
    flat = sum(ledger.budget.price(debit.event).units for debit in ledger.debits())
    return ledger.spent.units / UNITS / unit, flat / UNITS / unit


def _analyst(name: str, truth: CellTruth, alpha: float, questions: int, seed: int) -> Analyst:
    """The tree draws nothing, and alone looks at how good its answers are."""
    make = WORKLOADS[name][1]
    if make is tree:
        return tree(truth.domain, questions, alpha=alpha)
    return make(truth.domain, questions, seed)


def former_bar(name: str, alpha: float) -> Bar | None:
    """A tenth more than before the promise to short sessions; None where that was not measured."""
    if alpha != FORMER_ALPHA or name not in FORMER:
        return None
    return at_most(FORMER_MARGIN * FORMER[name], "{:.0f} units")


def line(name: str, truth: CellTruth, alpha: float, seed: int, asked: argparse.Namespace) -> list[Verdict]:
    title, _, classes, bars = WORKLOADS[name]
    bar = bars[ALPHAS.index(alpha)]

    def run(classes: tuple[Any, ...], mechanism: str) -> tuple[Session, Counter[str], float]:
        ours = opened(truth, alpha, classes, mechanism, questions=asked.questions, seed=seed)
        return ours, *questioned(_analyst(name, truth, alpha, asked.questions, seed), ours, truth)

    (auto, sources, worst), seconds = clocked(lambda: run(classes, "auto"))
    paid = units(auto)[0]
    best, baselines = inf, f"{'':17}"
    if asked.baselines and not name.endswith("d"):
        joint, flat = units(run((), "direct")[0])
        best, baselines = min(joint, flat), f"{flat:8.0f} {joint:8.0f}"
    found = f"{name:4} α {alpha:<5g} seed {seed} {title:32} {baselines} {paid:9.0f}   bar {bar:.0f}"
    print(f"  {found}   {_tail(sources, worst, seconds)}", flush=True)
    what = f"interaction, {name} α {alpha:g} seed {seed}"
    judged = [verdict(what, paid, at_most(min(bar, MARGIN * best), "{:.0f} units"))]
    if (former := former_bar(name, alpha)) is not None:
        judged.append(verdict(f"{what}, a tenth above {FORMER[name]:,}", paid, former))
    return [one.of_full_size("questions", asked.questions, QUESTIONS) for one in judged]


def _tail(sources: Counter[str], worst: float, seconds: float) -> str:
    found = ", ".join(f"{count} {source}" for source, count in sources.most_common())
    return f"worst {worst:.2f} α; {seconds:.0f} CPU s; {found}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--alphas", nargs="+", type=float, default=list(ALPHAS), choices=ALPHAS)
    parser.add_argument("--workloads", nargs="+", help=f"some of {', '.join(WORKLOADS)}; all unless said")
    parser.add_argument("--seeds", nargs="+", type=int, help="of the questions and the noise")
    parser.add_argument("--no-baselines", dest="baselines", action="store_false", help="the session alone")
    parser.add_argument("--lengths", action="store_true", help="costs at every length, for five seeds")
    return parser


def _lengths(asked: argparse.Namespace) -> list[Verdict]:
    """The table of costs at every length: of its own workloads and seeds, unless some are named."""
    from bench import prefixes  # late: it uses this module

    words = ["--most", str(asked.questions)]
    words += ["--workloads", *asked.workloads] if asked.workloads else []
    words += ["--seeds", *map(str, asked.seeds)] if asked.seeds else []
    alphas = asked.alphas if len(asked.alphas) < len(ALPHAS) else [0.02]
    return [one for alpha in alphas for one in prefixes.main([*words, "--alpha", str(alpha)])]


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.lengths:
        return _lengths(asked)
    asked.workloads, asked.seeds = asked.workloads or list(WORKLOADS), asked.seeds or [0]
    if unknown := [name for name in asked.workloads if name not in WORKLOADS]:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    print(f"{asked.questions:,} questions; direct + cache, with joint accounting, the session")
    found, tables = [], {}
    for name in asked.workloads:
        make = clinic if name.startswith("W6") else adult
        try:
            if make not in tables:
                tables[make] = make()
        except NotAtHand as missing:
            found.append(not_run(f"interaction, {name}", str(missing)))
            continue
        for alpha in asked.alphas:
            for seed in asked.seeds:
                found += line(name, tables[make], alpha, seed, asked)
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
