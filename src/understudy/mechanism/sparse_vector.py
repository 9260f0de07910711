"""The sparse vector technique: ask many, pay for the few that are above a threshold.

A handle is opened once and charged once; its noisy threshold and counter are hidden state that must neither be
shown nor drawn again. The mechanisms here are functions from state to state; whoever runs them keeps the state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.errors import HandleClosedError, ParameterError
from understudy.mechanism.card import Card, Family, StreamSubject
from understudy.mechanism.parameters import lattice_sensitivity, whole
from understudy.noise.law import scale_parameter
from understudy.noise.samplers import NoiseSource, discrete_laplace
from understudy.privacy.event import SparseVector
from understudy.rational import privacy_parameter, probability

TOLD = Fraction(1, 9)
"""Of the price of a sparse vector that tells values, the part for telling; the rest is for comparing."""

HALF = Fraction(1, 2)
"""The textbook's part of a run's price for its threshold; the rest is for the comparisons."""


def best_share(k: int, beta: float, hits: int = 1) -> Fraction:
    """The part of a run's price for its threshold at which all of k answers are right nearest to it, to 1/1000.

    e₁ : e₂ = sqrt(ln(2c/β)) : sqrt(2 ln(k/β)) makes (Δ/e₁)·ln(2c/β) + (2Δ/e₂)·ln(k/β) least for a given e₁ + e₂.

    >>> best_share(1000, 0.05)
    Fraction(301, 1000)
    """
    whole(k, "the number of values", at_least=1)
    failure = float(probability(beta))
    threshold, values = sqrt(log(2 * hits / failure)), sqrt(2 * log(k / failure))
    return Fraction(round(1000 * threshold / (threshold + values)), 1000)


@dataclass(frozen=True, slots=True)
class SparseState:
    """What a handle remembers. Private: it never leaves the ledger."""

    noisy_threshold: int
    above: int = 0
    asked: int = 0

    def as_bytes(self) -> bytes:
        return f"{self.noisy_threshold} {self.above} {self.asked}".encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> SparseState:
        return cls(*map(int, stored.split()))


@dataclass(frozen=True, slots=True, eq=False)
class SparseStates:
    """Many independent handles side by side, one of each array's entries for each."""

    noisy_threshold: NDArray[np.int64]
    above: NDArray[np.int64]

    def __getitem__(self, places: NDArray[np.bool_]) -> SparseStates:
        return SparseStates(self.noisy_threshold[places], self.above[places])


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Say for each value of a stream whether it is above a threshold, until `hits` were.

    Per run: ρ ~ Lap(Δ/e₁) on the threshold, ν ~ Lap(2Δ/e₂) on each value, above when value + ν ≥ threshold + ρ;
    after each hit a fresh ρ. e₁ + e₂ = ε' = ε/`hits`, and e₁ is the part `share` of it: 1/2 in the textbook,
    `best_share` where the number of values is known.

    Privacy     ε-DP for the whole stream, however long: each run is ε'-DP [DworkRoth14, Theorem 3.23] and runs
                compose [Lecture 4, Theorem 8]. The proof shifts ρ by Δ, which costs e₁, and the ν of the value
                that is above by 2Δ, which costs e₂; on integers both are bijections of the lattice. In zCDP
                `hits` runs of ε' are ε²/(2·hits) (`privacy.cost`), however they are shared.
    Accuracy    Except with probability β every one of k answers is right about values that are further than
                (Δ·hits/ε)(ln(2·hits/β)/`share` + 2 ln(k/β)/(1 - `share`)) and 2 steps from the threshold: some |ρ|
                is beyond its part with probability β/2, and a value errs on one side only, with half of the
                tail. That is less than the 8Δ(ln k + ln(2/β))/ε of [DworkRoth14, Theorem 3.24], which counts both
                sides, already at 1/2.
    Complexity  O(1) for each value.
    Gap         None: integers, exact law. Every value must have been fixed before its answer is drawn.
    """

    epsilon: Fraction
    sensitivity: int
    threshold: int
    hits: int = 1
    share: Fraction = HALF

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        object.__setattr__(self, "share", probability(self.share, "share"))
        lattice_sensitivity(self.sensitivity)
        if self.sensitivity == 0:
            raise ParameterError("values that nobody can move need no sparse vector: compare them")
        whole(self.hits, "hits", at_least=1)
        whole(self.threshold, "the threshold, in lattice steps,")
        scale_parameter(self.threshold_scale)  # refused here, not after it was paid for
        scale_parameter(self.value_scale)

    @property
    def event(self) -> SparseVector:
        return SparseVector(epsilon=self.epsilon, hits=self.hits)

    @property
    def threshold_scale(self) -> Fraction:
        return self.sensitivity * self.hits / (self.share * self.epsilon)

    @property
    def value_scale(self) -> Fraction:
        return 2 * self.sensitivity * self.hits / ((1 - self.share) * self.epsilon)

    def alpha(self, k: int, beta: float) -> float:
        """Distance from the threshold, in lattice steps, beyond which all of k answers are right."""
        threshold = float(self.threshold_scale) * log(2 * self.hits / beta)
        return threshold + float(self.value_scale) * log(k / beta) + 2

    def open(self, *, noise: NoiseSource) -> SparseState:
        """The first noisy threshold."""
        return SparseState(self.threshold + int(self._threshold_noise(1, noise)[0]))

    def ask(self, state: SparseState, value: int, *, noise: NoiseSource) -> tuple[bool, SparseState]:
        """Whether the value is above the threshold, and the state after the answer."""
        whole(value, "a value, in lattice steps,")
        self._check_open(state.above)
        if not self._is_above(state.noisy_threshold - value, 1, noise)[0]:
            return False, replace(state, asked=state.asked + 1)
        fresh = self.open(noise=noise)
        return True, replace(fresh, above=state.above + 1, asked=state.asked + 1)

    def open_many(self, count: int, *, noise: NoiseSource) -> SparseStates:
        """So many handles, each as `open` gives it."""
        return SparseStates(self.threshold + self._threshold_noise(count, noise), np.zeros(count, np.int64))

    def ask_many(
        self, states: SparseStates, value: int, *, noise: NoiseSource
    ) -> tuple[NDArray[np.bool_], SparseStates]:
        """One value, asked of every handle, each as `ask` does it."""
        whole(value, "a value, in lattice steps,")
        if states.above.size:
            self._check_open(int(states.above.max()))
        above = self._is_above(states.noisy_threshold - value, states.above.size, noise)
        noisy_threshold = states.noisy_threshold.copy()
        noisy_threshold[above] = self.open_many(int(above.sum()), noise=noise).noisy_threshold
        return above, SparseStates(noisy_threshold, states.above + above)

    def _check_open(self, above: int) -> None:
        if above >= self.hits:
            raise HandleClosedError(
                f"this sparse vector has given its {self.hits} answers above the threshold"
            )

    def _is_above(self, gap: int | NDArray[np.int64], count: int, noise: NoiseSource) -> NDArray[np.bool_]:
        """Whether value + ν ≥ noisy threshold, where `gap` is the noisy threshold less the value."""
        return discrete_laplace(self.value_scale, count, noise=noise) >= gap

    def _threshold_noise(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        return discrete_laplace(self.threshold_scale, count, noise=noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericSparse:
    """A sparse vector that also tells the value, with noise, when it is above.

    Privacy     ε-DP: 8/9 of ε for saying above or below, 1/9 for `hits` Laplace answers.
                [DworkRoth14, Theorem 3.27] In zCDP 65/81 of ε²/(2·hits): (8² + 1²)/9².
    Accuracy    That of its two parts; each value told is within ⌈(9Δ·hits/ε)·ln(hits/β)⌉ of the truth.
    Complexity  O(1) for each value.
    Gap         As `AboveThreshold`. The noise of a told value is fresh: that of the comparison is never reused.
    """

    epsilon: Fraction
    sensitivity: int
    threshold: int
    hits: int = 1
    share: Fraction = HALF
    """The part for the threshold, of the price of comparing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        scale_parameter(self.compare.value_scale)  # also checks the rest
        scale_parameter(self.answer_scale)

    @property
    def event(self) -> SparseVector:
        return SparseVector(epsilon=self.epsilon, hits=self.hits, told=TOLD)

    @property
    def compare(self) -> AboveThreshold:
        return AboveThreshold(
            epsilon=self.epsilon * (1 - TOLD),
            sensitivity=self.sensitivity,
            threshold=self.threshold,
            hits=self.hits,
            share=self.share,
        )

    @property
    def answer_scale(self) -> Fraction:
        return self.sensitivity * self.hits / (TOLD * self.epsilon)

    def open(self, *, noise: NoiseSource) -> SparseState:
        return self.compare.open(noise=noise)

    def ask(self, state: SparseState, value: int, *, noise: NoiseSource) -> tuple[int | None, SparseState]:
        """The noisy value when it is above the threshold, else None; and the state after the answer."""
        above, state = self.compare.ask(state, value, noise=noise)
        if not above:
            return None, state
        return value + int(self._answer_noise(1, noise)[0]), state

    def open_many(self, count: int, *, noise: NoiseSource) -> SparseStates:
        """So many handles, each as `open` gives it."""
        return self.compare.open_many(count, noise=noise)

    def ask_many(
        self, states: SparseStates, value: int, *, noise: NoiseSource
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], SparseStates]:
        """One value, asked of every handle as `ask` does it: which say above, and what those tell, in order."""
        above, states = self.compare.ask_many(states, value, noise=noise)
        return above, value + self._answer_noise(int(above.sum()), noise), states

    def _answer_noise(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        return discrete_laplace(self.answer_scale, count, noise=noise)


CARD = Card(
    name="AboveThreshold, NumericSparse",
    family=Family.STREAM,
    privacy="ε for the whole stream",
    accuracy="(sqrt(ln 2c/β) + sqrt(2 ln k/β))²cΔ/ε",
    source="Dwork, Roth 2014, section 3.6",
    events=(SparseVector,),
    audited=(
        StreamSubject(
            "above-threshold",
            "mechanism.sparse_vector.AboveThreshold",
            lambda epsilon, moved, hits: AboveThreshold(
                epsilon=epsilon, sensitivity=moved, threshold=0, hits=hits
            ),
        ),
        StreamSubject(
            "numeric-sparse",
            "mechanism.sparse_vector.NumericSparse",
            lambda epsilon, moved, hits: NumericSparse(
                epsilon=epsilon, sensitivity=moved, threshold=0, hits=hits
            ),
            moved=2,
        ),
    ),
)
