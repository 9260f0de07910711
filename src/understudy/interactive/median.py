"""The MedianMechanism of Lecture 4: guesses from the median of all small databases, checked on the sample."""

from __future__ import annotations

from fractions import Fraction
from math import comb, floor, log2

from understudy.curator import Curator
from understudy.errors import TooLargeError
from understudy.interactive.guess_and_check import Checked, CheckTerms, GuessAndCheck
from understudy.interactive.guessers import Median
from understudy.query.linear import LinearQuery
from understudy.rational import Number, exact, positive
from understudy.standin.median import CANDIDATE_LIMIT, SurvivingSet
from understudy.theory.guess_and_check import step_grid
from understudy.theory.lecture4 import claim1_size_min


class MedianMechanism:
    """Any number of adaptive queries, of which only few can be answered from the sample. [Lecture 4, Theorem 2]

    S₀ is the set of all multisets of n' rows over the universe, n' the size at which one of them is within η/4
    of the sample on every query that will be asked [Lecture 4, Claim 1]. A wrong guess halves the set [Lecture
    4, Auxiliary Claim] and never drops that one, so that at most m = ⌊log₂|S₀|⌋ guesses are wrong:
    GuessAndCheck(η, m) never halts.

    Accuracy    As GuessAndCheck(η, m): within η of the sample; of the population within its tree-count width.
    Complexity  O(|S₀|) a query: the universe must be small. `guessers.Weights` serves larger ones.
    """

    def __init__(
        self,
        curator: Curator,
        *,
        queries: int,
        beta: Number = 0.05,
        eta: Number | None = None,
        name: str = "",
        analyst: str = "",
    ) -> None:
        universe = curator.domain.size()
        self.eta = smallest_eta(universe, queries) if eta is None else positive(eta, "eta", at_most=1)
        self.size = claim1_size_min(queries, self.eta / 4)
        candidates = comb(self.size + universe - 1, self.size)
        if candidates > CANDIDATE_LIMIT:
            raise TooLargeError(
                f"the set of databases of {self.size} rows (ask for a larger eta, or guess with weights)",
                cells=candidates,
                limit=CANDIDATE_LIMIT,
            )
        self.most_rejections = floor(log2(candidates))
        terms = CheckTerms(eta=self.eta, queries=queries, beta=exact(beta), rejections=self.most_rejections)
        self.checker = GuessAndCheck(curator, terms, name=name, analyst=analyst)
        self.guesser = Median(SurvivingSet(curator.domain, self.size), float(self.eta))
        self.checker.teach(self.guesser)

    def ask(self, query: LinearQuery) -> Checked:
        """The rate of a query."""
        return self.checker.ask(query, self.guesser)


def smallest_eta(universe: int, queries: int) -> Fraction:
    """The smallest η of a fine grid at which the set of candidates can be held."""
    for eta in step_grid(1e-3, 200):
        found = exact(float(f"{eta:.3g}"))
        size = claim1_size_min(queries, found / 4)
        if comb(size + universe - 1, size) <= CANDIDATE_LIMIT:
            return found
    raise TooLargeError("the set of small databases, at any eta", cells=universe, limit=CANDIDATE_LIMIT)
