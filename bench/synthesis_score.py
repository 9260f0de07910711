"""One release of one table, judged: the methods, and what is measured of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.clock import clocked
from bench.release_score import Method, plain, run_over
from bench.synthesis_bars import OURS
from bench.synthesis_tables import Sheet
from bench.tables import Codes
from understudy.domain.domain import Clique
from understudy.privacy.filter import FilterName
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.agreement import agreeing_rows
from understudy.releases.aim import aim
from understudy.releases.method_choice import chosen, perform
from understudy.releases.run import Outcome, Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth

Tables = Sequence[NDArray]


@dataclass(frozen=True)
class Score:
    """Mean error of the answers and of synthetic rows, the largest error of an answer; CPU seconds.

    `behind` is the error of the rows over that of the answers, the worst of the marginals of order 1, 2 and 3.
    """

    answers: float
    rows: float
    largest: float
    cpu: float
    behind: float = float("nan")


def open_run(sheet: Sheet, epsilon: float, seed: int, kept_by: FilterName = "zcdp") -> Run:
    """A release over the program's own count of the table."""
    truth = Truth(in_memory(sheet.frame), sheet.domain)
    return run_over(truth, sheet.workload, epsilon, seed=seed, kept_by=kept_by)


def auto(run: Run) -> Outcome:
    return perform(run, "auto", {})


METHODS: dict[str, Method] = {OURS: adaptive, "aim": aim, "plain noise": lambda run: plain(run)[0]}


def filter_for(method: str, kept_by: FilterName) -> FilterName:
    """The filter of a method's budget: that of AIM, whose selections cost more in GDP, is always `zcdp`."""
    return "zcdp" if method == "aim" else kept_by


def meant_by_auto(sheet: Sheet, epsilon: float) -> str:
    """The method that `auto` takes for a table and a price."""
    return chosen(open_run(sheet, epsilon, 0))


def methods_for(sheet: Sheet, epsilon: float) -> dict[str, Method]:
    """All, and `auto` where it means another method than the adaptive one."""
    meant = meant_by_auto(sheet, epsilon)
    return METHODS if meant == OURS else {**METHODS, f"auto: {meant}": auto}


def off(found: Tables, truth: Tables) -> tuple[float, float]:
    """Mean over marginals of half the L1 distance as rates, and the largest error of a cell."""
    apart = [np.abs(f / f.sum() - t / t.sum()) for f, t in zip(found, truth, strict=True)]
    return float(np.mean([0.5 * a.sum() for a in apart])), float(max(a.max() for a in apart))


def rows_off(sheet: Sheet, cliques: Sequence[Clique], codes: Codes, truth: Tables) -> tuple[float, float]:
    found = sheet.counts(cliques, {a: np.asarray(c).astype(np.int64) for a, c in codes.items()})
    return off(found, truth)


def score(
    sheet: Sheet,
    method: Method,
    epsilon: float,
    seed: int,
    truth: Tables,
    cliques: Sequence[Clique],
    kept_by: FilterName = "zcdp",
) -> Score:
    """One release, judged by some of its workload's marginals."""
    run = open_run(sheet, epsilon, seed, kept_by)
    outcome, cpu = clocked(lambda: method(run))
    told = {answer.clique: answer.counts for answer in outcome.answers}
    answers, largest = off([told[c] for c in cliques], truth)
    rows = behind = float("nan")
    if outcome.standin is not None:
        every = (*outcome.answers, *outcome.also)
        codes = agreeing_rows(outcome.standin, every, round(outcome.rows), np.random.default_rng(seed))
        rows, _ = rows_off(sheet, cliques, codes, truth)
        behind = _behind(sheet, {answer.clique: answer.counts for answer in every}, codes, cliques)
    return Score(answers, rows, largest, cpu, behind)


def _behind(sheet: Sheet, told: Mapping[Clique, NDArray], codes: Codes, cliques: Sequence[Clique]) -> float:
    """How many times as far off rows are as answers, over the answered marginals of one order; the worst order."""
    ratios = []
    for order in (1, 2, 3):
        parts = {part for c in cliques for part in combinations(c, order)}
        asked = sorted(parts.intersection(told), key=lambda c: [sheet.domain.position(name) for name in c])
        if asked:
            exact = sheet.counts(asked)
            answers, _ = off([told[c] for c in asked], exact)
            ratios.append(rows_off(sheet, asked, codes, exact)[0] / max(answers, 1e-9))
    return max(ratios, default=float("nan"))
