"""What a price is of the whole budget, in words, and the question whether to pay a large one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import typer

from understudy.cli.options import as_options
from understudy.cli.terminal import as_question, say
from understudy.errors import InsufficientBudgetError, ParameterError, UnderstudyError
from understudy.percent import percent_of

if TYPE_CHECKING:
    from understudy.ledger.interface import Ledger
    from understudy.privacy.budget import Budget
    from understudy.privacy.cost import Cost


class BudgetLeft(Protocol):
    """A budget and what is left of it for whoever asks: a ledger is one."""

    @property
    def budget(self) -> Budget: ...

    @property
    def remaining(self) -> Cost: ...


ASKED_ABOVE = 0.05
"""Part of the whole budget above which a person at a terminal is asked first."""

REFUSED_ABOVE = 0.25
"""Part of the whole budget above which a script must say --yes: nobody is there to be asked."""


ROUNDING = 1e-6
"""Part of a price by which a charge may differ from it for the rounding of its parts to whole units."""


def error_line(error: float, unit: str) -> str:
    """How far off the counts of an answer, or its numbers in a unit of their own, would be.

    >>> error_line(1200.0, "people"), error_line(333_812.4, "avg(income)")
    ('  each count ± 1,200 people', '  each number ± 333,812 (avg(income))')
    """
    if unit == "people":
        return f"  each count ± {error:,.0f} people"
    from understudy.pages.notebook import half_width_in

    return f"  each number {half_width_in(error, unit)}"


def noise_told(noise: str | None) -> str:
    """Which noise a question would get, behind its error; nothing where nobody says.

    >>> noise_told("bounded"), noise_told("gaussian")
    (' for sure (bounded noise)', ' (gaussian noise)')
    """
    if noise is None:
        return ""
    return f" for sure ({noise} noise)" if noise == "bounded" else f" ({noise} noise)"


def price_told(cost: Cost, budget: Budget) -> str:
    """What a cost is of the whole budget, and in the ledger's currency."""
    return f"{percent_of(cost.units, budget.cap.units)} of the budget ({cost.currency} {cost.amount:.4g})"


@dataclass(frozen=True)
class Charged:
    """What an answer took from the budget this time, and why that is not what was quoted for it.

    cost      what the ledger recorded for the answer when it was first given
    quoted    what was quoted for the question alone
    repeated  whether the request was paid before: then it takes nothing this time
    public    whether no row can change the answer
    """

    cost: Cost
    quoted: Cost
    repeated: bool = False
    public: bool = False

    @property
    def now(self) -> Cost:
        """What the ledger was charged this time."""
        return type(self.cost)(0) if self.repeated else self.cost

    def told(self, budget: Budget) -> str:
        """What it takes, after the words that say how sure the answer is."""
        price = price_told(self.cost, budget)
        if self.repeated:
            return f"answered from the ledger; takes nothing this time (the first time {price})"
        return f"takes {price}"

    @property
    def remark(self) -> str | None:
        """One sentence where the price is not the one that was quoted; None where it is, as far as both are shown.

        Of costs alone only joint accounting makes them differ (`privacy.joint`); a few units are rounding.
        """
        if self.repeated:
            return None
        if self.public:
            return "costs nothing: no person can change it, so it is public"
        quoted = f"{self.quoted.currency} {self.quoted.amount:.4g}"
        is_rounded = abs(self.cost.units - self.quoted.units) <= self.quoted.units * ROUNDING
        if is_rounded or f"{self.cost.currency} {self.cost.amount:.4g}" == quoted:
            return None
        if self.cost.units < self.quoted.units:
            return (
                f"costs less than the {quoted} that was quoted, since earlier questions were about other people: "
                "questions about different people cost as one"
            )
        return (
            f"costs more than the {quoted} that was quoted, since earlier questions about other people cost less: "
            "all together cost no more than their quotes"
        )

    def as_plain(self, budget: Budget) -> dict[str, Any]:
        """The same for machines: `cost` and `share` are of this time, `recorded_cost` of the first."""
        return {
            "cost": {self.now.currency: self.now.amount},
            "share": budget.share(self.now),
            "quoted": {self.quoted.currency: self.quoted.amount},
            "repeated": self.repeated,
            "recorded_cost": {self.cost.currency: self.cost.amount},
            "remark": self.remark,
        }


def left_told(left: Cost, budget: Budget) -> str:
    """What is left of the whole budget, as a part, as an epsilon, and in the ledger's currency."""
    cap = budget.cap
    share = percent_of(left.units, cap.units)
    if budget.is_pure:
        return f"{share} of the budget left: epsilon {left.amount:.6g} of {cap.amount:.6g}"
    about = f"about epsilon {_two_digits(budget.epsilon_of(left))} of {float(budget.epsilon):g}"
    return f"{share} of the budget left, {about} ({left.currency} {left.amount:.6g} of {cap.amount:.6g})"


def _two_digits(number: float) -> str:
    """A number with two digits; one of more, such as 100, is written out as a whole number."""
    return f"{number:.0f}" if number >= 99.5 else f"{number:.2g}"


def left_as_plain(left: Cost, budget: Budget) -> dict[str, Any]:
    """The same for machines."""
    return {
        "remaining": {left.currency: left.amount},
        "remaining_share": budget.share(left),
        "remaining_epsilon": budget.epsilon_of(left),
    }


UNPAID = "  what is left does not pay for it"
"""What a dry run says below the price of what would be refused."""

VOUCHED_BY_NOBODY = f"{UNPAID}: a stand-in would answer, and nobody would vouch for it"
"""The same of a question to a session, which answers all the same."""


def not_paid(cost: Cost, ledger: Ledger, analyst: str = "") -> InsufficientBudgetError | None:
    """Why a ledger would not pay a cost for an analyst; None where it would."""
    left = ledger.available(analyst)
    if cost.units <= left.units:
        return None
    bound = (one.name for one in ledger.shares(analyst) if one.size.units - one.used.units <= left.units)
    limit = next(bound, "") if left.units < ledger.remaining.units else ""
    return InsufficientBudgetError(
        requested=cost.amount, remaining=left.amount, currency=cost.currency, limit=limit
    )


def refusal_as_plain(refusal: UnderstudyError | None) -> dict[str, Any]:
    """Whether something would be paid for, and why not, for machines."""
    if refusal is None:
        return {"payable": True}
    told = {"kind": type(refusal).__name__, "message": as_options(str(refusal))}
    return {"payable": False, "refusal": told}


def end_dry_run(refusal: UnderstudyError | None, *, as_json: bool) -> None:
    """End a dry run as the command itself would end: with the reason and the status of a refusal, if there is one.

    With `as_json` the reason was told with the price. Raises the refusal, or typer's Exit with status 1.
    """
    if refusal is None:
        return
    if as_json:
        raise typer.Exit(1)
    raise refusal


def is_large(cost: Cost, ledger: BudgetLeft) -> bool:
    """Whether a cost is one to ask about first. One that the ledger cannot pay is left to the ledger to refuse."""
    return ledger.budget.share(cost) > ASKED_ABOVE and cost.units <= ledger.remaining.units


def confirm(
    cost: Cost,
    ledger: BudgetLeft,
    *,
    yes: bool,
    quiet: bool,
    several: bool = False,
    question: str = "Ask it?",
    refusal: str = "Nothing was asked",
    instead: str = "ask for a wider error",
) -> None:
    """Ask a person at a terminal before a large part of the budget is spent; a script must have said --yes.

    `quiet` is a command that speaks to machines: it never asks. Raises typer's Exit, with status 1, where the
    person says no, and a ParameterError where a script did not say it. Of `several` questions, those that can be
    paid are answered where all of them cannot: what they take is at most what is left. `question`, `refusal` and
    `instead` are the words of the command: what is asked, what a no means, and what else a script could do.
    """
    if several:
        cost = min(cost, ledger.remaining, key=lambda one: one.units)
    if yes or not is_large(cost, ledger):
        return
    told = f"this takes up to {price_told(cost, ledger.budget)}; {left_told(ledger.remaining, ledger.budget)}"
    if not quiet and sys.stdin.isatty() and sys.stderr.isatty():
        if not typer.confirm(as_question(f"{told[0].upper()}{told[1:]}. {question}"), err=True):
            say(f"{refusal}, and nothing was spent.", err=True)
            raise typer.Exit(1)
        return
    if ledger.budget.share(cost) > REFUSED_ABOVE:
        raise ParameterError(f"{told}. Nothing was spent. Say --yes if that is what you want, or {instead}")
