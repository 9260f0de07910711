"""What a server tells beside answers: prices and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from understudy.answer.forecast import ColumnForecast
from understudy.client.decode import cost_from_plain
from understudy.pages import notebook
from understudy.percent import percent_of
from understudy.privacy.cost import Cost


@dataclass(frozen=True, slots=True, repr=False)
class ServerQuote:
    """What a question to a server would cost at most, and how far off its answer could be.

    question        what would be asked
    cost            the most that the ledger would charge at this moment
    share           the part of the whole budget that this is
    error           the half-width, in `unit`, of the counts that would be measured or that the session promises
    unit            `people`, or the released column in whose unit an `error` was asked for
    beta            the probability with which some part of the answer is outside its bounds: 0 with bounded noise
    is_payable      whether what is left to you pays for it
    more_like_this  how many such questions that would pay for; None where the question is free
    needs_approval  whether a custodian would have to approve it first
    noise           of a question with a price of its own, which noise it would get; None where it is public
    forecast        of a question with a price of its own, the error of each column in the column's own unit
    together        of several questions, the most that this one and those before it cost; None where nobody says
    hint            what to ask instead, where it would be refused for its price; empty where nobody says
    """

    question: str
    cost: Cost
    share: float
    error: float
    beta: float
    is_payable: bool
    more_like_this: int | None
    needs_approval: bool
    forecast: tuple[ColumnForecast, ...] = ()
    noise: str | None = None
    unit: str = "people"
    together: Cost | None = None
    hint: str = ""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ServerQuote:
        """The quote in a server's reply, `plain`."""
        error = plain["error"]
        return cls(
            question=plain["question"],
            cost=cost_from_plain(plain["cost"]),
            share=plain["share"],
            error=inf if error is None else error,
            beta=plain["beta"],
            is_payable=plain["affordable"],
            more_like_this=plain["more_like_this"],
            needs_approval=plain["needs_approval"],
            forecast=tuple(
                ColumnForecast(told["column"], told["unit"], told["error"])
                for told in plain.get("forecast", ())
            ),
            noise=plain.get("noise"),
            unit=plain.get("unit", "people"),
            together=cost_from_plain(plain["together"]) if "together" in plain else None,
            hint=plain.get("hint", ""),
        )

    @property
    def is_free(self) -> bool:
        """Whether the answer follows from what somebody bought before."""
        return not self.cost.units

    def __repr__(self) -> str:
        price = "free" if self.is_free else f"at most {percent_of(self.share)} of the budget"
        return f"ServerQuote({price}, {notebook.half_width_in(self.error, self.unit)}, beta {self.beta:g})"

    def _repr_html_(self) -> str:
        known = {
            "at most": "nothing: it is known already"
            if self.is_free
            else f"{percent_of(self.share)} of the whole budget ({amount_told(self.cost)})",
            **(
                {} if self.more_like_this is None else {"left for": f"{self.more_like_this:,} such questions"}
            ),
            "error of each count"
            if self.unit == "people"
            else "error of each number": notebook.half_width_in(self.error, self.unit),
            "probability": notebook.certainty(self.beta),
        }
        remarks = [str(column) for column in self.forecast]
        if not self.is_payable:
            remarks.append("What is left does not pay for it.")
        if self.needs_approval:
            remarks.append("A custodian has to approve it first.")
        parts = [notebook.listed(remarks)] if remarks else []
        note = "Nothing was charged and no data was read."
        return notebook.panel(self.question, notebook.facts(known), *parts, note=note)


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """A part of a budget: its `amount` in the budget's currency, and its `share` of the whole, from 0 to 1."""

    amount: float
    share: float

    def __str__(self) -> str:
        return percent_of(self.share)


@dataclass(frozen=True, slots=True, repr=False)
class ServerBudget:
    """The budget of a served table as one analyst sees it.

    table        the name of the table
    currency     in which amounts are: `rho` or `epsilon`
    epsilon      of the whole budget
    delta        of the whole budget; 0 where it is pure ε
    key_delta    the part of `delta` that events are charged themselves, those of key selection for instance
    cap          the whole budget
    left         what is left of it
    yours        what is left to you, which may be less
    your_spent   what you have spent
    your_limit   the most that you may spend; None without a limit
    others       what others have spent
    day_limit    the most that may be spent in a day; None without such a limit
    month_limit  the most that may be spent in a month; None without such a limit
    more_counts  about how many more counts, each within `count_error` people, what is left to you pays for; None
                 where that cannot be told
    count_error  the half-width, in people, of those counts; None where that cannot be told
    """

    table: str
    currency: str
    epsilon: float
    delta: float
    cap: BudgetPart
    left: BudgetPart
    yours: BudgetPart
    your_spent: BudgetPart
    your_limit: BudgetPart | None
    others: BudgetPart
    day_limit: BudgetPart | None
    month_limit: BudgetPart | None
    more_counts: int | None
    count_error: float | None
    key_delta: float = 0.0
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How rho is added up: the filter's name with its order or reserve, and what that means in words."""
    spent_epsilon: float | None = None
    """The ε of everything that was charged, by everybody together."""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ServerBudget:
        """The budget in a server's reply, `plain`."""
        yours, about = plain["yours"], plain["about"] or {}
        return cls(
            table=plain["table"],
            currency=plain["currency"],
            epsilon=plain["epsilon"],
            delta=plain["delta"],
            cap=_part(plain["cap"]),
            left=_part(plain["left"]),
            yours=_part(yours["left"]),
            your_spent=_part(yours["spent"]),
            your_limit=_part_or_none(yours["limit"]),
            others=_part(plain["others_spent"]),
            day_limit=_part_or_none(plain["day_limit"]),
            month_limit=_part_or_none(plain["month_limit"]),
            more_counts=about.get("counts"),
            count_error=about.get("within"),
            key_delta=plain.get("key_delta", 0.0),
            kept={name: plain[name] for name in ("filter", "order", "reserve", "meaning") if name in plain},
            spent_epsilon=plain.get("spent_epsilon"),
        )

    def __repr__(self) -> str:
        return f"ServerBudget({self.table!r}: {self.left} left, {self.yours} for you)"

    def _repr_html_(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        used = 1 - self.left.share
        known: dict[str, str] = {
            "the whole": f"epsilon {self.epsilon:g}{delta} ({self.currency} {self.cap.amount:.4g})",
            "spent": notebook.share(used, f"{percent_of(used)}: you {self.your_spent}, others {self.others}"),
            "left": str(self.left),
            "left to you": str(self.yours),
        }
        if self.kept and self.delta:
            known["filter"] = f"{self.kept['filter']}: {self.kept['meaning']}"
        limits = {
            "your limit": self.your_limit,
            "limit of a day": self.day_limit,
            "limit of a month": self.month_limit,
        }
        known |= {name: str(part) for name, part in limits.items() if part is not None}
        if self.more_counts is not None and self.count_error is not None:
            known["that is"] = (
                f"about {self.more_counts:,} more new counts within ± {self.count_error:,.0f} people"
            )
        return notebook.panel(f"Budget of {self.table}", notebook.facts(known))


def amount_told(cost: Cost) -> str:
    """An amount in its currency."""
    return f"{cost.currency} {cost.amount:.4g}"


def _part(plain: Mapping[str, float]) -> BudgetPart:
    return BudgetPart(plain["amount"], plain["share"])


def _part_or_none(plain: Mapping[str, float] | None) -> BudgetPart | None:
    return None if plain is None else _part(plain)
