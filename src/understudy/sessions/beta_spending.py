"""Which part of β a count gets that is bought by itself: more while few were bought; and which part a class gets.

The price of a count grows with the logarithm of one over its share of β. Even shares, β over the number of
questions that are expected, are right for a session that buys all of them. Most sessions end early, and most
of what is asked in a long one costs nothing: then nearly all of β is left over at the end, and every count
was dearer than it had to be. Here the share falls with the number of counts that were bought, not of those
that may come.

Rule        With i counts bought so far, the next one gets the part max(1/expected, f(i)) of what is left, where f
            falls about as 1/i does (`BetaSpending`): generously, carefully or not at all, as `permission` says.
Promise     The shares of all counts add up to at most what was left before the first.
Why         Each is a part, at most one, of what is left, which is made smaller by it. The part depends on the
            number of purchases and of questions, which are public and known before the noise is drawn.
Cost        With 10,000 questions expected and generous shares the first count costs two thirds of what it costs
            with an even share, the thousandth as much, and one that comes after ten thousand others a fifth more
            (`least`). The first thousand together cost .86 of what they cost with even shares; .90 with careful
            ones.
Classes     The price of a class grows with the logarithm of one over its share, as that of counts does. Prices P
            and R of two purchases grow together the least where their shares are as P to R. So a class of price P
            gets the part P/(P + OTHERS·R) of what is left, where R was paid so far for other classes and for
            questions that it does not answer: they are expected to cost OTHERS times as much as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, prod

OTHERS = 3.0
"""What a class does not answer is expected to cost so many times what it has cost so far."""

BEFORE = 4.0
"""As if so many single counts had been paid before the first question, for what no class answers: a class that is
bought early gets no more of β than it needs."""

LEAST_SHARE = 1e-250
"""A share of β below this buys nothing: the tails of noise are not computed so far out."""


def part_of_class(price: float, others: float) -> float:
    """The part of what is left of β for a class, where `others` was paid for what it does not answer."""
    return price / (price + OTHERS * max(others, 0.0))


@dataclass(frozen=True, slots=True)
class BetaSpending:
    """How the share of the next count falls with the number of counts bought; rule and promise are the module's.

    falling   pairs (r, l): after i counts the next one gets the part r/(i + l) of what is left of β by the first
              pair, of the rest by the second, and so on
    """

    falling: tuple[tuple[float, float], ...] = ()

    def part(self, bought: int, expected: int) -> float:
        """The part of what is left of β for the next count, after `bought` ones, with `expected` still to come."""
        return max(1 / max(expected, 1), self._falling(bought))

    def _falling(self, bought: float) -> float:
        return 1 - prod(1 - min(rate / (bought + lead), 1.0) for rate, lead in self.falling)

    def least(self, left: float, bought: int, expected: int) -> float:
        """The least share that any count of those still expected can get, if `left` of β is left now.

        The worst sequence buys all of them: answers for nothing leave β as it is, and the even part of it grows.
        While the part falls, what is left is multiplied by the product of 1 - r/(j + l) for every count j; from
        the place on where the even part is larger, equal shares are taken to the end.
        """
        even = max(expected, 1)
        if self._falling(bought) * even <= 1:
            return left / even
        turn = self._turn(bought, even)
        kept = exp(sum(_log_kept(rate, bought + lead, turn + lead) for rate, lead in self.falling))
        return left * kept * self._falling(turn + 1)

    def _turn(self, bought: int, expected: int) -> int:
        """The last count whose falling part is larger than its even one."""
        first, last = bought, bought + expected
        while last - first > 1:
            middle = (first + last) // 2
            is_falling = self._falling(middle) * (bought + expected - middle) > 1
            first, last = (middle, last) if is_falling else (first, middle)
        return first


def _log_kept(rate: float, here: float, turn: float) -> float:
    """The logarithm of the product of 1 - rate/j over j = here, here + 1, … turn."""
    return lgamma(turn + 1 - rate) + lgamma(here) - lgamma(turn + 1) - lgamma(here - rate)


EVEN = BetaSpending()
"""Equal shares for all questions that are expected, whether they will cost something or not."""

CAREFUL = BetaSpending(((0.27, 50.0),))
"""Larger shares while few counts were bought, after which counts are hardly dearer than with even ones: a class
that is bought ahead is permitted the sooner, the less dear later counts can become."""

GENEROUS = BetaSpending(((0.12, 30.0), (0.9, 500.0)))
"""Larger shares for the first thousand counts, and smaller ones after some thousands; few sessions buy so many."""
