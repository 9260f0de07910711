"""What is known before any data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
