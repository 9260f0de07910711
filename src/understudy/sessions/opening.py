"""Opening a session: a new one by its terms, or one that the ledger knows by its name."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.answer.limits import MAX_CELLS
from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.errors import ParameterError
from understudy.project import Project
from understudy.query.text_size import USUAL
from understudy.rational import Number
from understudy.sessions.session import Session
from understudy.sessions.terms import Announced, Terms


def session(
    table: Project | Curator,
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    queries: int | None = None,
    classes: Sequence[Announced] = (),
    expected: Sequence[Announced] = (),
    mechanism: str | None = None,
    noise: str | None = None,
    name: str = "",
    analyst: str = "",
    lazily: bool = False,
    max_cells: int = MAX_CELLS,
) -> Session:
    """Open a session over a project: with probability 1 - `beta` every answer is within `alpha` of all rows.

    table      a project, or the Curator of one
    alpha      the error of every count, as a part of all rows (of the declared least number of rows where that is
               private), such as 0.02; a session that the ledger knows by its name remembers it
    beta       the probability that some answer of the whole session is further off than its error: 0.05, or what
               a session that goes on remembers
    queries    how many questions are expected: more may come, at a higher price; 10,000, or what a session that
               goes on remembers
    classes    an order: classes of questions that are bought at once, whatever is asked later; made by `ranges`,
               `conjunctions`, `pool` and `marginals`. `Session.buy` orders one later
    expected   classes that will be asked for, as far as is known: each is bought with a question of it as soon as
               the session, with it, costs no more than 3/2 of direct answers and three single counts
    mechanism  `auto`, or `direct`: every new question is bought by itself, with noise of its own
    noise      of counts that are bought by themselves: `auto`, the cheapest that keeps `alpha`, which is bounded
               noise, of a certain error that takes nothing of `beta`, under some budgets; or `gaussian`,
               `bounded`, and `laplace` under a pure epsilon
    name       under the same name a session goes on where it was, in any process; without one it gets a new name
    analyst    whose share of the budget pays for questions that name nobody else. A session that is opened with
               one is this analyst's own; one that is opened without is shared: anybody may go on with it, and each
               question may name who pays
    lazily     a session with a new name is written into the ledger with its first purchase, and not at all if it
               only tells prices
    max_cells  the most cells that one question may have; a larger one is refused before anything is bought

    How long a question may be is what the project was opened with (`text_size`); over a Curator it is the usual.

    Promise     With probability 1 - β every certified answer of the whole session is within its error, however
                questions follow from answers, and through all processes that go on with it.
    Why         Each purchase gets a part of β before its noise is drawn, and the parts add up to at most β
                (`beta_spending`); what follows from purchases is certain where these hold (`deduction`). Terms are
                written into the ledger once, and a session that goes on under other terms is refused.
    Privacy     Opening reads no data. `classes` are bought one by one, each charged before it is looked at.
    Cost        Nothing without `classes`, and one entry of the ledger; with `lazily` not even that.

    Returns a `Session`. Raises a `ParameterError` where the terms make no sense or a new session has no
    alpha, a `RefusedError` where the budget has no price for the noise, a `RequestConflictError` where the name
    belongs to something else, a `QueryError` where a class is too large to be bought at once, and an
    `InsufficientBudgetError` where the classes cannot be paid.
    """
    curator = curator_of(table)
    known = remembered(curator, name, analyst)
    if known is None and alpha is None:
        raise ParameterError("a new session needs `alpha`, the error of every answer as a part of all rows")
    if known is not None:
        alpha = known.alpha if alpha is None else alpha
        beta = known.beta if beta is None else beta
        queries = known.queries if queries is None else queries
        mechanism = known.mechanism if mechanism is None else mechanism
        noise = known.noise if noise is None else noise
        classes = classes or known.classes
        expected = expected or known.expected
    terms = Terms.of(
        alpha=0 if alpha is None else alpha,
        beta=0.05 if beta is None else beta,
        queries=10_000 if queries is None else queries,
        classes=classes,
        mechanism="auto" if mechanism is None else mechanism,
        noise="auto" if noise is None else noise,
        expected=expected,
    )
    size = table.text_size if isinstance(table, Project) else USUAL
    return Session(
        curator, terms, name=name, analyst=analyst, lazily=lazily, max_cells=max_cells, text_size=size
    )


def remembered(curator: Curator, name: str, analyst: str) -> Terms | None:
    """The terms of the session that the Curator's ledger holds under the name.

    None where there is none that is shared or this analyst's own.
    """
    known = curator.ledger.find(name) if name else None
    if known is None or known.analyst not in ("", analyst):
        return None
    return Terms.read(known.question, curator.domain.names)
