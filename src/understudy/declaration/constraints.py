"""Reading `constraints:`: combinations of declared cells that the custodian says nobody is in."""

from __future__ import annotations

from understudy.declaration.node import Node
from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint, determines, impossible


def constraints_of(node: Node, domain: Domain) -> tuple[Constraint, ...]:
    """The constraints that a declaration lists."""
    return tuple(_constraint(item, domain) for item in node.items())


def _constraint(node: Node, domain: Domain) -> Constraint:
    fields = node.mapping(("impossible", "attribute", "determines", "as"))
    if fields.keys() == {"impossible"}:
        told = fields["impossible"]
        return told.guard(
            lambda: impossible(domain, told.text()),
            "Write a condition, such as `age < 16 and retired = true`",
        )
    if fields.keys() != {"attribute", "determines", "as"}:
        node.fail(
            "a constraint has the key 'impossible', or 'attribute', 'determines' and 'as'",
            "Write `- impossible: age < 16 and retired = true`, "
            "or `- {attribute: city, determines: country, as: {Bree: Eriador}}`",
        )
    one, other = (
        fields[key].guard(lambda key=key: domain[fields[key].text()], "Name a declared attribute")
        for key in ("attribute", "determines")
    )
    cells: dict[int, int] = {}
    for key, value in fields["as"].pairs():
        cell = _cell(key, one)
        if cell in cells:
            key.fail(f"the cell of {key.text()!r} in {one.name} stands here twice", "Keep one of them")
        cells[cell] = _cell(value, other)
    return node.guard(lambda: determines(domain, one.name, other.name, cells), "Change the constraint")


def _cell(node: Node, attribute: Attribute) -> int:
    """The declared cell of a value; a slip must not end up in `other`, so what is outside is refused."""
    kinds = {"category": node.text, "boolean": node.flag, "integer": node.integer, "date": node.date,
             "timestamp": node.instant}  # fmt: skip
    found = attribute.proper_code(kinds.get(attribute.kind, node.real)())
    if found is None:
        node.fail(f"{node.text()!r} is in no declared cell of {attribute.name}", "Write one of its values")
    return found
