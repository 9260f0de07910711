"""A frame that is declared in Python, without a declaration file: `us.declare`."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from understudy.declaration.arguments import AttributeCells, domain_of
from understudy.declaration.declaration import Declaration, Protect, SourceSpec, Unit
from understudy.declaration.outline import name_from
from understudy.errors import ParameterError
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import Ledger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.project import Project
from understudy.rational import Number
from understudy.table.draft import drafted
from understudy.table.source import Source, in_memory

if TYPE_CHECKING:
    from understudy.noise.samplers import NoiseSource
    from understudy.project import Frame


Choice = TypeVar("Choice", bound=StrEnum)


def declare(
    frame: Frame,
    attributes: Mapping[str, AttributeCells] | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    filter: str = "zcdp",  # the word of the declaration
    infer: bool | Collection[str] = False,
    name: str = "frame",
    neighbours: Neighbours | str = Neighbours.REPLACE,
    protect: Protect | str = Protect.PRIVACY,
    unit: Unit | None = None,
    rows_at_least: int | None = None,
    rows_at_most: int | None = None,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
) -> Project:
    """A project over a pandas, polars or Arrow frame that is declared here, without a declaration file.

    frame       a pandas or polars frame, an Arrow table, or another that narwhals can read; it is copied
    attributes  by column, the cells that its values fall into (`AttributeCells`): a list of categories, a range,
                (low, high), (low, high, bins), `bool`, a mapping of the declaration file's fields, or an
                `Attribute`. Columns that are not named are never read
    epsilon, delta  the budget: the total for this table, for ever. Without a `delta` it is pure ε-DP
    filter      how rho is added up: `zcdp`, `renyi` or `gdp`, which the first charge fixes (docs/ledger.md)
    infer       True, or names of columns: their cells are read off the data. That is not private, as the cells
                then tell what the table holds; so it warns, and `Project.inferred` names them. Give public
                cells (code lists, legal limits, round numbers) for every answer that others will see
    name        the table's name, as SELECT statements and the ledger call it
    neighbours  which two tables the promise compares: those with one row replaced (`replace`, where the number of
                rows is public), or with one added or removed (`add-remove`, where it is private)
    protect     `privacy` protects the people in the table; `validity` protects conclusions about the population
                alone, and opens the exact counts to the mechanisms that do so
    unit        whose privacy is protected where one person has several rows; None where every row is a person
    rows_at_least, rows_at_most  public bounds on the number of rows, which some questions need under `add-remove`
    ledger      a file in which the budget is kept, or a `Ledger`; without one the budget is kept in memory, and
                forgotten with the process: a restart then spends it again
    noise       where random bits come from: the operating system, unless a test or a simulation passes another
                source, with which nothing is private

    Returns the `Project`. Nothing is charged. Raises a `DeclarationError` where an attribute cannot be understood,
    a `SourceError` where the frame is none or lacks a column, a `ParameterError` for a budget, bounds or a name
    that make no sense, and a `LedgerError` where the file of the ledger cannot be opened or trusted.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": [34, 51, 27], "sex": ["F", "M", "F"]})
    >>> declare(people, {"age": (0, 120, 12), "sex": ["F", "M"]}, epsilon=1, name="people")
    Project('people', 2 attributes, budget epsilon 1)
    """
    if (named := name_from(name)) != name:
        raise ParameterError(f"a table's name has letters, digits, dots and dashes: write name={named!r}")
    source = in_memory(frame)
    if attributes is not None and not isinstance(attributes, Mapping):
        raise ParameterError(
            'attributes names the cells of each column: write {"sex": ["F", "M"], "age": (0, 120, 12)}, or '
            "infer=[…] with the names of columns whose cells are to be read off the data"
        )
    given = dict(attributes or {})
    wanted = [column for column in source.columns if column not in given] if infer is True else infer or ()
    seen = _inferred(source, [column for column in wanted if column not in given])
    domain = domain_of(given | seen)
    declaration = Declaration(
        name=name,
        source=SourceSpec("frame", name),
        domain=domain,
        budget=Budget.of(epsilon, delta, filter=filter),
        neighbours=_choice(Neighbours, neighbours, "neighbours"),
        protect=_choice(Protect, protect, "protect"),
        unit=unit,
        rows_at_least=rows_at_least,
        rows_at_most=rows_at_most,
        ledger=str(Path(ledger).resolve()) if isinstance(ledger, str | Path) else "",
    )
    replace(source, candid=True).check(domain, unit)  # whoever declares may see the columns
    books = open_ledger(declaration, base=Path.cwd()) if isinstance(ledger, str | Path) else ledger
    made = Project.over(source, declaration, ledger=books, noise=noise)
    return replace(made, inferred=tuple(seen))


def _choice(words: type[Choice], given: str, named: str) -> Choice:
    """One of a few words, as an argument of that name gives it; a `ParameterError` lists them for any other."""
    try:
        return words(given)
    except ValueError:
        raise ParameterError(f"{named} is {' or '.join(words)}, not {given!r}") from None


def _inferred(source: Source, columns: Collection[str]) -> dict[str, AttributeCells]:
    """Attributes that are read off the data, with a warning that says so."""
    if not columns:
        return {}
    missing = [column for column in columns if column not in source.columns]
    if missing:
        raise ParameterError(f"the frame has no column {missing[0]!r} to infer")
    found, left_out = drafted(source.expression, list(columns))
    names = [attribute.name for attribute in found]
    told = f"read off the data, which is not private: {', '.join(names) or 'nothing'}. Review the cells"
    also = f"; no cells were found for {', '.join(left_out)}" if left_out else ""
    warnings.warn(f"{told}, or give public ones by `attributes`{also}", UserWarning, stacklevel=3)
    return {attribute.name: attribute for attribute in found}
