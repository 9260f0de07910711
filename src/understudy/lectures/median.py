"""The MedianMechanism of Lecture 4: guesses from the median of all small databases, checked on the sample.

The same stand-in behind the sparse vector, where people are to be protected, is `private_median`.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from math import floor, log2
from typing import Any, Literal

import numpy as np

from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.domain.domain import Domain
from understudy.errors import TooLargeError
from understudy.lectures.asking import Asked
from understudy.lectures.guess_and_check import Checked, CheckTerms, GuessAndCheck
from understudy.lectures.guessers import MedianGuess, SampledMedianGuess
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.ledger.interface import fresh_request
from understudy.project import Project
from understudy.rational import Number, exact, positive
from understudy.standin.median.median import (
    CANDIDATE_LIMIT,
    MedianUpdate,
    SurvivingSet,
    can_be_held,
    candidates,
)
from understudy.standin.median.sampled import SampledMedianUpdate, SampledSurvivors
from understudy.standin.protocol import DatabaseUpdate
from understudy.theory.guess_and_check import step_grid
from understudy.theory.lecture4 import claim1_size_min, median_params

Mode = Literal["exact", "sampled"]

USELESS_ETA = Fraction(1, 2)
"""At this η or more the guess ½ is always right, and nothing is learnt."""


class MedianMechanism:
    """Adaptive queries on one sample: a median of small databases guesses and is checked. [Lecture 4, Theorem 2]

    S₀ is the set of all multisets of n' rows over the universe, n' the size at which one of them is within η/4
    of the sample on every query that will be asked [Lecture 4, Claim 1]. Where that set can be held, `mode` is
    "exact": a wrong guess halves the set [Lecture 4, Auxiliary Claim] and never drops that one, so that at most
    m = ⌊log₂|S₀|⌋ guesses are wrong: GuessAndCheck(η, m) never halts. Where it cannot be held, which the size of
    the universe, η and the number of queries decide, `mode` is "sampled": the median is that of particles in the
    polytope of all histograms that agree with every rejection.

    Accuracy    Exact: as GuessAndCheck(η, m): within η of the sample, of the population within its tree-count
                width, and never a halt. Sampled: GuessAndCheck without a limit. Every answer is within η of the
                sample, and of the population within the width of the rejections so far, since these hold for
                whatever guesses; that the rejections are few is an observation, for the halving is proved for
                true medians only. `most_rejections` is None then.
    Privacy     None: exact values are compared. `private_median` is the one that protects people.
    Complexity  Exact: O(|S₀|) a query. Sampled: O(particles·|X|) a query, and some seconds for a rejection on
                thousands of cells. `guessers.WeightsGuess` serves larger universes, with a theorem of its own.
    """

    def __init__(
        self,
        table: Curator | Project,
        *,
        queries: int,
        beta: Number = 0.05,
        eta: Number | None = None,
        name: str = "",
        analyst: str = "",
    ) -> None:
        """Open the mechanism on a project's rows, or go on with the one of this `name`, for so many `queries`.

        `table` is the project, or its Curator. `eta` is the tolerance, a share of rows; left out, it is the
        smallest at which the set can be held, or the lecture's where none is below ½. `beta` is the probability
        that some answer is further from the population than its width, and `analyst` is who is written down for
        it. Nothing is charged. Raises a `ParameterError` where one of them is out of range, and a `TooLargeError`
        where the domain has too many cells even to be sampled.
        """
        curator = curator_of(table)
        universe = curator.domain.size()
        self.eta = (
            _usual_eta(universe, queries, curator.rows) if eta is None else positive(eta, "eta", at_most=1)
        )
        self.size = claim1_size_min(queries, self.eta / 4)
        self.mode: Mode = "exact" if can_be_held(universe, self.size) else "sampled"
        self.most_rejections = floor(log2(candidates(universe, self.size))) if self.mode == "exact" else None
        if self.mode == "sampled":
            SampledSurvivors.check_size(universe)
        terms = CheckTerms(eta=self.eta, queries=queries, beta=exact(beta), rejections=self.most_rejections)
        self.checker = GuessAndCheck(curator, terms, name=name, analyst=analyst)
        self.guesser = self._guesser(curator.domain)
        self.checker.teach(self.guesser)

    def _guesser(self, domain: Domain) -> MedianGuess | SampledMedianGuess:
        if self.mode == "exact":
            return MedianGuess(SurvivingSet(domain, self.size), float(self.eta))
        particles = SampledSurvivors(domain, generator=_coins(self.checker.name))
        return SampledMedianGuess(particles, float(self.eta))

    def ask(self, question: Asked) -> Checked:
        """The rate of a `question`, a share of rows: the median's where it is within η of the sample's.

        Returns a `Checked`. What was asked before is answered again, without being counted. Raises as
        `GuessAndCheck.check` does.
        """
        return self.checker.ask(question, self.guesser)


def private_median(
    table: Curator | Project,
    *,
    alpha: Number,
    queries: int,
    updates: int,
    beta: Number = 0.05,
    name: str = "",
    analyst: str = "",
) -> OnlineConstruction:
    """The median behind the sparse vector: counts within α of the rows, as long as at most `updates` guesses fail.

    `table` is the project, or its Curator. `alpha` is a part of all rows, `queries` the number of questions that
    may be asked, and `beta` the probability that some certified answer is further off. Under the same `name` the
    construction goes on where it was, and `analyst` is whose share of the budget pays. Returns an
    `OnlineConstruction`; raises as `practical_terms` does.

    Privacy     That of the online construction: the surviving set is made of released answers, in both modes. A
                sampled median is post-processing like a true one.
    Accuracy    Every certified answer is within α, in both modes, whatever the guesses. Where the set of small
                databases can be held and `updates` reaches B(α/2), the updates never run out [Lecture 7,
                Definition 2], and what follows the last is implied; in all other cases what follows is
                uncertified.
    """
    curator = curator_of(table)
    terms = practical_terms(curator, alpha=alpha, queries=queries, updates=updates, beta=beta)
    gap = Fraction(terms.gap, curator.rows)
    named = name or fresh_request()
    update = median_update(curator.domain, queries=queries, alpha=gap, cap=updates, name=named)
    if isinstance(update, MedianUpdate) and update.most_updates(gap) <= updates:
        terms = terms.bounded(is_bounded=True)
    return OnlineConstruction(curator, update, terms, name=named, analyst=analyst)


def median_update(domain: Domain, *, queries: int, alpha: Number, cap: int, name: str) -> DatabaseUpdate[Any]:
    """The median as an update algorithm: all small databases where they can be held, else a sample.

    The coins of a sample come from `name`: who goes on with the construction draws the same.
    """
    exact_one = MedianUpdate(domain=domain, queries=queries, alpha=alpha)
    if can_be_held(domain.size(), exact_one.size):
        return exact_one
    return SampledMedianUpdate(domain=domain, cap=cap, generator=_coins(name))


def _coins(name: str) -> np.random.Generator:
    """Coins of a name: independent of the rows, and the same in every process that goes on."""
    return np.random.default_rng(list(sha256(name.encode()).digest()))


def _usual_eta(universe: int, queries: int, rows: int) -> Fraction:
    try:
        smallest = smallest_eta(universe, queries)
    except TooLargeError:
        smallest = Fraction(1)
    if smallest < USELESS_ETA:
        return smallest
    lecture = median_params(max(rows, 1), queries, universe).eta
    return exact(float(f"{min(lecture, 0.49):.3g}"))


def smallest_eta(universe: int, queries: int) -> Fraction:
    """The smallest η of a fine grid at which the set of candidates can be held."""
    for eta in step_grid(1e-3, 200):
        found = exact(float(f"{eta:.3g}"))
        if can_be_held(universe, claim1_size_min(queries, found / 4)):
            return found
    raise TooLargeError("the set of small databases, at any eta", cells=universe, limit=CANDIDATE_LIMIT)
