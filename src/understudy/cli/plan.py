"""`understudy plan`: what would n, k, epsilon buy me?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from understudy.cli.options import Json, Overwrite, check_output, emit
from understudy.cli.terminal import columns_of, say, say_table
from understudy.errors import ParameterError
from understudy.privacy.relation import Neighbours

if TYPE_CHECKING:
    from understudy.declaration.declaration import Declaration
    from understudy.planner.capacity import SureCounts
    from understudy.planner.filters import FilterAdvice
    from understudy.planner.solve import Plan
    from understudy.privacy.noise_name import Noise
    from understudy.releases.method_plan import MethodPlan

LEGEND = {
    "split": "fresh rows for each query",
    "naive": "exact means, NOT valid for adaptive queries",
    "c1": "normal noise, Lecture 18 (corrected)",
    "c2": "normal noise, Bassily et al. 2016",
    "d": "normal noise, Jung et al. 2020",
    "rz": "normal noise, Rogers et al. 2020",
    "CVaR": "normal noise, CVaR transfer",
    "DRIFT": "normal noise, posterior drift (our own)",
    "T": "normal noise, Theorem T (our own)",
    "T*": "bounded noise, Theorem T (our own)",
    "e": "GuessAndCheck, no guess wrong",
    "e'": "GuessAndCheck, guesses typically off",
    "f": "median mechanism, |X| = 1024",
    "f*": "GuessAndCheck with multiplicative weights, |X| = 2^20",
    "g": "private multiplicative weights, |X| = 1024",
    "Lad": "ladder, the running best only",
    "Tr": "exact means, rounded",
}
"""The columns of `--table`, in words. Where they come from: `theory.table`."""

SITUATION, EACH = 16, 8
"""Places of a terminal that the situation takes, and each certificate beside it."""


def plan(
    rows: Annotated[float | None, typer.Option(help="Rows of the table, or of the holdout.")] = None,
    queries: Annotated[
        float | None, typer.Option(help="Questions, each chosen after earlier answers.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Half-width that every answer must keep.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget.")] = None,
    delta: Annotated[float, typer.Option(help="Of the privacy budget; 0 for pure epsilon.")] = 0.0,
    key_delta: Annotated[
        float, typer.Option(help="The part of delta that is set aside for keys and bounded noise.")
    ] = 0.0,
    beta: Annotated[float, typer.Option(help="Chance that any of the widths does not hold.")] = 0.05,
    universe: Annotated[
        str | None, typer.Option(help="Cells of the universe, such as 1024, 1e6 or 2^20.")
    ] = None,
    project: Annotated[
        Path | None, typer.Option("--project", "-p", help="Take universe and budget from a declaration.")
    ] = None,
    marginals: Annotated[
        int | None, typer.Option(help="The queries are all marginals of this order, of the declared domain.")
    ] = None,
    vc: Annotated[int | None, typer.Option(help="VC dimension of the queries.")] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            help="What this question would cost and how far off it would be; with --project, --rows."
        ),
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="The same of the keys of one column; with --project.")
    ] = False,
    columns: Annotated[
        int | None, typer.Option(min=1, help="The same of `understudy start` on a file of so many columns.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="With --ask, --keys or --columns: the error that is wanted, in place of --epsilon. With a budget "
            "alone: how many counts within so many people each filter pays for."
        ),
    ] = None,
    noise: Annotated[
        str, typer.Option(help="With --ask: auto, laplace, gaussian, or bounded (an error that is certain).")
    ] = "auto",
    at_least: Annotated[
        int, typer.Option(min=1, help="With --keys: no value of fewer people is ever told.")
    ] = 10,
    neighbours: Annotated[
        Neighbours, typer.Option(help="With --columns: which tables are compared.")
    ] = Neighbours.REPLACE,
    promise: Annotated[str, typer.Option(help="privacy, validity or both.")] = "privacy",
    guesses: Annotated[
        bool, typer.Option("--guesses", help="The analyst brings guesses from other rows.")
    ] = False,
    failures: Annotated[int, typer.Option(help="How many of the guesses may be wrong.")] = 0,
    best_only: Annotated[bool, typer.Option("--best-only", help="Only the running best matters.")] = False,
    table: Annotated[
        bool, typer.Option("--table", help="The certificates side by side, 20 situations.")
    ] = False,
    typical: Annotated[
        bool,
        typer.Option("--expected", help="Also the typical error, simulated on invented data: no promise."),
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the frontier into an .html or .svg file.")] = None,
    against: Annotated[str, typer.Option(help="The plot's axis: rows, queries or epsilon.")] = "rows",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say what known quantities buy, for every mechanism.

    Leave out one of rows, queries, alpha and epsilon, to be solved for; for the promise of validity, which has no
    epsilon, one of rows, queries and alpha.

    With --ask, --keys or --columns: what a question, keys or a start would cost, for an epsilon or for an error.
    """
    if ask or keys or columns is not None:
        from understudy.cli.plan_purchases import show_purchases

        given = {"queries": queries, "alpha": alpha, "universe": universe, "marginals": marginals, "vc": vc,
                 "plot": plot, "table": table, "expected": typical}  # fmt: skip
        show_purchases(
            ask or [], project, keys=keys, columns=columns, rows=rows, epsilon=epsilon, delta=delta, error=error,
            beta=beta, at_least=at_least, neighbours=neighbours, noise=cast("Noise", noise), as_json=as_json,
            strangers=[name for name, value in given.items() if value],
        )  # fmt: skip
        return
    if noise != "auto":
        raise ParameterError("--noise goes with --ask")
    if error is not None:
        from understudy.cli.plan_purchases import show_capacity

        wrong = [name for name, value in (("rows", rows), ("queries", queries), ("alpha", alpha)) if value]
        if wrong:
            raise ParameterError(
                f"--error without --ask, --keys or --columns tells how many counts a budget pays for: leave "
                f"--{wrong[0]} out; the error of all queries is --alpha"
            )
        show_capacity(
            project,
            epsilon=epsilon,
            delta=delta,
            key_delta=key_delta,
            error=error,
            beta=beta,
            as_json=as_json,
        )
        return
    if table:
        _show_table(as_json=as_json)
        return
    if plot is not None:
        from understudy.pages.plot_file import check_format

        check_format(plot)
        check_output(plot, overwrite=overwrite)
    from understudy.planner.solve import SAYS_NOTHING
    from understudy.planner.solve import plan as solve

    declared = _declared(project, marginals, queries) if project else {}
    if marginals is not None and not project:
        raise ParameterError("--marginals counts the queries of a declared domain: give --project as well")
    if project and (universe or epsilon is not None or delta or key_delta):
        raise ParameterError(
            "a declaration gives universe and budget: leave --universe, --epsilon, --delta, --key-delta out"
        )
    known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "universe": _universe(universe), **declared}
    if promise == "validity":
        known |= {"epsilon": None, "delta": 0.0}
    known.setdefault("queries", queries)
    found = solve(
        rows=rows, alpha=alpha, beta=beta, vc=vc, promise=promise,
        guesses=guesses, failures=failures, best_only=best_only, **known,
    )  # fmt: skip
    if plot is not None:
        from understudy.planner.frontier import frontier

        frontier(found, against=against).save(plot, overwrite=overwrite)
    released = _as_release(project, marginals, found, beta) if project and marginals is not None else []
    if released:
        found = found.without(RELEASED)
    simulated = _simulated(found) if typical else {}
    chosen = _recommended(found, released) if released else None
    advice = _filter(found, chosen, project, key_delta)
    sure = None if advice is None or released else _sure(found, advice)
    if as_json:
        reply = found.as_dict()
        if advice is not None:
            reply["filter"] = advice.as_dict() | ({} if sure is None else {"sure": sure.as_dict()})
        if released:
            reply |= {
                "release": [asdict(one) for one in released],
                "recommended": _recommended(found, released),
            }
        for entry in reply["mechanisms"]:
            if entry["mechanism"] in simulated:
                entry["expected"] = simulated[entry["mechanism"]]
        if plot is not None:
            reply["plot"] = str(plot)
        emit(reply)
        return
    if released:
        asked = f"{found.situation.queries:,} questions"
        say(f"asked one by one, {asked}, each of which may be chosen after the answers before it:")
        for line in found.table_lines(columns_of(sys.stdout)):
            say(line)
        told = list(_release_lines(released))
        for line in told:
            say(line)
        if any(o.vacuous for o in found.options) or any("says nothing" in line for line in told):
            say(SAYS_NOTHING)
        say(_verdict(found, released))
    else:
        for line in found.lines(columns_of(sys.stdout)):
            say(line)
    if advice is not None:
        say(advice.line())
    if sure is not None:
        say(sure.line())
    if typical:
        say("typical largest error, simulated on invented data (not a promise):")
        simulations = [(name, f"{error:.4g}") for name, error in simulated.items()]
        say_table(simulations, left={0}, heads=False, indent=2)
    if plot is not None:
        say(f"Wrote {plot}.")


def _sure(found: Plan, advice: FilterAdvice) -> SureCounts | None:
    """How many counts surely within the planned width the budget would pay for; None where that is no number."""
    from understudy.planner.capacity import sure_counts

    best = found.recommended
    if best is None:
        return None
    solved = {} if best.solved is None else {found.unknown: best.solved}
    known = replace(found.situation, **solved) if found.unknown != "alpha" else found.situation
    within = int(best.width * int(known.rows))
    return sure_counts(advice.budget, within) if within >= 1 else None


def _filter(found: Plan, chosen: str | None, project: Path | None, key_delta: float) -> FilterAdvice | None:
    """Which privacy filter suits what is recommended; None without a delta, and where nothing is recommended."""
    situation, best = found.situation, found.recommended
    name = chosen or (None if best is None else best.mechanism)
    if name is None or situation.promise == "validity" or not situation.delta or not situation.epsilon:
        return None
    from understudy.declaration.file import located, read
    from understudy.planner.filters import advice_for

    solved = {} if best is None or best.solved is None else {found.unknown: best.solved}
    known = replace(situation, **solved) if found.unknown != "alpha" else situation
    normal = name == "gaussian" or name.endswith("residual")
    kind = "normal" if normal else "release" if name.startswith("release") else "pure"
    fixed = ""
    if project is not None:
        declared = read(located(project))
        key_delta, fixed = float(declared.budget.key_delta), _fixed(declared, located(project))
    amounts = float(known.epsilon or 1), float(known.delta), int(known.queries or 1)
    return advice_for(kind, *amounts, key_delta=key_delta, fixed=fixed)


def _fixed(declared: Declaration, file: Path) -> str:
    """The filter of the project's ledger where something was charged to it; empty where nothing was."""
    from understudy.ledger.declared import charged_budget

    budget = charged_budget(declared, base=file.parent, file=file)
    return "" if budget is None else budget.filter.name


def _as_release(project: Path, marginals: int, found: Plan, beta: float) -> list[MethodPlan]:
    """What one release of the workload, for the whole declared budget, would certify by each of its methods."""
    if found.unknown != "alpha" or found.situation.promise != "privacy":
        return []
    from understudy.declaration.file import located, read
    from understudy.query.workload import Workload
    from understudy.releases.method_plan import plan_release

    declaration = read(located(project))
    workload = Workload.all_marginals(declaration.domain, marginals)
    return list(plan_release(declaration, workload, rows=found.situation.rows, beta=beta))


RELEASED = ("smalldb", "iterative-mw")
"""Mechanisms that are methods of a release: where that is forecast, it alone says whether they fit."""


def _best_release(released: list[MethodPlan]) -> MethodPlan | None:
    """The method that `auto` takes, else the best that certifies something."""
    from understudy.planner.solve import VACUOUS

    useful = [one for one in released if one.width is not None and one.width < VACUOUS and not one.obstacle]
    chosen = [one for one in useful if one.chosen]
    return next(iter(chosen), min(useful, key=lambda one: one.width or 1.0, default=None))


def _recommended(found: Plan, released: list[MethodPlan]) -> str | None:
    """Asked one by one, or released at once: whichever certifies the smaller error."""
    release, single = _best_release(released), found.recommended
    if release is None or (single is not None and single.width < (release.width or 1.0)):
        return None if single is None else single.mechanism
    return f"release --method {release.method}"


def _verdict(found: Plan, released: list[MethodPlan]) -> str:
    from understudy.planner.solve import NOTHING_HELPS

    best = _recommended(found, released)
    if best is None:
        return f"nothing here says anything for certain: {NOTHING_HELPS}"
    if not best.startswith("release"):
        return f"recommended: {best}, asked one by one"
    release = _best_release(released)
    assert release is not None
    told = f"recommended: all at once, understudy {best} (error bars of ± {release.half_width:,.0f} people)"
    taken = next((one.method for one in released if one.chosen), release.method)
    if taken == release.method:
        return told
    return f"{told}; or {taken}, which auto takes: often nearer, with an error that is known afterwards only"


def _release_lines(released: list[MethodPlan]) -> Iterator[str]:
    from understudy.planner.solve import VACUOUS

    yield "all at once, as one release (understudy release), by method; * is what auto takes:"
    for one in released:
        mark = "*" if one.chosen else " "
        if one.obstacle:
            yield f"  {mark} {one.method:<10} does not fit: {one.obstacle}"
        elif one.width is None:
            yield f"  {mark} {one.method:<10} what it measures, and so its error, depends on the table"
        elif one.width >= VACUOUS:
            yield f"  {mark} {one.method:<10} says nothing (error bars of ± {one.half_width:,.0f} people)"
        else:
            yield f"  {mark} {one.method:<10} {one.width:>10.4g}  (error bars of ± {one.half_width:,.0f} people)"


def _simulated(found: Any) -> dict[str, float]:
    """Typical errors of the mechanisms that can be run, in the situation that was solved."""
    from understudy.planner.expected import expected

    errors: dict[str, float] = {}
    for option in found.options:
        if option.solved is not None:
            known = {} if found.unknown == "alpha" else {found.unknown: option.solved}
            error = expected(option.mechanism, replace(found.situation, **known))
            if error is not None:
                errors[option.mechanism] = error
    return errors


def _declared(project: Path, marginals: int | None, queries: float | None) -> dict[str, Any]:
    from understudy.declaration.file import located, read
    from understudy.query.workload import Workload

    declaration = read(located(project))
    budget = declaration.budget
    known = {
        "universe": declaration.domain.size(),
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
    }
    if marginals is None:
        return known
    if queries is not None:
        raise ParameterError("give --queries or --marginals, not both")
    return known | {"queries": Workload.all_marginals(declaration.domain, marginals).queries}


def _universe(text: str | None) -> int | None:
    """A whole number written as 1024, 1e6 or 2^20."""
    if text is None:
        return None
    base, power, exponent = text.partition("^")
    try:
        number = float(base) if not power else int(base) ** _small(int(exponent))
        whole = int(base) if not power and base.isdecimal() else int(number)
    except (ValueError, OverflowError):
        raise ParameterError(
            f"the universe is a whole number such as 1024, 1e6 or 2^20, not {text!r}"
        ) from None
    if whole != number:
        raise ParameterError(f"the universe is a whole number, not {text}")
    return whole


def _small(exponent: int) -> int:
    if not 0 <= exponent <= 100_000:
        raise ValueError
    return exponent


def _show_table(*, as_json: bool) -> None:
    from understudy.theory.table import certificates

    rows = certificates()
    if as_json:
        emit(rows)
        return
    names = [name for name in rows[0] if name not in ("n", "k")]
    for shown in _blocks(names, columns_of(sys.stdout)):
        heads = ("n", "k", *shown)
        numbers = [(f"{row['n']}", f"{row['k']}", *(f"{row[name]:.4f}" for name in shown)) for row in rows]
        say_table([heads, *numbers])
        say()
    say("Half-widths for k adaptive queries on n rows, all at once with probability 0.95; 1 says nothing.")
    say_table([(name, LEGEND[name]) for name in names], left={0, 1}, heads=False, indent=2)


def _blocks(names: list[str], columns: int | None) -> Iterator[list[str]]:
    """The columns of the table, so many at a time as a terminal has room for beside the situation."""
    many = len(names) if columns is None else max(1, (columns - SITUATION) // EACH)
    for start in range(0, len(names), many):
        yield names[start : start + many]
