"""The frontier: each mechanism's width against rows, queries or epsilon, as one Vega-Lite chart."""

from __future__ import annotations

from dataclasses import replace
from math import log10
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from understudy.errors import ParameterError
from understudy.output import write_file
from understudy.planner.mechanisms import MECHANISMS
from understudy.planner.solve import VACUOUS, Plan, width_of
from understudy.theory.planned import PlanInputs, Promise

POINTS = 25
AXES = {"rows": "rows", "queries": "adaptive queries", "epsilon": "epsilon"}
FORMATS = (".svg", ".png", ".html")


def frontier(plan: Plan, *, against: str = "rows") -> alt.Chart:
    """A chart of the widths around a plan's situation, one line for each mechanism that applies."""
    if against not in AXES:
        raise ParameterError(f"a frontier is drawn against one of {', '.join(AXES)}, not {against!r}")
    if against == "epsilon" and plan.situation.promise is Promise.VALIDITY:
        raise ParameterError("a promise of validity alone has no epsilon to draw against")
    points = [
        {"mechanism": mechanism.name, against: value, "width": width}
        for value in _grid(plan.situation, against)
        for mechanism in MECHANISMS
        if not mechanism.lacks(plan.situation)
        and (width := width_of(mechanism, replace(plan.situation, **{against: value}))[0]) < VACUOUS
    ]
    if not points:
        raise ParameterError("every mechanism is vacuous around this situation: there is nothing to draw")
    return (
        alt.Chart(alt.Data(values=points), title=_title(plan.situation), width=640, height=400)
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{against}:Q", scale=alt.Scale(type="log"), title=AXES[against]),
            y=alt.Y("width:Q", scale=alt.Scale(type="log"), title="certified half-width"),
            color=alt.Color("mechanism:N", sort=[option.mechanism for option in plan.options]),
            tooltip=["mechanism:N", f"{against}:Q", "width:Q"],
        )
    )


def _grid(situation: PlanInputs, against: str) -> list[float | int]:
    """A hundredth to a hundred times the situation's own value."""
    centre = log10(float(getattr(situation, against) or 1))
    values = [10 ** (centre - 2 + 4 * i / (POINTS - 1)) for i in range(POINTS)]
    if against == "epsilon":
        return [min(max(value, 1e-6), 1000.0) for value in values]
    least = situation.failures + 1
    return sorted({max(least, round(value)) for value in values})


def _title(s: PlanInputs) -> str:
    parts = [f"{s.rows:,} rows", f"{s.queries:,} queries", f"1 - beta = {1 - s.beta:g}"]
    if s.epsilon is not None:
        parts.append(f"epsilon {s.epsilon:g}" + (f", delta {s.delta:g}" if s.delta else ""))
    return f"{s.promise}: " + ", ".join(parts)


def check_format(path: Path) -> None:
    """Refuse, before any work, a plot in a format that nobody here writes."""
    if path.suffix not in FORMATS:
        raise ParameterError(f"a plot is written as {', '.join(FORMATS)}, not {path.suffix or path.name!r}")


def save(chart: alt.Chart, path: Path, *, overwrite: bool = False) -> None:
    """Write a chart as SVG, PNG or a self-contained HTML page; nothing is fetched from anywhere."""
    check_format(path)
    spec: dict[str, Any] = chart.to_dict()
    if path.suffix == ".svg":
        drawn: str | bytes = vl_convert.vegalite_to_svg(spec)
    elif path.suffix == ".png":
        drawn = vl_convert.vegalite_to_png(spec, scale=2)
    else:
        drawn = vl_convert.vegalite_to_html(spec, bundle=True)
    write_file(path, drawn, overwrite=overwrite)
