"""What a client is told beside the rows: where an answer came from, what it cost, and how far off it can be."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from understudy.domain.instant import seconds_of
from understudy.pages.notebook import number
from understudy.percent import percent_of
from understudy.server.gate_reply import GateReply
from understudy.server.pg import wire
from understudy.server.pg.states import Refusal

_LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")


def is_wanted(severity: str, least: str) -> bool:
    """Whether a notice is sent under the setting `client_min_messages`."""
    level = _LEVELS.index(least.lower()) if least.lower() in _LEVELS else _LEVELS.index("notice")
    return _LEVELS.index(severity.lower()) >= level


def amount(cost: Mapping[str, float]) -> str:
    """A price with its currency."""
    return ", ".join(f"{currency} {value:.4g}" for currency, value in cost.items())


def half_widths(answer: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """For each released column, under its name, the largest half-width of its numbers; infinite without a bound.

    Of a column of dates the half-width is in days. Missing values have none.
    """
    for place, (column, name) in enumerate(zip(answer.get("columns", ()), names, strict=False)):
        if column["kind"] != "value":
            continue
        widths = [_half_width(row[place]) for row in answer["rows"] if _is_known(row[place])]
        if widths:
            yield name, max(widths)


def _is_known(cell: Any) -> bool:
    return isinstance(cell, Mapping) and cell.get("value") is not None


def _as_number(written: str) -> float:
    """A day as a number of days, and a moment as one of seconds."""
    if "T" in written:
        return float(seconds_of(dt.datetime.fromisoformat(written)))
    return float(dt.date.fromisoformat(written).toordinal())


def _half_width(cell: Mapping[str, Any]) -> float:
    low, high, value = cell["low"], cell["high"], cell["value"]
    if low is None or high is None:
        return inf
    if isinstance(low, str):
        low, high, value = (_as_number(end) for end in (low, high, value))
    return max(high - value, value - low)


def answered(reply: GateReply, names: Sequence[str]) -> bytes:
    """The notice of an answer with columns of these names; a warning where nobody vouches for it."""
    answer = reply.answer
    source, share = str(answer.get("source", "")), float(answer.get("share") or 0.0)
    price = f"price {amount(answer.get('cost', {}))} ({percent_of(share)} of the budget)" if share else "free"
    widths = [
        f"{name} within ± {number(width)}" if width < inf else f"{name} has a row without a bound"
        for name, width in half_widths(answer, names)
    ]
    more = f"; {', '.join(widths[:8])}" if widths else ""
    sure = 1 - float(answer.get("beta") or 0.0)
    detail = f"Question {reply.id}, request {reply.request}."
    if source == "uncertified":
        return wire.notice(
            f"uncertified, free: the budget cannot pay for this answer, and nobody vouches for it{more}",
            severity="WARNING",
            state="01000",
            detail=detail,
            hint="EXPLAIN tells the price; SET understudy.uncertified = off refuses such answers.",
        )
    if answer.get("bounds") == "none":
        return wire.notice(
            f"source {source}, {price}; computed from released rows, without bounds of its own",
            detail=detail,
            hint="The SELECTs inside, each asked by itself, have bounds.",
        )
    if answer.get("order") == "uncertified":
        more += "; the order is not certified: bounds of rows overlap"
    if widths:
        detail = f"All within their bounds with probability {sure:.6g}. {detail}"
    return wire.notice(f"source {source}, {price}{more}", detail=detail)


SYNTHETIC_ROWS = wire.notice(
    "rows of a release's synthetic table: invented people, free, without bounds",
    hint="The release's report says how far its answers can be off.",
)
"""The notice of a statement on `synthetic.RELEASE`."""


def waits(reply: GateReply) -> Refusal:
    """The error of a question that waits for a custodian's approval: no rows can be sent yet."""
    approval = reply.answer.get("approval") or {}
    share = float(approval.get("share") or 0.0)
    return Refusal(
        "55000",
        f"this question costs {percent_of(share)} of the budget and waits for the custodian's approval",
        detail=f"approval {approval.get('id', '')}, question {reply.id}, request {reply.request}",
        hint=f"Once it is approved, SET understudy.request = '{reply.request}' and give the same statement again: "
        "it is paid once.",
    )


def not_made(reply: GateReply) -> Refusal:
    """The error of a statement whose inner SELECTs were answered, and whose outer one failed on their rows."""
    return Refusal(
        "22000",
        str(reply.answer["problem"]),
        hint="The SELECTs inside were answered: asked by themselves, they are free.",
        detail=f"Question {reply.id}, request {reply.request}.",
    )


def explained(told: Mapping[str, Any], how: str) -> Sequence[str]:
    """The lines of EXPLAIN for a question that was priced; `how` says in what way it would be asked."""
    if told["free"]:
        lines = ["Question (free: it follows from what was bought)"]
    else:
        lines = [f"Question (at most {amount(told['cost'])}, {percent_of(told['share'])} of the budget)"]
    error = told.get("error")
    if error is not None:
        sure = f"with probability {1 - told['beta']:.6g}" if told["beta"] else "for sure (bounded noise)"
        unit = told.get("unit", "people")
        if unit == "people":
            lines.append(f"  Error: every count within ± {number(float(error))} people, {sure}")
        else:
            lines.append(f"  Error: every number within ± {number(float(error))} ({unit}), {sure}")
    for forecast in told.get("forecast") or ():
        if forecast.get("error") is not None:
            unit = "" if forecast["unit"] == forecast["column"] else f" {forecast['unit']}"
            lines.append(f"  Error of {forecast['column']}: ± {number(forecast['error'])}{unit}")
    lines.append(f"  Asked: {how}")
    if not told["free"]:
        more = told.get("more_like_this")
        lines.append(
            f"  Affordable: {'yes' if told['affordable'] else 'no'}"
            + (f"; about {more:,} such questions are left" if more is not None and told["affordable"] else "")
        )
        lines.append(f"  Approval: {'needed' if told['needs_approval'] else 'not needed'}")
    return lines
