"""Workloads by name or from a file: which marginals a release is judged by, and how much each weighs.

all-3-way                       every marginal over three attributes; 3-way says the same
[[age, sex], {by: [age, income], weight: 2}]    a YAML or JSON file: a list, or `marginals:` and a list
age,sex                         a CSV file: one marginal a line,
age,income,2                    with its weight at the end of the line, where it has one
"""

from __future__ import annotations

import csv
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from understudy.declaration.node import Node, text_of
from understudy.domain.domain import Clique, Domain
from understudy.errors import DeclarationError, DomainError, QueryError
from understudy.query.workload import AllMarginals, Workload

_NAMED = re.compile(r"(?:all-)?(\d{1,3})-way")
_ENDINGS = (".yml", ".yaml", ".json", ".csv")
_REMEDY = "Name declared attributes, each once, such as [age, sex]"

Listed = tuple[Clique, Fraction]


def as_workload(
    domain: Domain, given: Workload | AllMarginals | str | Path, *, max_cells: int | None = None
) -> Workload:
    """The workload that a name, a file or a value stands for, without marginals of more than `max_cells`."""
    if isinstance(given, AllMarginals):
        given = given.over(domain)
    workload = given if isinstance(given, Workload) else _read(domain, given)
    if workload.domain != domain:
        raise QueryError("the workload is about another domain")
    if max_cells is None:
        return workload
    kept = [i for i, clique in enumerate(workload.cliques) if domain.size(clique) <= max_cells]
    if not kept:
        raise QueryError(f"every marginal of the workload has more than {max_cells:,} cells")
    return Workload(
        domain, tuple(workload.cliques[i] for i in kept), tuple(workload.weights[i] for i in kept)
    )


def _read(domain: Domain, given: str | Path) -> Workload:
    named = _NAMED.fullmatch(str(given))
    if named:
        return Workload.all_marginals(domain, int(named[1]))
    path = Path(str(given))
    if path.suffix.lower() not in _ENDINGS:
        raise QueryError(
            f"{str(given)!r} is no workload: write all-3-way, or name a file that ends in {', '.join(_ENDINGS)}"
        )
    text = text_of(path, absent="Write all-3-way, or name a file", large="List fewer marginals")
    listed = (
        _csv_lines(domain, text, path.name)
        if path.suffix.lower() == ".csv"
        else _yaml_items(domain, text, path.name)
    )
    if not listed:
        raise DeclarationError("the workload is empty", remedy="List at least one marginal", file=path.name)
    return Workload.of(domain, [clique for clique, _ in listed], [weight for _, weight in listed])


def _yaml_items(domain: Domain, text: str, file: str) -> list[Listed]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark: Any = getattr(error, "problem_mark", None)
        raise DeclarationError(
            f"this is not YAML or JSON: {getattr(error, 'problem', None) or 'it cannot be parsed'}",
            remedy="Check indentation, colons and brackets",
            line=None if mark is None else mark.line + 1,
            file=file,
        ) from None
    if root is None:
        return []
    top = Node(root, "", file)
    if isinstance(root, yaml.MappingNode):
        fields = top.mapping(("marginals",))
        if "marginals" not in fields:
            top.fail("'marginals' is missing", "Write `marginals:` and a list")
        top = fields["marginals"]
    listed: list[Listed] = []
    for item in top.items():
        _append(listed, *_yaml_item(domain, item), item=item)
    return listed


def _yaml_item(domain: Domain, item: Node) -> Listed:
    weight = Fraction(1)
    names = item
    if isinstance(item.yaml, yaml.MappingNode):
        fields = item.mapping(("by", "weight"))
        if "by" not in fields:
            item.fail("'by' is missing", "Write {by: [age, sex], weight: 2}")
        names = fields["by"]
        if "weight" in fields:
            weight = fields["weight"].number()
            if weight <= 0:
                fields["weight"].fail("a weight is more than 0", "Write 1, or leave it out")
    listed = [names] if isinstance(names.yaml, yaml.ScalarNode) else [*names.items()]
    return names.guard(lambda: domain.clique(name.text() for name in listed), _REMEDY), weight


def _append(listed: list[Listed], clique: Clique, weight: Fraction, *, item: Node) -> None:
    if any(clique == known for known, _ in listed):
        item.fail(f"{', '.join(clique)} is listed twice", "Keep one, with a larger weight")
    listed.append((clique, weight))


def _csv_lines(domain: Domain, text: str, file: str) -> list[Listed]:
    listed: list[Listed] = []
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    for fields in reader:
        names = [field.strip() for field in fields if field.strip()]
        if not names or names[0].startswith("#"):
            continue
        weight = Fraction(1) if names[-1] in domain else _weight(names[-1])
        try:
            if weight is not None and names[-1] not in domain:
                names.pop()
            clique = domain.clique(names)
            if (weight is not None and weight <= 0) or any(clique == known for known, _ in listed):
                raise DomainError(
                    "a weight is more than 0" if weight and weight <= 0 else "it is listed twice"
                )
        except DomainError as error:
            raise DeclarationError(str(error), remedy=_REMEDY, line=reader.line_num, file=file) from None
        listed.append((clique, weight or Fraction(1)))
    return listed


def _weight(text: str) -> Fraction | None:
    """A number at the end of a line; None where it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return Fraction(number) if number.is_finite() and abs(number.adjusted()) < 400 else None
