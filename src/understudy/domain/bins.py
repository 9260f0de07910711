"""An ordered attribute: numbers or dates cut into consecutive bins."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import floor, inf, isfinite, nextafter
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute, Mask, Outside, Value, as_asked
from understudy.domain.edge import Ordered, as_number, shown
from understudy.errors import DomainError, QueryError

MEASURE_BITS = 26
"""Of the largest number of steps of a measure: squares of them fit into two words of so many bits."""


@dataclass(frozen=True, kw_only=True)
class Bins(Attribute):
    """An ordered attribute of integers, real numbers or dates, cut into consecutive bins.

    A bin holds the values from its start, one of `starts`, up to the next one's, which is not in it; the last bin
    ends with `upper`, which is. `Bins.between` makes them from their edges, and `Bins.integers` one for each
    integer. Where `null` is true, missing values have a cell of their own. `outside` says where a value goes that
    lies in no bin: into the nearest one (`clamp`), into a cell of its own (`other`), or to the missing values
    (`null`). Raises a `DomainError` where the edges do not rise strictly, are not of one type, or are not finite.
    """

    starts: tuple[Ordered, ...]
    upper: Ordered
    outside: Outside = Outside.CLAMP
    decimals: int | None = field(default=None, repr=False)
    """So many decimals have the synthetic values of a real attribute; None: as many as they happen to have."""
    resolution: Fraction | None = field(default=None, repr=False)
    """A number with one is a *measure*: values are summed as whole numbers of such steps above the lower bound,
    not by their bins. Not in the representation, which names the cells: a resolution does not change them.
    """

    in_full: bool = field(default=False, repr=False, compare=False)
    """Whether labels have all digits of edges that six do not tell: so where a question cuts bins. Labels of
    declared bins have six, since ledgers hold them.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.starts:
            raise DomainError(f"{self.name}: at least two edges are needed to make a bin")
        if len({*map(type, self.starts), type(self.upper)}) > 1:
            raise DomainError(f"{self.name}: edges must be all integers, all reals or all dates")
        self._check_edges_fit()
        if isinstance(self.starts[0], float):  # minus zero is zero
            object.__setattr__(self, "starts", tuple(s + 0.0 for s in self.starts))
            object.__setattr__(self, "upper", self.upper + 0.0)
        rising = all(map(lt, self.starts, islice(self.starts, 1, None)))
        # The last bin may be the upper bound alone: of real numbers only where a question cuts there.
        closed = self.upper > self.starts[-1] or (
            self.upper == self.starts[-1] and (self.discrete or len(self.starts) > 1)
        )
        if not (rising and closed):
            raise DomainError(f"{self.name}: edges must rise strictly")
        if self.decimals is not None and not (0 <= self.decimals <= 12 and self.kind == "real"):
            raise DomainError(f"{self.name}: `decimals` is between 0 and 12, and for a real attribute")
        if self.resolution is not None:
            object.__setattr__(self, "resolution", Fraction(self.resolution))
            self._check_measure()

    def _check_edges_fit(self) -> None:
        """Refuse edges that no engine could compare with values; the edges are of one type here."""
        if isinstance(self.upper, float):
            for edge in (*self.starts, self.upper):
                if not isfinite(edge):
                    raise DomainError(f"{self.name}: edges must be finite numbers, not {edge}")
            return
        highest = max(max(self.starts), self.upper)
        if isinstance(highest, int):
            if highest >= 2**63 or min(min(self.starts), self.upper) < -(2**63):
                raise DomainError(f"{self.name}: integer edges must fit into 64 bits")
        elif highest == dt.date.max:
            raise DomainError(f"{self.name}: dates end at 9999-12-30")

    def _check_measure(self) -> None:
        """Refuse a resolution by which the values cannot be summed as whole numbers of steps."""
        assert self.resolution is not None
        if self.kind == "date":
            raise DomainError(f"{self.name}: dates are not summed", remedy="leave `resolution` out")
        if self.resolution <= 0 or (self.kind == "integer" and self.resolution.denominator != 1):
            raise DomainError(
                f"{self.name}: a resolution is a positive number, and a whole one for an integer attribute"
            )
        if max(abs(self.lower_bound), abs(self.upper_bound)) > 1 << 52:
            raise DomainError(f"{self.name}: the bounds of a measure lie within 2^52 of 0")
        steps = (self.upper_bound - self.lower_bound) / self.resolution
        if steps.denominator != 1 or steps < 1:
            raise DomainError(
                f"{self.name}: the bounds must be a whole number of steps of {self.resolution} apart",
                remedy="choose bounds that are multiples of the resolution",
            )
        if steps > 1 << MEASURE_BITS:
            raise DomainError(
                f"{self.name}: {int(steps):,} steps between the bounds, and at most {1 << MEASURE_BITS:,} are "
                f"possible",
                remedy="use a coarser `resolution`, or narrower bounds",
            )

    @classmethod
    def between(
        cls, name: str, edges: Sequence[Ordered], *, outside: Outside = Outside.CLAMP, null: bool = False
    ) -> Bins:
        """Bins of the attribute `name` with the given `edges`, two at least; the last bin includes the last edge.

        `outside` and `null` are those of the class. Raises a `DomainError` where the edges do not rise strictly.

        >>> Bins.between("age", [0, 18, 65, 120]).labels
        ('0-17', '18-64', '65-120')
        """
        if len(edges) < 2 or edges[-1] == edges[-2]:
            raise DomainError(f"{name}: edges must rise strictly, and there must be two at least")
        return cls(name=name, starts=tuple(edges[:-1]), upper=edges[-1], outside=outside, null=null)

    @classmethod
    def integers(cls, name: str, lower: int, upper: int, *, outside: Outside = Outside.CLAMP) -> Bins:
        """One bin for each integer from `lower` to `upper`, both included; `name` is the attribute's.

        `outside` is that of the class. Raises a `DomainError` where there is no integer between the two.

        >>> Bins.integers("rooms", 1, 4).labels
        ('1', '2', '3', '4')
        """
        return cls(name=name, starts=tuple(range(lower, upper + 1)), upper=upper, outside=outside)

    @classmethod
    def measure(
        cls,
        name: str,
        lower: float,
        upper: float,
        *,
        resolution: Any = 1,
        edges: Sequence[Ordered] | None = None,
        outside: Outside = Outside.CLAMP,
        null: bool = False,
    ) -> Bins:
        """A number from `lower` to `upper` that is summed in steps of `resolution`; `edges` are those of its bins.

        `name` is the attribute's; `resolution` is in the unit of its values; `outside` and `null` are those of the
        class. Without edges there are ten bins of one length, or one for each integer where there are fewer.
        Bounds that are both `int` make an integer attribute, else it is real. Raises a `DomainError` where the
        bounds are no whole number of steps apart.

        >>> Bins.measure("income", 0, 200_000, resolution=100).steps
        2000
        """
        whole = isinstance(lower, int) and isinstance(upper, int)
        if edges is None and whole:
            count = min(10, int(upper) - int(lower) + 1)
            span = int(upper) - int(lower) + 1
            cuts: list[Ordered] = [int(lower) + span * i // count for i in range(count)]
        elif edges is None:
            cuts = [float(lower) + (float(upper) - float(lower)) * i / 10 for i in range(10)]
        else:
            cuts = list(edges[:-1])
            if not edges or (edges[0], edges[-1]) != (lower, upper):
                raise DomainError(f"{name}: the edges of a measure begin and end with its bounds")
        last: Ordered = int(upper) if whole else float(upper)
        starts = tuple(cuts) if whole else tuple(map(float, cuts))
        step = Fraction(str(resolution)) if isinstance(resolution, float) else Fraction(resolution)
        return cls(name=name, starts=starts, upper=last, outside=outside, null=null, resolution=step)

    # ---- measures

    @property
    def lower_bound(self) -> Fraction:
        """The least number of the attribute, as its decimals say it."""
        return Fraction(str(self.starts[0]))

    @property
    def upper_bound(self) -> Fraction:
        """The largest number of the attribute, as its decimals say it."""
        return Fraction(str(self.upper))

    @cached_property
    def steps(self) -> int:
        """How many steps of the resolution lie between the bounds of a measure."""
        assert self.resolution is not None
        return int((self.upper_bound - self.lower_bound) / self.resolution)

    def step_of(self, value: object) -> int:
        """The step of a measure that is nearest to a `value`, from 0 to `steps`: the rule of every engine.

        A value beyond a bound counts as the bound. One that is missing, or no number, counts as the lower bound;
        where the attribute has a cell for missing values no sum takes those rows in.
        """
        number = self._read(
            self.intake.value(value, self.kind) if isinstance(value, str) and self.intake else value
        )
        if number is None or number != number or self.resolution is None:
            return 0
        if isinstance(number, int) and self.kind == "integer":
            inside, step = min(max(number, self.starts[0]), self.upper), int(self.resolution)
            return min((inside - self.starts[0] + step // 2) // step, self.steps)
        low, high = float(self.starts[0]), float(self.upper)
        return min(
            floor((min(max(float(number), low), high) - low) / float(self.resolution) + 0.5), self.steps
        )

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """For each cell the place of its representative between the bounds, from 0 to 1; 0 where it has none."""
        low, width = float(self.starts[0]), float(self.upper) - float(self.starts[0])
        found = np.zeros(self.size)
        found[: self.proper_size] = np.clip((self.representatives - low) / width, 0, 1)
        return found

    @cached_property
    def position_ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each cell the least and the largest place, from 0 to 1, of a row in it; 0 to 1 where nobody knows.

        A row's place is that of its step, which can lie half a step beyond the bin.
        """
        low, width = float(self.starts[0]), float(self.upper) - float(self.starts[0])
        half = 0.5 / self.steps if self.kind == "real" or self.resolution != 1 else 0.0
        first, last = np.zeros(self.size), np.ones(self.size)
        edges = np.array([float(edge) for edge in (*self.starts, self.upper)])
        ends = edges[1:] - np.r_[np.full(self.proper_size - 1, 1.0 if self.discrete else 0.0), 0.0]
        first[: self.proper_size] = np.clip((edges[:-1] - low) / width - half, 0, 1)
        last[: self.proper_size] = np.clip((ends - low) / width + half, 0, 1)
        if self.outside is Outside.CLAMP and not self.null:
            first[0] = 0.0
        return first, last

    @property
    def kind(self) -> str:
        """The type of the values: `integer`, `real` or `date`."""
        return {int: "integer", float: "real", dt.date: "date"}[type(self.starts[0])]

    @property
    def discrete(self) -> bool:
        """Whether the values are integers or dates, so that every bin has a last value."""
        return not isinstance(self.starts[0], float)

    @property
    def spacing(self) -> float:
        """How far the values of a discrete attribute are apart, as `as_number` has them; 0 of real numbers."""
        return 1.0 if self.discrete else 0.0

    def _after(self, value: Ordered) -> Ordered:
        """The next value of a discrete attribute."""
        return value + dt.timedelta(days=1) if isinstance(value, dt.date) else value + 1

    def _before(self, value: Ordered) -> Ordered:
        return value - dt.timedelta(days=1) if isinstance(value, dt.date) else value - 1

    @property
    def proper_labels(self) -> tuple[str, ...]:
        """The names of the bins, those for other and for missing values apart."""
        return self._bin_labels

    @cached_property
    def proper_size(self) -> int:
        """The number of bins, known without their names: an attribute can have millions."""
        return len(self.starts)

    @cached_property
    def _bin_labels(self) -> tuple[str, ...]:
        if not self.discrete:
            short = [f"{edge:g}" for edge in (*self.starts, self.upper)]
            exact = zip(short, (*self.starts, self.upper), strict=True)
            numbers = [shown(edge) if float(text) != edge else text for text, edge in exact]
            numbers = numbers if self.in_full else short
            ends = [f"{end})" for end in numbers[1:-1]] + [f"{numbers[-1]}]"]
            return tuple(f"[{start}, {end}" for start, end in zip(numbers[:-1], ends, strict=True))
        lasts = [*(self._before(start) for start in self.starts[1:]), self.upper]
        join = "-" if self.kind == "integer" and self.starts[0] >= 0 else ".."
        return tuple(
            str(start) if start == last else f"{start}{join}{last}"
            for start, last in zip(self.starts, lasts, strict=True)
        )

    @cached_property
    def representatives(self) -> NDArray[np.float64]:
        """The middle of each declared bin, as a number (dates: days since 1970-01-01; timestamps: seconds)."""
        numbers = [as_number(edge) for edge in (*self.starts, self.upper)]
        lasts = [n - self.spacing for n in numbers[1:-1]] + [numbers[-1]]
        return (np.array(numbers[:-1]) + np.array(lasts)) / 2

    def proper_code(self, value: object) -> int | None:
        """The position of the bin that a `value` falls into; None where it lies outside and is not clamped.

        What is neither a number nor a date, as the edges are, counts as missing: `null_cell`.
        """
        number = self._read(value)
        if number is None or number != number:
            return self.null_cell
        if number < self.starts[0]:
            return 0 if self.outside is Outside.CLAMP else None
        if number > self.upper:
            return self.proper_size - 1 if self.outside is Outside.CLAMP else None
        return bisect_right(self.starts, number) - 1

    def _read(self, value: object) -> Ordered | None:
        """A number or date that can be compared with the edges; None when the value is neither."""
        if self.kind == "date":
            if isinstance(value, dt.datetime):
                return value.date()
            return value if isinstance(value, dt.date) else None
        if isinstance(value, bool | int | float | np.integer | np.floating):
            return float(value) if isinstance(value, float | np.floating) else int(value)
        return None

    def compare(self, operator: str, value: Value) -> Mask:
        """The cells where ``attribute operator value`` holds; a `QueryError` where the value would cut a bin.

        `operator` is one of =, !=, <, <=, > and >=, and `value` a number or a date as the edges are.

        A text that is the label of a cell is equal to that cell, and different from all others.
        """
        if (
            isinstance(value, str)
            and operator in ("=", "!=")
            and value in self.labels[: self.size - self.null]
        ):
            return self._equals(self.labels.index(value), operator)
        constant = self._constant(value)
        if operator in ("=", "!="):
            mask = self._equal(constant)
            return mask if operator == "=" else ~mask
        cut = self._cut(constant, operator)
        if cut is None:
            refusal = self._misses_edge(operator, constant)
            refusal.cuts = self.name, (self._edge(constant, operator),)
            raise refusal
        below = self._mask(np.arange(self.proper_size) < cut, other_is_known=False)
        return below if operator in ("<", "<=") else ~below

    def _cut(self, constant: Ordered, operator: str) -> int | None:
        """How many bins lie under the constant; None when it would cut one.

        ``x <= c`` and ``x > c`` cut after c: at the next value of a discrete attribute, or the next float.
        """
        after = operator in ("<=", ">")
        if after and constant >= self.upper:
            return self.proper_size
        if after:
            constant = self._edge(constant, operator)
        if constant > self.upper:
            return self.proper_size
        if constant < self.starts[0]:
            return 0
        bin_of = bisect_right(self.starts, constant) - 1
        return bin_of if self.starts[bin_of] == constant else None

    def _edge(self, constant: Ordered, operator: str) -> Ordered:
        """Where a bin would have to begin for a comparison not to cut it."""
        if operator not in ("<=", ">"):
            return constant
        return self._after(constant) if self.discrete else nextafter(constant, inf)

    def _constant(self, value: Value) -> Ordered:
        wanted = type(self.starts[0])
        if wanted is dt.date:
            try:
                day = value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
                return min(day, dt.date.max - dt.timedelta(days=1))  # no edge lies beyond
            except ValueError:
                raise QueryError(
                    f"{self.name} is a date", remedy=f"write it as 2024-12-31, not {value!r}"
                ) from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise QueryError(f"{self.name} is a number", remedy=f"compare it with one, not with {value!r}")
        if wanted is int and value != int(value):
            raise QueryError(f"{self.name} is an integer", remedy=f"compare it with one, not with {value!r}")
        return wanted(value)

    def _equal(self, constant: Ordered) -> Mask:
        """The cell that holds one value alone; of a real number that is a bin up to the next float."""
        if not self.starts[0] <= constant <= self.upper:
            return self._mask(np.zeros(self.proper_size, bool), other_is_known=False)
        cell, after = bisect_right(self.starts, constant) - 1, self._edge(constant, "<=")
        last = cell + 1 == self.proper_size
        end = self._edge(self.upper, "<=") if last else self.starts[cell + 1]
        if after != end or self.starts[cell] != constant:
            whole = self.proper_labels[cell]
            refusal = (
                QueryError(
                    f"{self.name} = {constant} cuts the bin {whole}",
                    remedy="ask for the whole bin as a range",
                )
                if self.discrete
                else QueryError(
                    f"{self.name} is real", remedy=f"ask for a range, {self.name} >= a and {self.name} < b"
                )
            )
            ends = (constant, after)
            refusal.cuts = self.name, tuple(edge for edge in ends if self.starts[0] < edge <= self.upper)
            raise refusal
        return self._mask(np.arange(self.proper_size) == cell, other_is_known=False)

    def _misses_edge(self, operator: str, constant: Ordered) -> QueryError:
        bin_of = bisect_right(self.starts, constant) - 1
        edges = (self.starts[bin_of], (*self.starts, self.upper)[bin_of + 1])
        near = [shown(edge) for edge in edges]
        strict = "<" if operator in ("<", "<=") else ">="
        # The last edge belongs to the last bin.
        last = {"<": "<=", ">=": ">"}[strict] if bin_of + 1 == self.proper_size else strict
        tries = tuple(
            f"{as_asked(self.name)} {sign} {edge}" for sign, edge in zip((strict, last), near, strict=True)
        )
        remedy = f"try {' or '.join(tries)}"
        if edges[0] == constant:
            cut = f"{self.name} {operator} {near[0]} cuts the bin {self.proper_labels[bin_of]}"
            return QueryError(cut, remedy=remedy, suggestions=tries)
        return QueryError(
            f"{shown(constant)} is not a bin edge of {self.name}",
            remedy=f"nearest: {near[0]} and {near[1]}: {remedy}",
            suggestions=tries,
        )
