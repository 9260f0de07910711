"""What a session's answers say about the population behind the table, by the narrower of two theorems.

Theorem T (`theory.tilting`), where all that was ever spent from the ledger is noise on sums over rows
(`curator.row_sums`). Except with probability β no question that follows from what was told exceeds its
expectation by more than t on the table, where t² = α(ln(1/β) + nαρ/2)/(2n(α-1)), ρ is the sum of all prices up
to the answer for one replaced row, and the order α was fixed in advance: by the budget, the rows and β. Answers
are within the session's error of the table except with probability β_s, so that all are within that and t of the
population except with β + β_s. Prices are added up one by one: a joint price counts answers about different rows
once, and the theorem does not. So the sum may pass the budget, and is not bounded in advance; it need not be,
since t goes by the realised sum. A debit of another kind ends these claims, and those before it stand: they are
claims about a ledger that ends there. Whether a debit is of another kind depends on the ledger alone, which is
public.

The CVaR transfer (`theory.cvar`) needs no more than privacy. With probability 1 - β all answers are within
CVaR_β(largest error) + V(β) of the population's values, where V comes from the privacy curve of everything that
may ever be spent. A mere promise (α, β_s) gives CVaR ≤ α + β_s/β, since an error is at most 1; for pure
ε-privacy V = tanh(ε/4) on every transcript. The theorem is about tables of equally many rows, one of them
replaced. A replaced row is one that is removed and one that is added: what is charged under `add-remove` counts
there for more (`Relation.steps_to_replace`).

Each theorem holds for all answers that name it, together. What rests on both fails with the sum of their
probabilities.

Both hold for every number n of rows, and so where n is private; t is then that of the least number. Counts are
compared with n times the population's share. Shares are counts over a number that is itself only known to within e
rows, and so within (width + e)/(least number of rows) of the table's.

Whatever is made of counts, as by a SELECT statement, is followed through the intervals of all of them, which hold
at once: it needs no probability of its own (`answer.select_question.SelectQuestion`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.counts import PopulationReach
from understudy.curator.curator import Curator
from understudy.curator.row_sums import RowSums
from understudy.declaration.declaration import Protect
from understudy.errors import LedgerError
from understudy.sessions.terms import Terms
from understudy.theory.cvar import cvar_V_zcdp
from understudy.theory.smoothing import LOG_FACTOR
from understudy.theory.tilting import outward, tilting_t, transfer_log_bound, transfer_order
from understudy.theory.transfer import pure_dp_width

BETA = 0.05
"""The probability that some answer is further from the population than a theorem says, given that the answers are
within their errors of the table (Theorem T), or in all (the CVaR transfer)."""

MOST = BETA / 100
"""For the CVaR transfer the β of a session may be at most this: it enters the half-width divided by `BETA`."""

UNREADABLE = "the ledger could not be read: nobody knows what was spent"
"""Said of what was spent where the ledger does not tell."""

TILTING = "Theorem T (tilting), our own, not peer reviewed"
TRANSFER = "CVaR transfer"

_ALWAYS = (
    "the rows are independent draws from the population, one for each person; their number tells nothing of them",
    "nobody looks at them but through this ledger",
    "every number is the mean of one number in [0, 1] for each row, or made of such means",
)
_OF_TILTING = (
    "all that was spent so far is Laplace or Gaussian noise on sums over the same rows, as their questions in the "
    "ledger say; where the table is no file, that its rows have not changed is believed",
    "the prices for one replaced row count one by one, up to this answer, not jointly",
    "the theorem is our own, not peer reviewed; derived and re-derived by two readers",
)
_OF_TRANSFER = ("the whole budget counts, whatever was spent of it",)


@dataclass(frozen=True)
class Population:
    """How far shares of rows can be from the population's, for all answers of a session at once.

    Promise     Except with probability `beta` every share is within `half_width` of the population's.
    Why         The `theorem`, one of the two of this module, if its `assumptions` hold.
    Cost        None: it is computed from the terms, the budget and what the ledger shows.

    `half_width` is a share of rows; None where no theorem gives one, and `reason` says why. `drift` is the part of
    it that is no error against the table. `check` is the half-width by the other theorem, for comparison.
    """

    half_width: float | None
    reason: str = ""
    drift: float = 0.0
    beta: float | None = None
    theorem: str | None = None
    assumptions: tuple[str, ...] = ()
    check: float | None = None

    def of_counts(self, answer: Answer, width: float, rows: float) -> NDArray[np.float64] | None:
        """How far the counts of an `answer` can be from the population's, in people; None where nobody can tell.

        The counts are within `width` people of the table's, which has at most `rows` rows.

        Where everybody counts the same, as in `count`, the table's number is that of the population: such an
        answer is as far from the one as from the other.
        """
        if self.half_width is None:
            return None
        where, same = answer.query.where, answer.query.size == 1 and answer.query.moment is None
        if same and where.smallest == where.largest:
            return answer.error
        return np.full(answer.value.shape, width + rows * self.drift)

    @property
    def of_shares(self) -> PopulationReach | None:
        """The same for shares, as an answer tells it; None where nobody can tell."""
        if self.half_width is None or self.beta is None or self.theorem is None:
            return None
        return PopulationReach(self.half_width, self.beta, self.theorem)

    def as_dict(self) -> dict[str, Any]:
        """The certificate as plain values, which JSON can hold."""
        told: dict[str, Any] = {"half_width": self.half_width, "beta": self.beta, "theorem": self.theorem}
        told |= {"assumptions": list(self.assumptions), "reason": self.reason}
        return told if self.check is None else told | {"independent_check": self.check}


def narrower(tilting: Population, transfer: Population) -> Population:
    """The certificate with the smaller half-width, and the other one's as its check; else the first's reason.

    Each holds with its own probability for all answers that name it, so that the choice may be made anew for each.
    """
    if tilting.half_width is None or transfer.half_width is None:
        return transfer if tilting.half_width is None and transfer.half_width is not None else tilting
    first, other = (tilting, transfer) if tilting.half_width <= transfer.half_width else (transfer, tilting)
    return replace(first, check=other.half_width)


def spent_on_rows(curator: Curator, request: str | None) -> RowSums:
    """What was spent, as Theorem T counts it, by what the ledger holds now.

    With the `request` of a purchase it is what was spent up to that purchase, itself included: whoever chose the
    question had seen no more.
    """
    if _outside(curator) is not None:
        return RowSums()  # no theorem is about this table, whatever was spent
    try:
        return curator.row_sums.now() if request is None else curator.row_sums.upto(request)
    except LedgerError:
        return RowSums(other=UNREADABLE)


def by_tilting(
    curator: Curator, terms: Terms, rows: int, spent: RowSums, *, share_error: float | None = None
) -> Population:
    """The half-width by Theorem T, for what was `spent`, of a table of at least so many rows.

    The session's shares are within `share_error` of the table's, or within alpha where that is None.
    """
    if (reason := _outside(curator)) is not None:
        return Population(None, reason)
    if spent.other == UNREADABLE:
        return Population(None, UNREADABLE)
    if spent.other:
        return Population(None, f"the ledger has {spent.other}")
    order = _order(curator, rows)
    t = tilting_t(rows, BETA, order, outward(transfer_log_bound(rows, order, spent.rho) + LOG_FACTOR))
    return _certificate(terms, t, share_error, BETA + float(terms.beta), TILTING, (*_ALWAYS, *_OF_TILTING))


def _order(curator: Curator, rows: int) -> float:
    """The order of the theorem, by public values that never change: best where all of the budget is spent flat."""
    budget, steps = curator.ledger.budget, curator.relation.steps_to_replace
    most = (steps * budget.cap.amount) ** 2 / 4 if budget.is_pure else steps * budget.cap.amount
    return transfer_order(rows, BETA, max(most, 1e-12))


def by_transfer(curator: Curator, terms: Terms, *, share_error: float | None = None) -> Population:
    """The half-width by the CVaR transfer, which depends on terms and budget alone."""
    budget, relation = curator.ledger.budget, curator.relation
    if (reason := _outside(curator)) is not None:
        return Population(None, reason)
    if float(terms.beta) > MOST:
        return Population(None, f"the session's beta must be at most {MOST:g}, not {float(terms.beta):g}")
    steps = relation.steps_to_replace
    if budget.is_pure:
        transfer = pure_dp_width(steps * budget.epsilon)
    else:
        if budget.concentrated is None:
            return Population(None, f"the theorem needs zCDP, and of this ledger {budget.filter.described()}")
        aside = float(budget.key_delta)
        transfer = cvar_V_zcdp(steps**2 * budget.concentrated, BETA, aside=aside, steps=steps)
    # Where the number of rows is private, what was learnt of it enters, and may be wrong too.
    beta = BETA if relation.rows_are_public else BETA + float(terms.beta)
    drift = float(terms.beta) / BETA + transfer
    return _certificate(terms, drift, share_error, beta, TRANSFER, (*_ALWAYS, *_OF_TRANSFER))


def _outside(curator: Curator) -> str | None:
    """Why no theorem is about this table; None where the conditions of both hold."""
    if curator.relation.max_rows != 1:
        return "the theorem needs rows that are independent: one for each person"
    if curator.declaration.protect is not Protect.PRIVACY:
        return "exact values may be looked at here, which the budget does not count"
    return None


def _certificate(
    terms: Terms, drift: float, share_error: float | None, beta: float, theorem: str, assumed: tuple[str, ...]
) -> Population:
    half_width = (float(terms.alpha) if share_error is None else share_error) + drift
    if half_width >= 1:
        return Population(None, "so much is spent, or may be, that it says nothing about the population")
    return Population(half_width, "", drift, beta, theorem, assumed)
