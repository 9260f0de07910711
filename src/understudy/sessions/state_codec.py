"""What a session knows, as bytes: any objects of this package, with arrays, exactly as they are.

A checkpoint holds whatever a session has come to know, and what that is made of changes from version to version.
So nothing here lists the classes: an object of any class of this package is written by its class and its fields,
and is made again without calling anything of it.

Promise     What is read is equal to what was written, bit by bit: numbers, the order of dictionaries, and which
            places held the same object. Values that an object had only computed from its fields (cached
            properties) are left out, and are computed again.
Refusal     A value of any other kind, such as a function, a lock or an object of another package, is not written:
            `Unwritable` is raised. Bytes that say anything else than `written` writes raise `Unreadable`.
Safety      Reading makes objects of classes of this package alone, and runs none of their code. The caller
            believes the bytes: a checkpoint's are bound by the ledger's chain of hashes.

The bytes are one line of JSON, a list of nodes in which each refers to earlier ones by their numbers, and the
arrays' own bytes behind it, the lowest first.
"""

from __future__ import annotations

import datetime as dt
import gc
import json
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

PACKAGE = "understudy"

MOST_DEEP = 200
"""Objects within objects: more of them are taken for a circle, which is not written."""

_SCALARS = (type(None), bool, int, float, str)
_LISTS: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "f"}
_MAPPINGS: dict[type, str] = {dict: "d", OrderedDict: "O", MappingProxyType: "p"}


class Unwritable(Exception):
    """A value that cannot be written down so that it is the same when it is read."""


class Unreadable(Exception):
    """Bytes that were not written here, or by a program with other classes."""


def written(root: Any, known: Mapping[str, Any]) -> bytes:
    """The bytes of `root`; objects among `known` are written by their names, and have to be there to read it."""
    with _uncollected():
        return _Writer(known).whole(root)


def read(whole: bytes, known: Mapping[str, Any]) -> Any:
    """What `written` was given, with the objects among `known` in the places of those of the same names."""
    try:
        with _uncollected():
            line = whole.index(b"\n")
            head = json.loads(whole[:line])
            return _Reader(head["classes"], known, whole, line + 1).root(head["nodes"])
    except (ArithmeticError, AttributeError, ImportError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is collected meanwhile: of ten thousands of objects that all stay, looking for it takes longer
    than making them.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


# ---- writing


class _Writer:
    """Nodes in the order in which they can be made again: what a node refers to comes before it."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._nodes: list[list[Any]] = []
        self._seen: dict[int, int] = {}
        self._held: list[Any] = []  # so that no other object gets the identity of one that was seen
        self._classes: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._arrays: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._at = 0
        self._deep = 0
        self._equal: dict[Any, int] = {}  # nodes of equal immutable values
        for name, value in known.items():
            self._seen[id(value)] = self._add(["k", name])

    def whole(self, root: Any) -> bytes:
        last = self.part(root)
        head = {"classes": [list(one) for one in self._classes], "nodes": [*self._nodes, ["=", last]]}
        line = json.dumps(head, separators=(",", ":")).encode("ascii")
        return b"".join([line, b"\n", *self._arrays])

    def _add(self, node: list[Any]) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def part(self, value: Any) -> Any:
        """A scalar itself; of anything else a list of one, the number of its node."""
        if type(value) in _SCALARS:
            return value
        number = self._seen.get(id(value))
        if number is None:
            self._deep += 1
            if self._deep > MOST_DEEP:
                raise Unwritable("objects lie too deep within each other, or in a circle")
            number = self._numbered(self._node(value))
            self._deep -= 1
            self._seen[id(value)] = number
            self._held.append(value)
        return [number]

    def _numbered(self, node: list[Any]) -> int:
        """The number of a node: that of an equal one where it is a tuple of names and of what has nodes, or bytes.

        Other scalars are not compared: 1, 1.0 and true are equal and not the same.
        """
        kind = node[0]
        if kind == "t" and all(type(one) in (str, list) for one in node):
            key: Any = tuple(one if type(one) is str else one[0] for one in node)
        elif kind == "b" or (kind == "a" and not node[-1]):
            key = (kind, *node[1:-2], *map(tuple, node[-2:-1])) if kind == "a" else (kind, *node[1:])
        else:
            return self._add(node)
        found = self._equal.get(key)
        if found is None:
            found = self._equal[key] = self._add(node)
        return found

    def _node(self, value: Any) -> list[Any]:
        kind, part = type(value), self.part
        if kind in _LISTS:
            if kind in (set, frozenset):  # in one order: whoever holds the same set writes the same bytes
                value = sorted(value, key=repr)
            return [_LISTS[kind], *[part(one) for one in value]]
        if kind in _MAPPINGS:
            return [_MAPPINGS[kind], *[part(one) for pair in value.items() for one in pair]]
        if kind is np.ndarray:
            return ["a", *self._array(value)]
        if kind is bytes:
            return ["b", self._place(value), len(value)]
        if kind is Fraction:
            return ["q", value.numerator, value.denominator]
        if kind is deque:
            return ["D", value.maxlen, *[part(one) for one in value]]
        if kind is dt.datetime:
            return ["Y", value.isoformat()]
        if kind is dt.date:
            return ["y", value.toordinal()]
        if isinstance(value, np.generic):
            return ["g", *self._array(np.asarray(value))]
        if kind.__module__.partition(".")[0] != PACKAGE or "<" in kind.__qualname__:
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__}")
        return self._object(value, kind)

    def _array(self, value: Any) -> list[Any]:
        if value.dtype.kind not in "biuf":
            raise Unwritable(f"an array of {value.dtype}")
        kind = value.dtype if value.dtype.byteorder in "<=|" else value.dtype.newbyteorder("<")
        place = self._place(value.astype(kind, copy=False).tobytes())
        return [kind.str, place, list(value.shape), value.flags.writeable]

    def _place(self, plain: bytes) -> int:
        """Where bytes lie behind the line; equal ones lie there once."""
        found = self._places.get(plain)
        if found is None:
            found = self._places[plain] = self._at
            self._arrays.append(plain)
            self._at += len(plain)
        return found

    def _object(self, value: Any, kind: type) -> list[Any]:
        if isinstance(value, Enum):
            return ["e", self._class(kind, ()), value.name]
        if isinstance(value, tuple):
            return ["n", self._class(kind, ()), *[self.part(one) for one in value]]
        if isinstance(value, (type, Exception, *_SCALARS[1:], list, dict, set, bytes)):
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__}")
        slots, computed = _fields(kind)
        fields = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        held = getattr(value, "__dict__", {})
        fields |= {name: one for name, one in held.items() if name not in computed}
        return ["o", self._class(kind, tuple(fields)), *[self.part(one) for one in fields.values()]]

    def _class(self, kind: type, fields: tuple[str, ...]) -> int:
        if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__} is not found by its name")
        return self._classes.setdefault((kind.__module__, kind.__qualname__, fields), len(self._classes))


@lru_cache(maxsize=512)
def _fields(kind: type) -> tuple[tuple[str, ...], frozenset[str]]:
    """The slots of a class, and the attributes that it only computes from others."""
    slots: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else list(own)
    computed = {
        name for base in kind.__mro__ for name, one in vars(base).items() if type(one) is cached_property
    }
    kept = [name for name in slots if name not in ("__dict__", "__weakref__")]
    return tuple(dict.fromkeys(kept)), frozenset(computed)


# ---- reading


class _Reader:
    def __init__(self, classes: list[Any], known: Mapping[str, Any], whole: bytes, start: int) -> None:
        self._classes = [(_class(module, name), fields) for module, name, fields in classes]
        self._slotted = [bool(_fields(kind)[0]) or not kind.__dictoffset__ for kind, _ in self._classes]
        self._known = known
        self._whole = whole
        self._start = start
        self._made: list[Any] = []

    def root(self, nodes: list[list[Any]]) -> Any:
        made, others = self._made, self._makers()
        for node in nodes:
            kind = node[0]
            if kind == "t":
                made.append(tuple([made[one[0]] if type(one) is list else one for one in node[1:]]))
            elif kind == "o":
                made.append(self._object(node))
            elif kind == "a":
                made.append(self._array(node))
            else:
                made.append(others[kind](node[1:]))
        return made[-1]

    def _makers(self) -> dict[str, Callable[[list[Any]], Any]]:
        return {
            "l": self._parts,
            "s": lambda rest: set(self._parts(rest)),
            "f": lambda rest: frozenset(self._parts(rest)),
            "d": self._mapping,
            "O": lambda rest: OrderedDict(self._mapping(rest)),
            "p": lambda rest: MappingProxyType(self._mapping(rest)),
            "D": lambda rest: deque(self._parts(rest[1:]), maxlen=rest[0]),
            "g": lambda rest: self._array(["a", *rest])[()],
            "b": lambda rest: self._whole[self._start + rest[0] : self._start + rest[0] + rest[1]],
            "q": lambda rest: Fraction(rest[0], rest[1]),
            "Y": lambda rest: dt.datetime.fromisoformat(rest[0]),
            "y": lambda rest: dt.date.fromordinal(rest[0]),
            "k": lambda rest: self._known[rest[0]],
            "n": lambda rest: tuple.__new__(self._classes[rest[0]][0], self._parts(rest[1:])),
            "e": lambda rest: self._classes[rest[0]][0][rest[1]],
            "=": lambda rest: self._parts(rest)[0],
        }

    def _parts(self, rest: list[Any]) -> list[Any]:
        made = self._made
        return [made[one[0]] if type(one) is list else one for one in rest]

    def _mapping(self, rest: list[Any]) -> dict[Any, Any]:
        parts = self._parts(rest)
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def _array(self, node: list[Any]) -> Any:
        _, kind, at, shape, writeable = node
        found = np.ndarray(tuple(shape), kind, self._whole, self._start + at)
        return found.copy() if writeable else found

    def _object(self, node: list[Any]) -> Any:
        kind, names = self._classes[node[1]]
        made, done = object.__new__(kind), self._made
        fields = zip(names, [done[one[0]] if type(one) is list else one for one in node[2:]], strict=True)
        if not self._slotted[node[1]]:
            made.__dict__.update(fields)
            return made
        for name, value in fields:
            object.__setattr__(made, name, value)
        return made


def _class(module: str, name: str) -> Any:
    if module.partition(".")[0] != PACKAGE:
        raise ValueError(f"{module} is no module of this package")
    found = getattr(import_module(module), name)
    if not isinstance(found, type):
        raise TypeError(f"{module}.{name} is no class")
    return found
