"""Which part of β a count gets that is bought by itself: more while few were bought; and which part a class gets.

The price of a count grows with the logarithm of one over its share of β. Even shares, β over the number of
questions that are expected, are right for a session that buys all of them. Most sessions end early, and most
of what is asked in a long one costs nothing: then nearly all of β is left over at the end, and every count
was dearer than it had to be. Here the share falls with the number of counts that were bought, not of those
that may come.

Rule        With i counts bought so far, the next one gets the part max(1/expected, RATE/(i + LEAD)) of what
            is left.
Promise     The shares of all counts add up to at most what was left before the first.
Why         Each is a part, at most one, of what is left, which is made smaller by it. The part depends on the
            number of purchases and of questions, which are public and known before the noise is drawn.
Cost        With 10,000 questions expected the first count costs two thirds of what it costs with an even
            share, the thousandth as much, and one that comes after thousands of others at most a tenth more
            (`least_share`).
Classes     The price of a class grows with the logarithm of one over its share, as that of counts does. Prices P
            and R of two purchases grow together the least where their shares are as P to R. So a class of price P
            gets the part P/(P + OTHERS·R) of what is left, where R was paid so far for other classes and for
            questions that it does not answer: they are expected to cost OTHERS times as much as that.
"""

from __future__ import annotations

from math import exp, lgamma

RATE = 0.27
"""The part of what is left that goes to the next count is this over the number of those bought."""

LEAD = 50.0
"""As if so many counts had been bought before the first: it gets the part RATE/LEAD."""

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


def part_of_left(bought: int, expected: int) -> float:
    """The part of what is left of β for the next count, after `bought` counts, with `expected` still to come."""
    return max(1 / max(expected, 1), min(RATE / (bought + LEAD), 1.0))


def least_share(left: float, bought: int, expected: int) -> float:
    """The least share that any count of those still expected can get, if `left` of β is left now.

    The worst sequence buys all of them: answers for nothing leave β as it is, and the even part of it grows.
    While the part falls, what is left is multiplied by 1 - RATE/(j + LEAD) for every count j; from the place
    on where the even part is larger, equal shares are taken to the end.
    """
    here, even = bought + LEAD, max(expected, 1)
    turn = RATE * (even + here) / (1 + RATE)
    if turn <= here:
        return left / even
    kept = exp(lgamma(turn + 1 - RATE) + lgamma(here) - lgamma(turn + 1) - lgamma(here - RATE))
    return left * kept * RATE / (turn + 1)
