"""The frontier: each mechanism's width against rows, queries or epsilon, as curves on a page or in a drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10
from pathlib import Path

from understudy.errors import ParameterError
from understudy.output import write_file
from understudy.pages.curves import Points, curves
from understudy.pages.markup import facts, figure, glossary, paragraph, section, table
from understudy.pages.plot_file import plot_text
from understudy.pages.shell import document
from understudy.planner.mechanisms import MECHANISMS
from understudy.planner.solve import NOTHING_HELPS, VACUOUS, Plan, width_of
from understudy.theory.planned import PlanInputs, Promise

POINTS = 25
AXES = {"rows": "rows", "queries": "adaptive queries", "epsilon": "epsilon"}
UP = "half-width that is certified, as a part of all rows"

WORDS = {
    "half-width": "How far every answer can be off, as a part of all rows: 0.01 is one in a hundred.",
    "adaptive queries": "Questions of which each may be chosen after the answers before it.",
    "says nothing": "An error bar that is wider than the whole range from 0 to 1. Such points are not drawn.",
    "theory only": "A theorem promises it, and no program can run it at this size.",
    "epsilon, delta": (
        "With probability at least 1 - delta, nothing becomes more likely by a factor above e to the epsilon when "
        "one person's data change."
    ),
}


@dataclass(frozen=True)
class Frontier:
    """The widths around a plan's situation: a curve for each mechanism that applies and says something there."""

    plan: Plan
    against: str
    named: dict[str, Points]

    def drawing(self, width: float = 720, height: float = 400) -> str:
        """The curves."""
        words = f"Certified half-width against {AXES[self.against]}, for {len(self.named)} mechanisms"
        return curves(self.named, across=AXES[self.against], up=UP, words=words, width=width, height=height)

    def page(self) -> str:
        """The curves with the situation, what each mechanism reaches in it, and what the words mean."""
        situation = self.plan.situation
        told = {
            "promise": str(situation.promise.value),
            "rows": f"{situation.rows:,}",
            "queries": f"{situation.queries:,}",
            "probability": f"{1 - situation.beta:g}",
        }
        if situation.epsilon is not None and self.plan.unknown != "epsilon":
            told["epsilon"] = f"{situation.epsilon:g}" + (
                f", delta {situation.delta:g}" if situation.delta else ""
            )
        if self.plan.unknown in told:
            told[self.plan.unknown] = "solved for"
        both = f'<div class="desk">{self.drawing(960, 460)}</div><div class="phone">{self.drawing(340, 360)}</div>'
        name = f"Half-width against {AXES[self.against]}"
        drawn = section(name, figure(both, remark="lower is better; both axes are logarithmic"))
        (heads, rows), verdict = self.plan.cells(), self.plan.verdict
        listed = table(heads, rows, numbers=(1,), words="What each mechanism reaches", stack=True)
        return document(
            "plan", "What the known quantities buy", facts(told), drawn,
            section("In this situation", listed + paragraph(f"{verdict[0].upper()}{verdict[1:]}.")),
            glossary(WORDS),
            lead="Every number follows from a theorem, which is named; no data was read.",
            made="Made by Understudy.",
        )  # fmt: skip

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the page as .html, or the curves alone as .svg: files that fetch nothing and run nothing."""
        title = _title(self.plan.situation)
        text = plot_text(path, self.page(), [(title, self.drawing())], words=title)
        write_file(path, text, overwrite=overwrite)


def frontier(plan: Plan, *, against: str = "rows") -> Frontier:
    """The widths from a hundredth to a hundred times a plan's situation.

    Raises a `ParameterError` where the axis makes no sense, or nothing says anything there.
    """
    if against not in AXES:
        raise ParameterError(f"a frontier is drawn against one of {', '.join(AXES)}, not {against!r}")
    if against == "epsilon" and plan.situation.promise is Promise.VALIDITY:
        raise ParameterError("a promise of validity alone has no epsilon to draw against")
    grid = _grid(plan.situation, against)
    found = {
        mechanism.name: [
            (float(value), width)
            for value in grid
            if 0 < (width := width_of(mechanism, replace(plan.situation, **{against: value}))[0]) < VACUOUS
        ]
        for mechanism in MECHANISMS
        if not mechanism.lacks(plan.situation)
    }
    named = {name: points for name, points in found.items() if points}
    if not named:
        raise ParameterError(
            f"no mechanism says anything around this situation, so there is nothing to draw: {NOTHING_HELPS}"
        )
    best = sorted(named, key=lambda name: named[name][-1][1])
    return Frontier(plan, against, {name: named[name] for name in best})


def _grid(situation: PlanInputs, against: str) -> list[float | int]:
    """A hundredth to a hundred times the situation's own value."""
    centre = log10(float(getattr(situation, against) or 1))
    values = [10 ** (centre - 2 + 4 * i / (POINTS - 1)) for i in range(POINTS)]
    if against == "epsilon":
        return sorted({min(max(value, 1e-6), 1000.0) for value in values})
    least = situation.failures + 1
    return sorted({max(least, round(value)) for value in values})


def _title(s: PlanInputs) -> str:
    parts = [f"{s.rows:,} rows", f"{s.queries:,} queries", f"1 - beta = {1 - s.beta:g}"]
    if s.epsilon is not None:
        parts.append(f"epsilon {s.epsilon:g}" + (f", delta {s.delta:g}" if s.delta else ""))
    return f"{s.promise.value}: " + ", ".join(parts)
