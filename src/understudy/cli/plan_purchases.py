"""`understudy plan --ask`, `--keys` and `--columns`: one purchase, for an epsilon or for an error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from understudy.cli.options import emit
from understudy.cli.terminal import say, say_table
from understudy.errors import ParameterError
from understudy.percent import percent_of

if TYPE_CHECKING:
    from understudy.privacy.noise_name import Noise
    from understudy.privacy.relation import Neighbours
    from understudy.starting.purchase_plan import PurchasePlan


def show_purchases(
    questions: list[str],
    project: Path | None,
    *,
    keys: bool,
    columns: int | None,
    rows: float | None,
    epsilon: float | None,
    delta: float,
    error: float | None,
    beta: float,
    at_least: int,
    neighbours: Neighbours,
    noise: Noise,
    as_json: bool,
    strangers: list[str],
) -> None:
    """Plan the purchases and show them; `strangers` are options that were given and belong to other plans."""
    from understudy.declaration.file import located, read
    from understudy.privacy.relation import Relation
    from understudy.starting.purchase_plan import plan_keys, plan_question, plan_start

    if strangers:
        raise ParameterError(f"--{strangers[0]} does not go with --ask, --keys or --columns")
    if (epsilon is None) == (error is None):
        raise ParameterError("give --epsilon, to learn the error, or --error, to learn the epsilon")
    if noise != "auto" and not questions:
        raise ParameterError("--noise goes with --ask")
    found: list[PurchasePlan] = []
    if questions or keys:
        if project is None:
            raise ParameterError("--ask and --keys are about a declared table: give --project as well")
        declared = read(located(project))
        if delta and not keys:
            raise ParameterError("a declaration gives the budget's delta: leave --delta out")
        for question in questions:
            if rows is None:
                raise ParameterError("the error of an answer depends on the number of rows: give --rows")
            found.append(
                plan_question(
                    declared,
                    question,
                    rows=_whole(rows),
                    epsilon=epsilon,
                    error=error,
                    beta=beta,
                    noise=noise,
                )
            )
        if keys:
            own = delta or None
            found.append(plan_keys(declared, epsilon=epsilon, error=error, delta=own, at_least=at_least))
    if columns is not None:
        if project is not None:
            raise ParameterError(
                "--columns is about a file of which nothing is declared: leave --project out"
            )
        many = None if rows is None else _whole(rows)
        relation = Relation(neighbours)
        found.append(
            plan_start(
                columns, relation=relation, delta=delta, epsilon=epsilon, error=error, rows=many, beta=beta
            )
        )
    if as_json:
        emit([_plain(one) for one in found])
        return
    for one in found:
        _show(one, wanted=error)


def _whole(rows: float) -> int:
    if rows < 1 or rows != int(rows):
        raise ParameterError(f"the number of rows is a whole number of at least 1, not {rows:g}")
    return int(rows)


def _plain(one: PurchasePlan) -> dict[str, object]:
    return {
        "purchase": one.what,
        "epsilon": one.epsilon,
        "cost": {one.cost.currency: one.cost.amount},
        "delta": float(one.delta),
        "share": one.share,
        "reached": one.reached,
        **({"noise": one.noise, "like_it": one.like_it} if one.noise != "" else {}),
        "errors": [{"what": each.what, "error": each.error, "unit": each.unit} for each in one.errors],
    }


def _show(one: PurchasePlan, *, wanted: float | None) -> None:
    from understudy.pages.notebook import number

    say(one.what)
    for each in one.errors:
        if each.error is None:
            say(f"  {each.what}: no bound can be forecast")
            continue
        sign = "" if each.what.endswith("from") else "± "
        unit = "" if each.unit == each.what else f" {each.unit}"
        say(f"  {each.what}: {sign}{number(each.error)}{unit}")
    own = f", and delta {float(one.delta):.3g}" if one.delta else ""
    price = f"{percent_of(one.share)} of the budget ({one.cost.currency} {one.cost.amount:.4g}{own})"
    if not one.reached:
        say(f"  epsilon {one.epsilon:g}, the most there is, does not reach {wanted:g}: it takes {price}")
    elif one.noise == "bounded":
        say(f"  for sure, with bounded noise: {price}")
    else:
        say(f"  for epsilon {one.epsilon:g}: {price}")
    if one.like_it is not None:
        say(f"  the whole budget pays for {one.like_it:,} like it, one by one")


def show_capacity(
    project: Path | None,
    *,
    epsilon: float | None,
    delta: float,
    key_delta: float,
    error: float,
    beta: float,
    as_json: bool,
) -> None:
    """How many counts within an error each filter pays for, under a budget or a declared one."""
    from understudy.planner.capacity import count_capacity

    fixed = None
    if project is not None:
        if epsilon is not None or delta or key_delta:
            raise ParameterError(
                "a declaration gives the budget: leave --epsilon, --delta and --key-delta out"
            )
        from understudy.declaration.file import located, read
        from understudy.ledger.declared import charged_budget

        file = located(project)
        declared = read(file)
        fixed, budget = charged_budget(declared, base=file.parent, file=file), declared.budget
        epsilon, delta, key_delta = float(budget.epsilon), float(budget.delta), float(budget.key_delta)
    if epsilon is None:
        raise ParameterError(
            "give --epsilon and --delta, or --project, to learn how many counts they pay for"
        )
    if not delta:
        raise ParameterError("filters keep a budget with a delta: give --delta, such as 1e-6")
    found = count_capacity(epsilon, delta, error, beta=beta, key_delta=key_delta, fixed=fixed)
    if as_json:
        emit(found.as_dict())
        return
    say(
        f"counts within {found.error:,} people that epsilon {epsilon:g}, delta {delta:g} pays for, by filter:"
    )
    say_table(list(found.lines()), left={0})
    say(found.verdict())
