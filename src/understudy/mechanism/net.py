"""The net mechanism: one draw of the exponential mechanism among databases that the caller brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import lcm

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism.card import Card, Family
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.look import decided
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Selection
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.rational import Number, exact, positive
from understudy.theory.arguments import whole
from understudy.theory.lecture18 import em_error

ANSWER_LIMIT = 1 << 26
"""Largest number of answers, databases by queries, that are held at once (512 MiB)."""

STEPS = 1 << 10
"""Parts of a person to which answers are rounded, where they are not multiples of 1/m for some small m."""


@dataclass(frozen=True, eq=False)
class NetMechanism:
    """Database i of a net N with probability ∝ exp(εn·u(x, i)/2), where u(x, i) = -max_f |f(x) - f(i)|.

    Row i of `answers` has the answers of database i to all cells of `marginals`, in people of n = `rows` and in
    steps of 1/`steps` of a person; so scores are integers, and one replaced row moves them by at most `steps`.
    `rounded` says whether answers had to be rounded to steps. `epsilon` is the ε. `NetMechanism.of` makes one.

    Privacy     ε-DP (and ε²/8-zCDP) where one row is replaced and n is public: the exponential mechanism with a
                score of sensitivity 1/n. [DworkRoth14, Theorem 3.10]
    Accuracy    α + (2/(εn))(ln|N| + ln(1/β)) if some database of the net is within α of the table on every query:
                `error`, which adds 1/(n·steps) where answers were rounded.
    Complexity  O(|N||Q|) time and memory, whatever the table is.
    """

    marginals: tuple[Marginal, ...]
    answers: NDArray[np.int64]
    rows: int
    steps: int
    rounded: bool
    epsilon: Fraction

    def __post_init__(self) -> None:
        decided(self.mechanism)

    @classmethod
    def of(
        cls, databases: Sequence[Projection], marginals: Sequence[Marginal], *, rows: int, epsilon: Number
    ) -> NetMechanism:
        """The mechanism over public `databases`, for every cell of the `marginals` and a table of `rows` rows.

        A database is whatever has counts of cells, such as a stand-in. `epsilon` is the price of the choice.
        Raises a `ParameterError` where there is no database or no marginal, a `QueryError` where they are not
        about one domain or where a database answers with no share, and a `RefusedError` where there is too much to
        compare.
        """
        asked, n = tuple(marginals), whole(rows, "the number of rows")
        if not databases or not asked:
            raise ParameterError("a net needs at least one database and one query")
        cells = sum(marginal.size for marginal in asked)
        if len(databases) * cells > ANSWER_LIMIT:
            raise RefusedError(
                f"{len(databases):,} databases with {cells:,} answers each are more than can be compared: bring a "
                f"smaller net, or ask fewer queries. Nothing was spent."
            )
        if any(about.domain != asked[0].domain for about in (*databases, *asked)):
            raise QueryError("the databases of a net and the queries must be about one domain")
        steps = _steps(databases)
        if n * steps >= 1 << 50:
            raise RefusedError("there are more rows than a net can be compared with: bring smaller databases")
        people = np.array([_rates(database, asked) for database in databases]) * (n * steps)
        answers = np.rint(people)
        rounded = bool(np.abs(people - answers).max() > 1e-6)
        return cls(asked, answers.astype(np.int64), n, steps, rounded, exact(epsilon, "epsilon"))

    @property
    def mechanism(self) -> ExponentialMechanism:
        """The exponential mechanism that makes the choice."""
        return ExponentialMechanism(epsilon=self.epsilon, sensitivity=self.steps)

    @property
    def event(self) -> Selection:
        """What is charged: a selection at ε."""
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Selection:
        """The event of the same choice where neighbours move counts as `relation` says: the worst one counts."""
        return self.mechanism.event_for(relation.moves(ONE_COUNT).of_distance * self.steps)

    @property
    def key(self) -> str:
        """A text that is equal for equal candidates, rows and queries: the question that the ledger keeps."""
        digest = sha256(np.ascontiguousarray(self.answers).tobytes())
        digest.update(f"{self.rows} {self.steps}".encode())
        for marginal in self.marginals:
            digest.update(marginal.key.encode())
        return f"choose among {len(self.answers):,} databases #{digest.hexdigest()}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The score of each database: minus its largest error on any cell, in steps, given the exact `counts`.

        There is an array of counts for each of `marginals`.
        """
        truth = np.concatenate([np.ravel(count) for count in counts]).astype(np.int64) * self.steps
        worst = np.zeros(len(self.answers), np.int64)
        for i, answers in enumerate(self.answers):
            worst[i] = np.abs(answers - truth).max()
        return -worst

    def error(self, alpha: Number, beta: Number) -> float:
        """The error, as a share of rows, that holds except with probability `beta`.

        The net is taken to be within `alpha`, a share of rows, of every table on every query. Raises a
        `ParameterError` where either is out of range.
        """
        rounding = 1 / (self.rows * self.steps) if self.rounded else 0.0
        chosen = em_error(Fraction(1, self.rows), self.epsilon, len(self.answers), beta)
        return float(positive(alpha, "alpha")) + chosen + rounding


def _rates(database: Projection, marginals: Sequence[Marginal]) -> NDArray[np.float64]:
    rates = np.concatenate([np.ravel(marginal.answer(database)) for marginal in marginals])
    if not np.isfinite(rates).all() or rates.min() < -1e-9 or rates.max() > 1 + 1e-9:
        raise QueryError(
            "a database of the net answers a query with something that is not a share of its rows"
        )
    return rates


def _steps(databases: Sequence[Projection]) -> int:
    """Steps in which all answers are whole where all databases count rows of their own, else `STEPS`.

    With n·s steps for shares of m rows, s a multiple of m, n·s·(count/m) is an integer.
    """
    sizes = {getattr(database, "rows", None) for database in databases}
    if all(isinstance(size, int) for size in sizes):
        common = lcm(*sizes)  # type: ignore[arg-type]
        if 1 <= common <= 1 << 20:
            return common
    return STEPS


CARD = Card(
    name="net mechanism (exact)",
    family=Family.DATABASE,
    privacy="ε; ε²/8-zCDP",
    accuracy="α + (2/εn)(ln N + ln 1/β), N databases of which one is within α",
    source="Lectures 9-10; Lecture 18, Theorem 0.1",
    events=(Selection,),
)
