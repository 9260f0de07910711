"""A second opinion on a total, from a privacy-loss-distribution accountant (dp-accounting, an optional extra).

It is a comparison and no filter: it takes the events as if their list had been fixed beforehand. The ledger's
own sum, which also holds when each event is chosen after seeing earlier answers, should not be below it by more
than the accountant's rounding.
"""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from importlib import import_module
from math import cos, exp, floor, fsum, log, log1p, pi
from typing import Any

from understudy.errors import LedgerError
from understudy.ledger.recorded import budget_in
from understudy.privacy.event import Event
from understudy.privacy.recording import from_text

INTERVAL = 1e-4
"""Grid of privacy losses; each loss is rounded up to it."""

ROUNDING = 1e-3
"""How far above the ledger's sum that may come, relatively and absolutely."""

PURE_DELTA = 1e-9
"""Where a pure budget is compared: composition at a small delta must not be dearer than the plain sum."""


def compare(document: dict[str, Any]) -> dict[str, Any]:
    """The ledger's total as (epsilon, delta) beside the one of privacy-loss distributions."""
    try:
        pld = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ModuleNotFoundError:
        raise LedgerError(
            "the second accountant is not installed", remedy="pip install 'understudy[audit]'"
        ) from None
    first = document["entries"][0]
    terms = json.loads(first["terms"])
    events = [from_text(e["event"]) for e in document["entries"] if e["event"] is not None]
    delta = float(Fraction(terms["delta"])) or PURE_DELTA
    budget = budget_in(first["terms"])
    ours = budget.spent_epsilon(type(budget.cap)(document["entries"][-1]["total"]))
    theirs = _composed_epsilon(pld, _counted(events), delta)
    agrees = theirs <= ours * (1 + ROUNDING) + ROUNDING
    if not agrees:
        verdict = "THE LEDGER CHARGED TOO LITTLE"
    elif theirs <= ours:
        verdict = "the ledger's sum covers it"
    else:
        verdict = f"they agree, as the second is rounded up, to a grid of {INTERVAL:g} for each loss"
    return {
        "ledger_epsilon": ours,
        "pld_epsilon": theirs,
        "delta": delta,
        "agrees": agrees,
        "words": f"at delta {delta:g}: epsilon {ours:.6g} by this ledger, at most {theirs:.6g} by privacy-loss "
        f"distributions: {verdict}",
    }


def _counted(events: list[Event]) -> Counter[tuple[str, float, int]]:
    """How often a mechanism of each law, parameter and move ran, as the events see themselves."""
    found: Counter[tuple[str, float, int]] = Counter()
    for event in events:
        for loss in event.privacy_losses():
            found[loss.law, loss.parameter, loss.moved] += loss.times
    return found


def _composed_epsilon(pld: Any, counted: Counter[tuple[str, float, int]], delta: float) -> float:
    composed = None
    for (law, parameter, moved), times in sorted(counted.items()):
        one = _distribution(pld, law, parameter, moved).self_compose(times)
        composed = one if composed is None else composed.compose(one)
    return 0.0 if composed is None else float(composed.get_epsilon_for_delta(delta))


def _distribution(pld: Any, law: str, parameter: float, moved: int) -> Any:
    """A pair of laws that dominates the mechanism.

    Pure: randomised response, the worst ε-DP mechanism. Bounded range: two outcomes whose log-ratios lie ε apart
    around 0, the middle of the worst pairs of a mechanism of range ε. Discrete Gaussian: the continuous law of the
    same variance, which it follows up to rounding. Failure: everything is told with that probability. Bounded
    noise: its own law, here and moved.
    """
    if law == "bounded noise":
        return _bounded_distribution(pld, int(parameter), moved)
    if law == "failure":
        return pld.from_privacy_parameters(
            import_module("dp_accounting.pld.common").DifferentialPrivacyParameters(0, parameter),
            value_discretization_interval=INTERVAL,
        )
    if law == "gaussian":
        return pld.from_gaussian_mechanism(parameter, value_discretization_interval=INTERVAL)
    half = parameter if law == "pure" else parameter / 2
    likely = -log1p(exp(-half))
    unlikely = likely - half
    return pld.from_two_probability_mass_functions(
        log_probability_mass_function_lower={0: unlikely, 1: likely},
        log_probability_mass_function_upper={0: likely, 1: unlikely},
        pessimistic_estimate=True,
        value_discretization_interval=INTERVAL,
    )


def _bounded_distribution(pld: Any, reach: int, moved: int) -> Any:
    """The losses of bounded noise, each split between the two grid points around it.

    An outcome of the probabilities (p, q) becomes two, of losses on the grid, whose probabilities add up to p
    and to q: what was merged from two outcomes tells no more than they do. Rounding each loss up would add as
    many steps of the grid as there are answers.
    """
    logs = [3.5 * log(cos(pi * x / (2 * reach + 2))) for x in range(-reach, reach + 1)]
    total = fsum(map(exp, logs))
    masses: dict[int, float] = {}
    for here, there in zip(logs[moved:], logs, strict=False):
        low = floor((here - there) / INTERVAL)
        near, far = exp(-low * INTERVAL), exp(-(low + 1) * INTERVAL)
        part = (exp(there - here) - far) / (near - far)
        for point, share in ((low, part), (low + 1, 1 - part)):
            masses[point] = masses.get(point, 0.0) + max(share, 0.0) * exp(here) / total
    impossible = fsum(map(exp, logs[:moved])) / total
    return pld.PrivacyLossDistribution.create_from_rounded_probability(masses, impossible, INTERVAL)
