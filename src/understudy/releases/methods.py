"""The methods of a release by name, and which of them fits: decided by public numbers alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from math import inf
from typing import Any

from understudy.domain.bins import Bins
from understudy.errors import ParameterError, RefusedError, TooLargeError
from understudy.releases import demand
from understudy.releases.demand import check_common
from understudy.releases.mwem import MOST_FITTED_CELLS, shares
from understudy.releases.residual.residual import planned, residual_error
from understudy.releases.run import Outcome, Run, a_delta_for
from understudy.releases.small_marginals import SmallMarginals, bar, below, direct_bars
from understudy.releases.smalldb import smalldb_look
from understudy.releases.target import importance
from understudy.standin.dense.weights import check_device
from understudy.theory.arguments import whole

MOST_FITTED = 1 << 22
"""Cells of a universe up to which `auto` takes a method that holds every cell."""

MOST_ADVISED = 1 << 24
"""Cells that mwem is proposed to hold: minutes, and about two gigabytes."""

USUAL_DELTA = Fraction(1, 10**9)
"""What is proposed where a budget lacks a delta."""

MOST_HELD_CELLS = 1 << 26
"""Cells of a universe whose every cell is held as a number, if the caller has the patience."""

PLANNED = ("residual", "smalldb")
"""Methods whose own obstacles are found by planning them, which takes long where they are too large."""

Options = Mapping[str, Any]


def _always(run: Run, options: Options) -> bool:
    del run, options
    return True


@dataclass(frozen=True, slots=True)
class Method:
    """How a release is made.

    `home` is where the function lives. `obstacle` says why it does not fit a run, if so, and gives no advice: what
    helps depends on what else fits. `predicted` is the largest error, in people, that it would certify for the
    workload, where errors of marginals with the run's target count by their `importance`; without it, `auto` takes
    the method only as the `last_resort`. `weighs` says whether the workload's weights, and so a target, change what
    it does. All are worked out from public numbers. `python_only` methods need what no command line can say.
    """

    name: str
    home: str
    summary: str
    obstacle: Callable[[Run, Options], str]
    predicted: Callable[[Run], float] | None = None
    last_resort: bool = False
    python_only: bool = False
    weighs: Callable[[Run, Options], bool] = _always

    @property
    def is_automatic(self) -> bool:
        """Whether `auto` may choose it."""
        return self.predicted is not None or self.last_resort

    def function(self) -> Callable[..., Outcome]:
        module, name = self.home.split(":")
        return getattr(import_module(module), name)


def _nothing(run: Run, options: Options) -> str:
    del run, options
    return ""


def _never(run: Run, options: Options) -> bool:
    del run, options
    return False


def _picks(run: Run, options: Options) -> bool:
    """Whether mwem picks marginals, by their weights: else it measures all of them alike."""
    return shares(run, options.get("rounds"), options.get("per_round")).small is None


def _holds_every_cell(run: Run, most: int) -> str:
    cells = run.domain.size()
    return (
        ""
        if cells <= most
        else f"it holds every cell of the universe, at most {most:,}, and this one has {cells:,}"
    )


def _of_mwem(run: Run, options: Options) -> str:
    cells = whole(options.get("cells", MOST_FITTED_CELLS), "cells", at_least=1)
    return _holds_every_cell(run, min(cells, MOST_HELD_CELLS))


_FILLS_ALL = "it may put people into cells that are declared to be empty"


def _of_ic(run: Run, options: Options) -> str:
    if run.constraints:
        return _FILLS_ALL
    return "" if options.get("update") is not None else _holds_every_cell(run, MOST_HELD_CELLS)


def _of_smalldb(run: Run, options: Options) -> str:
    if run.constraints:
        return _FILLS_ALL
    if (
        "queries" in options
    ):  # they may be there for one reading only: smalldb itself refuses what does not fit
        return ""
    try:
        smalldb_look(run, **{key: options[key] for key in ("alpha", "size") if key in options})
    except (RefusedError, TooLargeError) as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    """What is wrong, the first sentence: the remedies of the others may not fit the run."""
    return str(error).split(". ")[0].rstrip(".")


def _small_database_error(run: Run) -> float:
    """Infinite where small marginals would have wider bars than direct questions have, or would not be told."""
    look, design = smalldb_look(run)
    error = design.error * look.rows
    direct = direct_bars(run, run.workload)
    if below(run.workload) or any(error > bar for bar in direct.values()):
        return inf
    return error * max((importance(clique, run.target) for clique in run.workload), default=1.0)


def _needs_a_delta(run: Run, options: Options) -> str:
    del options
    return "Gaussian noise needs a delta" if run.budget.is_pure else ""


def _of_residual(run: Run, options: Options) -> str:
    if run.budget.is_pure:
        return _needs_a_delta(run, options)
    known = {key: options[key] for key in ("cells_limit", "ranges", "objective") if key in options}
    try:
        planned(run, **known)
    except (RefusedError, TooLargeError) as error:
        return _reason(error)
    except ParameterError as error:  # too little for any noise that can be drawn, unless an option is wrong
        if known:
            raise
        return _reason(error)
    return ""


def _measured_error(run: Run) -> float:
    """Every marginal of the workload measured at one price, with those below it that have to be, jointly."""
    try:
        small = SmallMarginals.of(run)
        return max(
            importance(clique, run.target) * bar(run, clique, small.price, small.beta)
            for clique in run.workload
        )
    except ParameterError:  # too little for any noise that can be drawn
        return inf


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            "smalldb",
            "understudy.releases.smalldb:smalldb",
            "one draw of the exponential mechanism among all small databases",
            _of_smalldb,
            _small_database_error,
            weighs=_never,
        ),
        Method(
            "net",
            "understudy.releases.net:net",
            "one draw among databases that the caller brings (Python only)",
            _nothing,
            python_only=True,
            weighs=_never,
        ),
        Method(
            "ic",
            "understudy.releases.iterative:iterative_construction",
            "iterative construction: a distinguisher finds what the hypothesis gets wrong, and it is mended",
            _of_ic,
            weighs=_never,
        ),
        Method(
            "mwem",
            "understudy.releases.mwem:mwem",
            "multiplicative weights on marginals that are measured, all or the worst ones",
            _of_mwem,
            _measured_error,
            weighs=_picks,
        ),
        Method(
            "residual",
            "understudy.releases.residual.residual:residual",
            "optimal noise on every interaction below the workload",
            _of_residual,
            residual_error,
        ),
        Method(
            "adaptive",
            "understudy.releases.adaptive.adaptive:adaptive",
            "measure, let a private selection find what the stand-in gets wrong, measure that, refit",
            _needs_a_delta,
            last_resort=True,
        ),
        Method(
            "aim",
            "understudy.releases.aim:aim",
            "the published AIM, as a reference",
            _needs_a_delta,
        ),
    )
}


def named(method: str) -> Method:
    """The method of that name."""
    if method not in METHODS:
        listed = [name for name, known in METHODS.items() if not known.python_only]
        raise ParameterError(f"a method is one of auto, {', '.join(listed)}, not {method!r}")
    return METHODS[method]


def fitting(run: Run) -> list[str]:
    """The methods that fit the run's domain and have a predicted error."""
    return [m.name for m in METHODS.values() if m.predicted is not None and _fits(m, run, {})]


def chosen(run: Run) -> str:
    """What `auto` means: of the methods that fit, the one that would certify the smallest error.

    Where the universe has too many cells for a table of all of them, the synthetic table is what can go wrong, and
    the adaptive method makes the best one. Decided without a look, by the domain, the workload, the budget and
    public bounds.
    """
    found = _best(run, {})
    if found is None:
        raise RefusedError(_nothing_fits(run))
    return found


def _best(run: Run, options: Options) -> str | None:
    """What `auto` would choose among the methods that fit the run and take the options."""
    last = next((m for m in METHODS.values() if m.last_resort and _fits(m, run, options)), None)
    if last is not None and run.domain.size() > MOST_FITTED:
        return last.name
    fits = {
        m.name: m.predicted for m in METHODS.values() if m.predicted is not None and _fits(m, run, options)
    }
    if not fits:
        return None if last is None else last.name
    return min(fits, key=lambda name: fits[name](run)) if len(fits) > 1 else next(iter(fits))


def obstacle(method: Method, run: Run, options: Options) -> str:
    """Why a method does not fit a run: it is too large, or its own reason, whose plan may take longer."""
    size = demand.obstacle(run, method.name, options)
    if size and method.name in PLANNED:
        return size
    return method.obstacle(run, options) or size


def _fits(method: Method, run: Run, options: Options) -> bool:
    try:
        if obstacle(method, run, options):
            return False
        return not options or bool(_accepted(method.function(), options, method))
    except ParameterError:  # it does not take the options, or not these values
        return False


def perform(run: Run, method: str | Callable[..., Outcome], options: Mapping[str, Any]) -> Outcome:
    """Run a method. What does not fit, or is misspelt, is refused before the first debit."""
    if callable(method):
        check_common(run)
        return method(run, **_accepted(method, options))
    given = {key: value for key, value in options.items() if value is not None}
    name = selected(run, method, given)
    if name == "adaptive" and run.memory is not None:
        given["memory"] = run.memory
    known = named(name)
    return known.function()(run, **_accepted(known.function(), given, known))


def selected(run: Run, method: str, options: Options) -> str:
    """The name of the method that `perform` runs: the wanted one, or what `auto` means.

    Raises a `ParameterError` where an option is misspelt, and a `RefusedError` or a `QueryError` where the
    release is too large, or the method does not fit. Reads no data.
    """
    check_common(run)
    _check_device(method, options)
    automatic = method == "auto"
    if automatic:
        method = "residual" if options.get("ranges") else chosen(run)
    known = named(method)
    _accepted(known.function(), options, known)
    _check_ranges(run, options)
    reason = obstacle(known, run, options)
    if reason:
        advice = _advice(run, known, options)
        raise RefusedError(f"{known.name} does not fit: {reason}. Nothing was spent. {advice}")
    _check_target(run, known, options, automatic=automatic)
    return known.name


def _check_target(run: Run, method: Method, options: Options, *, automatic: bool) -> None:
    """Refuse a target that would change nothing: the method was named, or no method that fits would weigh it.

    What `auto` takes is compared with methods that weigh the target, so it may treat all marginals alike: its bars
    of the target's marginals are the shorter ones all the same.
    """
    if run.target is None or method.weighs(run, options):
        return
    others = [
        other.name
        for other in METHODS.values()
        if other.is_automatic and _weighs_and_fits(other, run, options)
    ]
    if automatic and others:
        return
    ways = [f"take `method='{other}'`" for other in others]
    if not others and _can_have_a_delta(run):
        ways.append(f"{_how_to_have_a_delta(run)}, so that a method that weighs them fits")
    told = ", or ".join([*ways, "leave out `target`"])
    raise RefusedError(
        f"{method.name} treats all marginals alike, and the target {run.target!r} would change nothing. "
        f"Nothing was spent. {told[0].upper() + told[1:]}"
    )


def _weighs_and_fits(method: Method, run: Run, options: Options) -> bool:
    return _fits(method, run, options) and method.weighs(run, options)


def _check_device(method: str, options: Options) -> None:
    """A GPU holds the weights of one method alone, and is there, or a `ParameterError` says so before anything is
    forecast or paid.
    """
    if options.get("device") is None:
        return
    if method != "ic":
        raise ParameterError(
            f"`device` is where `method='ic'` holds its weights, and {method} holds none there: name that method, "
            "or leave `device` out"
        )
    check_device(options["device"])


def _check_ranges(run: Run, options: Options) -> None:
    """Whatever else stands in the way: ranges of what has no order are a mistake."""
    for name in options.get("ranges", ()):
        if not isinstance(run.domain[name], Bins):
            raise ParameterError(f"{name} has no order, so it has no ranges: name integers, reals or dates")


# ---- what to do instead


def _nothing_fits(run: Run) -> str:
    """Why `auto` has no method, and what would help; what the advice mends is not complained about."""
    helped = _with_a_delta(run) if _can_have_a_delta(run) else None
    mended = {"mwem"} if _can_hold_all(run, {}) else set()
    if helped is not None:
        mended |= {method.name for method in METHODS.values() if _fits(method, helped, {})}
    reasons: dict[str, list[str]] = {}
    for method in METHODS.values():
        if method.is_automatic and method.name not in mended:
            reasons.setdefault(obstacle(method, run, {}), []).append(method.name)
    listed = "; ".join(f"{' and '.join(names)}: {reason}" for reason, names in reasons.items())
    where = " at a pure epsilon" if run.budget.is_pure else ""
    return f"no method fits this table{where} ({listed}). Nothing was spent. {_advice(run, None, {})}"


def _advice(run: Run, method: Method | None, options: Options) -> str:
    """What would help where a method, or every one, does not fit; only what was tried on the run is named."""
    ways = []
    other = _best(run, options)
    if other is not None:
        ways.append(f"take `method='{other}'`")
    if _can_have_a_delta(run):
        helped = _with_a_delta(run)
        own = method.name if method is not None and _fits(method, helped, options) else None
        wanted = own if own is not None or other is not None else _best(helped, options)
        if wanted is not None:
            ways.append(f"{_how_to_have_a_delta(run)}, then {wanted} fits")
    if other is None and _can_hold_all(run, options):
        ways.append(f"let mwem hold every cell: `method='mwem', cells={run.domain.size()}`")
    told = ", or ".join(ways) or _smaller_request(run, options)
    return told[0].upper() + told[1:]


def _smaller_request(run: Run, options: Options) -> str:
    """What is left where no method fits as things are, whatever may be changed but the declared cells."""
    left_out = f"leave out {', '.join(options)}" if options else ""
    if options and (plain := _best(run, {})) is not None:
        return f"{left_out}, then {plain} fits"
    fewer = "declare coarser bins or fewer attributes, so that mwem fits"
    told = f"{left_out}, and {fewer}" if options else fewer
    return f"this budget was drawn on, so it can have no delta: {told}" if run.budget.is_pure else told


def _can_hold_all(run: Run, options: Options) -> bool:
    """Whether mwem fits if it is told to hold more cells than it does on its own."""
    cells = run.domain.size()
    return cells <= MOST_ADVISED and _fits(METHODS["mwem"], run, {**options, "cells": cells})


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


def _accepted(
    function: Callable[..., Outcome], options: Options, method: Method | None = None
) -> dict[str, Any]:
    """The options, if the function takes them and gets all that it needs."""
    name = getattr(function, "__name__", "this method") if method is None else method.name
    given = {key: value for key, value in options.items() if value is not None}
    parameters = [*inspect.signature(function).parameters.values()][1:]
    takes = {p.name for p in parameters}
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = [key for key in given if key not in takes and not open_ended]
    if unknown:
        listed = ", ".join(sorted(takes)) or "no options"
        raise ParameterError(f"{name} does not take {', '.join(unknown)}; it takes {listed}")
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY]
    missing = [key for key in needed if key not in given]
    if missing:
        only = ", which it is given from Python only" if method is not None and method.python_only else ""
        raise ParameterError(f"{name} needs {', '.join(missing)}{only}")
    return given
