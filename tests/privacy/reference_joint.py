"""Joint accounting over tables of all cells, as the first rule was written: tables of classes must agree with it.

It has no classes, no credit and no rooms, and is slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.budget import Budget
from understudy.privacy.cost import ZCDP, Cost, PureDP
from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, Located, Span, Together

Attribute = tuple[str, int]
"""The name of an attribute and its number of cells."""
Units = NDArray[np.int64]

MAX_ATTRIBUTES = 3
MAX_BLOCK = 1 << 20
MAX_CELLS = 1 << 24
"""A region on more attributes is taken by the narrowest of them; one in larger tables counts as everybody."""

WIDE = Fraction(3, 10)
"""A single count that sees more of the grid than this is taken with φ = 1/2."""

GROWTH = Fraction(21, 20)
SWEEPS = 2
"""So many sweeps are made whenever the bound has grown by this factor since the last ones."""

LARGEST = 1 << 60
"""No more units than this are priced jointly: sums of them stay within 64 bits."""

LAST_SWEEPS = 8
"""So many more before an event is turned down."""


@dataclass(frozen=True)
class CliqueBlock:
    """T_C of one clique C, its messages, and the maximum of what remains."""

    table: Units
    messages: tuple[Units, ...]
    largest: int


@dataclass(frozen=True)
class JointState:
    """The located events of the latest `relation`, and the plain sum of all that was before and beside them.

    `shown` is what the located events cost: it never falls, also where a sweep finds that less would do.
    """

    others: int = 0
    flat: int = 0
    relation: str = ""
    factor: int = 0
    constant: int = 0
    blocks: Mapping[tuple[Attribute, ...], CliqueBlock] = field(default_factory=dict)
    beliefs: Mapping[Attribute, Units] = field(default_factory=dict)
    shown: int = 0
    swept: int = 0

    def bound(self) -> int:
        """An upper bound of what the located events cost together."""
        most = self.constant + sum(block.largest for block in self.blocks.values())
        most += sum(int(belief.max()) for belief in self.beliefs.values())
        return min(self.flat, self.factor * most)


@dataclass(frozen=True)
class Joint:
    """The accountant of every ledger: located events jointly, all others by their sum."""

    budget: Budget

    def start(self) -> JointState:
        return JointState()

    def cost(self, state: JointState) -> Cost:
        units = state.others + state.shown
        return PureDP(units) if self.budget.is_pure else ZCDP(units)

    def after(self, state: JointState, event: Event) -> JointState:
        if isinstance(event, Together):
            if not any(isinstance(part, Located) for part in event.events):
                return replace(state, others=state.others + _price(self.budget, event))
            for part in event.events:
                state = self.after(state, part)
            return state
        if not isinstance(event, Located) or not self._joins(state, event):
            return replace(state, others=state.others + _price(self.budget, event))
        if event.relation != state.relation:
            state = _closed(state, event.relation)
        state = _added(state, event, _price(self.budget, event))
        return self._settled(state)

    def _joins(self, state: JointState, event: Located) -> bool:
        """Whether an event can be priced jointly: the currency's noise, and totals within 64 bits."""
        wanted = LaplaceNoise if self.budget.is_pure else GaussianNoise
        fits = state.flat + _price(self.budget, event) <= LARGEST
        return fits and isinstance(event.noise, wanted)

    def _settled(self, state: JointState) -> JointState:
        """Sweep when the bound has grown, or would pass the cap; then show it."""
        bound = state.bound()
        if bound * GROWTH.denominator > state.swept * GROWTH.numerator:
            for _ in range(SWEEPS):
                state = _swept(state)
            bound = state.bound()
            state = replace(state, swept=bound)
        for _ in range(LAST_SWEEPS):
            if max(bound, state.shown) + state.others <= self.budget.cap.units or not state.blocks:
                break
            state = _swept(state)
            bound = state.bound()
        return replace(state, shown=max(bound, state.shown))


@lru_cache(maxsize=4096)
def _price(budget: Budget, event: Event) -> int:
    return budget.price(event).units


def _factor(event: Located) -> int:
    """F: 2 under `replace`, else m or m²."""
    if event.rows is None:
        return 2
    return event.rows if isinstance(event.noise, LaplaceNoise) else event.rows**2


def _closed(state: JointState, relation: str) -> JointState:
    """The state before the first event about other rows: what was shown so far is paid, and stays so.

    A person may have another row in another version of the table, or be cut otherwise by another declaration, so
    that nothing can be said about both together but the sum.
    """
    return JointState(others=state.others + state.shown, relation=relation)


def _added(state: JointState, event: Located, price: int) -> JointState:
    """One more located event; sound at once, without a sweep."""
    factor = _factor(event)
    state = replace(state, relation=event.relation, factor=factor, flat=state.flat + price)
    single = event.rows is None and not event.split
    weight = price if single else -(-price // factor)
    half, region = -(-weight // 2), _narrowest(event.region)
    if single and _covered(region) > WIDE:
        return replace(state, constant=state.constant + half)
    home = _home(state, tuple((span.attribute, span.size) for span in region))
    if home is None:
        return replace(state, constant=state.constant + (half if single else weight))
    blocks, beliefs = dict(state.blocks), dict(state.beliefs)
    for attribute in home:
        beliefs.setdefault(attribute, np.zeros(attribute[1], np.int64))
    blocks[home] = _raised(blocks.get(home) or _empty(home), home, region, weight)
    return replace(state, blocks=blocks, beliefs=beliefs)


def _narrowest(region: tuple[Span, ...]) -> tuple[Span, ...]:
    """The spans that hold the smallest parts of their attributes: a larger region, on few enough of them."""
    by_part = sorted(region, key=lambda span: (Fraction(span.mask.bit_count(), span.size), span.attribute))
    return tuple(sorted(by_part[:MAX_ATTRIBUTES], key=lambda span: span.attribute))


def _covered(region: tuple[Span, ...]) -> Fraction:
    share = Fraction(1)
    for span in region:
        share *= Fraction(span.mask.bit_count(), span.size)
    return share


def _home(state: JointState, clique: tuple[Attribute, ...]) -> tuple[Attribute, ...] | None:
    """The block that takes a region: its own, else a larger one that is there, else a new one if it fits."""
    if clique in state.blocks:
        return clique
    if len(clique) < MAX_ATTRIBUTES:
        for known in state.blocks:
            if set(clique) < set(known):
                return known
    cells = _cells(clique)
    if len(clique) > MAX_ATTRIBUTES or cells > MAX_BLOCK:
        return None
    return clique if cells + sum(b.table.size for b in state.blocks.values()) <= MAX_CELLS else None


def _cells(clique: tuple[Attribute, ...]) -> int:
    cells = 1
    for _, size in clique:
        cells *= size
    return cells


def _empty(clique: tuple[Attribute, ...]) -> CliqueBlock:
    zeros = tuple(np.zeros(size, np.int64) for _, size in clique)
    return CliqueBlock(np.zeros([size for _, size in clique], np.int64), zeros, 0)


def _raised(
    block: CliqueBlock, clique: tuple[Attribute, ...], region: tuple[Span, ...], weight: int
) -> CliqueBlock:
    """T_C + weight on the region. Only the cells that were touched can raise the maximum."""
    spans = {(span.attribute, span.size): span for span in region}
    inside = [_inside(spans.get(attribute), attribute[1]) for attribute in clique]
    at = np.ix_(*inside)
    table = block.table.copy()
    table[at] += weight
    rest = table[at]
    for axis, (message, cells) in enumerate(zip(block.messages, inside, strict=True)):
        rest = rest - _along(message[cells], axis, len(clique))
    return CliqueBlock(table, block.messages, max(block.largest, int(rest.max())))


def _inside(span: Span | None, size: int) -> NDArray[np.intp]:
    if span is None:
        return np.arange(size)
    return np.flatnonzero([span.mask >> i & 1 for i in range(size)])


def _along(vector: Units, axis: int, axes: int) -> Units:
    """A vector that lies along one axis of a table."""
    return vector.reshape([-1 if i == axis else 1 for i in range(axes)])


def _swept(state: JointState) -> JointState:
    """New messages for each block in turn: each of its attributes gets an equal share of the block's maxima."""
    beliefs, blocks = dict(state.beliefs), dict(state.blocks)
    for clique, block in state.blocks.items():
        axes = len(clique)
        arriving = [
            beliefs[attribute] - message for attribute, message in zip(clique, block.messages, strict=True)
        ]
        whole = block.table
        for axis, vector in enumerate(arriving):
            whole = whole + _along(vector, axis, axes)
        rest = whole
        for axis, attribute in enumerate(clique):
            others = tuple(i for i in range(axes) if i != axis)
            beliefs[attribute] = (whole.max(axis=others) if others else whole) // axes
            rest = rest - _along(beliefs[attribute], axis, axes)
        messages = tuple(beliefs[a] - vector for a, vector in zip(clique, arriving, strict=True))
        blocks[clique] = CliqueBlock(block.table, messages, int(rest.max()))
    return replace(state, beliefs=beliefs, blocks=blocks)
