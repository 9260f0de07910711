"""What an audit's draws could have seen and what they could not, in words, for each mechanism and for all."""

from __future__ import annotations

from math import isfinite

from understudy_audit.privacy import PairFinding, Verdict

LIMITS = (
    "No number of such draws sees a leak on other tables, questions or budgets than those that were tested, at "
    "deltas below 0.00001, or through anything but what is released: time, memory, files. A bound below the "
    "promise does not prove the promise; the proofs and the tests on exact laws are for that."
)
"""What no audit of this kind can see, whatever its effort."""


def sharpest(verdict: Verdict) -> PairFinding | None:
    """The finding whose draws would have seen the smallest excess, as a part of the promise; None if none would.

    A promise of 0 (noise so large that δ covers it) has no parts, and comes last.
    """
    seeing = [found for found in verdict.findings if isfinite(found.detectable)]
    if not seeing:
        return None
    return min(seeing, key=lambda f: f.detectable / f.claimed if f.claimed > 0 else 1e9 + f.detectable)


def sight(verdict: Verdict) -> str:
    """The smallest violation of epsilon that the draws on one mechanism would have detected, and what they missed.

    It is that of the most revealing pair there can be, randomised response, at counts as they come out on average:
    a mechanism whose leak is spread over many outcomes needs more draws than that to be convicted.
    """
    name = verdict.subject
    if not verdict.findings:
        return f"{name}: nothing was drawn, so nothing could have been seen."
    best = sharpest(verdict)
    if best is None:
        least = min(found.trials[0] for found in verdict.findings)
        return f"{name}: {least:,} counted draws a side are too few to see any violation, however large."
    at = f" at delta {best.delta:g}" if best.delta else ""
    above = ", where 0 is promised"
    if best.claimed > 0:
        above = f", {best.detectable / best.claimed - 1:.0%} above the promised {best.claimed:.4g}"
    return (
        f"{name}: would have seen a true epsilon of {best.detectable:.4g} or more{at}{above}; a smaller excess "
        f"could have gone unnoticed."
    )
