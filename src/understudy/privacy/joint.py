"""Joint accounting: the maximum over pairs of neighbours of a sum, instead of the sum of maxima.

Take two neighbouring tables that differ in the rows a and b, the same ones at every look: events carry what names
the rows and how they are cut, and only those of one version are priced together. Along every transcript the
privacy loss of a located event (`event.Located`) for this pair is at most u·(φ(a) + φ(b)), where φ says which
rows the event can see. Let f be the indicator of its region and p the price of its noise, in epsilon for
Laplace noise and in rho for Gaussian noise:

    replace, one count     u = p      |f(a) - f(b)| and its square are at most φ(a) + φ(b) for φ = f, for φ = 1/2,
                                      and for all between: t·f + (1 - t)/2 with t from 0 to 1
    replace, split         u = p/2    a row alone moves the counts by half of what two rows do: φ = f
    add-remove m           u = p/F    a person's rows move them by Σ f(r), whose square is at most m·Σ f(r): φ = f

So all located events together cost at most F·maxₓ Φ(x), Φ = Σ u·φ, with F = 2 under `replace`, F = m under
add-remove for Laplace noise and F = m² for Gaussian noise: questions about different people cost as one. The
sum over a pair is taken along the transcript, so this holds for events that are chosen after seeing earlier
answers: Laplace losses add up pointwise; for Gaussian noise exp((α-1)L - α(α-1)Σρᵢ) is a supermartingale for
this pair, whatever α is. Rounded normal noise of the same variance costs a pair as much as discrete Gaussian noise
does, so that both kinds are taken together. Under the other filters (`privacy.filter`) D/a and μ²/2 stand for ρ.

How a single count is divided between the rows of its region, t, and everybody, (1 - t)/2, bounds the same loss
for every t. So it may be chosen after all questions, and again after each of them, by whatever gives the smallest
sum: under rules 4 and 5 sweeps do so (`message_passing`, `soft_message_passing`). They divide one count after the
other, which can end far from the best division of all, and of long lists the first counts stay as they were
divided when the list was full; soft sweeps come nearer, and their lists are longer. All events are added up by
rule 3 as well, without divisions, and the smaller total counts: both are bounds of the same loss, and neither
ever falls. Under rule 5 no event raises the total by more than its own price, nor one of several parts by more
than theirs, each rounded up to a unit: losses of a pair add up, so that a bound for the events before it and its
price bound all of them, however the sweeps end. The least over all divisions,

    minₜ maxₓ Σ pᵢ·(tᵢ·fᵢ(x) + (1 - tᵢ)/2)  =  max over laws μ of rows of Σ pᵢ·min(μ(fᵢ), 1/2),

is by the minimax theorem a maximum of sums in the prices, as it is for fixed t: more events never cost less, and
two sets of events together never more than one after the other. That is so of this least value, and not of the
bound that is found and charged: in which block a region is taken (`_home`), and where sweeps end, depends on the
order of all events before. Each bound is sound by itself.

The maximum over a universe of 10^20 cells is bounded from above by message passing. Write Φ = c + Σ_C T_C(x_C);
then for any messages whatever

    maxₓ Φ ≤ c + Σ_a max b_a + Σ_C max (T_C - Σ_a msg_Ca),     b_a = Σ_C msg_Ca,

since the messages cancel at every x. Better messages are found by sweeps of max-product (MPLP); bad ones cost
accuracy, never soundness. Everything is whole units, so that a verifier elsewhere finds the same numbers.

The work is bounded by a numbered rule (`accounting_rule`) that the first entry of a ledger names. Whoever may ask
can ask a hundred thousand questions that hardly cost anything, about cells that all have to be told apart. So
under rules 2 to 5 tables are capped, and every event brings the same small credit of work, whatever it costs,
from which tables and sweeps are paid. What the credit cannot pay for is not done: an event then counts for a
larger region or for everybody, and the bound keeps the messages that it has. Both are sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, prod
from typing import NamedTuple

import numpy as np

from understudy.privacy.accounting_rule import NEWEST, AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.clique_block import (
    MAX_ATTRIBUTES,
    Attribute,
    Clique,
    CliqueBlock,
    Inside,
    Units,
    refined_size,
    touched,
    touched_after,
)
from understudy.privacy.cost import ZCDP, Cost, PureDP
from understudy.privacy.event import Event, LaplaceNoise, Located, Span, Together
from understudy.privacy.message_passing import is_loaded
from understudy.privacy.soft_message_passing import shift_of
from understudy.privacy.sweeping import Sweeping

WIDE = Fraction(3, 10)
"""A single count that sees more of the grid than this is taken with φ = 1/2."""

GROWTH = Fraction(21, 20)
"""Sweeps are made whenever the bound has grown by this factor since the last ones."""

LARGEST = 1 << 60
"""No more units than this are priced jointly: sums of them stay within 64 bits."""

LAST_SWEEPS = 8
"""So many more before an event is turned down."""

COMPILED = 1 << 13
"""Sweeps that touch so many numbers, or more, are made by machine code: the compiler takes a moment to load. Once
it is there, all are."""


class Load(NamedTuple):
    """What a part of an event costs a law μ of rows: units·μ(region), of which joint accounting takes the largest
    sum over all laws. An empty region is everybody. A count that may be divided (`halved`) costs no law more than
    half: units·min(μ(region), 1/2).
    """

    units: int
    region: tuple[Span, ...] = ()
    halved: bool = False


@dataclass(frozen=True)
class JointState:
    """The located events of the latest `relation`, and the plain sum of all that was before and beside them.

    `shown` is what the located events cost: it never falls, also where a sweep finds that less would do. `rests`
    and `peaks` are the two sums of the bound: of what remains of the blocks, and of the largest beliefs. `room`,
    `tables` are the sizes of all blocks, with classes and without, and `dividing` is the work of dividing all
    their counts. `joined` counts the events that were priced jointly and `work` the numbers touched for them,
    under all relations. `undivided` is the same by the rule beside this one, where there is one.
    """

    others: int = 0
    flat: int = 0
    relation: str = ""
    factor: int = 0
    constant: int = 0
    blocks: Mapping[Clique, CliqueBlock] = field(default_factory=dict[Clique, CliqueBlock])
    beliefs: Mapping[Attribute, Units] = field(default_factory=dict[Attribute, Units])
    shown: int = 0
    swept: int = 0
    rests: int = 0
    peaks: int = 0
    room: int = 0
    tables: int = 0
    dividing: int = 0
    joined: int = 0
    work: int = 0
    undivided: JointState | None = None

    def beside(self, price: int) -> JointState:
        """The same with so many units more of events that are no located ones.

        It is copied without looking at each field, since every debit of a ledger makes one.
        """
        after = object.__new__(JointState)
        after.__dict__.update(self.__dict__)
        after.__dict__["others"] = self.others + price
        if self.undivided is not None:
            after.__dict__["undivided"] = self.undivided.beside(price)
        return after

    @property
    def accounts(self) -> tuple[JointState, ...]:
        """The states by all rules that the events are added up by."""
        return (self,) if self.undivided is None else (self, self.undivided)

    def bound(self) -> int:
        """An upper bound of what the located events cost together."""
        return min(self.flat, self.factor * (self.constant + self.rests + self.peaks))


@dataclass(frozen=True)
class Joint:
    """The accountant of every ledger: located events jointly, all others by their sum."""

    budget: Budget
    rule: AccountingRule = NEWEST

    def start(self) -> JointState:
        return JointState(undivided=None if self.rule.beside is None else JointState())

    def cost(self, state: JointState) -> Cost:
        units = min(account.others + account.shown for account in state.accounts)
        return PureDP(units) if self.budget.is_pure else ZCDP(units)

    def after(self, state: JointState, event: Event) -> JointState:
        return self._after(state, event, None)

    def _after(self, state: JointState, event: Event, begun: JointState | None) -> JointState:
        """`begun` is the state before the event of which this one is a part, if all of its parts share `once`."""
        if isinstance(event, Together):
            if not any(isinstance(part, Located) for part in event.events):
                return state.beside(_price(self.budget, event))
            if self.rule.whole and begun is None:
                begun = state
            for part in event.events:
                state = self._after(state, part, begun)
            return state
        price = _price(self.budget, event)
        if not isinstance(event, Located) or not self._joins(state, event, price):
            return state.beside(price)
        if self.rule.capped:
            state = replace(state, shown=self.cost(state).units - state.others)
        added = self._added(state, event, price)
        before = added.work if begun is None else begun.work
        found = self._settled(added, before)
        if state.undivided is not None:
            beside = self._beside
            undivided = beside._added(state.undivided, event, price)
            first = undivided if begun is None or begun.undivided is None else begun.undivided
            undivided = beside._settled(undivided, first.work)
            found = replace(found, undivided=_shown(undivided, undivided.flat))
        most = added.shown + price if self.rule.capped else added.flat
        return _shown(self._squeezed(found, before, most), most)

    @cached_property
    def _beside(self) -> Joint:
        """The accountant by the rule beside this one."""
        assert self.rule.beside is not None
        return Joint(self.budget, self.rule.beside)

    def _joins(self, state: JointState, event: Located, price: int) -> bool:
        """Whether an event can be priced jointly: the currency's noise, and totals within 64 bits."""
        return state.flat + price <= LARGEST and self.budget.joins(event.noise)

    def _added(self, state: JointState, event: Located, price: int) -> JointState:
        """One more located event; sound at once, without a sweep."""
        if event.relation != state.relation:
            state = _closed(state, event.relation)
        factor = _factor(event)
        state = replace(
            state, relation=event.relation, factor=factor, flat=state.flat + price, joined=state.joined + 1
        )
        weight, region = self._weighed(event, price)
        home = self._home(state, tuple((s.attribute, s.size) for s in region)) if region else None
        divided = _is_single(event)
        found = None if home is None else self._raised(state, home, region, weight, divided=divided)
        if found is None:
            return replace(
                state, constant=state.constant + (-(-weight // 2) if _is_single(event) else weight)
            )
        return found

    def _weighed(self, event: Located, price: int) -> tuple[int, tuple[Span, ...]]:
        """u, and the region of φ = f; an empty region where an event counts for everybody."""
        weight = price if _is_single(event) else -(-price // _factor(event))
        region = self._narrowest(event.region)
        return weight, () if _is_single(event) and _is_wide(region) else region

    def loads(self, event: Event) -> list[Load]:
        """What an event costs a law of rows, part by part, while the rule has room for all regions."""
        if isinstance(event, Together) and any(isinstance(part, Located) for part in event.events):
            return [load for part in event.events for load in self.loads(part)]
        price = _price(self.budget, event)
        if not isinstance(event, Located) or not self.budget.joins(event.noise):
            return [Load(price)]
        weight, region = self._weighed(event, price)
        if not region:
            return [Load(price)]
        return [Load(_factor(event) * weight, region, halved=_is_single(event) and self.rule.divided > 0)]

    def _narrowest(self, region: tuple[Span, ...]) -> tuple[Span, ...]:
        """The spans that hold the smallest parts of their attributes: a larger region, on few enough of them."""
        most = self.rule.attribute
        fit = [span for span in region if most is None or span.size <= most]
        if len(fit) < 2:
            return tuple(fit)
        by_part = sorted(fit, key=lambda span: (Fraction(span.mask.bit_count(), span.size), span.attribute))
        return tuple(sorted(by_part[:MAX_ATTRIBUTES], key=lambda span: span.attribute))

    def _home(self, state: JointState, clique: Clique) -> Clique | None:
        """The block that takes a region: its own, else a larger one that is there, else a new one if it fits."""
        if clique in state.blocks:
            return clique
        if len(clique) < MAX_ATTRIBUTES:
            for known in state.blocks:
                if set(clique) < set(known):
                    return known
        rule, cells = self.rule, _cells(clique)
        if rule.table is not None and cells > rule.table:
            return None
        return None if rule.tables is not None and state.tables + cells > rule.tables else clique

    def _raised(
        self, state: JointState, home: Clique, region: tuple[Span, ...], weight: int, *, divided: bool
    ) -> JointState | None:
        """The state with `weight` on a region; None where there is no room, or no credit, for it. One that may be
        divided is remembered for that, where the rule has it so.

        Where the classes of a block may not be cut further, the region is taken by all classes that it touches.
        """
        rule, credit = self.rule, self.rule.credit(state.joined, state.work)
        widths = [rule.parts(size) for _, size in home]
        if credit is not None and credit < sum(widths):
            return None
        spans = {(span.attribute, span.size): span for span in region}
        inside = [_inside(spans.get(attribute), attribute[1], rule.run(attribute[1])) for attribute in home]
        known = state.blocks.get(home)
        block = CliqueBlock.empty(widths, by_region=rule.soft > 0) if known is None else known
        taken = 0 if known is None else known.room
        split = block.split(inside)
        cells = refined_size(block.table.shape, split)
        room = state.room - taken + block.room - block.table.size + cells
        work = block.sides + cells
        if (
            (rule.block is None or cells <= rule.block or cells == block.table.size)
            and (rule.room is None or room <= rule.room)
            and (credit is None or cells == block.table.size or work <= credit)
        ):
            cut, classes = block.refined(inside, split), touched_after(split)
            if cells == block.table.size:
                work = block.sides + prod(map(len, classes))
        else:
            cut, room = block, state.room
            classes = touched(split)
            work = block.sides + prod(map(len, classes))
            if known is None or prod(map(len, classes)) == block.table.size:
                return None
        if credit is not None and work > credit:
            return None
        new = cut.raised(classes, weight)
        if rule.divided:
            elsewhere = state.dividing - block.dividing
            most = rule.divided if rule.room is None else min(rule.divided, rule.room - elsewhere)
            new = new.with_count(classes, weight, most) if divided else new.within(most)
        blocks, beliefs = dict(state.blocks), dict(state.beliefs)
        blocks[home] = new
        for attribute, width in zip(home, widths, strict=True):
            beliefs.setdefault(attribute, np.zeros(width, np.int64))
        return replace(
            state,
            blocks=blocks,
            beliefs=beliefs,
            rests=state.rests + new.largest - block.largest,
            room=room,
            tables=state.tables + (_cells(home) if known is None else 0),
            dividing=state.dividing + new.dividing - block.dividing,
            work=state.work + work,
        )

    def _settled(self, state: JointState, before: int) -> JointState:
        """Sweep when the bound has grown, as far as the credit goes."""
        growth = self.rule.growth
        if state.bound() * growth.denominator <= state.swept * growth.numerator:
            return state
        if not self._can_sweep(state, before):
            return state
        state = self._swept(state, before, range(self.rule.sweeps_at(state.joined, state.work)))
        return replace(state, swept=state.bound())

    def _squeezed(self, state: JointState, before: int, most: int) -> JointState:
        """Sweep while the total would pass the cap, as far as the credit goes; located events cost no more than
        `most`.
        """
        for turn in range(LAST_SWEEPS):
            enough = self.cost(_shown(state, most)).units <= self.budget.cap.units
            if enough or not state.blocks or not self._can_sweep(state, before):
                break
            state = self._swept(state, before, [turn])
        return state

    def _can_sweep(self, state: JointState, before: int, more: int = 0) -> bool:
        """Whether one more sweep, and `more` work beside it, can be paid, after sweeps for this event that began
        when `before` was done.
        """
        return state.room + more <= self._payable(state, before, state.work)

    def _payable(self, state: JointState, before: int, work: int) -> float:
        """How much more work may be done for this event, if `work` was done so far and it began at `before`."""
        credit, once = self.rule.credit(state.joined, work), self.rule.once
        return inf if credit is None or once is None else min(credit, before + once - work)

    def _swept(self, state: JointState, before: int, turns: Iterable[int]) -> JointState:
        """New messages for each block in turn, as many times as there are turns and can be paid. In every turn of
        soft sweeps, and every second one of others, counts are divided anew, if that can be paid as well.
        """
        if not state.blocks:
            return state
        fast, soft = state.room + state.dividing >= COMPILED or is_loaded(), self.rule.soft
        sweeping, work = Sweeping(state.blocks, state.beliefs, fast=fast, soft=soft > 0), state.work
        shift = shift_of(state.constant + state.rests + state.peaks, soft)
        for turn in turns:
            payable = self._payable(state, before, work)
            if state.room > payable:
                break
            divides = turn % 2 or soft
            divide = bool(divides and state.dividing and state.room + state.dividing <= payable)
            sweeping.sweep(divide=divide, shift=shift)
            work += state.room + (state.dividing if divide else 0)
        blocks, beliefs = sweeping.blocks(), sweeping.beliefs()
        return replace(
            state,
            beliefs=beliefs,
            blocks=blocks,
            constant=state.constant + sweeping.raised,
            rests=sum(block.largest for block in blocks.values()),
            peaks=sum(int(belief.max()) for belief in beliefs.values()),
            work=work,
        )


@lru_cache(maxsize=4096)
def _price(budget: Budget, event: Event) -> int:
    return budget.price(event).units


def _is_single(event: Located) -> bool:
    """Whether an event is one count under `replace`."""
    return event.rows is None and not event.split


def _factor(event: Located) -> int:
    """F: 2 under `replace`, else m or m²."""
    if event.rows is None:
        return 2
    return event.rows if isinstance(event.noise, LaplaceNoise) else event.rows**2


def _shown(state: JointState, most: int) -> JointState:
    """The state with its bound as what located events cost, or `most` if that is less, unless more was shown
    before.
    """
    bound = min(state.bound(), most)
    return state if bound <= state.shown else replace(state, shown=bound)


def _closed(state: JointState, relation: str) -> JointState:
    """The state before the first event about other rows: what was shown so far is paid, and stays so.

    A person may have another row in another version of the table, or be cut otherwise by another declaration, so
    that nothing can be said about both together but the sum.
    """
    return JointState(
        others=state.others + state.shown, relation=relation, joined=state.joined, work=state.work
    )


def _is_wide(region: tuple[Span, ...]) -> bool:
    """Whether a region covers more than `WIDE` of all cells."""
    inside, cells = prod(span.mask.bit_count() for span in region), prod(span.size for span in region)
    return inside * WIDE.denominator > cells * WIDE.numerator


def _cells(clique: Clique) -> int:
    return prod(size for _, size in clique)


def _inside(span: Span | None, size: int, run: int) -> Inside:
    """Which parts of an attribute, runs of `run` cells each, hold a cell of a span; None spans them all."""
    parts = -(-size // run)
    if span is None:
        return np.ones(parts, np.bool_)
    raw = np.frombuffer(span.mask.to_bytes(-(-size // 8), "little"), np.uint8)
    cells = np.zeros(parts * run, np.bool_)
    cells[:size] = np.unpackbits(raw, count=size, bitorder="little")
    return np.asarray(cells.reshape(parts, run).any(axis=1), np.bool_)
