"""Short transcripts generalise: answers of few bits, whatever was asked.

`truncation_width`, which the product relies on, lives in `understudy.theory.compression` and is imported here.
"""

from __future__ import annotations

from math import log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.compression import truncation_width

__all__ = [
    "compression_width",
    "truncation_width",
]


def compression_width(n: Whole, k: Whole, b_bits: Whole, beta: Number) -> float:
    """sqrt(((b+1) ln 2 + ln(k/β))/(2n)): a mechanism whose transcripts fit into b bits. [DFHPRR15]

    A union over 2^b transcripts, k queries and 2 tails. An (α, 0)-accurate mechanism is this much further off
    from the population.
    """
    bits = whole(b_bits, "b_bits", at_least=0)
    spread = (bits + 1) * log(2) + log(whole(k, "k")) + log_of_inverse(beta)
    return sqrt(spread / (2 * whole(n, "n")))
