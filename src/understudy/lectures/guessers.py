"""Guessers for GuessAndCheck: each guesses a query's share of the rows, and may learn from being wrong.

A guess is made of the transcript or of other data, and of the checked rows in no other way. So a bad guesser costs
rejections, and never validity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.query.linear import LinearQuery
from understudy.query.projection import Projection
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.median.median import SurvivingSet
from understudy.standin.median.sampled import SampledSurvivors


@dataclass(frozen=True)
class ConstantGuess:
    """The same guess for every query: `value`, a share of rows."""

    value: float = 0.5

    def guess(self, query: LinearQuery) -> float:
        """The same share of rows for every `query`."""
        del query
        return self.value

    def learn(self, query: LinearQuery, value: float) -> None:
        """Does nothing with a `query` and its `value`: these guesses learn from no answer."""
        del query, value


@dataclass(frozen=True)
class OtherData:
    """Guesses from other data: a training half, a public table, an earlier release.

    `other` is anything that can be projected onto a few attributes, over the same domain as the queries.
    """

    other: Projection

    def guess(self, query: LinearQuery) -> float:
        """The answer of the other data to a `query`, as a share of its rows."""
        return query.answer(self.other)

    def learn(self, query: LinearQuery, value: float) -> None:
        """Does nothing with a `query` and its `value`: these guesses learn from no answer."""
        del query, value


@dataclass(frozen=True)
class GuessFunction:
    """Guesses of a `function` that the caller brings: it must not have seen the rows that are checked.

    It takes a `LinearQuery` and returns a share of rows, from 0 to 1.
    """

    function: Callable[[LinearQuery], float]

    def guess(self, query: LinearQuery) -> float:
        """What the function says of a `query`: a share of rows."""
        return float(self.function(query))

    def learn(self, query: LinearQuery, value: float) -> None:
        """Does nothing with a `query` and its `value`: these guesses learn from no answer."""
        del query, value


@dataclass(frozen=True)
class MedianGuess:
    """Guesses by the median of the small databases that survive. [Lecture 4, MedianMechanism]

    `survivors` are these databases, and `eta` is the tolerance η of the check, a share of rows. A wrong guess
    drops every database whose answer is more than η/2 from the sample's: at least half of them, and never one that
    is within η/4 of the sample on all queries.
    """

    survivors: SurvivingSet
    eta: float

    def guess(self, query: LinearQuery) -> float:
        """The median of the answers to a `query` of the databases that survive: a share of rows."""
        return self.survivors.answer(query)

    def learn(self, query: LinearQuery, value: float) -> None:
        """Leave out the databases whose answers to a `query` are over η/2 from `value`, a share of rows."""
        self.survivors.cut_by_distance(query, value, self.eta / 2)


@dataclass(frozen=True)
class SampledMedianGuess:
    """Guesses by the median of sampled histograms (particles), where the small databases are too many to hold.

    `survivors` are the particles, and `eta` is the tolerance η of the check, a share of rows. The particles lie in
    the polytope of all histograms that agree with every rejection: after a wrong guess, the sample's rate is
    within η of the value told and on the same side of the guess. That is kept, and about half of the volume goes.
    The sample's own histogram is never cut off; that halving bounds the rejections is an observation here, and no
    theorem (`understudy.standin.median.sampled`).
    """

    survivors: SampledSurvivors
    eta: float

    def guess(self, query: LinearQuery) -> float:
        """The median of the answers of the sampled databases to a `query`: a share of rows."""
        return self.survivors.answer(query)

    def learn(self, query: LinearQuery, value: float) -> None:
        """Keep what answers a `query` within η of `value`, a share of rows, and on its side of the guess."""
        guess, low, high = self.survivors.answer(query), value - self.eta, value + self.eta
        if value > guess:
            self.survivors.keep_between(query, max(low, guess), high)
        else:
            self.survivors.keep_between(query, low, min(high, guess))


@dataclass(frozen=True)
class WeightsGuess:
    """Guesses by multiplicative weights, which a wrong guess moves by exp(±4η·q).

    `weights` are a number for each cell, and `eta` is the tolerance η of the check, a share of rows. At most
    ln|X|/(2η²) guesses are wrong, where |X| is the number of cells of the domain.
    """

    weights: DenseWeights
    eta: float

    def guess(self, query: LinearQuery) -> float:
        """The answer of the weights to a `query`: a share of rows."""
        return self.weights.answer(query)

    def learn(self, query: LinearQuery, value: float) -> None:
        """Scale the weights of the cells of a `query` up or down, towards the answer `value`, a share of rows."""
        up = value > self.weights.answer(query)
        self.weights.reweight(query, 4 * self.eta if up else -4 * self.eta)
