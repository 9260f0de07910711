"""Every mechanism and certificate that the planner knows, in the order in which it tries them.

What a mechanism says of itself is on its card (`mechanism.cards`), a certificate stands with its theorem
(`theory.certificates`); listed here are those that no single file of these is about: mechanisms of the lectures,
and what noise is worth against this table and the population at once.
"""

from __future__ import annotations

from understudy.mechanism.cards import cards
from understudy.planner import limits, widths
from understudy.theory.certificates import PLANNED_CERTIFICATES
from understudy.theory.planned import BOTH, PRIVACY, VALIDITY, Planned

_INVALID_ALONE = "gives validity only: it looks at exact values"

_COMPOSED = (
    Planned(
        name="histogram",
        promises=PRIVACY,
        theorem="Lecture 4, Theorem 5, on every cell",
        width=widths.histogram,
        needs=("universe",),
        note="answers any number of queries",
    ),
    Planned(
        name="iterative-mw",
        promises=PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), multiplicative weights",
        width=widths.iterative_mw,
        limit=limits.constructed,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Planned(
        name="iterative-median",
        promises=PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), median",
        width=widths.iterative_median,
        limit=limits.median_update,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Planned(
        name="online-mw",
        promises=PRIVACY,
        theorem="Lecture 7 with NumericSparse (Dwork and Roth 2014, Theorem 3.28)",
        width=widths.online,
        limit=limits.dense,
        needs=("universe",),
    ),
    Planned(
        name="mw-guess-and-check",
        promises=VALIDITY,
        theorem="GuessAndCheck tree with multiplicative-weights guesses",
        width=widths.mw_guess_and_check,
        limit=limits.dense,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Planned(
        name="median",
        promises=VALIDITY,
        theorem="Lecture 4, Theorem 2 (exact form)",
        width=widths.median,
        limit=limits.median,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Planned(
        name="private-laplace",
        promises=BOTH,
        theorem="Lecture 4, Theorem 5 and tanh(epsilon/4) for pure privacy",
        width=widths.private_laplace,
    ),
    Planned(
        name="private-gaussian",
        promises=BOTH,
        theorem="zCDP composition and CVaR transfer",
        width=widths.private_gaussian,
        needs=("delta",),
    ),
)

MECHANISMS: tuple[Planned, ...] = (
    *(planned for card in cards() for planned in card.plans),
    *_COMPOSED,
    *PLANNED_CERTIFICATES,
)
