"""What the certificate of an adaptive release says of its steps: shares of the price, and what bars rest on.

Only steps that were taken are told of: a workload without pairs, and values so rare that no pair can be looked at,
leave the 1-way marginals alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.rounds import Rounds
from understudy.releases.adaptive.rule import ROWS_SHARE, Rule
from understudy.releases.adaptive.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class StepsTaken:
    """Whether the workload has `pairs`, whether one was `useful` to look at, whether the 1-way marginals were
    `measured_again` in place of rounds and a sweep, and whether the number of rows is private, so that it was
    bought.
    """

    pairs: bool
    useful: bool
    measured_again: bool
    private_rows: bool

    @property
    def rounds(self) -> bool:
        """Whether there were rounds, and a sweep where the rule has one, after the 1-way marginals."""
        return self.pairs and self.useful

    def shares(self, rule: Rule) -> dict[str, float]:
        """Of the price, by step. With rounds, as the rule has them: the first two of what the sweep leaves."""
        rows = ROWS_SHARE if self.private_rows else Fraction(0)
        if self.rounds:
            return {name: float(getattr(rule, name)) for name in ("first", "select", "guard")}
        if not self.pairs:
            return {"first": float(1 - rows)}
        first = rule.first * (1 - rule.guard)
        again = {"first again": float(1 - rows - first)} if self.measured_again else {}
        return {"first": float(first), **again}

    def bars(self, beta: BetaShares, rounds: Rounds, swept: Sweep) -> dict[str, Any]:
        """Which noises the bars combine, and how β is shared."""
        shares = beta.with_first_again if self.measured_again else vars(beta)
        found: dict[str, Any] = {
            "beta": {name: float(share) for name, share in shares.items() if share},
            "one_way": self._one_way(),
            "levels_reached": list(rounds.one_way.reached),
        }
        if self.rounds:
            found["measured_in_rounds"] = "the residuals that its round measured"
        if swept.cliques:
            found["swept"] = "the last sweep"
        if rounds.firsts:
            found["measured_and_swept"] = "first measurement and the planned sweep, residual by residual"
            found["combined"] = len(rounds.firsts)
        return found

    def _one_way(self) -> str:
        if self.rounds:
            return "own measurement; and all tables in order, at precisions listed beforehand"
        own = "both own measurements, each alone" if self.measured_again else "own measurement"
        first = "the first" if self.measured_again else "it"
        return own if self.private_rows else f"{own}; and {first} with the public number of rows"
