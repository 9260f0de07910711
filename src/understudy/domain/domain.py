"""The public universe X: a product of declared attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from understudy.domain.attribute import Attribute, close_to, listed, same_text
from understudy.errors import DomainError, TooLargeError
from understudy.pages import notebook

Clique = tuple[str, ...]
"""Names of attributes, in domain order."""

CELL_LIMIT = 2**27
"""Largest table of cells that is ever allocated (1 GiB of int64)."""


@dataclass(frozen=True, repr=False)
class Domain:
    """The public universe of a table: its cells are all combinations of one cell of each attribute.

    `attributes` are its attributes. `domain["age"]` is the attribute of that name (a `DomainError` suggests one
    where there is none), and a loop goes over the attributes in the order of their declaration. Numbers of cells
    are exact integers: 10^100 of them are no trouble until a table of them is allocated. Raises a `DomainError`
    where there is no attribute, or where two have the same name.

    >>> from understudy.domain.attribute import Boolean, Categories
    >>> domain = Domain((Categories(name="sex", values=("F", "M")), Boolean(name="smoker")))
    >>> domain.shape(), domain.size()  # the third cell of `sex` is for other values
    ((3, 2), 6)
    """

    attributes: tuple[Attribute, ...]
    names: Clique = field(init=False, compare=False)
    """The attributes' names, in the order of their declaration."""
    _position: dict[str, int] = field(init=False, compare=False)
    _sizes: dict[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not self.attributes:
            raise DomainError("a domain needs at least one attribute")
        position: dict[str, int] = {}
        for attribute in self.attributes:
            if attribute.name in position:
                raise DomainError(f"the attribute {attribute.name!r} is declared twice (as Unicode text)")
            position[attribute.name] = len(position)
        object.__setattr__(self, "names", tuple(position))
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "_sizes", {attribute.name: attribute.size for attribute in self.attributes})

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.attributes[:6])
        more = ", …" if len(self.attributes) > 6 else ""
        return f"Domain({len(self.attributes)} attributes: {names}{more})"

    def _repr_html_(self) -> str:
        return notebook.panel("Domain", attribute_table(self))

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and same_text(name) in self._position

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.position(name)]

    def position(self, name: str) -> int:
        """The position of the attribute `name`, from 0; where there is none, a `DomainError` suggests a name."""
        position = self._position.get(name)  # names are kept normalised, and nearly all are asked for so
        if position is None:
            position = self._position.get(same_text(name))
        if position is None:
            close = close_to(name, self.names)
            raise DomainError(
                f"there is no attribute {name!r}",
                remedy=f"the domain has: {listed(close, self.names, '`domain.names`')}",
                suggestions=close,
            )
        return position

    def clique(self, names: Iterable[str]) -> Clique:
        """The `names` in the order of the domain; a `DomainError` for one that is unknown or given twice."""
        given = tuple(names)
        known, last, found = self._position, -1, list[str]()
        for name in given:  # nearly all are named as they are kept, and in their order
            position = known.get(name)
            if position is None or position <= last:
                break
            last = position
            found.append(self.names[position])
        else:
            return tuple(found)
        positions = [self.position(name) for name in given]
        if len(set(positions)) != len(positions):
            raise DomainError("a clique names an attribute twice")
        return tuple([self.names[i] for i in sorted(positions)])

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of the attributes `names` alone, in the order of this one; raises as `clique` does."""
        return Domain(tuple(self[name] for name in self.clique(names)))

    def merge(self, other: Domain) -> Domain:
        """The domain of the attributes of this one and of the `other`, this one's first.

        Raises a `DomainError` where the two declare an attribute of one name differently.
        """
        for attribute in other:
            if attribute.name in self and self[attribute.name] != attribute:
                raise DomainError(f"the two domains declare {attribute.name!r} differently")
        return Domain((*self.attributes, *(a for a in other if a.name not in self)))

    def shape(self, names: Iterable[str] | None = None) -> tuple[int, ...]:
        """The number of cells of each attribute of `names`, in their order; of all where none are given.

        Raises a `DomainError` for an unknown name.
        """
        if names is None:
            return tuple(self._sizes.values())
        sizes = self._sizes
        return tuple([sizes[name] if name in sizes else self[name].size for name in names])

    def size(self, names: Iterable[str] | None = None) -> int:
        """The number of combinations of cells of the attributes `names`, of all where none are given: exact.

        Raises a `DomainError` for an unknown name.

        >>> from understudy.domain.bins import Bins
        >>> Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(100))).size() == 10**100
        True
        """
        return prod(self.shape(names))

    def allocatable_shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """The shape of a table over the clique `names`; a `TooLargeError` where it has over `CELL_LIMIT` cells."""
        names = tuple(names)
        if (cells := self.size(names)) > CELL_LIMIT:
            raise TooLargeError(f"the table over {len(names)} attributes", cells=cells, limit=CELL_LIMIT)
        return self.shape(names)

    def index(self, cells: Sequence[int], names: Iterable[str] | None = None) -> int:
        """The flat index of a cell in C order, as an exact integer: `cells` has the code of each attribute.

        The attributes are those of `names`, all where none are given. Raises a `DomainError` where there are too
        many codes or too few, or where one lies outside its attribute.
        """
        shape = self.shape(names)
        if len(cells) != len(shape):
            raise DomainError(f"a cell of {len(shape)} attributes needs {len(shape)} codes, not {len(cells)}")
        flat = 0
        for code, size in zip(cells, shape, strict=True):
            if not 0 <= code < size:
                raise DomainError(f"a code lies outside its attribute of {size} cells")
            flat = flat * size + int(code)
        return flat

    def cell(self, index: int, names: Iterable[str] | None = None) -> tuple[int, ...]:
        """The codes of the cell with a flat `index`, one for each attribute of `names`: the inverse of `index`.

        Raises a `DomainError` where there is no such cell.
        """
        shape = self.shape(names)
        if not 0 <= index < prod(shape):
            raise DomainError(f"the index lies outside a domain of {prod(shape):,} cells")
        codes: list[int] = []
        for size in reversed(shape):
            index, code = divmod(index, size)
            codes.append(code)
        return tuple(reversed(codes))

    def labels(self, cells: Sequence[int], names: Iterable[str] | None = None) -> tuple[str, ...]:
        """The labels of a cell, whose codes are `cells`: one for each attribute of `names`, or of all.

        Raises a `DomainError` for an unknown name.
        """
        names = self.names if names is None else tuple(names)
        return tuple(self[name].labels[code] for name, code in zip(names, cells, strict=True))


def attribute_table(domain: Domain, remarks: Mapping[str, str] | None = None) -> notebook.Markup:
    """The attributes of a domain for a notebook, with their cells, and remarks on some of them."""
    heads = ["attribute", "type", "cells", "labels", *([""] if remarks else [])]
    rows = [
        [
            attribute.name,
            attribute.kind,
            f"{attribute.size:,}",
            ", ".join(attribute.labels[:6]) + (", …" if attribute.size > 6 else ""),
            *([remarks.get(attribute.name, "")] if remarks else []),
        ]
        for attribute in domain.attributes[: notebook.MOST_ROWS]
    ]
    return notebook.table(heads, rows, numbers=("cells",), total=len(domain))
