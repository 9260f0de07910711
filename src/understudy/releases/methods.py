"""The methods of a release by name, and which of them fits: decided by public numbers alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import inf
from typing import Any

from understudy.errors import ParameterError, RefusedError, TooLargeError
from understudy.query.marginal import Marginal
from understudy.releases.mwem import MOST_CELLS as FITTED_CELLS
from understudy.releases.residual import residual_error, residual_obstacle
from understudy.releases.run import Outcome, Run
from understudy.releases.smalldb import smalldb_look

MOST_FITTED = 1 << 22
"""Cells of a universe up to which `auto` takes a method that holds every cell."""

MOST_CELLS = 1 << 26
"""Cells of a universe whose every cell is held as a number, if the caller has the patience."""

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """How a release is made.

    `home` is where the function lives. `obstacle` says why it does not fit a run, if so. `predicted` is the
    largest error, in people, that it would certify for the workload; `auto` never chooses one without it. Both
    are worked out from public numbers.
    """

    name: str
    home: str
    summary: str
    obstacle: Callable[[Run, Options], str]
    predicted: Callable[[Run], float] | None = None

    def function(self) -> Callable[..., Outcome]:
        module, name = self.home.split(":")
        return getattr(import_module(module), name)


def _nothing(run: Run, options: Options) -> str:
    del run, options
    return ""


def _holds_every_cell(run: Run, most: int) -> str:
    cells = run.domain.size()
    return (
        ""
        if cells <= most
        else f"it holds every cell of the universe, at most {most:,}, and this one has {cells:,}"
    )


def _of_mwem(run: Run, options: Options) -> str:
    return _holds_every_cell(run, min(int(options.get("cells", FITTED_CELLS)), MOST_CELLS))


_FILLS_ALL = "it may put people into cells that are declared to be empty"


def _of_ic(run: Run, options: Options) -> str:
    if run.constraints:
        return _FILLS_ALL
    return "" if options.get("update") is not None else _holds_every_cell(run, MOST_CELLS)


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
        return str(error).removesuffix("Nothing was spent.").strip().rstrip(".")
    return ""


def _small_database_error(run: Run) -> float:
    look, design = smalldb_look(run)
    return design.error * look.rows


def _needs_a_delta(run: Run, options: Options) -> str:
    del options
    return "it needs a budget with a delta; mwem takes a pure one" if run.budget.is_pure else ""


def _measured_error(run: Run) -> float:
    """Every marginal of the workload measured with an equal part of the price, jointly."""
    parts = len(run.workload)
    marginals = [Marginal(run.domain, clique) for clique in run.workload]
    price = run.price(Fraction(1, parts))
    try:
        return max(
            run.curator.error(marginal, *run.curator.mechanism(marginal, **price), run.beta / parts)
            for marginal in marginals
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
        ),
        Method(
            "net",
            "understudy.releases.net:net",
            "one draw among databases that the caller brings (Python only)",
            _nothing,
        ),
        Method(
            "ic",
            "understudy.releases.iterative:iterative_construction",
            "iterative construction: a distinguisher finds what the hypothesis gets wrong, and it is mended",
            _of_ic,
        ),
        Method(
            "mwem",
            "understudy.releases.mwem:mwem",
            "multiplicative weights on marginals that are measured, all or the worst ones",
            _of_mwem,
            _measured_error,
        ),
        Method(
            "residual",
            "understudy.releases.residual:residual",
            "optimal noise on every interaction below the workload",
            residual_obstacle,
            residual_error,
        ),
        Method(
            "adaptive",
            "understudy.releases.adaptive:adaptive",
            "measure, let a private selection find what the stand-in gets wrong, measure that, refit",
            _needs_a_delta,
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
        raise ParameterError(f"a method is one of auto, {', '.join(METHODS)}, not {method!r}")
    return METHODS[method]


def fitting(run: Run) -> list[str]:
    """The methods that fit the run's domain, among those that `auto` may choose."""
    return [m.name for m in METHODS.values() if m.predicted is not None and not m.obstacle(run, {})]


def chosen(run: Run) -> str:
    """What `auto` means: of the methods that fit, the one that would certify the smallest error.

    Where the universe has too many cells for a table of all of them, the synthetic table is what can go wrong, and
    the adaptive method makes the best one. Decided without a look, by the domain, the workload, the budget and
    public bounds.
    """
    if run.domain.size() > MOST_FITTED and not METHODS["adaptive"].obstacle(run, {}):
        return "adaptive"
    fits = fitting(run)
    if not fits:
        reasons = "; ".join(
            f"{m.name}: {m.obstacle(run, {})}" for m in METHODS.values() if m.predicted is not None
        )
        raise RefusedError(
            f"no method fits this table ({reasons}). Declare coarser bins or fewer attributes. Nothing was spent"
        )
    predicted = {name: forecast(run) for name in fits if (forecast := METHODS[name].predicted) is not None}
    return fits[0] if len(fits) == 1 else min(fits, key=predicted.__getitem__)


def perform(run: Run, method: str | Callable[..., Outcome], options: Mapping[str, Any]) -> Outcome:
    """Run a method. What does not fit, or is misspelt, is refused before the first debit."""
    if callable(method):
        return method(run, **_accepted(method, options, getattr(method, "__name__", "this method")))
    if method == "auto":
        method = "residual" if options.get("ranges") else chosen(run)
    known = named(method)
    obstacle = known.obstacle(run, {key: value for key, value in options.items() if value is not None})
    if obstacle:
        others = ", ".join(fitting(run))
        instead = f"try --method {others}" if others else "no other method fits either: declare coarser bins"
        raise RefusedError(f"{known.name} does not fit: {obstacle}; {instead}. Nothing was spent")
    function = known.function()
    return function(run, **_accepted(function, options, known.name))


def _accepted(function: Callable[..., Outcome], options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The options, if the function takes them and gets all that it needs."""
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
        raise ParameterError(f"{name} needs {', '.join(missing)}")
    return given
