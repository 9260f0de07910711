"""A release is made: its price is held against the ledger, a method buys what it needs, and a `Release` comes out.

The steps of a run are charged under its name, so that the same call goes on where an earlier one was interrupted
(`resumable_run`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from understudy.curator.of_table import OPEN_ONE
from understudy.errors import ParameterError, RequestConflictError
from understudy.project import Project
from understudy.query.workload import AllMarginals, Workload
from understudy.rational import Number, probability
from understudy.releases.certificate import certificate_of
from understudy.releases.declared_zeros import check_possible, emptied
from understudy.releases.method_choice import perform
from understudy.releases.public_total import within_rows
from understudy.releases.purchases import purchases
from understudy.releases.release import Release
from understudy.releases.resumable_run import ResumableRun
from understudy.releases.run import Outcome, Progress
from understudy.releases.target import targeted
from understudy.releases.workload_file import as_workload

MAX_NAME = 100
"""Characters of a release's name."""


def fresh_name() -> str:
    """A name for a run that no other run has."""
    return f"release-{secrets.token_hex(6)}"


def release(
    project: Project,
    workload: Workload | AllMarginals | str | Path,
    *,
    epsilon: Number,
    delta: Number | None = None,
    method: str | Callable[..., Outcome] = "auto",
    alpha: Number | None = None,
    beta: Number = 0.05,
    name: str | None = None,
    analyst: str = "",
    progress: Callable[[Progress], None] | None = None,
    memory: int | None = None,
    rows: int | None = None,
    target: str | None = None,
    **options: Any,
) -> Release:
    """Make a stand-in for the project's table that answers the workload, for at most (`epsilon`, `delta`).

    project   a project with its budget
    workload  the marginals that matter: a `Workload`, `us.marginals(3)`, a name such as `all-3-way`, or a file
              that lists them
    epsilon   with `delta`, the most that the release may cost: all of its steps together are charged no more
    delta     by default that of the project's budget
    method    how it is made: a name of `releases.methods`, or `auto`, which picks one by public numbers
    alpha     the error, as a part of all rows, that methods with a target aim at
    beta      the probability that some certified error does not hold
    name      under the same name a release that was interrupted goes on: what was bought comes back from the
              ledger for nothing. Without one it gets a new name
    analyst   whose share of the budget pays
    progress  is called before each step
    memory    how many bytes the release may take; by default half of the machine's
    rows      how many synthetic rows will be drawn from it, for the memory that they take; by default one for each
              person
    target    an attribute that models are going to predict from the rows: marginals with it weigh more
              (`releases.target`). Without one all weigh as the workload says
    options   go to the method

    Returns a `Release`. Raises a `RequestConflictError` where the name belongs to a release with other terms.
    Before anything is spent it raises a `QueryError` where the workload is no such thing, is about another domain
    or has too large marginals alone, a `DeclarationError` where its file is wrong, a `ParameterError` where an
    argument makes no sense, a `RefusedError` where the method does not fit the project, an
    `InsufficientBudgetError` where the ledger cannot pay for all steps that were not bought before, a
    `TooLargeError` where the release would take more memory (`releases.demand`), and an `UnreadableError` where
    the custodian's reading found an attribute to be unreadable, for a release shows every attribute.
    """
    if not isinstance(project, Project):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ParameterError("a release is of a project", remedy=OPEN_ONE)
    project.curator.check_all_readable()
    budget = project.declaration.budget.alone(epsilon, delta)
    run = ResumableRun(
        curator=project.curator,
        workload=targeted(as_workload(project.domain, workload), target),
        budget=budget,
        target=target,
        name=checked(fresh_name() if name is None else name),
        beta=probability(beta),
        analyst=analyst,
        report=(lambda _: None) if progress is None else progress,
        memory=checked_memory(memory),
        synthetic=rows,
    )
    if budget.is_pure == project.ledger.budget.is_pure:  # else only the method knows what its steps come to
        run.check_affordable(budget.cap)
    check_possible(project.domain, run.constraints)
    try:
        made = perform(run, method, {"alpha": alpha, **options})
    except RequestConflictError:
        raise RequestConflictError(purchases(project.ledger, run.name).conflict(analyst)) from None
    told, also = (emptied(found, project.domain, run.constraints) for found in (made.answers, made.also))
    if run.curator.relation.rows_are_public:
        told, also = (within_rows(found, run.curator.rows) for found in (told, also))
    outcome = replace(made, answers=told, also=also)
    return Release(
        project.domain,
        outcome.standin,
        float(outcome.rows),
        outcome.answers,
        certificate_of(project, run, outcome),
        outcome.sums,
        outcome.also,
    )


def checked_memory(memory: int | None) -> int | None:
    """The bytes that a release may take, or None; a `ParameterError` where they are no positive whole number."""
    if memory is None:
        return None
    is_number = isinstance(memory, int) and not isinstance(memory, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_number or memory <= 0:
        raise ParameterError(f"`memory` is a positive number of bytes, not {memory!r}")
    return memory


def checked(name: str) -> str:
    """The `name` of a run, which is one short word; a `ParameterError` where it is none.

    So no run's steps look like another's, and the ledger can keep the names of its steps.
    """
    if not name or len(name) > MAX_NAME or not name.isprintable() or name.split() != [name]:
        raise ParameterError(f"the name of a release is one printable word of at most {MAX_NAME} characters")
    return name
