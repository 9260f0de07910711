"""Understudy: a public stand-in for a sensitive table.

>>> import understudy as us
>>> us.marginals(3)
AllMarginals(order=3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.answer import Answer as Answer
    from understudy.attribute import Boolean as Boolean
    from understudy.attribute import Categories as Categories
    from understudy.bins import Bins as Bins
    from understudy.curator import Curator as Curator
    from understudy.declaration import Declaration as Declaration
    from understudy.domain import Domain as Domain
    from understudy.errors import UnderstudyError as UnderstudyError
    from understudy.interactive.session import session as session
    from understudy.interactive.terms import conjunctions as conjunctions
    from understudy.interactive.terms import pool as pool
    from understudy.interactive.terms import ranges as ranges
    from understudy.planner.solve import plan as plan
    from understudy.privacy.budget import Budget as Budget
    from understudy.project import Project as Project
    from understudy.project import open_project as open  # noqa: F401 (a public name)
    from understudy.query.linear import LinearQuery as LinearQuery
    from understudy.query.marginal import Marginal as Marginal
    from understudy.query.workload import Workload as Workload
    from understudy.query.workload import marginals as marginals
    from understudy.releases.release import release as release
    from understudy.sql_answer import SqlAnswer as SqlAnswer
    from understudy.validity.holdout import Holdout as Holdout

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: the engine behind `open` takes a second to
# load, and a program that only plans or reads a domain should not wait for it.
_HOME = {
    "Answer": "understudy.answer:Answer",
    "Bins": "understudy.bins:Bins",
    "Boolean": "understudy.attribute:Boolean",
    "Budget": "understudy.privacy.budget:Budget",
    "Categories": "understudy.attribute:Categories",
    "Curator": "understudy.curator:Curator",
    "Declaration": "understudy.declaration:Declaration",
    "Domain": "understudy.domain:Domain",
    "Holdout": "understudy.validity.holdout:Holdout",
    "LinearQuery": "understudy.query.linear:LinearQuery",
    "Marginal": "understudy.query.marginal:Marginal",
    "Project": "understudy.project:Project",
    "SqlAnswer": "understudy.sql_answer:SqlAnswer",
    "UnderstudyError": "understudy.errors:UnderstudyError",
    "Workload": "understudy.query.workload:Workload",
    "conjunctions": "understudy.interactive.terms:conjunctions",
    "marginals": "understudy.query.workload:marginals",
    "open": "understudy.project:open_project",
    "plan": "understudy.planner.solve:plan",
    "pool": "understudy.interactive.terms:pool",
    "ranges": "understudy.interactive.terms:ranges",
    "release": "understudy.releases.release:release",
    "session": "understudy.interactive.session:session",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    module, attribute = home.split(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*_HOME, "__version__"]
