"""The methods of a release by name, and which of them fit a run: decided by public numbers alone.

Which of them is taken says `releases.method_choice`, and what would help where none fits
`releases.method_advice`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from math import inf
from typing import Any

from understudy.domain.domain import Clique
from understudy.errors import ParameterError, RefusedError, TooLargeError
from understudy.releases import demand, forecast_errors
from understudy.releases.forecast_errors import ForeseenErrors
from understudy.releases.method_names import METHOD_NAMES, MethodName
from understudy.releases.method_options import Options, accepted, planning
from understudy.releases.mwem import MOST_FITTED_CELLS, shares
from understudy.releases.residual.residual import PLANNED_BY as RESIDUAL_PLANNED_BY
from understudy.releases.residual.residual import planned, residual_error
from understudy.releases.run import Outcome, Run
from understudy.releases.small_marginals import SmallMarginals, bar, below, direct_bars
from understudy.releases.smalldb import PLANNED_BY as SMALLDB_PLANNED_BY
from understudy.releases.smalldb import smalldb_look
from understudy.releases.target import importance
from understudy.theory.arguments import whole

MOST_FITTED = 1 << 22
"""Cells of a universe up to which `auto` takes a method that holds every cell."""

MOST_HELD_CELLS = 1 << 26
"""Cells of a universe whose every cell is held as a number, if the caller has the patience."""


def _always(run: Run, options: Options) -> bool:
    del run, options
    return True


@dataclass(frozen=True, slots=True)
class Method:
    """How a release is made.

    `told` is its name and what is said of it, from `METHOD_NAMES`. `home` is where the function lives. `obstacle`
    says why it does not fit a run, if so, and gives no advice: what helps depends on what else fits. `predicted`
    is the largest error, in people, that it would certify for the workload, where errors of marginals with the
    run's target count by their `importance`; without it, `auto` takes the method only as the `last_resort`.
    `weighs` says whether the workload's weights, and so a target, change what it does.

    `held` is how many bytes it takes beside the answers, and `looked_at` the cliques that its largest look counts
    at once: neither has a default, so that no method passes the check of memory because nobody thought of it.
    `foreseen` are the errors of each marginal. `planned_by` names the options by which it is planned, where its
    own obstacles are found by planning it, which takes long where it is too large: its size is compared first.

    All are worked out from public numbers.
    """

    told: MethodName
    home: str
    obstacle: Callable[[Run, Options], str]
    predicted: Callable[[Run], float] | None = None
    last_resort: bool = False
    weighs: Callable[[Run, Options], bool] = _always
    planned_by: tuple[str, ...] = ()
    _: KW_ONLY
    held: Callable[[Run, Options], int]
    looked_at: Callable[[Run], Sequence[Clique]]
    foreseen: Callable[[Run, Options], ForeseenErrors]

    @property
    def name(self) -> str:
        """By which it is asked for, and which its certificate bears."""
        return self.told.name

    @property
    def python_only(self) -> bool:
        """Whether it needs what no command line can say."""
        return self.told.python_only

    def takes(self, options: Options) -> dict[str, Any]:
        """The options, if the method takes them and gets all that it needs."""
        return accepted(self.function(), options, self.name, python_only=self.python_only)

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
        smalldb_look(run, **planning(options, SMALLDB_PLANNED_BY))
    except (RefusedError, TooLargeError) as error:
        return reason(error)
    return ""


def reason(error: Exception) -> str:
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
    known = planning(options, RESIDUAL_PLANNED_BY)
    try:
        planned(run, **known)
    except (RefusedError, TooLargeError) as error:
        return reason(error)
    except ParameterError as error:  # too little for any noise that can be drawn, unless an option is wrong
        if known:
            raise
        return reason(error)
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
            METHOD_NAMES["smalldb"],
            "understudy.releases.smalldb:smalldb",
            _of_smalldb,
            _small_database_error,
            weighs=_never,
            planned_by=SMALLDB_PLANNED_BY,
            held=demand.of_kinds_of_rows,
            looked_at=demand.the_workload,
            foreseen=forecast_errors.of_smalldb,
        ),
        Method(
            METHOD_NAMES["net"],
            "understudy.releases.net:net",
            _nothing,
            weighs=_never,
            held=demand.of_the_caller,
            looked_at=demand.the_workload,
            foreseen=forecast_errors.unknown,  # what is certified depends on the databases
        ),
        Method(
            METHOD_NAMES["ic"],
            "understudy.releases.iterative:iterative_construction",
            _of_ic,
            weighs=_never,
            held=demand.of_weights,
            looked_at=demand.the_workload,
            foreseen=forecast_errors.of_iterative,
        ),
        Method(
            METHOD_NAMES["mwem"],
            "understudy.releases.mwem:mwem",
            _of_mwem,
            _measured_error,
            weighs=_picks,
            held=demand.of_histogram,
            looked_at=demand.the_workload,
            foreseen=forecast_errors.of_mwem,
        ),
        Method(
            METHOD_NAMES["residual"],
            "understudy.releases.residual.residual:residual",
            _of_residual,
            residual_error,
            planned_by=RESIDUAL_PLANNED_BY,
            held=demand.of_residual,
            looked_at=demand.the_workload,
            foreseen=forecast_errors.of_residual,
        ),
        Method(
            METHOD_NAMES["adaptive"],
            "understudy.releases.adaptive.adaptive:adaptive",
            _needs_a_delta,
            last_resort=True,
            held=demand.of_adaptive,
            looked_at=demand.candidates,
            foreseen=forecast_errors.of_adaptive,
        ),
        Method(
            METHOD_NAMES["aim"],
            "understudy.releases.aim:aim",
            _needs_a_delta,
            held=demand.of_aim,
            looked_at=demand.parts_of_the_workload,
            foreseen=forecast_errors.unknown,  # what it measures depends on the table
        ),
    )
}


def named(method: str) -> Method:
    """The method of that name."""
    if method not in METHODS:
        listed = [name for name, known in METHODS.items() if not known.python_only]
        raise ParameterError(f"a method is one of auto, {', '.join(listed)}, not {method!r}")
    return METHODS[method]


def obstacle(method: Method, run: Run, options: Options) -> str:
    """Why a method does not fit a run: it is too large, or its own reason, whose plan may take longer."""
    size = demand.obstacle(run, method, options)
    if size and method.planned_by:
        return size
    return method.obstacle(run, options) or size


def fits(method: Method, run: Run, options: Options) -> bool:
    """Whether nothing stands in the method's way, and it takes the options."""
    try:
        if obstacle(method, run, options):
            return False
        return not options or bool(method.takes(options))
    except ParameterError:  # it does not take the options, or not these values
        return False


def best(run: Run, options: Options) -> str | None:
    """Of the methods that fit the run and take the options, the one that would certify the smallest error.

    Where the universe has too many cells for a table of all of them, it is the last resort, if that fits. None
    where no method does.
    """
    last = next((m for m in METHODS.values() if m.last_resort and fits(m, run, options)), None)
    if last is not None and run.domain.size() > MOST_FITTED:
        return last.name
    errors = {
        m.name: m.predicted for m in METHODS.values() if m.predicted is not None and fits(m, run, options)
    }
    if not errors:
        return None if last is None else last.name
    return min(errors, key=lambda name: errors[name](run)) if len(errors) > 1 else next(iter(errors))
