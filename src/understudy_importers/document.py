"""A description file as YAML nodes that know their place. JSON is read as YAML, so that it has lines too.

The file may come from anywhere: it is bounded in size, what its anchors unfold to is bounded, and nothing in it
is executed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from understudy.declaration.node import Node, root_of, text_of

MAX_BYTES = 2 << 20
MAX_NODES = 1 << 20
MAX_DEPTH = 64
LARGEST = Fraction(10) ** 300

_TRUE = ("true", "yes", "on", "y", "1")
_FALSE = ("false", "no", "off", "n", "0")


def load(path: Path) -> Node:
    """The root of a YAML or JSON file."""
    text = text_of(
        path,
        absent="Name a SmartNoise or Frictionless description",
        large="Keep the description of one table",
        most=MAX_BYTES,
    )
    return compose(text, file=path.name)


def compose(text: str, *, file: str) -> Node:
    """The root of a text, with its aliases bounded and without cycles."""
    if text.lstrip()[:1] in ("{", "["):  # JSON may be indented by tabs, which YAML forbids
        text = text.replace("\t", " ")
    empty, otherwise = "Name another description", "neither YAML nor JSON"
    node = root_of(text, file=file, empty=empty, otherwise=otherwise)
    _unfolded(node, {}, 0)
    return node


def _unfolded(node: Node, sizes: dict[int, int], depth: int) -> int:
    """The number of nodes that a walk from here would meet; refused where that is endless or too many."""
    known = sizes.get(id(node.yaml))
    if known == 0:
        node.fail("an anchor holds itself", "Write it out without the alias")
    if known is not None:
        return known
    if depth > MAX_DEPTH:
        node.fail("this is nested too deeply", "Flatten it")
    sizes[id(node.yaml)] = 0
    inner = node.yaml.value if isinstance(node.yaml, yaml.CollectionNode) else []
    children = [part for pair in inner for part in (pair if isinstance(pair, tuple) else (pair,))]
    total = 1 + sum(_unfolded(Node(child, node.field, node.file), sizes, depth + 1) for child in children)
    if total > MAX_NODES:
        node.fail("its aliases unfold to more than a million values", "Write out what is meant")
    sizes[id(node.yaml)] = total
    return total


def entries(node: Node) -> dict[str, Node]:
    """The children of a mapping by key, those with the value null left out."""
    if isinstance(node.yaml, yaml.MappingNode):
        for key, _ in node.yaml.value:
            if key.tag == "tag:yaml.org,2002:merge":
                Node(key, node.field, node.file).fail("a merge key `<<` is not read", "Write the keys out")
    children = node.mapping(None)
    return {_text(key): child for key, child in children.items() if not is_null(child)}


def is_null(node: Node) -> bool:
    """Whether nothing stands here."""
    return node.yaml.tag == "tag:yaml.org,2002:null"


def is_mapping(node: Node | None) -> bool:
    """Whether keys and values stand here."""
    return node is not None and isinstance(node.yaml, yaml.MappingNode)


def is_list(node: Node | None) -> bool:
    """Whether a list stands here."""
    return node is not None and isinstance(node.yaml, yaml.SequenceNode)


def text(node: Node) -> str:
    """A scalar as text; the two halves of an escaped character in JSON are put together."""
    return _text(node.text())


def _text(written: str) -> str:
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(node: Node) -> str:
    """A value as it can stand in a comment."""
    if isinstance(node.yaml, yaml.ScalarNode):
        return text(node)
    return "[…]" if is_list(node) else "{…}"


def truth(node: Node) -> bool:
    """A yes or no in any of the words that YAML has had for it."""
    word = text(node).strip().lower()
    if word not in _TRUE + _FALSE:
        node.fail(f"{text(node)!r} is neither true nor false", "Write true or false")
    return word in _TRUE


def number(node: Node) -> Fraction:
    """A finite number that a float can hold."""
    value = node.number()
    if abs(value) > LARGEST:
        node.fail(f"{text(node)!r} is too large", "Write a bound that the values can reach")
    return value


def rising(low: Node, high: Node, read: Callable[[Node], Any]) -> tuple[Any, Any]:
    """Two bounds; the second must not lie below the first."""
    bounds = read(low), read(high)
    if bounds[1] < bounds[0]:
        high.fail(f"the upper bound {text(high)} lies below the lower one, {text(low)}", "Change one of them")
    return bounds


def day(node: Node) -> dt.date:
    """A day, or the day of a moment."""
    written = text(node)
    try:
        found = dt.datetime.fromisoformat(written).date()
    except ValueError:
        node.fail(f"{written!r} is not a day", "Write it as 2024-12-31")
    if found >= dt.date.max:
        node.fail("dates end at 9999-12-30", "Write an earlier day")
    return found
