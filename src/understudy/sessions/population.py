"""What a session's answers say about the population behind the table.

Theorem (`theory.cvar`). With probability 1 - β all answers are within CVaR_β(largest error) + V(β) of the
population's values, where V comes from the privacy curve of everything that may ever be spent. A mere promise
(α, β_s) gives CVaR ≤ α + β_s/β, since an error is at most 1; for pure ε-privacy V = tanh(ε/4) on every transcript.

The theorem is about tables of equally many rows, one of them replaced. A replaced row is one that is removed and
one that is added: what is charged under `add-remove` counts there for more (`Relation.steps_to_replace`).
It holds for every number n of rows, and so where n is private. Counts are then compared with n times the
population's share. Shares are counts over a number that is itself only known to within e rows, and so within
(width + e)/(least number of rows) of the table's.

Whatever is made of counts, as by a SELECT statement, is followed through the intervals of all of them, which hold
at once: it needs no probability of its own (`answer.reader.SelectQuestion`).

Conditions: the rows are independent draws from the population, one for each person, and their number tells nothing
of them; nobody looks at them but through this ledger, whose cap enters, never what was spent so far; the answers
are means of values in [0, 1], as shares of rows are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Protect
from understudy.sessions.terms import Terms
from understudy.theory.cvar import cvar_V_zcdp
from understudy.theory.transfer import pure_dp_width

BETA = 0.05
"""The probability that some answer is further from the population than it says."""

MOST = BETA / 100
"""The β of a session may be at most this: it enters the half-width divided by `BETA`."""


@dataclass(frozen=True)
class Population:
    """How far shares of rows can be from the population's, for all answers of a session at once.

    Promise     Except with probability `beta` every share is within `half_width` of the population's.
    Why         The transfer theorem of the module: accuracy on the table and privacy give accuracy on the
                population.
    Cost        None: it is computed from the terms and the budget.

    `half_width` is a share of rows; None where no theorem gives one, and `reason` says why. `drift` is the part of
    it that is no error against the table.
    """

    half_width: float | None
    reason: str = ""
    drift: float = 0.0
    beta: float | None = None

    def of_counts(self, answer: Answer, width: float, rows: float) -> NDArray[np.float64] | None:
        """How far an answer's counts can be from the population's, in people; None where nobody can tell.

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


def population(curator: Curator, terms: Terms, *, share_error: float | None = None) -> Population:
    """The certificate of a session, from public values alone.

    The session's shares are within `share_error` of the table's, or within alpha where that is None.
    """
    declared, budget, relation = curator.declaration, curator.ledger.budget, curator.relation
    if relation.max_rows != 1:
        return Population(None, "the theorem needs rows that are independent: one for each person")
    if declared.protect is not Protect.PRIVACY:
        return Population(None, "exact values may be looked at here, which the budget does not count")
    if float(terms.beta) > MOST:
        return Population(None, f"the session's beta must be at most {MOST:g}, not {float(terms.beta):g}")
    steps = relation.steps_to_replace
    if budget.is_pure:
        transfer = pure_dp_width(steps * budget.epsilon)
    else:
        if budget.concentrated is None:
            return Population(None, f"the theorem needs zCDP, and of this ledger {budget.filter.described()}")
        transfer = cvar_V_zcdp(steps**2 * budget.concentrated, BETA)
    # Where the number of rows is private, what was learnt of it enters, and may be wrong too.
    beta = BETA if relation.rows_are_public else BETA + float(terms.beta)
    drift = float(terms.beta) / BETA + transfer
    half_width = (float(terms.alpha) if share_error is None else share_error) + drift
    if half_width >= 1:
        return Population(None, "the budget is so large that its privacy says nothing about the population")
    return Population(half_width, "", drift, beta)
