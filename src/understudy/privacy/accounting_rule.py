"""The rules of joint accounting: how much is told apart, and how much work is done for it (`privacy.joint`).

The first entry of a ledger names its rule by a number. A ledger goes on under the rule that it began with, so that
whoever verifies it finds the same totals: new rules are added here, and none is ever changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction


@dataclass(frozen=True)
class AccountingRule:
    """How much is told apart, and how much work is done for it. The numbers never change: ledgers name the rule.

    `number`       The name of the rule.
    `attribute`    The most cells of an attribute that a region is taken by; None: as many as a table may have.
    `width`        The most parts that an attribute is cut into: in a larger one, runs of cells are one part.
    `table`        The most cells of a clique, counted without classes; None: no such cap.
    `tables`       The most cells of all cliques, counted so.
    `block`        The most products of classes of a clique, beyond which its classes are cut no more.
    `room`         The most numbers of all blocks (`CliqueBlock.room`).
    `start`        The credit of work before the first event, in numbers touched; None: work is not bounded.
    `grant`        What each jointly priced event adds to the credit.
    `once`         The most work of the sweeps for one event: what bounds the time of a charge, granted or not.
    `whole`        `once` is for all parts of an event together, and pays for taking them in as well; False: it is
                   for each part.
    `sweeps`       How many sweeps are made when the bound has grown, at most.
    `growth`       By which factor it has to have grown for that.
    `divided`      The most work of dividing the counts of one block; 0: counts stay as they are charged first.
    `soft`         Sweeps take maxima softly, at a temperature of about 2^-soft of the bound, and each of them
                   divides counts (`soft_message_passing`); 0: maxima are hard, and every second sweep divides
                   (`message_passing`).
    `fewest`       How many sweeps there are at least, where they fall from `sweeps` as the credit does from
                   `start`; None: there are as many always.
    `capped`       No event raises the total by more than what it costs by itself, nor one of several parts by more
                   than these cost, each rounded up to a unit.
    `beside`       Another rule by which all events are added up as well: the smaller total counts.
    """

    number: int
    attribute: int | None
    width: int | None
    table: int | None
    tables: int | None
    block: int | None
    room: int | None
    start: int | None
    grant: int
    once: int | None
    sweeps: int = 2
    growth: Fraction = Fraction(21, 20)
    divided: int = 0
    soft: int = 0
    fewest: int | None = None
    capped: bool = False
    whole: bool = False
    beside: AccountingRule | None = None

    def credit(self, joined: int, work: int) -> int | None:
        """The work that may still be done after that of so many events; None where it is not bounded."""
        return None if self.start is None else self.start + self.grant * joined - work

    def sweeps_at(self, joined: int, work: int) -> int:
        """How many sweeps there are when the bound has grown, after the work of so many events."""
        credit = self.credit(joined, work)
        if self.fewest is None or self.start is None or credit is None:
            return self.sweeps
        return min(max(self.sweeps * credit // max(self.start, 1), self.fewest), self.sweeps)

    def parts(self, size: int) -> int:
        """How many parts an attribute is cut into."""
        return -(-size // self.run(size))

    def run(self, size: int) -> int:
        """How many neighbouring cells are one part."""
        return 1 if self.width is None else -(-size // self.width)


RULE_1 = AccountingRule(
    number=1,
    attribute=None,
    width=None,
    table=1 << 20,
    tables=1 << 24,
    block=None,
    room=None,
    start=None,
    grant=0,
    once=None,
)
"""The rule of every ledger whose first entry names none: versions before 0.2. Its work is not bounded."""

RULE_2 = AccountingRule(
    number=2,
    attribute=1 << 16,
    width=1 << 12,
    table=None,
    tables=None,
    block=1 << 16,
    room=1 << 19,
    start=1 << 25,
    grant=3 << 8,
    once=1 << 20,
)
"""Work is linear in the number of events. Sessions that buy 5,000 counts in two looks each use up its credit."""

RULE_3 = replace(RULE_2, number=3, start=1 << 26)
"""The same, with credit for 10,000 questions of every kind of session."""

RULE_4 = replace(RULE_3, number=4, start=1 << 28, once=1 << 21, sweeps=4, divided=3 << 11, beside=RULE_3)
"""Single counts are divided anew, by more sweeps, with credit for these; nothing costs more than by rule 3, up to
the sweeps before a refusal."""

RULE_5 = replace(
    RULE_4,
    number=5,
    start=3 << 28,
    sweeps=16,
    fewest=4,
    growth=Fraction(51, 50),
    divided=1 << 18,
    soft=15,
    capped=True,
    whole=True,
)
"""Soft sweeps, and more of them: long lists of counts are divided, too, and all of them closer to the best way.
Sixteen each time would use the credit up within 10,000 questions, so there are fewer as it falls. No event raises
the total by more than its own price, and one of many parts calls for no more sweeps than another. The credit is
what the verifier, which is plain Python, repeats in some four CPU minutes at most: with two thirds of it, sessions
of 10,000 conjunctions cost a tenth more."""

NEWEST = RULE_5
"""The rule of new ledgers."""

RULES = {rule.number: rule for rule in (RULE_1, RULE_2, RULE_3, RULE_4, RULE_5)}
