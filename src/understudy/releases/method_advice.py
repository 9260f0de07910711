"""What would help where a method of a release does not fit, or none does: only what was tried on the run is named.

The advice is worked out from public numbers, as the obstacles are, and a remedy is told only where the method that
it is for would fit then.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction

from understudy.memory import as_text, physical, rounded_down, rounded_up
from understudy.releases import methods
from understudy.releases.demand import common, limit_of, need_of, row_bytes
from understudy.releases.method_options import Options
from understudy.releases.methods import Method, best, fits, obstacle
from understudy.releases.run import Run, a_delta_for

MOST_ADVISED = 1 << 24
"""Cells that mwem is proposed to hold: minutes, and about two gigabytes."""

UNLIMITED = 1 << 62
"""Bytes of a machine in whose memory everything fits, to ask whether memory alone is in the way."""

FEWEST = 100
"""Synthetic rows below which nobody is told to draw fewer."""

USUAL_DELTA = Fraction(1, 10**9)
"""What is proposed where a budget lacks a delta."""


def nothing_fits(run: Run) -> str:
    """Why `auto` has no method, and what would help; what the advice mends is not complained about."""
    helped = _with_a_delta(run) if _can_have_a_delta(run) else None
    mended = {"mwem"} if _can_hold_all(run, {}) else set[str]()
    mended |= {
        way[1] for way in (_enough_memory(run, None, {}), _fewer_rows(run, None, {})) if way is not None
    }
    if helped is not None:
        mended |= {method.name for method in methods.METHODS.values() if fits(method, helped, {})}
    reasons: dict[str, list[str]] = {}
    for method in methods.METHODS.values():
        if method.is_automatic and method.name not in mended:
            reasons.setdefault(obstacle(method, run, {}), []).append(method.name)
    listed = "; ".join(f"{' and '.join(names)}: {reason}" for reason, names in reasons.items())
    where = " at a pure epsilon" if run.budget.is_pure else ""
    return f"no method fits this table{where} ({listed}). Nothing was spent. {what_helps(run, None, {})}"


def what_helps(run: Run, method: Method | None, options: Options) -> str:
    """What would help where a method, or every one, does not fit; only what was tried on the run is named."""
    ways = []
    other = best(run, options)
    if other is not None:
        ways.append(f"take `method='{other}'`")
    if _can_have_a_delta(run):
        helped = _with_a_delta(run)
        own = method.name if method is not None and fits(method, helped, options) else None
        wanted = own if own is not None or other is not None else best(helped, options)
        if wanted is not None:
            ways.append(f"{_how_to_have_a_delta(run)}, then {wanted} fits")
    if other is None and _can_hold_all(run, options):
        ways.append(f"let mwem hold every cell: `method='mwem', cells={run.domain.size()}`")
    return _sentence([*ways, *_ways_to_fit(run, method, options)] or [_smaller_request(run, options)])


def how_to_fit(run: Run, method: Method | None, options: Options) -> str:
    """What would help where the answers and the synthetic rows alone take more memory than is allowed.

    `method` is the one that was asked for, None for any.
    """
    need = common(run)
    answers, rows = need.parts["answers"], need.parts["synthetic rows"]
    ways = _ways_to_fit(run, method, options)
    if answers >= rows or not ways:
        cells = f"{run.workload.queries:,} cells in {len(run.workload):,} marginals take {as_text(answers)}"
        ways.append(f"ask for less: leave large marginals out with `max_cells`, or list fewer ({cells})")
    return _sentence(ways)


def room_for_all(run: Run) -> str:
    """The same where the method is a function of the caller's, which says nothing of what it holds itself."""
    return f"Allow more memory, more than `memory={rounded_up(common(run).total)}`, or ask for less"


def _ways_to_fit(run: Run, method: Method | None, options: Options) -> list[str]:
    """Fewer synthetic rows, or another limit of memory, where a method that does not fit would fit then."""
    fewer, enough = _fewer_rows(run, method, options), _enough_memory(run, method, options)
    ways = [] if fewer is None else [(f"draw fewer synthetic rows, at most `rows={fewer[0]}`", fewer[1])]
    if enough is not None:
        is_more = enough[0] > limit_of(run)
        told = "allow more memory, at least" if is_more else "let the stand-in be no larger than fits, with"
        ways.append((f"{told} `memory={enough[0]}`", enough[1]))
    if len({name for _, name in ways}) == 1:
        return [f"{', or '.join(way for way, _ in ways)}, then {ways[0][1]} fits"]
    return [f"{way}, then {name} fits" for way, name in ways]


def _considered(run: Run, method: Method | None, options: Options) -> list[Method]:
    """The methods that were asked for and do not fit, where nothing but memory is in their way."""
    wanted = [one for one in methods.METHODS.values() if one.is_automatic] if method is None else [method]
    ample = _allowing(run, UNLIMITED)
    return [one for one in wanted if not fits(one, run, options) and fits(one, ample, options)]


def _enough_memory(run: Run, method: Method | None, options: Options) -> tuple[int, str] | None:
    """The least memory, in round bytes, with which a method fits that does not, and its name; None if none does.

    More than the machine has is not proposed. Sizes never depend on the machine, but a stand-in whose size follows
    from `seconds` is made smaller where a limit is given: where nothing was said, and half of the machine's memory
    is enough for that, all of this half is proposed.
    """
    usual = rounded_down(limit_of(run)) if run.memory is None else 0
    found: list[tuple[int, str]] = []
    for one in _considered(run, method, options):
        amount = max(rounded_up(_least_need(run, one, options)), usual)
        if amount <= physical() and fits(one, _allowing(run, amount), options):
            found.append((amount, one.name))
    if not found:
        return None
    amount, name = min(found)
    return amount, name if method is not None else best(_allowing(run, amount), options) or name


def _fewer_rows(run: Run, method: Method | None, options: Options) -> tuple[int, str] | None:
    """The most synthetic rows, in a round number, with which a method fits that does not, and its name.

    None where fewer rows do not help, or fewer than the `FEWEST` would be left.
    """
    now = common(run).parts["synthetic rows"] // row_bytes(run.domain)
    found: list[tuple[int, str]] = []
    for one in _considered(run, method, options):
        rows = (limit_of(run) - _least_need(_drawing(run, 0), one, options)) // row_bytes(run.domain)
        rows = rounded_down(max(rows, 0))
        if FEWEST <= rows < now and fits(one, _drawing(run, rows), options):
            found.append((rows, one.name))
    if not found:
        return None
    rows, name = max(found)
    return rows, name if method is not None else best(_drawing(run, rows), options) or name


def _least_need(run: Run, method: Method, options: Options) -> int:
    """The bytes of memory that a method needs with as small a stand-in as it can have."""
    return need_of(_allowing(run, 1), method, options).total


def _allowing(run: Run, memory: int) -> Run:
    """The run with so much memory, to ask what would fit it."""
    other = copy(run)
    other.memory = memory
    return other


def _drawing(run: Run, rows: int) -> Run:
    """The run with so many synthetic rows, to ask what would fit it."""
    other = copy(run)
    other.synthetic = rows
    return other


def how_to_weigh(run: Run, others: Sequence[str]) -> str:
    """What would help where a method treats all marginals alike; `others` fit as well, and weigh a target."""
    ways = [f"take `method='{other}'`" for other in others]
    if not others and _can_have_a_delta(run):
        ways.append(f"{_how_to_have_a_delta(run)}, so that a method that weighs them fits")
    return _sentence([*ways, "leave out `target`"])


def _sentence(ways: Sequence[str]) -> str:
    told = ", or ".join(ways)
    return told[0].upper() + told[1:]


def _smaller_request(run: Run, options: Options) -> str:
    """What is left where no method fits as things are, whatever may be changed but the declared cells."""
    left_out = f"leave out {', '.join(options)}" if options else ""
    if options and (plain := best(run, {})) is not None:
        return f"{left_out}, then {plain} fits"
    fewer = "declare coarser bins or fewer attributes, so that mwem fits"
    told = f"{left_out}, and {fewer}" if options else fewer
    return f"this budget was drawn on, so it can have no delta: {told}" if run.budget.is_pure else told


def _can_hold_all(run: Run, options: Options) -> bool:
    """Whether mwem fits if it is told to hold more cells than it does on its own."""
    cells = run.domain.size()
    return cells <= MOST_ADVISED and fits(methods.METHODS["mwem"], run, {**options, "cells": cells})


def _can_have_a_delta(run: Run) -> bool:
    """Whether another declaration, or a release with the budget's delta, is open: a used ledger stays pure."""
    ledger = run.curator.ledger
    return run.budget.is_pure and (not ledger.budget.is_pure or not ledger.is_begun)


def _how_to_have_a_delta(run: Run) -> str:
    declared = run.curator.ledger.budget
    return a_delta_for(declared, USUAL_DELTA) if declared.is_pure else "leave out `delta`"


def _with_a_delta(run: Run) -> Run:
    """The run with a delta, to ask what would fit it; none of its steps could be paid."""
    other = copy(run)
    other.budget = replace(run.budget, delta=run.curator.ledger.budget.conversion_delta or USUAL_DELTA)
    return other
