"""What a session knows, as bytes: any objects of this package, with arrays, exactly as they are.

A checkpoint holds whatever a session has come to know, and what that is made of changes from version to version.
So nothing here lists the classes: an object of any class of this package is written by its class and its fields,
and is made again without calling anything of it.

Promise     What is read is equal to what was written, bit by bit: numbers, the order of dictionaries, and which
            places held the same object; equal values that cannot change may become one. Values that an object had
            only computed from its fields (cached properties) are left out, and are computed again.
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
_COMPARED = {type(None), bool, int, str, list}
_LISTS: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "f"}
_MAPPINGS: dict[type, str] = {dict: "d", OrderedDict: "O", MappingProxyType: "p"}


class Unwritable(Exception):
    """A value that cannot be written down so that it is the same when it is read."""


class Unreadable(Exception):
    """Bytes that were not written here, or by a program with other classes."""


def written(root: Any, known: Mapping[str, Any]) -> bytes:
    """The bytes of `root`; objects among `known` are written by their names, and have to be there to read it."""
    return StateWriter(known).whole(root)


def read(whole: bytes, known: Mapping[str, Any]) -> Any:
    """What `written` was given, with the objects among `known` in the places of those of the same names."""
    try:
        with _uncollected():
            line = whole.index(b"\n")
            head = json.loads(whole[:line])
            return _Reader(head["classes"], head["arrays"], known, whole, line + 1).root(head["nodes"])
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


class _Moving(list[int]):
    """The number of a node that is written anew each time; known when all others are."""


class StateWriter:
    """Writes a state again and again, each time going through what may have changed since the last time.

    Nodes of values that cannot change are *settled*: tuples and frozen sets of such values, objects of frozen
    dataclasses with such fields, and the arrays that those hold. They are kept, with their text, and come first.
    What can change, and whatever refers to it, is *moving*: written anew each time, behind the settled nodes.

    Promise     What is read is equal to what was given to the last call, as for `written`.
    Why         Settled values cannot change but for their arrays, whose bytes are compared before each call: where
                one differs, everything is written anew. So it is, too, when the settled nodes have become twice as
                many: those of values that the state no longer holds are then left out.
    Cost        As many steps as there are moving nodes and new ones; a state of 1,000 purchases has 46,000 settled
                and 20,000 moving nodes. The writer holds what it has settled, up to `MOST_HELD` bytes of text.
    """

    MOST_HELD = 1 << 25

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self._begin()

    def _begin(self) -> None:
        """Forget everything that was settled."""
        self._texts: list[str] = []
        self._settled = 0
        self._fresh: list[list[Any]] = []  # settled since the last text
        self._seen: dict[int, int] = {}
        self._held: list[Any] = []  # so that no other object gets the identity of one that was seen
        self._checked: list[tuple[Any, bytes, bool]] = []
        self._classes: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._by_fields: set[int] = set()  # classes whose objects compare themselves by their fields
        self._array_kinds: dict[tuple[str, tuple[int, ...], bool], int] = {}
        self._arrays = _Places()
        self._equal: dict[Any, int] = {}  # nodes of equal immutable values
        self._complete = 0
        for name, value in self._known.items():
            self._seen[id(value)] = self._settle(["k", name])

    def whole(self, root: Any) -> bytes:
        """The bytes of a state. Raises `Unwritable` where it holds what cannot be written."""
        with _uncollected():
            if self._has_changed() or 0 < 2 * self._complete < self._settled:
                self._begin()
            self._deep = 0
            self._moving: list[list[Any]] = []
            self._moved: dict[int, _Moving] = {}
            self._numbers: list[_Moving] = []
            self._passing: list[Any] = []
            self._moving_arrays = _Places()
            self._equal_moving: dict[tuple[int, int], _Moving] = {}
            line = self._line(self.part(root))
            self._complete = self._complete or self._settled
            whole = b"".join([line, b"\n", *self._arrays.parts, *self._moving_arrays.parts])
            self._moving, self._moved, self._numbers, self._passing = [], {}, [], []
            if len(line) > self.MOST_HELD:
                self._begin()
            return whole

    def _line(self, last: Any) -> bytes:
        for place, number in enumerate(self._numbers):
            number[0] = self._settled + place
        for node in self._moving:
            if node[0] == "a":
                node[2] += self._arrays.size
        if self._fresh:
            self._texts.append(_json(self._fresh)[1:-1])
            self._fresh = []
        nodes = ",".join([*self._texts, _json([*self._moving, ["=", last]])[1:-1]])
        classes, arrays = (_json([list(one) for one in some]) for some in (self._classes, self._array_kinds))
        return f'{{"classes":{classes},"arrays":{arrays},"nodes":[{nodes}]}}'.encode("ascii")

    def _has_changed(self) -> bool:
        """Whether some array that was settled is another one by now."""
        return any(
            array.flags.writeable != writeable or array.tobytes() != plain
            for array, plain, writeable in self._checked
        )

    def _settle(self, node: list[Any]) -> int:
        self._fresh.append(node)
        self._settled += 1
        return self._settled - 1

    def _move(self, node: list[Any]) -> _Moving:
        self._moving.append(node)
        number = _Moving((0,))
        self._numbers.append(number)
        return number

    def part(self, value: Any, *, settles: bool = False) -> Any:
        """A scalar itself; of anything else a list of one, the number of its node.

        `settles` says that whoever holds the value cannot change: an array of its own then does not either.
        """
        if type(value) in _SCALARS:
            return value
        mine = id(value)
        number = self._seen.get(mine)
        if number is not None:
            return [number]
        moved = self._moved.get(mine)
        if moved is not None:
            return moved
        self._deep += 1
        if self._deep > MOST_DEEP:
            raise Unwritable("objects lie too deep within each other, or in a circle")
        if type(value) is np.ndarray:
            number = self._array_node(value, settles=settles)
        else:
            node, can_settle = self._node(value)
            if can_settle and _Moving not in map(type, node):
                number = self._settled_once(node)
            else:
                number = self._move(node)
        self._deep -= 1
        if isinstance(number, _Moving):
            self._moved[mine] = number
            self._passing.append(value)
            return number
        self._seen[mine] = number
        self._held.append(value)
        return [number]

    def _settled_once(self, node: list[Any]) -> int:
        """The number of a settled node: that of an equal one where it is a tuple or bytes, or an object that is
        compared by its fields, and made of names, whole numbers and nodes.

        Fractions of numbers are not compared: 0.0 and -0.0 are equal and not the same.
        """
        if not (node[0] == "t" or (node[0] == "o" and node[1] in self._by_fields) or node[0] == "b"):
            return self._settle(node)
        if not _COMPARED.issuperset(map(type, node)):
            return self._settle(node)
        key = tuple([one if type(one) is str else (type(one), *_listed(one)) for one in node])
        found = self._equal.get(key)
        if found is None:
            found = self._equal[key] = self._settle(node)
        return found

    def _array_node(self, value: Any, *, settles: bool) -> int | _Moving:
        plain, kind = _plain_array(value)
        place = (self._arrays if settles else self._moving_arrays).of(plain)
        number = self._array_kinds.setdefault(
            (kind, value.shape, value.flags.writeable), len(self._array_kinds)
        )
        node = ["a", number, place]
        if settles:
            self._checked.append((value, value.tobytes(), value.flags.writeable))
        if value.flags.writeable:
            return self._settle(node) if settles else self._move(node)
        if not settles:
            return self._equal_moving.get((number, place)) or self._equal_moving.setdefault(
                (number, place), self._move(node)
            )
        key = ("a", number, place)
        found = self._equal.get(key)
        if found is None:
            found = self._equal[key] = self._settle(node)
        return found

    def _node(self, value: Any) -> tuple[list[Any], bool]:
        """The node of a value that is no array, and whether it may settle."""
        kind, part = type(value), self.part
        if kind is tuple:
            return ["t", *[part(one, settles=True) for one in value]], True
        if kind in _LISTS:
            if kind in (set, frozenset):  # in one order: whoever holds the same set writes the same bytes
                value = sorted(value, key=repr)
            settles = kind is frozenset
            return [_LISTS[kind], *[part(one, settles=settles) for one in value]], settles
        if kind in _MAPPINGS:
            return [_MAPPINGS[kind], *[part(one) for pair in value.items() for one in pair]], False
        if kind is bytes:
            return ["b", self._arrays.of(value), len(value)], True
        if kind is Fraction:
            return ["q", value.numerator, value.denominator], True
        if kind is deque:
            return ["D", value.maxlen, *[part(one) for one in value]], False
        if kind is dt.datetime:
            return ["Y", value.isoformat()], True
        if kind is dt.date:
            return ["y", value.toordinal()], True
        if isinstance(value, np.generic):
            plain, name = _plain_array(np.asarray(value))
            number = self._array_kinds.setdefault((name, (), True), len(self._array_kinds))
            return ["g", number, self._arrays.of(plain)], True
        if kind.__module__.partition(".")[0] != PACKAGE or "<" in kind.__qualname__:
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__}")
        return self._object(value, kind)

    def _object(self, value: Any, kind: type) -> tuple[list[Any], bool]:
        if isinstance(value, Enum):
            return ["e", self._class(kind, ()), value.name], True
        if isinstance(value, tuple):
            parts = [self.part(one, settles=True) for one in value]
            return ["n", self._class(kind, ()), *parts], True
        if isinstance(value, (type, Exception, *_SCALARS[1:], list, dict, set, bytes)):
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__}")
        slots, computed, frozen, is_compared = _fields(kind)
        fields = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        held = getattr(value, "__dict__", {})
        fields |= {name: one for name, one in held.items() if name not in computed}
        parts = [self.part(one, settles=frozen) for one in fields.values()]
        number = self._class(kind, tuple(fields))
        if frozen and is_compared:
            self._by_fields.add(number)
        return ["o", number, *parts], frozen

    def _class(self, kind: type, fields: tuple[str, ...]) -> int:
        if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
            raise Unwritable(f"{kind.__module__}.{kind.__qualname__} is not found by its name")
        return self._classes.setdefault((kind.__module__, kind.__qualname__, fields), len(self._classes))


class _Places:
    """Bytes behind the line, one after the other; equal ones lie there once."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, int] = {}

    def of(self, plain: bytes) -> int:
        """Where some bytes begin."""
        found = self._known.get(plain)
        if found is None:
            found = self._known[plain] = self.size
            self.parts.append(plain)
            self.size += len(plain)
        return found


def _plain_array(value: Any) -> tuple[bytes, str]:
    """The bytes of an array, the lowest first, and the name of its type."""
    if value.dtype.kind not in "biuf":
        raise Unwritable(f"an array of {value.dtype}")
    kind = value.dtype if value.dtype.byteorder in "<=|" else value.dtype.newbyteorder("<")
    return value.astype(kind, copy=False).tobytes(), kind.str


def _listed(one: Any) -> Any:
    return one if type(one) is list else (one,)


_json = json.JSONEncoder(separators=(",", ":")).encode


@lru_cache(maxsize=512)
def _fields(kind: type) -> tuple[tuple[str, ...], frozenset[str], bool, bool]:
    """The slots of a class, the attributes that it only computes from others, whether fields never change, and
    whether objects with equal fields are equal.
    """
    slots: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else list(own)
    computed = {
        name for base in kind.__mro__ for name, one in vars(base).items() if type(one) is cached_property
    }
    kept = [name for name in slots if name not in ("__dict__", "__weakref__")]
    params = vars(kind).get(
        "__dataclass_params__"
    )  # its own: a subclass of a frozen class may set attributes
    is_frozen, is_compared = (False, False) if params is None else (bool(params.frozen), bool(params.eq))
    return tuple(dict.fromkeys(kept)), frozenset(computed), is_frozen, is_compared


# ---- reading

_new, _set = object.__new__, object.__setattr__


class _Reader:
    def __init__(
        self, classes: list[Any], arrays: list[Any], known: Mapping[str, Any], whole: bytes, start: int
    ) -> None:
        self._classes = [(_class(module, name), fields) for module, name, fields in classes]
        self._slotted = [bool(_fields(kind)[0]) or not kind.__dictoffset__ for kind, _ in self._classes]
        self._known = known
        self._whole = whole
        self._start = start
        self._made: list[Any] = []
        self._arrays = [(np.dtype(kind), tuple(shape), writeable) for kind, shape, writeable in arrays]

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
        kind, shape, writeable = self._arrays[node[1]]
        found = np.ndarray(shape, kind, self._whole, self._start + node[2])
        return found.copy() if writeable else found

    def _object(self, node: list[Any]) -> Any:
        kind, names = self._classes[node[1]]
        made, done = _new(kind), self._made
        fields = zip(names, [done[one[0]] if type(one) is list else one for one in node[2:]], strict=True)
        if not self._slotted[node[1]]:
            made.__dict__.update(fields)
            return made
        for name, value in fields:
            _set(made, name, value)
        return made


def _class(module: str, name: str) -> Any:
    if module.partition(".")[0] != PACKAGE:
        raise ValueError(f"{module} is no module of this package")
    found = getattr(import_module(module), name)
    if not isinstance(found, type):
        raise TypeError(f"{module}.{name} is no class")
    return found
