"""Mechanisms broken on purpose, each with the audit that is to catch it. Each was published, or shipped.

An audit must be able to fail: a mutant that no audit catches is listed with the reason (`escapes`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp

import numpy as np

from understudy.audit.accounting import against_distributions, exact_total, joint_is_enough, table_of_events
from understudy.audit.claim import ConcentratedClaim, GaussianClaim, PureClaim
from understudy.audit.coins import FixedCoin, RecordingNoise, exact_choice_law, largest_ratio
from understudy.audit.composite import AB, CELLS, ONE_CELL, A
from understudy.audit.contract import (
    answers_again,
    charges_first,
    counts_hits,
    handle_survives,
    keeps_the_charge,
)
from understudy.audit.neighbours import Setting, TellingLedger, table_pairs
from understudy.audit.privacy import Pair, audit_pair, stacked
from understudy.audit.replay import control_flow, sensitivities
from understudy.audit.scalar import repeated
from understudy.audit.selection import chosen, score_pairs
from understudy.curator import Candidate, Curator
from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax, one_sided
from understudy.mechanism.randomized_response import RandomizedResponse
from understudy.mechanism.sparse_vector import AboveThreshold
from understudy.mechanism.strategy import Strategy
from understudy.noise import SeededNoise, discrete_laplace, uniform_below
from understudy.privacy import joint
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, ZCDP, PureDP
from understudy.privacy.event import LaplaceNoise, Located, Selection, Span
from understudy.privacy.neighbours import Neighbours, Sensitivity
from understudy.query.marginal import Marginal
from understudy.sparse_handle import SparseHandle

ONE = Fraction(1)
ERROR = 1e-8
"""Of each bound: a mutant must be caught beyond doubt."""


@dataclass(frozen=True)
class Mutant:
    name: str
    audit: str
    caught: Callable[[], bool]
    escapes: str = ""


# ------------------------------------------------------------------------------------------ statistical: vectors


def vector_caught(mechanism, first, second, claim, *, samples=1_000_000) -> bool:
    pair = Pair("mutant", repeated(mechanism, first), repeated(mechanism, second), claim)
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(11)))


@dataclass(frozen=True)
class Releasing:
    """A mechanism given by a function of values and noise."""

    how: Callable

    def release(self, values, *, noise):
        return self.how(values, noise)


def float_laplace(values, noise):
    """The textbook sampler in floats; what is looked at is the bit pattern of what is released."""
    uniform = (noise.words(values.size) >> np.uint64(11)) * 2.0**-53 - 0.5
    drawn = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return (values + drawn).view(np.int64)


def shared_noise(values, noise):
    cells = values.reshape(-1, 2)
    return (cells + discrete_laplace(2, len(cells), noise=noise)[:, None]).ravel()


def truncated(values, noise):
    return values + np.clip(discrete_laplace(1, values.size, noise=noise), -5, 5)


def narrow(values, noise):
    return values.astype(np.int32).astype(np.int64) + discrete_laplace(1, values.size, noise=noise)


def clipped(values, noise):
    """Moved into the range of the data, as if that were public."""
    return np.minimum(values + discrete_laplace(1, values.size, noise=noise), values.max())


def positive_only(values, noise):
    return values + np.abs(discrete_laplace(1, values.size, noise=noise))


def float_totals(values, noise):
    """Exact counts kept as floats of 24 bits before the noise."""
    return values.astype(np.float32).astype(np.int64) + discrete_laplace(1, values.size, noise=noise)


def seen_values(values, noise):
    """Randomised response over the values that occur in the table."""
    domain = np.unique(values)
    lie = noise.words(values.size) % np.uint64(3) == 0
    return np.where(lie, domain[(noise.words(values.size) % np.uint64(domain.size)).astype(np.int64)], values)


def biased_coin(values, noise):
    """The coin of randomised response from one byte, rounded the wrong way."""
    keep = (noise.words(values.size) >> np.uint64(56)) < round(256 * (exp(1) / (1 + exp(1)) + 0.02))
    return np.where(keep, values, 1 - values)


def laplace(epsilon=ONE, l1=1):
    return LaplaceMechanism(epsilon=Fraction(epsilon), l1=l1)


VECTORS = [
    Mutant("Laplace noise 5% too small", "statistical",
           lambda: vector_caught(laplace(Fraction(100, 95)), (0,), (1,), PureClaim(ONE))),
    Mutant("Laplace noise 0.5% too small", "statistical",
           lambda: vector_caught(laplace(Fraction(1000, 995)), (0,), (1,), PureClaim(ONE)),
           escapes="0.005 is inside the margin of a million draws (0.02) or four million (0.007); the tests of "
                   "the sampler against its exact law see it"),
    Mutant("Laplace sensitivity halved", "statistical",
           lambda: vector_caught(laplace(l1=1), (4, 6), (5, 5), PureClaim(ONE))),
    Mutant("Gaussian noise 5% too small", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(200, 361), l2_squared=1), (0,), (1,),
                                 GaussianClaim(1, ONE), samples=2_000_000)),
    Mutant("Gaussian noise for one moved cell where two move", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(2), l2_squared=1), (4, 6), (5, 5),
                                 ConcentratedClaim(Fraction(2)))),
    Mutant("Gaussian noise that forgets the sensitivity", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(1, 2), l2_squared=1), (0,), (3,),
                                 GaussianClaim(3, Fraction(9)), samples=200_000)),
    Mutant("float noise", "statistical",
           lambda: vector_caught(Releasing(float_laplace), (0,), (1,), PureClaim(ONE), samples=200_000)),
    Mutant("one draw of noise for two cells", "statistical",
           lambda: vector_caught(Releasing(shared_noise), (5, 5), (4, 6), PureClaim(ONE), samples=50_000)),
    Mutant("noise cut off at five steps", "statistical",
           lambda: vector_caught(Releasing(truncated), (0,), (1,), PureClaim(ONE), samples=200_000)),
    Mutant("one-sided noise", "statistical",
           lambda: vector_caught(Releasing(positive_only), (0,), (1,), PureClaim(ONE), samples=50_000)),
    Mutant("counts that overflow 32 bits", "statistical",
           lambda: vector_caught(Releasing(narrow), (2**31 - 1,), (2**31,), PureClaim(ONE), samples=50_000)),
    Mutant("counts summed in 24-bit floats", "statistical",
           lambda: vector_caught(Releasing(float_totals), (2**25 + 2,), (2**25 + 3,), PureClaim(ONE))),
    Mutant("answers clipped to the data's own range", "statistical",
           lambda: vector_caught(Releasing(clipped), (0,), (1,), PureClaim(ONE), samples=50_000)),
    Mutant("randomised response 5% too honest", "statistical",
           lambda: vector_caught(RandomizedResponse(epsilon=Fraction(105, 100)), (0,), (1,), PureClaim(ONE))),
    Mutant("randomised response with a coarse coin", "statistical",
           lambda: vector_caught(Releasing(biased_coin), (0,), (1,), PureClaim(ONE))),
    Mutant("randomised response over the values that occur", "statistical",
           lambda: vector_caught(Releasing(seen_values), (0, 0), (0, 1), PureClaim(ONE), samples=50_000)),
]  # fmt: skip


# ------------------------------------------------------------------------------------------ exact: selections


@dataclass(frozen=True)
class Choosing:
    how: Callable

    def choose(self, scores, *, noise):
        return self.how(scores, noise)


def exactly_caught(mechanism, *, pairs=None, claim=1.0) -> bool:
    """Whether the law found by bisection of the coin breaks the claim on any pair of score vectors."""
    for _, one, two in pairs or score_pairs(2):
        laws = [
            exact_choice_law(lambda noise, s=s: mechanism.choose(np.array(s), noise=noise), len(s))
            for s in (one, two)
        ]
        if largest_ratio(*laws) > claim * (1 + 1e-9):
            return True
    return False


def scaled(factor, sensitivity=2):
    return ExponentialMechanism(epsilon=ONE * factor, sensitivity=sensitivity)


def narrow_scores(scores, noise):
    """Scores as they come out of a table of small integers."""
    small = scores.astype(np.int8)
    return scaled(1).choose(small - small.max(), noise=noise)  # wraps around


def positive_scores(scores, noise):
    """Candidates without support are left out."""
    kept = np.flatnonzero(scores > 0)
    return int(kept[scaled(1).choose(scores[kept], noise=noise)]) if kept.size else 0


def underflowing(scores, noise):
    weights = np.exp(scores / 4 - scores.max() / 4)
    uniform = float(noise.words(1)[0]) * 2.0**-64 * weights.sum()
    return int(min(np.searchsorted(np.cumsum(weights), uniform, side="right"), len(scores) - 1))


def impossible_candidate(choose) -> bool:
    """A candidate with a score 8,000 below the best has weight e^-2000: rare, never impossible.

    Coins that are all 0 stand for the first candidate of the cumulative law, whatever its weight.
    """
    return choose(np.array([0, 8000]), noise=FixedCoin(0, rest=0)) != 0


def sampled_choice_caught(mechanism, one, two, *, claim=ONE, samples=15_000) -> bool:
    pair = Pair("mutant", chosen(mechanism, one), chosen(mechanism, two), PureClaim(claim))
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(5)))


def leaky_max(scores, noise):
    """Tells how large the winner was as well."""
    sums = scores + one_sided(Fraction(4), scores.size, noise=noise)
    return int(sums.max()) * 8 + int(sums.argmax())


def coin_path_differs(choose) -> bool:
    """Whether how many coins are asked for depends on the scores: a clock would show it."""
    paths = []
    for scores in (np.array([0, 0]), np.array([0, 60])):
        tape = RecordingNoise(SeededNoise(3))
        for _ in range(50):
            choose(scores, noise=tape)
        paths.append(tape.calls)
    return paths[0] != paths[1]


def permute_and_flip(scores, noise):
    """Rejection: the further the others are behind, the longer it takes."""
    while True:
        i = uniform_below(scores.size, noise=noise)
        if float(noise.words(1)[0]) * 2.0**-64 < exp((int(scores[i]) - int(scores.max())) / 4):
            return i


SELECTIONS = [
    Mutant("selection without the factor 2", "exact law", lambda: exactly_caught(scaled(2))),
    Mutant("selection 5% too sharp", "exact law", lambda: exactly_caught(scaled(Fraction(105, 100)))),
    Mutant("selection with sensitivity halved", "exact law", lambda: exactly_caught(scaled(1, sensitivity=1))),
    Mutant("the best score, without noise", "exact law",
           lambda: exactly_caught(Choosing(lambda s, noise: int(np.argmax(s))))),
    Mutant("scores that wrap around in 8 bits", "exact law",
           lambda: exactly_caught(Choosing(narrow_scores), pairs=[("wide", [-64, 63], [-66, 65])])),
    Mutant("candidates taken from the data", "exact law", lambda: exactly_caught(Choosing(positive_scores))),
    Mutant("weights that underflow to 0", "coins",
           lambda: impossible_candidate(Choosing(underflowing).choose)),
    Mutant("a selection whose time depends on the scores", "coins",
           lambda: coin_path_differs(Choosing(permute_and_flip).choose)),
    Mutant("noisy max with half of the noise", "statistical",
           lambda: sampled_choice_caught(ReportNoisyMax(epsilon=ONE, sensitivity=1), [0, 0], [2, -2])),
    Mutant("noisy max that also tells the maximum", "statistical",
           lambda: sampled_choice_caught(Choosing(leaky_max), [0, 0], [2, 2], claim=Fraction(1, 2))),
]  # fmt: skip


# ------------------------------------------------------------------------------------------ sparse vectors


@dataclass(frozen=True)
class Svt:
    """AboveThreshold, and the four broken variants (Lyu, Su and Li, 2017) by field; promised: ε = 4 with Δ = 1.

    Drawn for many runs at once: column i of the noise is for value i.
    """

    threshold_scale: Fraction | None = Fraction(1, 2)
    value_scale: Fraction | None = Fraction(1)
    hits: int = 1
    tells_noisy_value: bool = False
    answer_scale: Fraction | None = None
    reuses_value_noise: bool = False

    def draw(self, values):
        def told(count, noise):
            size = (count, len(values))
            drawn = self._noise(self.value_scale, size, noise)
            if self.reuses_value_noise:
                drawn[:] = drawn[:, :1]
            noisy = np.array(values) + drawn
            above = noisy >= self._noise(self.threshold_scale, (count, 1), noise)
            above &= np.cumsum(above, axis=1) <= self.hits
            closed = np.cumsum(above, axis=1) - above >= self.hits
            number = noisy if self.tells_noisy_value else np.array(values)
            if not self.tells_noisy_value:
                number = number + self._noise(self.answer_scale, size, noise)
                number = number if self.answer_scale else np.zeros(size, np.int64)
            found = np.stack([np.where(closed, -1, above), np.where(above, number, 0)], axis=2)
            return found.reshape(count, -1)

        return told

    def _noise(self, scale, size, noise):
        if scale is None:
            return np.zeros(size, np.int64)
        return discrete_laplace(scale, size[0] * size[1], noise=noise).reshape(size)


def sparse_caught(mechanism, one, two, *, samples=400_000) -> bool:
    pair = Pair("mutant", mechanism.draw(one), mechanism.draw(two), PureClaim(Fraction(4)))
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(7)))


class Miscounting(AboveThreshold):
    """Closes one answer late, or never."""

    late = 1

    def ask(self, state, value, *, noise):
        return AboveThreshold.ask(
            self, replace(state, above=max(state.above - self.late, 0)), value, noise=noise
        )


class NeverCounting(Miscounting):
    late = 10**9


def above(kind, hits=1):
    return kind(epsilon=ONE, sensitivity=1, threshold=0, hits=hits)


SPARSE = [
    Mutant("sparse vector variant 3: the comparison's own noisy value is told", "statistical",
           lambda: sparse_caught(Svt(tells_noisy_value=True), [0] * 6 + [1], [1] * 6 + [0])),
    Mutant("sparse vector variant 4: value noise that does not grow with the hits", "statistical",
           lambda: sparse_caught(Svt(ONE, Fraction(3, 4), hits=8), [0] * 8, [1] * 4 + [-1] * 4)),
    Mutant("sparse vector variant 5: no noise on the values", "statistical",
           lambda: sparse_caught(Svt(value_scale=None), [0, 1], [1, 0], samples=50_000)),
    Mutant("sparse vector variant 6: any number of hits at one price", "statistical",
           lambda: sparse_caught(Svt(hits=12), [0] * 12, [1] * 6 + [-1] * 6)),
    Mutant("sparse vector without noise on the threshold", "statistical",
           lambda: sparse_caught(Svt(threshold_scale=None, value_scale=Fraction(1, 2)), [-1] * 4, [0] * 4,
                                 samples=100_000)),
    Mutant("sparse vector that draws its value noise once", "statistical",
           lambda: sparse_caught(Svt(reuses_value_noise=True), [0, 1], [1, 0], samples=50_000)),
    Mutant("sparse vector whose told value was never paid for", "statistical",
           lambda: sparse_caught(Svt(answer_scale=Fraction(1, 8)), [30], [31], samples=50_000)),
    Mutant("sparse vector that counts one hit too few", "contract",
           lambda: bool(counts_hits(above(Miscounting), hits=1, noise=SeededNoise(1)))),
    Mutant("sparse vector that never counts", "contract",
           lambda: bool(counts_hits(above(NeverCounting, 3), hits=3, noise=SeededNoise(1)))),
]  # fmt: skip


# ------------------------------------------------------------------------------------------ replay: Curators


SETTING = Setting(Budget.of(10), rows_at_least=1, rows_at_most=4096)
ADD = Setting(Budget.of(10), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=4096)


def flow_caught(act, setting=SETTING) -> bool:
    return any(
        control_flow(setting, pair.first, pair.second, act, noise=SeededNoise(2))
        for pair in table_pairs(setting.neighbours, rows=12)
    )


def sensitivity_caught(act, setting=SETTING) -> bool:
    return any(
        sensitivities(setting, pair.first, pair.second, act, noise=SeededNoise(2))[0]
        for pair in table_pairs(setting.neighbours, rows=12)
    )


def true_counts(curator: Curator):
    return curator._truth.sums_of([AB])[0]


def fails_on_empty(curator):
    curator.measure(A, epsilon=1)
    if (true_counts(curator) == 0).any():
        raise ZeroDivisionError("an empty cell")


def stops_by_truth(curator):
    for query in CELLS:
        curator.measure(Marginal.of(query), epsilon=Fraction(1, 2))
        if int(curator._truth.sums(Marginal.of(query))) < 2:
            return


def asks_non_empty(curator):
    for query, count in zip(CELLS, true_counts(curator).ravel(), strict=True):
        if count:
            curator.measure(Marginal.of(query), epsilon=1)


def pays_by_truth(curator):
    curator.measure(A, epsilon=1 if true_counts(curator)[0, 0] > 5 else 2)


def asks_largest_first(curator):
    order = np.argsort(-true_counts(curator).ravel(), kind="stable")
    for i in order[:2]:
        curator.measure(Marginal.of(CELLS[i]), epsilon=1)


def exact_rows(curator):
    """A threshold at half of the rows, where their number is private."""
    curator.sparse(threshold=curator._truth.rows // 2, epsilon=1).ask(ONE_CELL)


def tells_in_error(curator):
    raise ParameterError(f"the count {int(true_counts(curator)[0, 0])} is too small")


def refuses_by_truth(curator):
    if true_counts(curator).min() == 0:
        curator.measure(A, epsilon=100)  # more than the budget: refused
    curator.measure(A, epsilon=1)


def guesses_by_truth(curator):
    counts = true_counts(curator).ravel()
    curator.choose([Candidate(q, Fraction(int(c))) for q, c in zip(CELLS, counts, strict=True)], epsilon=1)


@dataclass(frozen=True, eq=False)
class HalfCounts:
    """A marginal's counts with noise for half of what a replaced row moves."""

    marginal: Marginal
    l1: int
    marginals: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "marginals", (self.marginal,))

    @property
    def mechanism(self):
        return LaplaceMechanism(epsilon=ONE, l1=self.l1)

    @property
    def event(self):
        return self.mechanism.event

    @property
    def key(self):
        return f"half {self.marginal.key}"

    def release(self, counts, *, noise):
        return self.mechanism.release(counts[0], noise=noise).ravel().tolist()


@dataclass(frozen=True, eq=False)
class GroupKeys(HalfCounts):
    """Only the groups that occur, as GROUP BY gives them."""

    def release(self, counts, *, noise):
        found = counts[0].ravel()
        return self.mechanism.release(found[found > 0], noise=noise).tolist()


class LongestColumn(Strategy):
    """Takes the longest column for the distance of two."""

    @property
    def sensitivity(self):
        return Sensitivity(int(np.abs(self.matrices[0]).sum(axis=0).max()), 1)


def long_column(curator):
    matrix = np.array([[1, 0], [0, 1]])
    curator.run(LongestColumn(A, (matrix,), Neighbours.REPLACE, epsilon=1))


REPLAYS = [
    Mutant("an error where a cell is empty", "replay", lambda: flow_caught(fails_on_empty)),
    Mutant("an error that quotes a count", "replay", lambda: flow_caught(tells_in_error)),
    Mutant("stops when the exact count is small", "replay", lambda: flow_caught(stops_by_truth)),
    Mutant("asks about the cells that are not empty", "replay", lambda: flow_caught(asks_non_empty)),
    Mutant("releases the groups that occur", "replay",
           lambda: flow_caught(lambda c: c.run(GroupKeys(AB, 2)))),
    Mutant("a price chosen by the exact count", "replay", lambda: flow_caught(pays_by_truth)),
    Mutant("an order chosen by the exact counts", "replay", lambda: flow_caught(asks_largest_first)),
    Mutant("the exact number of rows under add-remove", "replay", lambda: flow_caught(exact_rows, ADD)),
    Mutant("a refusal that depends on the data", "replay", lambda: flow_caught(refuses_by_truth)),
    Mutant("guesses made of the exact counts", "replay", lambda: flow_caught(guesses_by_truth)),
    Mutant("a marginal's sensitivity without the second cell", "replay: sensitivity",
           lambda: sensitivity_caught(lambda c: c.run(HalfCounts(AB, 1)))),
    Mutant("a strategy's sensitivity from its longest column", "replay: sensitivity",
           lambda: sensitivity_caught(long_column)),
]  # fmt: skip


# ------------------------------------------------------------------------------------------ contract: Curators


class Forgetful(Curator):
    """Draws a new threshold whenever a handle is opened again."""

    def sparse(self, *, threshold, epsilon, hits=1, numeric=False, request=None, analyst=""):
        mechanism = AboveThreshold(epsilon=Fraction(epsilon), sensitivity=1, threshold=threshold, hits=hits)
        debit = self.ledger.charge(mechanism.event, question="sparse", request=request or "r")
        fresh = mechanism.open(noise=self._noise).as_bytes()
        if debit.repeated:
            self.ledger._hidden[debit.number] = replace(self.ledger.hidden(debit), state=fresh)
        else:
            self.ledger.settle(debit, b"opened", hidden=fresh)
        return SparseHandle(self._truth, self.ledger, debit, mechanism, self._noise)


class Redrawing(Curator):
    """Answers a repeated request with new noise."""

    def _paid(self, event, question, request, analyst, look):
        return self.ledger.charge(event, question=question, request=request or "r"), look()


class Hasty(Curator):
    """Looks, then charges."""

    def _paid(self, event, question, request, analyst, look):
        found = look()
        return super()._paid(event, question, request, analyst, lambda: found)


class Free(Curator):
    """Charges nothing."""

    def _paid(self, event, question, request, analyst, look):
        return super()._paid(LaplaceNoise(l1=Fraction(0), scale=ONE), question, request, analyst, look)


class HalfPrice(Curator):
    """Charges half of what it does."""

    def _paid(self, event, question, request, analyst, look):
        half = Selection(epsilon=Fraction(1, 2))
        return super()._paid(half, question, request, analyst, look)


class Refunding(Curator):
    """Gives the price back when a look fails."""

    def _paid(self, event, question, request, analyst, look):
        state = self.ledger._books.copy()
        try:
            return super()._paid(event, question, request, analyst, look)
        except Exception:
            self.ledger._books = state
            raise


ROWS = next(iter(table_pairs(Neighbours.REPLACE))).first


def curator_of(kind, *, ledger=None, rows=ROWS, noise=None):
    plain = SETTING.curator(
        rows, noise=noise or SeededNoise(9), ledger=ledger or TellingLedger(SETTING.budget)
    )
    return kind(plain._truth, plain.ledger, plain.declaration, noise=plain._noise)


class Failing(HalfCounts):
    def release(self, counts, *, noise):
        raise RuntimeError("the engine went away")


def charged_caught(kind) -> bool:
    """What the ledger says was spent, held against what the answers show."""

    def draw(rows):
        def told(count, noise):
            found = []
            for _ in range(count):
                curator = curator_of(kind, rows=rows, noise=noise)
                curator.measure(Marginal.of(CELLS[0]), epsilon=1)
                found.append(curator.ledger.told)
            return stacked(found, 1)

        return told

    spent = curator_of(kind)
    spent.measure(Marginal.of(CELLS[0]), epsilon=1)
    pair = next(p for p in table_pairs(Neighbours.REPLACE) if "tips" in p.name)
    claim = PureClaim(Fraction(spent.ledger.spent.units, UNITS))
    found = audit_pair(
        Pair("charged", draw(pair.first), draw(pair.second), claim), samples=2500, error=ERROR,
        noise=SeededNoise(4),
    )  # fmt: skip
    return any(finding.excess for finding in found)


NOISE = SeededNoise(21)

CONTRACTS = [
    Mutant("budget not charged", "statistical against the ledger", lambda: charged_caught(Free)),
    Mutant("half of the price charged", "statistical against the ledger", lambda: charged_caught(HalfPrice)),
    Mutant("looks before it charges", "contract",
           lambda: bool(charges_first(curator_of(Hasty), lambda c: c.measure(A, epsilon=1)))),
    Mutant("refund on failure", "contract",
           lambda: bool(keeps_the_charge(curator_of(Refunding), lambda c: c.run(Failing(A, 2))))),
    Mutant("state redrawn on restart", "contract",
           lambda: bool(handle_survives(lambda ledger: curator_of(Forgetful, ledger=ledger, noise=NOISE),
                                        TellingLedger(SETTING.budget), ONE_CELL))),
    Mutant("a repeated request answered anew", "contract",
           lambda: bool(answers_again(lambda ledger: curator_of(Redrawing, ledger=ledger, noise=NOISE),
                                      TellingLedger(SETTING.budget), AB, 1))),
    Mutant("seeded noise", "contract",
           lambda: repeats_itself(lambda: SeededNoise(42))),
]  # fmt: skip


def repeats_itself(source) -> bool:
    """Whether two processes that open the same thing draw the same noise."""
    draws = [laplace().release(np.zeros(64, np.int64), noise=source()) for _ in range(2)]
    return bool((draws[0] == draws[1]).all())


# ------------------------------------------------------------------------------------------ accounting


def located(mask, *, split, price=ONE):
    region = (Span("x", 4, mask),)
    return Located(
        noise=LaplaceNoise(l1=ONE, scale=1 / price), region=region, relation="replace", split=split
    )


EVENTS = [located(0b0001, split=True), located(0b0010, split=True), located(0b0100, split=True)]


def joint_total(factor=None) -> PureDP:
    """The joint accountant's total of EVENTS; with `factor`, as if that were what two rows can cost."""
    accountant = joint.Joint(Budget.of(100))
    state = accountant.start()
    if factor is None:
        for event in EVENTS:
            state = accountant.after(state, event)
        return accountant.cost(state)  # type: ignore[return-value]
    for event in EVENTS:
        state = replace(joint._added(state, event, UNITS), factor=factor)
    return PureDP(factor * max(block.largest for block in state.blocks.values()))


LIFE = table_of_events(times=300)


def pld_caught(price) -> bool:
    """Whether the total of a table's life is below what privacy-loss distributions say."""
    total = ZCDP(sum(price(event) for event in LIFE))
    found = against_distributions(LIFE, total, 1e-6, interval=1e-4)
    return found.ours < found.low


def honest_price(event) -> int:
    return Budget.of(1, 1e-6).price(event).units


def cheaper(kind, factor):
    return lambda event: honest_price(event) // factor if isinstance(event, kind) else honest_price(event)


def float_sum_caught() -> bool:
    """Ten tenths in floats, rounded down to units: less than one."""
    events = [LaplaceNoise(l1=ONE, scale=Fraction(10))] * 10
    total = 0.0
    for _ in events:
        total += 0.1
    return Fraction(int(total * UNITS), UNITS) < exact_total(events, pure=True)


ACCOUNTING = [
    Mutant("joint accounting with factor 1", "accounting",
           lambda: bool(joint_is_enough(joint_total(factor=1), EVENTS, pure=True))),
    Mutant("Laplace noise priced at a quarter of ε² in ρ", "accounting",
           lambda: pld_caught(cheaper(LaplaceNoise, 2))),
    Mutant("everything at three quarters of its ρ", "accounting",
           lambda: pld_caught(lambda event: honest_price(event) * 3 // 4)),
    Mutant("a selection priced at ε²/16", "accounting",
           lambda: pld_caught(cheaper(Selection, 2)),
           escapes="selections are a ninth of this table's ρ, and the conversion has 8% of slack: half of a ninth "
                   "hides in it; alone, 1000 selections show it"),
    Mutant("costs added up in floats", "accounting", float_sum_caught),
    Mutant("a conversion that forgets half of the tail", "accounting",
           lambda: 0.1125 + (0.1125 * np.log(1e6)) ** 0.5 < zcdp_floor()),
]  # fmt: skip


def zcdp_floor() -> float:
    events = table_of_events()
    return against_distributions(events, Budget.of(100, 1e-6).total(events), 1e-6, interval=1e-4).low


MUTANTS = [*VECTORS, *SELECTIONS, *SPARSE, *REPLAYS, *CONTRACTS, *ACCOUNTING]
