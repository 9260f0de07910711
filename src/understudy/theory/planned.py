"""What is known before any data is touched, and what a theorem promises then: an entry of the planner's list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from understudy.errors import ParameterError
from understudy.rational import exact, privacy_parameter, probability
from understudy.theory.arguments import whole


class Promise(StrEnum):
    """What an answer must be close to: this table, privately; the population behind it; or both."""

    PRIVACY = "privacy"
    VALIDITY = "validity"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """Rows, queries, a universe, a budget, a failure probability; and what the analyst brings and needs.

    `universe` is |X|; `vc` the VC dimension of the queries, where it is known; `guesses` says that the analyst
    brings guesses from other data (training rows) of which `failures` may turn out wrong; `best_only` that only
    the running best matters (a leaderboard).
    """

    rows: int
    queries: int
    promise: Promise
    beta: float = 0.05
    universe: int | None = None
    vc: int | None = None
    epsilon: float | None = None
    delta: float = 0.0
    guesses: bool = False
    failures: int = 0
    best_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "promise", Promise(self.promise))
        object.__setattr__(self, "rows", whole(self.rows, "rows"))
        object.__setattr__(self, "queries", whole(self.queries, "queries"))
        probability(self.beta)
        if self.universe is not None:
            object.__setattr__(self, "universe", whole(self.universe, "universe", at_least=2))
        if self.vc is not None:
            object.__setattr__(self, "vc", whole(self.vc, "vc"))
        object.__setattr__(self, "failures", whole(self.failures, "failures", at_least=0))
        if self.failures and not self.guesses:
            raise ParameterError("failures count wrong guesses: say that the analyst brings guesses")
        if self.failures >= self.queries:
            raise ParameterError("there must be fewer wrong guesses than queries")
        if self.promise is Promise.VALIDITY and (self.epsilon is not None or self.delta):
            raise ParameterError(
                "a promise of validity alone has no epsilon or delta; ask for privacy or both"
            )
        if self.promise is not Promise.VALIDITY and (self.best_only or self.guesses):
            raise ParameterError(
                "guesses and the running best help validity alone: they look at exact values"
            )
        if self.epsilon is not None:
            privacy_parameter(self.epsilon)
        if not 0 <= exact(self.delta, "delta") < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, not {self.delta}")


Width = tuple[float, dict[str, float | int]]
"""A half-width that holds jointly over all queries, and the parameters that reach it."""

Limit = Callable[[PlanInputs, Width], str]
"""Why this program cannot run a mechanism in a situation, where it would have that width; empty if it can."""


def without_limit(situation: PlanInputs, found: Width) -> str:
    """It can be run at any size."""
    del situation, found
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A mechanism or certificate as the planner knows it: its width in a situation, and the theorem behind it."""

    name: str
    promises: tuple[Promise, ...]
    theorem: str
    width: Callable[[PlanInputs], Width]
    needs: tuple[str, ...] = ()
    """Names of what a situation must have: keys of `LACKING`."""
    note: str = ""
    limit: Limit = without_limit
    by_name: bool = False
    """Offered, ranked, but recommended to nobody who does not ask for it."""
    one_answer: Callable[[PlanInputs], Any] | None = None
    """The mechanism, with a `release` of counts, that gives each answer its share of the budget. It is what a
    typical error is simulated with; ParameterError where the share is beyond what the mechanism accepts."""

    def lacks(self, situation: PlanInputs) -> str:
        """Why it does not apply; empty when it does."""
        if situation.promise not in self.promises:
            return f"promises {' or '.join(self.promises)} only"
        for need in self.needs:
            if not getattr(situation, need):
                return LACKING[need]
        return ""


LACKING = {
    "universe": "needs the size of the universe",
    "vc": "needs the VC dimension of the queries",
    "delta": "needs a delta",
    "guesses": "needs an analyst who brings guesses",
    "best_only": "is about the running best only",
}

PRIVACY, VALIDITY, BOTH = (Promise.PRIVACY,), (Promise.VALIDITY,), (Promise.BOTH,)


def planned_epsilon(situation: PlanInputs) -> float:
    """The ε of a situation that promises privacy, where there always is one."""
    assert situation.epsilon is not None
    return float(situation.epsilon)
