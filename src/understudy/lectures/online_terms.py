"""What an online construction promises and what it pays: by a theorem on updates, or calibrated to an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log
from typing import Any

from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import noise_for
from understudy.mechanism.sparse_vector import HALF, best_share
from understudy.privacy.budget import Budget
from understudy.privacy.calibrate import cheapest
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Pure
from understudy.privacy.filter import ZCDP_FILTER
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Sensitivity
from understudy.project import Project
from understudy.rational import Number, exact, positive, probability
from understudy.standin.protocol import DatabaseUpdate
from understudy.theory.guess_and_check import step_grid

RUN_SHARE = Fraction(8, 9)
"""Of the price of a run, the part for comparing; the rest buys the answer. As NumericSparse shares."""


@dataclass(frozen=True)
class OnlineTerms:
    """What an online construction promises and what it pays; `theorem_terms` and `practical_terms` work them out.

    queries       the number of questions that may be asked
    beta          the probability that some answer is further off than its error
    gap           how far off, in people, the stand-in is at least when it is updated, and a bought answer at most
    slack         how far from the threshold, in people, a comparison can be wrong
    updates       the number of runs of the sparse vector, each of which ends with an update, that are paid for
    run_epsilon   the ε of the comparisons of one run
    answer_price  the price of the answer that ends a run, in ε or ρ
    is_bounded    whether a theorem says that there are no more updates than these, whatever is asked
    share         the part of a run's price for its threshold; the rest is for its comparisons
    printed_slack  the slack that the textbook's theorem states for the same price: `slack_of`
    earlier       the terms that version 0.1 planned for the same wishes: what was opened under them goes on so

    The stand-in is compared with the `threshold`, gap + slack, and the promised `error` is gap + 2·slack.
    """

    queries: int
    beta: Fraction
    gap: int
    slack: int
    updates: int
    run_epsilon: Fraction
    answer_price: Price
    is_bounded: bool = False
    share: Fraction = HALF
    printed_slack: int | None = field(default=None, compare=False)
    earlier: OnlineTerms | None = field(default=None, compare=False, repr=False)

    @property
    def threshold(self) -> int:
        """The threshold that gaps are compared with, in people."""
        return self.gap + self.slack

    @property
    def error(self) -> int:
        """How far an answer can be off, in people."""
        return self.gap + 2 * self.slack

    def text(self) -> str:
        """The terms as one line, which names them wherever they are kept."""
        return (
            f"online construction: {self.queries} queries within {self.error} except with {self.beta}, "
            f"{self.updates} updates on gaps of {self.gap} at {self.run_epsilon} and {self.answer_price}"
        ) + ("" if self.share == HALF else f", {self.share} of a run for its threshold")

    def bounded(self, *, is_bounded: bool) -> OnlineTerms:
        """The same terms, earlier ones too, with `is_bounded` as given: whether a theorem bounds the updates."""
        earlier = None if self.earlier is None else replace(self.earlier, is_bounded=is_bounded)
        return replace(self, is_bounded=is_bounded, earlier=earlier)

    def resumed(self, curator: Curator, name: str) -> OnlineTerms:
        """The terms under which a construction called `name` was opened on the table of a `curator`.

        They are these, or the earlier ones where the ledger holds it under those.
        """
        known = curator.ledger.find(name) if name and self.earlier is not None else None
        if known is None or self.earlier is None or known.question.startswith(self.text()):
            return self
        return self.earlier if known.question.startswith(self.earlier.text()) else self


def slack_of(run_epsilon: Fraction, queries: int, updates: int, beta: Fraction, *, moved: int = 1) -> int:
    """⌈8Δ(ln k + ln(4B/β))/ε₀⌉ + 1: all comparisons of all B runs are right beyond this, except with β/2.

    Δ = `moved` is what one person moves a count by. One more, since the stand-in's count is rounded to a whole one
    before it is compared.

    [DworkRoth14, Theorem 3.24]
    """
    return ceil(float(8 * moved / run_epsilon) * (log(queries) + log(4 * updates / beta))) + 1


def run_share(queries: int, updates: int, beta: Fraction) -> Fraction:
    """The part of a run's price for its threshold at which `shared_slack` is least, to 1/1000."""
    return best_share(queries, float(beta / 2), updates)


def shared_slack(run_epsilon: Fraction, queries: int, updates: int, beta: Fraction, *, moved: int = 1) -> int:
    """⌈(Δ/ε₀)(ln(4B/β)/s + 2 ln(2k/β)/(1 - s))⌉ + 3, s = `run_share`: as `slack_of`, less than half of it.

    There are k comparisons in all the runs together, each with noise of scale 2Δ/((1-s)ε₀), and B thresholds,
    each with noise of scale Δ/(sε₀). All of the second are within their part except with β/4. A comparison is
    only ever wrong on one side, above or below by the value that it is about, so that each is so with half of
    its tail, and one of them with β/4. That is the accuracy of `mechanism.sparse_vector.AboveThreshold` with B
    hits at β/2, its 2 lattice steps, and one more, since the stand-in's count is rounded to a whole one before
    it is compared.

    >>> shared_slack(Fraction(1), 1000, 1, Fraction(1, 10)), slack_of(Fraction(1), 1000, 1, Fraction(1, 10))
    (44, 86)
    """
    part = float(run_share(queries, updates, beta))
    noise = log(4 * updates / beta) / part + 2 * log(2 * queries / beta) / (1 - part)
    return ceil(float(moved / run_epsilon) * noise) + 3


def halved_slack(run_epsilon: Fraction, queries: int, updates: int, beta: Fraction, *, moved: int = 1) -> int:
    """⌈(4Δ ln(4k/β) + 2Δ ln(4B/β))/ε₀⌉ + 1: with half of a price for the threshold, both sides counted.

    What version 0.1 planned by: constructions that were opened so go on so.
    """
    noise = 4 * log(4 * queries / beta) + 2 * log(4 * updates / beta)
    return ceil(float(moved / run_epsilon) * noise) + 1


def answer_error(price: Price, updates: int, beta: Fraction, *, moved: Sensitivity) -> int:
    """How far any of B bought answers is off, except with β/2; `moved` is the sensitivity of one count."""
    return noise_for(price, moved).error(beta / 2, cells=updates)


def theorem_terms(
    table: Curator | Project,
    update_for: Callable[[Fraction], DatabaseUpdate[Any]],
    *,
    queries: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    beta: Number = 0.05,
) -> OnlineTerms:
    """The terms of the smallest error that the theorem allows for a price, in `epsilon` or in `rho`.

    `table` is the project, or its Curator; `queries` is how many questions may be asked, and `beta` the
    probability that some answer is further off. Nothing is charged here. The update algorithm makes at most B(α)
    updates on gaps of α, whatever is asked [Lecture 7, Definition 2], so B runs are enough for ever: the function
    `update_for` gives the algorithm for a gap of α of the rows, and α is chosen best. How far comparisons can be
    wrong is `shared_slack`; the textbook's statement for the same price, `slack_of` [DworkRoth14, Theorem 3.24],
    stands beside it in `printed_slack`. Raises a `ParameterError` for an algorithm whose number of updates is no
    theorem, and a `RefusedError` where no error below all of the rows can be promised at the price.
    """
    curator, failure, price = curator_of(table), probability(beta), Price.of(epsilon=epsilon, rho=rho)
    best = _best_theorem_terms(curator, update_for, queries, failure, price, shared_slack)
    if best is None:
        raise RefusedError(
            "no error below all of the rows can be promised at this price: ask with a session, which needs no "
            "bound on updates, or with practical terms"
        )
    earlier = _best_theorem_terms(curator, update_for, queries, failure, price, slack_of)
    return replace(best, earlier=earlier)


def _best_theorem_terms(
    curator: Curator,
    update_for: Callable[[Fraction], DatabaseUpdate[Any]],
    queries: int,
    failure: Fraction,
    price: Price,
    slack_for: Callable[..., int],
) -> OnlineTerms | None:
    """The terms of the smallest error by one of the bounds on the slack; None where there are none."""
    rows, moved = curator.rows_at_least, curator.relation.moves(ONE_COUNT)
    best: OnlineTerms | None = None
    for step in step_grid(1.0, 120):
        gap = floor(step * rows)
        if gap < 1 or (best is not None and gap >= best.error):
            continue
        alpha = Fraction(gap, rows)
        update = update_for(alpha)
        if not getattr(update, "is_proven", True):
            raise ParameterError("nothing bounds the updates of this algorithm: take practical terms")
        try:
            updates = max(update.most_updates(alpha), 1)
            run, answer = _split(price / updates, curator.ledger.budget)
            fits = answer_error(answer, updates, failure, moved=moved) <= _tolerance(update, gap, rows)
        except ParameterError:  # no bound at this gap, or prices too small to mean anything
            continue
        printed = slack_of(run, queries, updates, failure, moved=moved.l1)
        slack = slack_for(run, queries, updates, failure, moved=moved.l1)
        share = run_share(queries, updates, failure) if slack_for is shared_slack else HALF
        found = OnlineTerms(
            queries,
            failure,
            gap,
            slack,
            updates,
            run,
            answer,
            is_bounded=True,
            share=share,
            printed_slack=printed,
        )
        if fits and found.error <= rows and (best is None or found.error < best.error):
            best = found
    return best


def _tolerance(update: DatabaseUpdate[Any], gap: int, rows: int) -> int:
    """How far off the answer may be that an update is made with: its own margin, else anything below the gap."""
    margin = getattr(update, "margin", None)
    return gap - 1 if margin is None else floor(exact(margin) * rows)


def _split(each: Price, budget: Budget) -> tuple[Fraction, Price]:
    """The ε of a run's comparing and the price of its answer, which together cost what is paid for each run."""
    run, answer = each * RUN_SHARE, each * (1 - RUN_SHARE)
    if run.currency == "rho" and budget.filter == ZCDP_FILTER:
        comparing = exact(float(2 * run.amount) ** 0.5)  # to the last digit as ever: journals hold it
    else:
        comparing = budget.epsilon_within(run, Pure(epsilon=Fraction(1)))
    return _rounded(comparing), Price(answer.currency, _rounded(answer.amount))


def _rounded(price: Fraction) -> Fraction:
    """Rounded down to six digits."""
    return exact(float(f"{float(price) * 0.9999995:.6g}"))


def practical_terms(
    table: Curator | Project,
    *,
    alpha: Number,
    queries: int,
    updates: int,
    beta: Number = 0.05,
    gap_share: Number = Fraction(1, 2),
) -> OnlineTerms:
    """Terms with noise calibrated to α, for a number of updates that is an expectation and no theorem.

    `table` is the project, or its Curator; `alpha` is the error of every answer, as a part of all rows (of the
    declared least number where that is private), `queries` is how many questions may be asked, and `beta` the
    probability that some answer is further off. Nothing is charged here. `gap_share` of α is what a bought answer
    may be off by; the rest is slack on both sides of the threshold, and the more of it the cheaper is a run. The
    promise holds for every answer that is given; after `updates` updates nothing more is certified. Raises a
    `ParameterError` where α is less than a few people.
    """
    curator, failure = curator_of(table), probability(beta)
    people = floor(positive(alpha, "alpha", at_most=1) * curator.rows_at_least)
    gap = floor(people * positive(gap_share, "gap_share", at_most=1))
    slack, moved = (people - gap) // 2, curator.relation.moves(ONE_COUNT)
    if slack < 1 or gap < 1:
        raise ParameterError(f"alpha {alpha} of the rows is {people} people: ask for a wider error")
    currency = curator.ledger.budget.currency
    public = (queries, updates, failure, gap, slack, currency, moved)
    (run, answer), (before, _) = (_cheapest_terms(bound, *public) for bound in (shared_slack, halved_slack))
    share = run_share(queries, updates, failure)
    printed = slack_of(run, queries, updates, failure, moved=moved.l1)
    earlier = OnlineTerms(queries, failure, gap, slack, updates, before, answer)
    return replace(earlier, run_epsilon=run, share=share, printed_slack=printed, earlier=earlier)


@lru_cache(maxsize=64)
def _cheapest_terms(
    slack_of_run: Callable[..., int],
    queries: int,
    updates: int,
    failure: Fraction,
    gap: int,
    slack: int,
    currency: Currency,
    moved: Sensitivity,
) -> tuple[Fraction, Price]:
    """The least ε of a run whose noise stays within `slack`, and the least price of an answer within `gap`."""
    run = cheapest(lambda price: slack_of_run(price, queries, updates, failure, moved=moved.l1) <= slack)
    answer = cheapest(
        lambda amount: answer_error(Price(currency, amount), updates, failure, moved=moved) < gap
    )
    return run, Price(currency, answer)
