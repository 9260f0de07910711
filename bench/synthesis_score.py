"""One release of one table, judged: the methods, and what is measured of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bench.synthesis_tables import Codes, Sheet
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Clique
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.merging import simplex
from understudy.releases.adaptive import adaptive
from understudy.releases.aim import aim
from understudy.releases.methods import chosen, perform
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.releases.synthetic import sample_codes
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DELTA = 1e-9

Method = Callable[[Run], Outcome]
Tables = Sequence[NDArray]


@dataclass(frozen=True)
class Score:
    """Mean and largest error of the answers and of synthetic rows; CPU seconds."""

    answers: float
    rows: float
    largest: float
    rows_largest: float
    cpu: float


def open_run(sheet: Sheet, epsilon: float, seed: int) -> Run:
    budget = Budget.of(epsilon, DELTA)
    declaration = Declaration(
        name=sheet.name,
        source=SourceSpec("-"),
        domain=sheet.domain,
        budget=budget,
        neighbours=Neighbours.ADD_REMOVE,
    )
    truth = Truth(in_memory(sheet.frame), sheet.domain)
    curator = Curator(truth, MemoryLedger(budget), declaration, noise=SeededNoise(seed))
    return Run(curator, sheet.workload, budget, "bench")


def plain(run: Run) -> Outcome:
    """Gaussian noise on every marginal of the workload, moved onto the simplex: no stand-in."""
    price = run.total / len(run.workload) * Fraction(999_999, 1_000_000)
    marginals = [Marginal(run.domain, c) for c in run.workload]
    found = run.measure("all", marginals, rho=price)
    rows = max(float(np.mean([answer.noisy.sum() for answer in found])), 1.0)
    told = tuple(
        MarginalAnswer(c, simplex(answer.noisy, rows), answer.error, "measured")
        for c, answer in zip(run.workload, found, strict=True)
    )
    return Outcome("plain", None, rows, told, {})  # type: ignore[arg-type]


def auto(run: Run) -> Outcome:
    return perform(run, "auto", {})


METHODS: dict[str, Method] = {"adaptive": adaptive, "aim": aim, "plain noise": plain}
OURS = "adaptive"


def methods_for(sheet: Sheet, epsilon: float) -> dict[str, Method]:
    """All, and `auto` where it means another method than the adaptive one."""
    meant = chosen(open_run(sheet, epsilon, 0))
    return METHODS if meant == OURS else {**METHODS, f"auto: {meant}": auto}


def off(found: Tables, truth: Tables) -> tuple[float, float]:
    """Mean over marginals of half the L1 distance as rates, and the largest error of a cell."""
    apart = [np.abs(f / f.sum() - t / t.sum()) for f, t in zip(found, truth, strict=True)]
    return float(np.mean([0.5 * a.sum() for a in apart])), float(max(a.max() for a in apart))


def rows_off(sheet: Sheet, cliques: Sequence[Clique], codes: Codes, truth: Tables) -> tuple[float, float]:
    found = sheet.counts(cliques, {a: np.asarray(c).astype(np.int64) for a, c in codes.items()})
    return off(found, truth)


def score(
    sheet: Sheet, method: Method, epsilon: float, seed: int, truth: Tables, cliques: Sequence[Clique]
) -> Score:
    """One release, judged by some of its workload's marginals."""
    run = open_run(sheet, epsilon, seed)
    start = time.process_time()
    outcome = method(run)
    cpu = time.process_time() - start
    told = {answer.clique: answer.counts for answer in outcome.answers}
    answers, largest = off([told[c] for c in cliques], truth)
    rows = rows_largest = float("nan")
    if outcome.standin is not None:
        codes = sample_codes(outcome.standin, round(outcome.rows), np.random.default_rng(seed))
        rows, rows_largest = rows_off(sheet, cliques, codes, truth)
    return Score(answers, rows, largest, rows_largest, cpu)
