"""How much a session may spend on what it was not asked for, so that it is never much dearer than asking directly.

A session buys histograms and classes of questions ahead of the questions that they will answer. Nobody knows which
questions will come, so such a purchase may turn out to have been useless. The allowance bounds what that can cost.

Let D be what all different questions so far would cost if each were bought by itself,
with the ledger's joint accounting; C what all purchases ahead cost, with joint accounting as well; and κ ≥ 1 how
much dearer a count of the session was or can still become than by itself: purchases ahead take a part of β, and so
do the first counts, which get more than an even share (`beta_spending`).

Rule        A purchase ahead is made only where, with it, C ≤ (RATIO - κ)·D + FREE·u + G; u is the price of one
            count, and G is what counts so far were cheaper than κ times as dear, at the cell where this is least.
            D is with the question in hand, which the purchase is made for. Where C ≤ FREE·u nothing else is
            asked for: then κ ≤ RATIO is enough.
Promise     After every question of every sequence a session has cost at most RATIO·D + FREE·u, in exact joint
            prices (`Computed`).
            [competitive ratio 3/2; Karlin, Manasse, Rudolph, Sleator 1988 for renting and buying]
Why         A question's own counts are bought only where nothing else answers it, at most κ times as dear as by
            itself. So the session's purchases are those ahead, and a part of the direct ones times κ. An exact
            joint price, of the best divisions (`privacy.joint`), is a maximum of sums: it is at most the sum of
            those of two parts, and more events never cost less. Hence the session costs at most C + κ·D. The rule
            held when C grew last; D only grew since, by counts that cost at most κ times as much, where κ was
            taken for the least share of β that any later count can get: nothing is bought ahead after which that
            κ would be above RATIO.
Computed    A ledger charges upper bounds of these prices, and D and C are such bounds. They have neither of the
            two properties, since they depend on the order of events: of 435 random lists 3.0% cost more than two
            parts of theirs one after the other, by .9% at most, and .7% less than a part, by 1.8% at most; of one
            that was made for it 13 events cost 21.5 where 11 cost 12.35 and the other two 1.65. So C + κ·D is no
            proved bound of what a session is charged; the dearest one found beside direct answers was 1.11 times
            as dear. D and C also begin with a credit of work of their own. In a ledger whose credit is used up
            counts are charged up to their plain sum, whoever asks, and nothing is promised there.
Gain        Many counts cost less than by themselves, or nothing. Let d(μ) be what all questions so far would cost
            a law μ of rows, and s(μ) what the session's own counts did (`joint.Load`); after later ones, d'(μ) and
            s'(μ) ≤ s(μ) + κ·(d'(μ) - d(μ)). With G ≤ κ·d(μ) - s(μ) for every μ, C + s'(μ) ≤ C - G + κ·d'(μ), and
            so the session costs at most C - G + κ·D' then. G = 0 is one if κ is no less than any ratio so far of
            what own counts of a question cost and what it costs by itself (`own_prices`), less what was bought
            for questions that are not counted yet. A better one is the least of κ·d - s over single cells
            (`cell_loads`), if s is taken so that κ·d - s is concave in μ: then it is least at a single cell. What
            a breakdown or all rows pay is linear in μ, and a count that may be divided costs u·min(μ(R), 1/2),
            which is concave. So of such a count of the session the part that it would have cost directly too is
            left as it is, since κ ≥ 1 times that is in d, and for the rest u·μ(R) is taken, which is more. A cell
            that nobody asked about has no gain: all that comes later could be about that cell, for which a class
            was bought too early.
Needed      Where counts cost what they cost by themselves, no deterministic rule that keeps the promise buys
            earlier. Where one class of price P answers all that comes, nothing but direct answers can be bought
            before D ≥ (P - FREE·u)/(RATIO - 1): with a ratio of 3/2 a session that is to answer very many
            questions pays up to three times the price of the class.
Asked for   The number of rows where that is private, and the ranges that quantiles buy in a direct session as well
            (`quantile_buyer`), count as questions, on both sides, and need no allowance. The number of rows is
            bought with the first share of all rows, here as by who asks directly, and at the same price r, since
            its part of β is set aside from the beginning (`beta_account`). Every row pays for it alike, and all
            of it: so it raises each joint price by r, the session's cost and D, and RATIO·D by more. Before a
            share comes neither side pays it. A class that was ordered
            is a question that only a session of this kind answers: it is left out on both sides.
Counted     Who asks directly gives the question that comes as the a-th the part 1/n(a) of what is left of β; so
late        many are still expected (`Terms.ahead`). n falls by 1 with every question, to a tenth of all, and stays
            there however many more come. The i-th new question comes as the i-th or later, and n never grows: so
            it takes the part 1/n(i) or more, and before the i-th at most β·Π(1 - 1/n(j)) over j < i is left. A
            question that is counted as the i-th when the c-th comes, c ≥ a, is given the part 1/n(c) ≥ 1/n(a) of
            that: no less than it gets directly, also where more questions come than were expected. Where a is
            known, which it is where counts were bought for the question, c = a is taken, so that these do not
            seem dearer than they were. So its price
            is no more, and neither is D. Below `LEAST_SHARE` nothing is sold directly: no less is given here.
            Beyond what was expected κ holds as well: what is left to the session and what is left to who asks
            directly fall by the same part with each count that the session buys.
Privacy     Prices and questions are public. Nothing is looked at, and nothing is spent.

Prices      What is permitted depends on what was asked and bought alone, and not on how many prices were found
            since: questions that wait are counted once, and no more of them before something new is asked or
            bought. The rule may be met before they are counted or after that; both accounts are kept, and either
            is enough, since each bounds the same D. So whoever is told a price finds the same permitted when they
            ask.

D is a lower bound here: questions that were answered for nothing are counted when a purchase waits for them, and
only the latest of them are kept; those that another process answered, or an earlier one after its last checkpoint,
are not known; and from `MOST_KNOWN` different questions on nothing more is counted. Then purchases ahead are made
later, and the promise holds all the same. No question is counted twice: those counted are known by their digests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Event
from understudy.privacy.joint import Joint, Load
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.beta_spending import LEAST_SHARE
from understudy.sessions.calibrator import Calibrator, rounded
from understudy.sessions.cell_loads import CellLoads, costs_no_cell_more
from understudy.sessions.direct import DirectPurchase, intervals
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.own_prices import OwnPrices
from understudy.sessions.terms import Terms

RATIO = Fraction(3, 2)
"""A session costs at most so many times what its questions would have cost by themselves."""

FREE = 3
"""And this many single counts more."""

LARGE = 4
"""Questions that wait are not counted while, at so many single counts each, they would not be enough."""

LEAST = 0.99
"""Rounding makes a share of β at most this much smaller."""

MOST_COUNTED = 32
"""Questions that wait and are counted at once: counting takes milliseconds each, and whoever asks for a price
waits for it. Where they are not enough, nothing is bought ahead yet, and more are counted after the next one."""

MOST_WAITING = 1 << 12
"""Questions that were answered for nothing and are not counted yet; beyond so many the oldest are forgotten."""

MOST_KNOWN = 1 << 16
"""Different questions that are counted, or forgotten while they waited: beyond so many none is. Each takes about
80 bytes of memory, and 20 in a checkpoint; one for which counts were bought takes more (`own_prices`), as its
purchase does."""


@dataclass(frozen=True, eq=False)
class _Account:
    """What the rule reads of the questions that are counted so far; costs in units.

    left       what who asks directly has left of β after them
    direct     D
    dearest    how many times as dear as directly own counts were at most (`own_prices`)
    unmatched  what was paid and is not known to be within that
    alone      what each cell would have paid directly, and
    paid       what it paid for the session's own counts (`cell_loads`)
    waiting    how many questions are not counted
    """

    left: float
    direct: int
    dearest: float
    unmatched: int
    alone: NDArray[np.float64]
    paid: NDArray[np.float64]
    waiting: int

    def gain(self, kappa: Fraction, unmatched: int) -> int:
        """G of the module, in units: what every cell was spared of κ times what questions cost by themselves.

        `unmatched` of what was paid is not known to be at most κ times as dear as directly.
        """
        return max(-unmatched, floor(float((float(kappa) * self.alone - self.paid).min())))


class Allowance:
    """Keeps account of C and D for one session. Rule, promise and reason are those of the module."""

    def __init__(self, calibrator: Calibrator, terms: Terms, nothing_released: Knowledge) -> None:
        self._calibrator = calibrator
        self._terms = terms
        self._public = nothing_released
        # Without a cap that matters: an accountant works harder where it would have to refuse, and here nothing
        # is refused, however much all questions would have cost.
        ledger = calibrator.curator.ledger
        self._joint = Joint(ledger.budget.uncapped(), ledger.accounting)
        self._direct, self._ahead = self._joint.start(), self._joint.start()
        domain = calibrator.curator.domain
        self._alone, self._paid = CellLoads(domain, self._joint), CellLoads(domain, self._joint)
        self._own = OwnPrices()
        self._left, self._counted = float(terms.beta), 0
        self._coming: tuple[int, int] | None = None
        """The digest and the number of the question that something is bought for now."""
        self._waiting: deque[tuple[Marginal, int | None]] = deque(maxlen=MOST_WAITING)
        """Questions that are not counted yet, with their numbers among all questions, where these are known."""
        self._known: set[int] = set()
        """The questions that wait or were counted, by their digests. A checkpoint keeps them with the rest, so
        that whoever goes on with the session counts none of them again."""
        self._asked_for: set[tuple[Clique, str]] = set()
        self._uncounted: _Account | None = None
        """The account before questions that waited were counted; None where none were, since the last news."""

    # ---- what was asked and bought

    def comes(self, marginal: Marginal, asked: int) -> None:
        """Take note that something is about to be bought for a question, the `asked`-th of all."""
        self._coming = _digest(marginal), asked

    def asked(self, marginal: Marginal) -> None:
        """Remember a question, whoever answers it, the first time that it is asked; not the cells of a class that
        was asked for itself.
        """
        if self._is_new(marginal) and not self.was_asked_for(marginal):
            self._uncounted = None
            question = _digest(marginal)
            coming = self._coming
            self._known.add(question)
            self._waiting.append(
                (marginal, coming[1] if coming is not None and coming[0] == question else None)
            )

    def _is_new(self, marginal: Marginal) -> bool:
        """Whether a question would be counted that is asked now."""
        return len(self._known) < MOST_KNOWN and _digest(marginal) not in self._known

    def was_asked_for(self, marginal: Marginal) -> bool:
        """Whether a marginal is that of a class that was asked for itself."""
        return (marginal.by, marginal.where.key) in self._asked_for

    def asked_for(self, event: Event, by: Clique, where: LinearQuery) -> None:
        """Remember a question for a class on `by`, of the rows in `where`, by the event that it is charged."""
        self._uncounted = None
        self._asked_for.add((by, where.key))
        self._direct = self._joint.after(self._direct, event)

    def bought(self, event: Event) -> None:
        """Remember a purchase ahead."""
        self._uncounted = None
        self._ahead = self._joint.after(self._ahead, event)

    def paid(self, event: Event, marginal: Marginal) -> None:
        """Remember what the counts of a question cost, of one look or of another."""
        self._uncounted = None
        self._paid.add(event, whole=True)
        self._compare(marginal, self._own.pay, event)

    def _compare(
        self, marginal: Marginal, remember: Callable[[int, Sequence[Load]], None], event: Event
    ) -> None:
        """Remember what a question cost or costs by itself, and what is found by comparing both.

        Half of a count that was also to be paid directly is taken back: both would be divided alike. Where cells
        are not told apart, what rows of a region paid of a question that all would pay for is added for all.
        """
        question, own = _digest(marginal), self._own
        shared, some = own.shared(question), own.paid_by_some(question)
        remember(question, self._joint.loads(event))
        if not self._paid.tells_apart:
            self._paid.add_load(Load(own.paid_by_some(question) - some))
        elif (now := own.shared(question)) is not None:
            before = 0 if shared is None else shared.units
            self._paid.add_load(now._replace(units=before - now.units))

    def is_no_dearer(self, event: Event, other: Event) -> bool:
        """Whether an event costs no cell more than another one."""
        return costs_no_cell_more(self._joint, event, other)

    # ---- the rule

    def permits(
        self,
        events: Sequence[Event],
        *,
        least_share: float,
        asked: int,
        dearer: Fraction = Fraction(1),
        question: Marginal | None = None,
    ) -> bool:
        """Whether purchases ahead may be made now; `question` is the one in hand, for which they are.

        `least_share` is the least share of β, as a probability, that a count of the session can get once they have
        been made, and `dearer` how many times as dear as a count with this share it can be beside that (`looks`);
        `asked` questions came so far.
        """
        cost, account = self._cost_with(events), self._uncounted or self._account
        unit, later = self._unit_and_later(account, least_share, asked, dearer)
        if later > RATIO:  # what comes then would break the promise by itself
            return False
        if cost <= FREE * unit and account.dearest <= RATIO:
            return True  # whatever the questions so far would have cost

        def is_enough(account: _Account, direct: int, unmatched: int) -> bool:
            kappa = max(later, Fraction(account.dearest))
            return cost <= (RATIO - kappa) * direct + FREE * unit + account.gain(kappa, unmatched)

        if is_enough(account, account.direct, account.unmatched):
            return True
        coming = account.waiting + (question is not None)
        if not is_enough(account, account.direct + LARGE * unit * coming, 0):
            return False
        if self._uncounted is None:
            self._count_waiting(asked)
            self._uncounted = account
        counted = self._account
        return is_enough(counted, self._with(question, asked), counted.unmatched)

    def wait(
        self,
        events: Sequence[Event],
        *,
        least_share: float,
        asked: int,
        dearer: Fraction = Fraction(1),
    ) -> float:
        """After how many more questions purchases ahead are likely to be permitted, if nothing else is bought
        ahead until then; infinite where they will not be.

        What may be spent ahead is taken to go on growing as it did so far. It decides what is saved for, and
        permits nothing: the parameters are those of `permits`.
        """
        account = self._account
        unit, later = self._unit_and_later(account, least_share, asked, dearer)
        kappa = max(later, Fraction(account.dearest))
        # Questions that wait are taken to cost directly what those that are counted did.
        each = Fraction(account.direct, self._counted) if self._counted else unit
        grown = (RATIO - kappa) * (account.direct + each * account.waiting) + account.gain(kappa, 0)
        if later > RATIO or grown <= 0:
            return inf
        return max(float((self._cost_with(events) - FREE * unit) / grown) - 1, 0.0) * asked

    def _cost_with(self, events: Sequence[Event]) -> int:
        """C in units, with purchases ahead."""
        ahead = self._ahead
        for event in events:
            ahead = self._joint.after(ahead, event)
        return self._joint.cost(ahead).units

    def _unit_and_later(
        self, account: _Account, least_share: float, asked: int, dearer: Fraction
    ) -> tuple[int, Fraction]:
        """u in units, and how many times as dear a later count can become."""
        alone = self._price(self._share(asked, account.left))
        return ceil(alone * UNITS), dearer * self._price(rounded(least_share)) / alone

    def _with(self, question: Marginal | None, asked: int) -> int:
        """D in units, with the question in hand: it counts whatever answers it, once it is answered."""
        if question is None or not self._is_new(question) or self._is_public(question):
            return self._direct_cost
        event = self._alone_event(question, self._share(asked, self._left))
        return self._joint.cost(self._joint.after(self._direct, event)).units

    @property
    def _account(self) -> _Account:
        """The account of the questions that are counted now."""
        own = self._own
        return _Account(
            self._left,
            self._direct_cost,
            own.dearest,
            own.unmatched,
            self._alone.units,
            self._paid.units,
            len(self._waiting),
        )

    @property
    def _direct_cost(self) -> int:
        return self._joint.cost(self._direct).units

    def _count_waiting(self, asked: int) -> None:
        for _ in range(min(len(self._waiting), MOST_COUNTED)):
            marginal, came = self._waiting.popleft()
            if self._is_public(marginal):  # it costs nothing directly either, and takes no share of β there
                continue
            self._count(marginal, self._share(asked if came is None else came, self._left))
            self._take_share()

    def _share(self, asked: int, left: float) -> float:
        """At least the part of β that a question gets which is bought by itself: an even one of what is `left`."""
        return max(rounded(left / (self._terms.ahead(asked) + 1)), LEAST_SHARE)

    def _take_share(self) -> None:
        """Take from what is left of β what the next new question has taken directly, or less (`Counted late`)."""
        self._counted += 1
        self._left *= 1 - LEAST / (self._terms.ahead(self._counted) + 1)

    def _price(self, share: float) -> Fraction:
        return self._calibrator.price_of_counts(self._calibrator.single_count, share, 1).amount

    def _is_public(self, marginal: Marginal) -> bool:
        """Whether nothing has to be bought for a question, also by who asks directly."""
        known = intervals(self._public, marginal)
        return known is not None and not bool((known.high > known.low).any())

    def _count(self, marginal: Marginal, share: float) -> None:
        """Add one more question to the account of D."""
        event = self._alone_event(marginal, share)
        self._direct = self._joint.after(self._direct, event)
        self._alone.add(event)
        self._compare(marginal, self._own.count, event)

    def _alone_event(self, marginal: Marginal, share: float) -> Event:
        """What a question is charged that is bought by itself."""
        purchase = DirectPurchase.of(self._calibrator, self._public, marginal, share)
        return self._calibrator.charged(purchase.event(self._calibrator))


def _digest(marginal: Marginal) -> int:
    """A name of a question in 64 bits, the same in every process; of questions that share one, one is counted."""
    return int.from_bytes(blake2b(repr(identity(marginal)).encode(), digest_size=8).digest())
