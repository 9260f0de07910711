"""Three trials of the invented town, with the truth beside them: a release, a session, an attacked holdout."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from understudy.declaration.declaration import Declaration, Protect
from understudy.domain.bins import Bins
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.releases.making import release
from understudy.sessions.opening import session
from understudy_audit.validity import AttackFinding, validity_audit

SHOWN = "{}-on-show"
"""The name of the table whose budget is spent on show, after that of the town."""

QUESTIONS = 1000
ALPHA = 0.02
EPSILON, DELTA = 1, 1e-9


@dataclass(frozen=True)
class Trials:
    """What was released, asked and attacked, with the truth beside it: only an invented town can show that."""

    method: str
    mean_distance: float
    largest_gap: float
    bars_held: tuple[int, int]
    sources: dict[str, int]
    session_held: int
    session_spent: float
    session_budget: float
    attacks: tuple[AttackFinding, ...]
    folder: Path

    def as_dict(self) -> dict[str, Any]:
        return {
            "release": {
                "method": self.method,
                "folder": str(self.folder),
                "mean_total_variation": self.mean_distance,
                "largest_error_people": self.largest_gap,
                "error_bars": {"held": self.bars_held[0], "of": self.bars_held[1]},
            },
            "session": {
                "questions": sum(self.sources.values()),
                "sources": self.sources,
                "held": self.session_held,
                "spent": {"rho": self.session_spent},
                "budget": {"rho": self.session_budget},
            },
            "holdout": [finding.as_dict() for finding in self.attacks],
        }


def run_trials(table: Any, declared: Declaration, folder: Path, *, seed: int) -> Trials:
    """Release the town, question it, and attack a holdout of it; everything that is spent is spent in memory.

    That budget is another than the one of the project in the folder, and so is the name of its table: a release of
    the project's own table is a trace of its ledger, which has not begun.
    """
    declared = replace(declared, name=SHOWN.format(declared.name), budget=Budget.of(2, DELTA))
    project = Project.frame(table, declared, ledger=MemoryLedger(declared.budget))
    truth = Project.frame(table, replace(declared, protect=Protect.VALIDITY)).curator
    made = release(project, marginals(2), epsilon=EPSILON, delta=DELTA)
    made.save(folder, force=True)
    distances, gaps, held, bars = [], [], 0, 0
    for answer in made.answers:
        exact = truth.exact(Marginal(declared.domain, answer.clique))
        rates = np.maximum(answer.counts, 0) / max(answer.counts.clip(0).sum(), 1)
        distances.append(np.abs(rates - exact / exact.sum()).sum() / 2)
        gaps.append(np.abs(answer.counts - exact).max())
        held += int((np.abs(answer.counts - exact) <= answer.error).sum())
        bars += exact.size
    sources, right, spent = _questioned(project, truth, seed)
    attacks = validity_audit(modes=("plain", "check", "ladder"), analysts=("T2 majority",), runs=5, seed=seed)
    return Trials(
        made.certificate["method"],
        float(np.mean(distances)),
        float(np.max(gaps)),
        (held, bars),
        sources,
        right,
        spent,
        project.ledger.budget.cap.amount,
        tuple(attacks),
        folder,
    )


def _questioned(project: Project, truth: Any, seed: int) -> tuple[dict[str, int], int, float]:
    """Random conjunctions in a session: where the answers came from, how many held, and what they cost."""
    before = project.ledger.spent.amount
    asking = session(project, alpha=ALPHA, queries=QUESTIONS)
    generator, found, right = np.random.default_rng(seed), Counter[str](), 0
    for _ in range(QUESTIONS):
        marginal = _question(project, generator)
        answer = asking.ask_marginal(marginal)
        found[answer.source] += 1
        right += bool((np.abs(answer.value - truth.exact(marginal)) <= answer.error).all())
    return dict(found), right, project.ledger.spent.amount - before


def _question(project: Project, generator: np.random.Generator) -> Marginal:
    """How many people meet one to three conditions: a range of numbers or dates, a few categories."""
    domain = project.domain
    sides = {}
    for name in generator.choice(domain.names, generator.integers(1, 4), replace=False):
        attribute = domain[str(name)]
        if isinstance(attribute, Bins):
            low, high = np.sort(generator.integers(0, attribute.proper_size, 2))
            sides[str(name)] = (np.arange(attribute.size) >= low) & (np.arange(attribute.size) <= high)
        else:
            sides[str(name)] = np.arange(attribute.size) == generator.integers(attribute.size)
    return Marginal.of(LinearQuery.conjunction(domain, sides))


def render(trials: Trials) -> None:
    """The trials as a table in the terminal."""
    console = Console(markup=False, emoji=False)
    table = Table(title="Released, questioned, attacked", title_justify="left")
    for name in ("what", "result"):
        table.add_column(name, overflow="fold")
    held, bars = trials.bars_held
    table.add_row(
        "release, all pairs",
        f"{trials.method} at epsilon {EPSILON}, delta {DELTA:g}: mean distance {trials.mean_distance:.4f}, "
        f"largest error {trials.largest_gap:,.0f} people; {held:,} of {bars:,} error bars held",
    )
    told = ", ".join(f"{count} {source}" for source, count in sorted(trials.sources.items()))
    table.add_row(
        f"session, {sum(trials.sources.values()):,} questions",
        f"{trials.session_held:,} within ±{ALPHA:.0%} of the people, or what the answer says; {told}; rho "
        f"{trials.session_spent:.3g} of {trials.session_budget:.3g}",
    )
    for finding in trials.attacks:
        table.add_row(
            f"holdout attacked, {finding.mode}",
            f"claims {finding.claimed:.3f} ± {finding.width:.3f}, truth {finding.truth:.3f}; right in "
            f"{finding.covered} of {finding.runs} runs",
        )
    console.print(table)
    console.print(f"The release is in {trials.folder}/: look at {trials.folder}/report.html", highlight=False)
