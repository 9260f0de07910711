"""The runs that are audited: every mechanism, method and session that a Curator runs, each with a budget of ε = 1
or of ε = 1 with δ = 10⁻⁶.

A case says how many rows its tables have and how often a run looks at them: enough for every kind of look that the
method makes, and no more, because each look multiplies what has to be drawn.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.privacy.relation import Neighbours
from understudy.query.family import prefixes
from understudy.query.marginal import Marginal
from understudy_audit.acts import (
    AB,
    BOTH,
    CELLS,
    ONE_CELL,
    ONE_ROUND,
    PURE,
    SWEEPS,
    A,
    B,
    measure,
    measure_gaussian,
    measure_weights,
    median,
    net,
    noisy_gaps,
    online,
    release,
    select,
    session,
    small_database,
    sparse,
    strategy,
    worst_guess,
    worst_query,
)
from understudy_audit.composite import Composite
from understudy_audit.neighbours import DOMAIN, around

SESSION_SPENDS = Fraction(8294, 10_000)
"""Of ε = 1, by the dearest run of `session`: noise that answers 4 questions to ± 20 of 100 people costs that much
for the first question and the marginal of both attributes; runs that ask for the smaller marginal spend 0.740."""

GAUSSIAN_SESSION_SPENDS = Fraction(5062, 10_000)
"""Of ρ, by the dearest run of `session-gaussian`: 2 questions to ± 30 of 100 people; 0.5061, rounded up."""

LOOP_SPENDS = Fraction(92408, 100_000)
"""Of ε = 1, by a run of `online` or `median` that makes the one update it has paid for, under the terms that
`practical_terms` plans for 4 questions; runs that update nothing spend 0.871. Both loops have the same terms."""

ONLINE_EDGE = 172
"""People of 400 in the first cell that the weights' first guess bears before it is called wrong."""

MEDIAN_EDGE = 152
"""The same for the median of small databases."""

IC_ALPHA = Fraction(96, 100)
"""The accuracy that the iterative construction is asked for: so coarse that 400 rows and ε = 1 allow for it."""

MWEM = {"rounds": 1, "per_round": 1, "passes": 2}
"""One round that picks one marginal, and two passes over what was measured."""


def composites() -> list[Composite]:
    """Every case, in the order of the report."""
    slow = (replace(case, size="slow") for case in (*_releases(), *_sessions(), *_loops()))
    return [*_curator(), *_mechanisms(), *slow]


def _curator() -> list[Composite]:
    """What the Curator does itself."""
    add = Neighbours.ADD_REMOVE
    all_of, handle = "curator.Curator.measure_all", "curator.Curator.sparse"
    until_hit: dict[str, Any] = {"looks": 8, "is_last": _is_hit}
    return [
        Composite("measure", all_of, measure),
        Composite("measure-add-remove", all_of, measure, neighbours=add),
        Composite("measure-gaussian", all_of, measure_gaussian, BOTH),
        Composite("measure-weights", "curator.Curator.measure", measure_weights, neighbours=add),
        Composite("choose", "curator.Curator.choose", select),
        Composite("sparse", handle, partial(sparse, numeric=False), **until_hit),
        Composite("sparse-numeric", handle, partial(sparse, numeric=True), neighbours=add, **until_hit),
    ]


def _mechanisms() -> list[Composite]:
    """One look each, of a mechanism that is handed to the Curator."""
    add, worst = Neighbours.ADD_REMOVE, "mechanism.worst_query.WorstQuery"
    small = "mechanism.small_database"
    chain = DistinctQueries.of_queries(prefixes(DOMAIN, "b"))
    tree = DistinctQueries.of([B])
    some = DistinctQueries.of([A, Marginal.of(ONE_CELL), Marginal.of(CELLS[1])])
    return [
        Composite("worst-query", worst, partial(worst_query, law="exponential")),
        Composite("worst-query-noisy-max", worst, partial(worst_query, law="noisy-max"), neighbours=add),
        Composite("worst-guess", "mechanism.gap.WorstGuess", worst_guess),
        Composite("noisy-gaps", "mechanism.gap.NoisyGaps", noisy_gaps, neighbours=add),
        Composite("strategy", "mechanism.matrix.one_marginal.Strategy", strategy),
        Composite("smalldb-chain", f"{small}.chain.Chain", partial(small_database, queries=chain, size=3)),
        Composite("smalldb-tree", f"{small}.tree.Tree", partial(small_database, queries=tree, size=3)),
        Composite(
            "smalldb-enumeration",
            f"{small}.levels.Enumeration",
            partial(small_database, queries=some, size=2),
        ),
        Composite("net", "mechanism.net.NetMechanism", net),
    ]


def _releases() -> list[Composite]:
    """Methods of release. The `-begun` ones take their first looks as given, and draw more of what follows."""
    ic = "understudy.releases.iterative:iterative_construction"
    mwem = "understudy.releases.mwem:mwem"
    adaptive = partial(
        _released, method="understudy.releases.adaptive.adaptive:adaptive", budget=BOTH, rows=4000
    )
    measured: dict[str, Any] = {"looks": 4, "is_last": _is_everything}
    return [
        _released("ic", ic, {"alpha": IC_ALPHA, "most_rounds": 8}, rows=400, looks=16),
        _released("mwem", mwem, MWEM, **measured),
        _released("mwem-begun", mwem, MWEM, **measured, given=1),
        _released("mwem-gaussian", mwem, MWEM, budget=BOTH, rows=400, **measured, given=1),
        _released("mwem-everything", mwem, {"passes": 2}, budget=BOTH),
        _released("residual", "understudy.releases.residual.residual:residual", {}, budget=BOTH),
        adaptive("adaptive", options={"rule": ONE_ROUND}, looks=3),
        adaptive("adaptive-begun", options={"rule": ONE_ROUND}, looks=3, given=1),
        adaptive("adaptive-workload", options={"rule": SWEEPS["workload"]}, looks=4, given=3),
        adaptive("adaptive-pairs", options={"rule": SWEEPS["pairs"]}, looks=4, given=3),
        _released(
            "aim", "understudy.releases.aim:aim", {}, budget=BOTH, rows=400, looks=7, is_cut=True, given=5
        ),
    ]


def _sessions() -> list[Composite]:
    """Two questions to a session, of which the second depends on the answer to the first."""
    asking = partial(Composite, path="sessions.session.Session", rows=100, looks=2)
    return [
        asking("session", act=partial(session, alpha=0.2, queries=4), budget=PURE, spends=SESSION_SPENDS),
        asking(
            "session-gaussian",
            act=partial(session, alpha=0.3, queries=2),
            budget=BOTH,
            spends=GAUSSIAN_SESSION_SPENDS,
        ),
    ]


def _loops() -> list[Composite]:
    """The interactive loops of the lectures, on tables at which a guess is as likely wrong as right."""
    loop = partial(Composite, looks=7, is_last=_is_update, spends=LOOP_SPENDS)
    return [
        loop("online", "lectures.online.OnlineConstruction", online, pairs=partial(around, ONLINE_EDGE)),
        loop("median", "lectures.median.private_median", median, pairs=partial(around, MEDIAN_EDGE)),
    ]


def _is_hit(outcome: Any) -> bool:
    """Whether a sparse vector has just said that something is above its threshold."""
    return isinstance(outcome, tuple) and outcome[1].above > 0


def _is_everything(outcome: Any) -> bool:
    """Whether the largest marginal was just measured: there is nothing left that would need a bound."""
    return isinstance(outcome, list) and len(outcome) == 1 and np.size(outcome[0]) == AB.size


def _is_update(outcome: Any) -> bool:
    """Whether a loop has just bought the answer for its one update: only measurements are lists."""
    return isinstance(outcome, list)


def _released(name: str, method: str, options: dict[str, Any], **about: Any) -> Composite:
    """A method of release, by `module:function`, with its options."""
    path = method.removeprefix("understudy.").replace(":", ".")
    return Composite(name, path, partial(release, name=method, options=options), **about)
