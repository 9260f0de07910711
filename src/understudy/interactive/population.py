"""What a session's answers say about the population behind the table.

Theorem (`theory.cvar`). With probability 1 - β all answers are within CVaR_β(largest error) + V(β) of the
population's values, where V comes from the privacy curve of everything that may ever be spent. A mere promise
(α, β_s) gives CVaR ≤ α + β_s/β, since an error is at most 1; for pure ε-privacy V = tanh(ε/4) on every transcript.

Conditions: the rows are independent draws from the population, one for each person; their number is public; nobody
looks at them but through this ledger, whose cap enters, never what was spent so far; the answers are means of
values in [0, 1], as shares of rows are.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.curator import Curator
from understudy.declaration import Protect
from understudy.interactive.terms import Terms
from understudy.privacy.neighbours import Neighbours
from understudy.theory.cvar import cvar_V_zcdp
from understudy.theory.transfer import pure_dp_width

BETA = 0.05
"""Chance that an answer is further from the population than it says."""

MOST = BETA / 100
"""The promise must fail more rarely than this."""


@dataclass(frozen=True)
class Population:
    """The half-width of shares against the population; None, and the `reason`, where there is none."""

    half_width: float | None
    reason: str = ""


def population(curator: Curator, terms: Terms) -> Population:
    """The certificate of a session, from public values alone."""
    declared, budget = curator.declaration, curator.ledger.budget
    if declared.neighbours is not Neighbours.REPLACE or declared.max_rows != 1:
        return Population(
            None, "the theorem needs `neighbours: replace`: a public number of rows, one for each person"
        )
    if declared.protect is not Protect.PRIVACY:
        return Population(None, "exact values may be looked at here, which the budget does not count")
    if float(terms.beta) > MOST:
        return Population(None, f"the session's beta must be at most {MOST:g}, not {float(terms.beta):g}")
    pure = budget.is_pure
    drift = pure_dp_width(budget.epsilon) if pure else cvar_V_zcdp(budget.cap.amount, BETA)
    half_width = float(terms.alpha) + float(terms.beta) / BETA + drift
    if half_width >= 1:
        return Population(None, "the budget is so large that its privacy says nothing about the population")
    return Population(half_width)
