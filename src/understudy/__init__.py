"""Understudy: a public stand-in for a sensitive table.

The names in `__all__` are the public surface; each is imported from its room when it is first used. `open`
gives a `Project` over a declared table, and `declare` one over a frame: a project answers questions for a price;
`connect` puts the same questions to a server that holds the table.
`session` answers an analyst who asks on and on under one promise; `release` publishes a stand-in; `Holdout` scores
models so that the scores survive being optimised, by one of `metrics`; `plan` says beforehand what a budget buys;
`lectures` has the algorithms of the lecture notes by their names.
The classes are those that these return. Every other module is reachable too, and may move between minor versions.

>>> import understudy as us
>>> us.marginals(3)
AllMarginals(order=3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy import lectures as lectures
    from understudy.answer.answer import Answer as Answer
    from understudy.answer.around_answer import AroundAnswer as AroundAnswer
    from understudy.answer.sql_answer import SqlAnswer as SqlAnswer
    from understudy.client.connect import Connection as Connection
    from understudy.client.connect import connect as connect
    from understudy.curator.curator import Curator as Curator
    from understudy.curator.prepared_question import PreparedQuestion as PreparedQuestion
    from understudy.curator.quote import Quote as Quote
    from understudy.declaration.declaration import Declaration as Declaration
    from understudy.declaration.declaration import Unit as Unit
    from understudy.domain.attribute import Boolean as Boolean
    from understudy.domain.attribute import Categories as Categories
    from understudy.domain.bins import Bins as Bins
    from understudy.domain.domain import Domain as Domain
    from understudy.errors import UnderstudyError as UnderstudyError
    from understudy.frame_project import declare as declare
    from understudy.ledger.interface import Ledger as Ledger
    from understudy.planner.solve import Plan as Plan
    from understudy.planner.solve import plan as plan
    from understudy.privacy.budget import Budget as Budget
    from understudy.project import Project as Project
    from understudy.project import open_project as open  # noqa: F401 (a public name)
    from understudy.query.linear import LinearQuery as LinearQuery
    from understudy.query.marginal import Marginal as Marginal
    from understudy.query.workload import Workload as Workload
    from understudy.query.workload import marginals as marginals
    from understudy.releases.forecast import forecast as forecast
    from understudy.releases.making import release as release
    from understudy.releases.release import Release as Release
    from understudy.sessions.opening import session as session
    from understudy.sessions.session import Session as Session
    from understudy.sessions.terms import conjunctions as conjunctions
    from understudy.sessions.terms import pool as pool
    from understudy.sessions.terms import ranges as ranges
    from understudy.validity import metrics as metrics
    from understudy.validity.board import Board as Board
    from understudy.validity.certificate import Certificate as Certificate
    from understudy.validity.holdout import Holdout as Holdout
    from understudy.validity.score import Score as Score

__version__ = "0.2.0"

# Where each public name lives; one without an attribute is a module. They are imported when first used: the engine
# behind `open` takes a second to load, and a program that only plans or reads a domain should not wait for it.
_HOME = {
    "Answer": "understudy.answer.answer:Answer",
    "AroundAnswer": "understudy.answer.around_answer:AroundAnswer",
    "Bins": "understudy.domain.bins:Bins",
    "Board": "understudy.validity.board:Board",
    "Boolean": "understudy.domain.attribute:Boolean",
    "Budget": "understudy.privacy.budget:Budget",
    "Categories": "understudy.domain.attribute:Categories",
    "Certificate": "understudy.validity.certificate:Certificate",
    "Connection": "understudy.client.connect:Connection",
    "Curator": "understudy.curator.curator:Curator",
    "Declaration": "understudy.declaration.declaration:Declaration",
    "Domain": "understudy.domain.domain:Domain",
    "Holdout": "understudy.validity.holdout:Holdout",
    "Ledger": "understudy.ledger.interface:Ledger",
    "LinearQuery": "understudy.query.linear:LinearQuery",
    "Marginal": "understudy.query.marginal:Marginal",
    "Plan": "understudy.planner.solve:Plan",
    "PreparedQuestion": "understudy.curator.prepared_question:PreparedQuestion",
    "Project": "understudy.project:Project",
    "Quote": "understudy.curator.quote:Quote",
    "Release": "understudy.releases.release:Release",
    "Score": "understudy.validity.score:Score",
    "Session": "understudy.sessions.session:Session",
    "SqlAnswer": "understudy.answer.sql_answer:SqlAnswer",
    "UnderstudyError": "understudy.errors:UnderstudyError",
    "Unit": "understudy.declaration.declaration:Unit",
    "Workload": "understudy.query.workload:Workload",
    "conjunctions": "understudy.sessions.terms:conjunctions",
    "connect": "understudy.client.connect:connect",
    "declare": "understudy.frame_project:declare",
    "forecast": "understudy.releases.forecast:forecast",
    "lectures": "understudy.lectures:",
    "marginals": "understudy.query.workload:marginals",
    "metrics": "understudy.validity.metrics:",
    "open": "understudy.project:open_project",
    "plan": "understudy.planner.solve:plan",
    "pool": "understudy.sessions.terms:pool",
    "ranges": "understudy.sessions.terms:ranges",
    "release": "understudy.releases.making:release",
    "session": "understudy.sessions.opening:session",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    module, attribute = home.split(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return [*_HOME, "__version__"]
