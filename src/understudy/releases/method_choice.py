"""Which method a release is made by: the one that was named, or what `auto` means; what does not fit is refused.

All of it is decided before the first debit, by the domain, the workload, the budget and public bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from understudy.domain.bins import Bins
from understudy.errors import ParameterError, RefusedError
from understudy.releases import methods
from understudy.releases.demand import check_common
from understudy.releases.method_advice import how_to_fit, how_to_weigh, nothing_fits, room_for_all, what_helps
from understudy.releases.method_options import Options, accepted, takes
from understudy.releases.methods import Method, best, fits, named, obstacle
from understudy.releases.run import Outcome, Run
from understudy.standin.dense.weights import check_device


def chosen(run: Run) -> str:
    """What `auto` means: of the methods that fit, the one that would certify the smallest error.

    Where the universe has too many cells for a table of all of them, the synthetic table is what can go wrong, and
    the adaptive method makes the best one. Decided without a look, by the domain, the workload, the budget and
    public bounds.
    """
    found = best(run, {})
    if found is None:
        raise RefusedError(nothing_fits(run))
    return found


def perform(run: Run, method: str | Callable[..., Outcome], options: Mapping[str, Any]) -> Outcome:
    """Run a method. What does not fit, or is misspelt, is refused before the first debit."""
    if callable(method):
        check_common(run, room_for_all)
        return method(run, **accepted(method, options))
    given = {key: value for key, value in options.items() if value is not None}
    name = selected(run, method, given)
    known = named(name)
    if run.memory is not None and takes(known.function(), "memory"):
        given["memory"] = run.memory
    return known.function()(run, **known.takes(given))


def selected(run: Run, method: str, options: Options) -> str:
    """The name of the method that `perform` runs: the wanted one, or what `auto` means.

    Raises a `ParameterError` where an option is misspelt, and a `RefusedError` or a `QueryError` where the
    release is too large, or the method does not fit. Reads no data.
    """
    automatic = method == "auto"
    wanted = None if automatic else methods.METHODS.get(method)  # one that is misspelt is told below
    check_common(run, lambda run: how_to_fit(run, wanted, options))
    _check_device(method, options)
    if automatic:
        method = "residual" if options.get("ranges") else chosen(run)
    known = named(method)
    _check_options(run, known, options, automatic=automatic)
    _check_ranges(run, options)
    reason = obstacle(known, run, options)
    if reason:
        told = what_helps(run, known, options)
        raise RefusedError(f"{known.name} does not fit: {reason}. Nothing was spent. {told}")
    _check_target(run, known, options, automatic=automatic)
    return known.name


def _check_options(run: Run, method: Method, options: Options, *, automatic: bool) -> None:
    """Refuse options that the method does not take; of what `auto` means, with a method that takes them."""
    try:
        method.takes(options)
    except ParameterError as refusal:
        other = best(run, options) if automatic else None
        if other is None:
            raise
        raise ParameterError(
            f"auto means {method.name} here, and {refusal}. Take `method={other!r}`, which takes all that is "
            "given, or leave that out"
        ) from None


def _check_target(run: Run, method: Method, options: Options, *, automatic: bool) -> None:
    """Refuse a target that would change nothing: the method was named, or no method that fits would weigh it.

    What `auto` takes is compared with methods that weigh the target, so it may treat all marginals alike: its bars
    of the target's marginals are the shorter ones all the same.
    """
    if run.target is None or method.weighs(run, options):
        return
    others = [
        other.name
        for other in methods.METHODS.values()
        if other.is_automatic and fits(other, run, options) and other.weighs(run, options)
    ]
    if automatic and others:
        return
    raise RefusedError(
        f"{method.name} treats all marginals alike, and the target {run.target!r} would change nothing. "
        f"Nothing was spent. {how_to_weigh(run, others)}"
    )


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
