"""One release under way: what it may spend, what it has bought, and what comes out.

Every step has a name that depends on public values alone, and the step's request to the ledger is made of it. So a
run that was killed is resumed by running it again under its name: what was bought comes back from the ledger for
nothing, a step that was paid for and never answered is answered under its debit, and the rest goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor, log10
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.curator.look_events import look_event
from understudy.domain.domain import Clique, Domain
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.ledger.interface import Ledger
from understudy.mechanism.look import Look
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import Cost
from understudy.privacy.price import Price
from understudy.query.constraint import Constraint
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.query.workload import Workload
from understudy.rational import MIN_PARAMETER, Number

Cells = NDArray[np.float64]

DIGITS = 4
"""Of an epsilon that is proposed."""


@dataclass(frozen=True)
class Progress:
    """Where a release stands: `done` of `of` parts of a stage of the work, and what is being done.

    The stage `making` buys answers and fits the stand-in; the stage `writing` draws rows and writes the folder.
    All of it follows from public values and from what was released.
    """

    what: str
    done: float
    of: float
    spent: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    stage: Literal["making", "writing"] = "making"


@dataclass(frozen=True)
class Step:
    """One purchase: what was bought, and what it costs on its own."""

    name: str
    what: str
    cost: Cost


@dataclass(frozen=True, eq=False)
class MarginalAnswer:
    """Counts of a workload's marginal: the table's lie between `low` and `high`, jointly with all other answers'.

    `clique` names its attributes; `counts`, `low` and `high` have a number of people for each cell, and an axis
    for each attribute. `error` is the distance from each count to the farther end of its interval. `basis` says
    what the interval rests on: `measured` (the law of noise that was added), `certified` (a theorem about the
    whole mechanism), `bounded` (a bound that was paid for), or `uncertified`, where the error is infinite.
    """

    clique: Clique
    counts: Cells
    low: Cells
    high: Cells
    basis: str

    @classmethod
    def around(cls, clique: Clique, counts: Cells, error: Cells, basis: str) -> MarginalAnswer:
        """Counts in the middle of intervals that reach as far as `error` to both sides."""
        return cls(clique, counts, counts - error, counts + error, basis)

    @cached_property
    def error(self) -> Cells:
        """How far each count can be off, in people: the distance to the farther end of its interval."""
        return np.maximum(self.high - self.counts, self.counts - self.low)

    @property
    def half_width(self) -> Cells:
        """Half of the length of each interval, in people."""
        return (self.high - self.low) / 2


class Sums(Protocol):
    """Questions beyond single cells that a method answers with errors of their own, joint with all others."""

    def answer(self, marginal: Marginal) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...
    def as_arrays(self) -> dict[str, NDArray[Any]]: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method hands over: a stand-in, the answers to the workload, and what is proved about them.

    `rows` is how many people the stand-in stands for: public under `replace`, else bought or declared.
    `proof` names the mechanism, its theorem and its parameters, in plain values. `sums` answers more than cells,
    where a method measured more; `also` are marginals beside the workload that were measured on the way.
    """

    method: str
    standin: Projection
    rows: float
    answers: tuple[MarginalAnswer, ...]
    proof: Mapping[str, Any]
    sums: Sums | None = None
    also: tuple[MarginalAnswer, ...] = ()


def a_delta_for(budget: Budget, delta: Fraction) -> str:
    """How a declared budget is given a delta, in words."""
    power = f"{float(delta):g}".replace("e-0", "e-")
    return f"give the budget a delta (budget: {{epsilon: {float(budget.epsilon):g}, delta: {power}}})"


def check_currency(ledger: Ledger, own: Budget) -> None:
    """Refuse a release with a delta of its `own` that is to be paid from a ledger of pure epsilon."""
    if not own.is_pure and ledger.budget.is_pure:
        given = "" if ledger.is_begun else f", or {a_delta_for(ledger.budget, own.delta)}"
        raise RefusedError(
            "this table's budget is a pure epsilon, which pays for no release with a delta. Nothing was "
            f"spent. Leave `delta` out{given}"
        )


def largest_epsilon(left: Cost, delta: Fraction, ledger: Budget) -> float | None:
    """A round epsilon whose release, with that delta, costs no more than what is left; the largest of them.

    None where no epsilon that a budget may have (`MIN_PARAMETER` or more) is as cheap as that.
    """
    most = left.amount if delta == 0 else zcdp_epsilon(left.amount, float(delta))
    if most <= 0:
        return None
    unit = Fraction(10) ** (floor(log10(most)) + 1 - DIGITS)
    for whole in range(floor(most / unit) + 1, 0, -1):
        if whole * unit < MIN_PARAMETER:
            return None
        if ledger.alone(whole * unit, delta).cap.units <= left.units:
            return float(whole * unit)
    return None


def _silent(progress: Progress) -> None:
    del progress


@dataclass(eq=False)
class Run:
    """What one release spends, and under which steps. `budget` is its own; the ledger's may be larger.

    A pure budget may be spent from a ledger of either currency; one with a delta needs a ledger with a delta.
    """

    curator: Curator
    workload: Workload
    budget: Budget
    name: str
    beta: Fraction = Fraction(1, 20)
    analyst: str = ""
    report: Callable[[Progress], None] = _silent
    steps: list[Step] = field(default_factory=list)
    memory: int | None = None
    """Bytes that the release may take, where the caller said so: else half of the machine's."""
    synthetic: int | None = None
    """Synthetic rows that will be drawn, where the caller said so: else as many as there are people."""
    target: str | None = None
    """The attribute that models are going to predict, where the caller named one."""
    standing: Progress = field(default_factory=lambda: Progress("beginning", 0, 1))
    """What was reported last."""
    _summed: tuple[int, Cost | None] = (0, None)
    """How many steps were added up, and to what: steps are only ever appended."""

    def __post_init__(self) -> None:
        check_currency(self.curator.ledger, self.budget)

    @property
    def domain(self) -> Domain:
        return self.curator.domain

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Which cells are always empty, as declared."""
        return self.curator.declaration.constraints

    @property
    def total(self) -> Fraction:
        """The amount of the whole price: epsilon where the budget is pure, else rho."""
        return self.budget.whole.amount

    @property
    def rounded(self) -> bool:
        """Whether a price in rho buys rounded normal noise here, and not discrete: under a ledger kept in GDP.

        There rounded normal noise takes just its ρ, however large a part of the budget that is, while discrete
        noise of few steps takes more or has no price (`privacy.gdp`).
        """
        return self.curator.ledger.budget.filter.reads_variance

    @property
    def spent(self) -> Cost:
        """What the steps so far cost together, in the currency of the ledger."""
        summed, total = self._summed
        if total is None:
            total = self.curator.ledger.budget.total([])
        for step in self.steps[summed:]:
            total = total + step.cost  # type: ignore[operator]  # one currency throughout
        self._summed = len(self.steps), total
        return total

    def check_affordable(self, worst: Cost) -> None:
        """Refuse before the first step what the ledger could not pay to the last one."""
        left = self.curator.ledger.available(self.analyst)
        if worst.units > left.units:
            limited = left.units < self.curator.ledger.remaining.units
            raise InsufficientBudgetError(
                requested=worst.amount,
                remaining=left.amount,
                currency=worst.currency,
                limit="now" if limited else "",
                remedy=self.smaller(left),
            )

    def smaller(self, left: Cost) -> str:
        """What a release can be asked to cost where the ledger has that much left."""
        if left.units <= 0:
            return "A release can still be made again under its own `name`, from what it bought"
        if (
            self.budget.is_pure != self.curator.ledger.budget.is_pure
        ):  # only the method knows its steps' price
            return "Give a smaller `epsilon`"
        most = largest_epsilon(left, self.budget.delta, self.curator.ledger.budget)
        return "Give a smaller `epsilon`" + ("" if most is None else f": at most {most:g}")

    def tell(self, what: str, done: float | None = None, of: float | None = None, **details: int) -> None:
        """Report what the run does now; how much is done, and details, are as before where they are left out."""
        last = self.standing
        self.standing = Progress(
            what,
            last.done if done is None else done,
            last.of if of is None else of,
            self.spent.amount,
            details or last.details,
        )
        self.report(self.standing)

    def request(self, step: str) -> str:
        """The name of a step's request to the ledger."""
        return f"{self.name} {step}"

    def price(self, share: Number) -> Price:
        """A share of the whole price."""
        return self.budget.whole * share

    def measure(
        self,
        step: str,
        marginals: Sequence[Marginal],
        price: Price | Sequence[Price],
        *,
        beta: Number | None = None,
    ) -> list[Answer]:
        """Buy noisy counts of marginals, each at the given price or its own, in one debit."""
        self.tell(_doing(step, "measuring"))
        answers = self.curator.measure_all(
            marginals,
            price,
            beta=self.beta if beta is None else beta,
            request=self.request(step),
            analyst=self.analyst,
        )
        what = marginals[0].describe() if len(marginals) == 1 else f"{len(marginals)} marginals"
        self.steps.extend(Step(step, what, answer.cost) for answer in answers)
        self.tell("fitting the stand-in")
        return answers

    def look(self, step: str, look: Look) -> Any:
        """Buy what a mechanism releases."""
        self.tell(_doing(step, "measuring"))
        found = self.curator._buy(look, request=self.request(step), analyst=self.analyst).released
        budget = self.curator.ledger.budget
        price = budget.price(look_event(look, self.curator.relation, budget))
        self.steps.append(Step(step, look.key.split(" #")[0], price))
        self.tell("fitting the stand-in")
        return found


_CHOICES = {
    "gaps": "choosing what to measure",
    "select": "choosing what to measure",
    "guard": "measuring what is left",
    "rows": "measuring the number of rows",
    "bounds": "measuring how far off the rest is",
    "small database": "choosing a small database",
    "net": "choosing a database",
}
"""What a step with this name does, in words."""


def _doing(step: str, otherwise: str) -> str:
    """What a step does, for a person who waits for it; `round 3 select 1` is part of the third round."""
    found = re.fullmatch(r"(round \d+) (\w+).*", step)
    name = found[2] if found else step
    told = _CHOICES.get(name, otherwise)
    return f"{found[1]}: {told}" if found else told
