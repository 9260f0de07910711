"""The public API as a list: every function, class, method and property that a caller of the library can name.

It starts from `understudy.__all__` and from the modules `lectures` and `metrics`, which are public names, and goes
on to the classes that public calls return (`RETURNED`) and the errors that they raise. `Described.missing` says
what the docstring of one of them leaves out.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import understudy
from understudy import errors

RETURNED = (
    "understudy.answer.counts:CellCounts",
    "understudy.answer.counts:SourceCounts",
    "understudy.answer.cut_bins:CutBins",
    "understudy.answer.forecast:ColumnForecast",
    "understudy.client.history:AskedBefore",
    "understudy.client.history:History",
    "understudy.client.published:PublishedRelease",
    "understudy.client.published:PublishedReleases",
    "understudy.client.remote_session:RemoteSession",
    "understudy.client.remote_table:AskTerms",
    "understudy.client.remote_table:RemoteTable",
    "understudy.client.told:BudgetPart",
    "understudy.client.told:ServerBudget",
    "understudy.client.told:ServerQuote",
    "understudy.curator.calibration:Calibration",
    "understudy.curator.candidates:Candidate",
    "understudy.curator.open_sparse_vector:OpenSparseVector",
    "understudy.curator.prepared_question:QuestionPurchase",
    "understudy.declaration.declaration:SourceSpec",
    "understudy.domain.attribute:Attribute",
    "understudy.domain.attribute:Mask",
    "understudy.lectures.guess_and_check:Checked",
    "understudy.lectures.guess_and_check:Guesser",
    "understudy.lectures.monitor:Overfit",
    "understudy.ledger.books:Due",
    "understudy.ledger.books:Share",
    "understudy.ledger.interface:Debit",
    "understudy.ledger.interface:LedgerEntry",
    "understudy.privacy.limits:Limits",
    "understudy.planner.solve:Option",
    "understudy.privacy.cost:PureDP",
    "understudy.privacy.cost:ZCDP",
    "understudy.privacy.price:Price",
    "understudy.project:PriceTerms",
    "understudy.query.column:Column",
    "understudy.query.linear:Factor",
    "understudy.query.text_size:TextSize",
    "understudy.query.workload:AllMarginals",
    "understudy.releases.forecast:MarginalForecast",
    "understudy.releases.forecast:ReleaseForecast",
    "understudy.releases.run:MarginalAnswer",
    "understudy.sessions.population:Population",
    "understudy.sessions.terms:Conjunctions",
    "understudy.sessions.terms:Terms",
    "understudy.sql.estimate:Estimate",
    "understudy.validity.board:BoardTerms",
    "understudy.validity.board:Standing",
    "understudy.validity.board:create",
    "understudy.validity.metric:Area",
    "understudy.validity.metric:Metric",
)
"""Classes that are no names of `understudy` but that its calls return, or take."""

ERRORS = {
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.UnderstudyError) and not name.startswith("_")
}


@dataclass(frozen=True)
class Described:
    """A public callable or property: its name, and the docstrings that a reader has for it, its own first."""

    name: str
    function: Callable[..., Any]
    docstrings: tuple[str, ...]
    parameters: tuple[str, ...]

    @cached_property
    def raised(self) -> set[str]:
        """The public errors that the function's own body raises by name; those of functions inside it too."""
        try:
            source = textwrap.dedent(inspect.getsource(self.function))
        except (OSError, TypeError):  # written by `dataclass`, which raises none of ours
            return set()
        return raised_in(source)

    def missing(self) -> list[str]:
        """What no docstring names: parameters, and errors that are raised."""
        told = "\n".join(self.docstrings)
        unnamed = [name for name in self.parameters if not names_parameter(told, name)]
        return unnamed + sorted(name for name in self.raised if not re.search(rf"\b{name}\b", told))


def raised_in(source: str) -> set[str]:
    """The public errors after `raise` in the source of a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found |= {made.id} & ERRORS if isinstance(made, ast.Name) else set()
    return found


def names_parameter(text: str, name: str) -> bool:
    """Whether a text names a parameter: in backticks, or before its explanation on a line of a list.

    In backticks it may have a value (`numeric=True`) or stars (`**price`). A line of a list names one or several,
    ``epsilon, delta  the budget``, with two spaces before what it says of them.
    """
    word = re.escape(name)
    quoted = re.search(rf"`\*{{0,2}}{word}(=[^`]*)?`", text)
    listed = re.search(rf"^ *(\w+, )*{word}(, \w+)* {{2,}}\S", text, re.MULTILINE)
    return bool(quoted or listed)


def public_callables() -> Iterator[Described]:
    """Every public function, class, method and property, each under the name by which a caller reaches it."""
    for name in understudy.__all__:
        thing = getattr(understudy, name)
        if isinstance(thing, ModuleType):
            for inner in public_names(thing):
                yield from described(f"{name}.{inner}", getattr(thing, inner))
        else:
            yield from described(name, thing)
    for place in RETURNED:
        module, name = place.split(":")
        yield from described(name, getattr(import_module(module), name))
    for name in sorted(ERRORS):
        yield from described(name, getattr(errors, name))


def public_names(module: ModuleType) -> list[str]:
    """The names that a public module gives: its `__all__`, or else what is defined there without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and getattr(found, "__module__", "") == module.__name__
    ]


def described(name: str, thing: Any) -> Iterator[Described]:
    """A function by itself; a class with its constructor, its methods and its properties."""
    if not inspect.isclass(thing):
        if callable(thing):
            yield Described(name, thing, (thing.__doc__ or "",), parameters_of(thing))
        return
    own = tuple(base.__doc__ or "" for base in thing.__mro__ if str(base.__module__).startswith("understudy"))
    yield constructor(name, thing, own)
    fields_of = {field.name for field in fields(thing)} if is_dataclass(thing) else set[str]()
    for attribute in dir(thing):
        if attribute.startswith("_") or attribute in fields_of:
            continue
        function = function_of(inspect.getattr_static(thing, attribute))
        if function is None or not str(function.__module__).startswith("understudy"):
            continue
        docs = (function.__doc__ or "", *own)
        yield Described(f"{name}.{attribute}", function, docs, parameters_of(function))


def constructor(name: str, thing: type, docs: tuple[str, ...]) -> Described:
    """How a class is made: the fields of a dataclass or the parameters of `__init__`, and what either refuses."""
    if is_dataclass(thing):
        given = tuple(field.name for field in fields(thing) if field.init and not field.name.startswith("_"))
        check = getattr(thing, "__post_init__", None)
        return Described(name, check or thing.__init__, (*docs, *field_notes(thing)), given)
    made = thing.__init__
    mine = str(getattr(made, "__module__", "")).startswith("understudy")
    return Described(name, made, (*docs, made.__doc__ or ""), parameters_of(made) if mine else ())


def field_notes(thing: type) -> list[str]:
    """The texts under the fields of a class, each with the name of its field in backticks."""
    notes: list[str] = []
    for base in thing.__mro__:
        if not str(base.__module__).startswith("understudy"):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, note in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
                notes.append(f"`{ast.unparse(field.target)}` {ast.unparse(note.value)}")
    return notes


def function_of(member: Any) -> Callable[..., Any] | None:
    """The function behind a method, a property, a cached property, a class method or a static method."""
    for wrapped in ("fget", "func", "__func__"):
        if (function := getattr(member, wrapped, None)) is not None:
            return function
    return member if inspect.isfunction(member) else None


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its public parameters; `self` and `cls` are none."""
    return tuple(
        name
        for name in inspect.signature(function).parameters
        if name not in ("self", "cls") and not name.startswith("_")
    )
