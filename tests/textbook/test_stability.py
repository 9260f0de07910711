from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from math import exp, floor, inf, log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ParameterError, QueryError
from understudy_textbook.interactive_stability import (
    Ask,
    PostProcessed,
    Reply,
    interact,
    interactive_curve,
)
from understudy_textbook.stability import (
    ROUNDING,
    Law,
    TradeOff,
    add_remove_neighbours,
    deterministic,
    pair,
    post_process,
    privacy_curve,
    replace_neighbours,
    then,
    then_both,
    worst_of,
)

BITS = (0, 1)
ONE_BIT = [((0,), (1,))]
RATIOS = [
    Fraction(1),
    Fraction(9, 8),
    Fraction(4, 3),
    Fraction(2),
    Fraction(7, 2),
    Fraction(10),
    Fraction(99),
    inf,
]


def randomized_response(keep):
    return lambda rows: {rows[0]: keep, 1 - rows[0]: 1 - keep}


def weights(size):
    """Laws on `size` outcomes with small rational probabilities, zeros included."""
    counts = st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any)
    return counts.map(lambda w: {i: Fraction(x, sum(w)) for i, x in enumerate(w)})


def mechanisms(size=3):
    """Mechanisms on one bit."""
    return st.tuples(weights(size), weights(size)).map(lambda laws: lambda rows: laws[rows[0]])


def brute_force_delta(mechanism, pairs, ratio):
    """Definition 3 word for word: every ordered pair, every set of outcomes."""
    worst = Fraction(0)
    for one, other in pairs:
        for first, second in ((one, other), (other, one)):
            law, rival = mechanism(first), mechanism(second)
            outcomes = sorted(set(law) | set(rival))
            for event in chain.from_iterable(combinations(outcomes, r) for r in range(len(outcomes) + 1)):
                p, q = sum(law.get(o, 0) for o in event), sum(rival.get(o, 0) for o in event)
                worst = max(worst, p - ratio * q if q else Fraction(p))
    return worst


# The definition


@given(mechanisms(4))
def test_lecture4_definition_3(mechanism):
    curve = privacy_curve(mechanism, ONE_BIT)
    for ratio in RATIOS:
        delta = brute_force_delta(mechanism, ONE_BIT, ratio)
        assert curve.delta_at(ratio) == delta
        assert curve.ratio(delta) <= ratio
        if delta > 0 and ratio < inf:
            assert curve.ratio(delta * Fraction(999, 1000)) > ratio


@given(mechanisms(4))
def test_lecture4_definition_3_note_pointwise_ratio(mechanism):
    laws = [mechanism((bit,)) for bit in BITS]
    atoms = [(p[o], q[o]) for p, q in (laws, laws[::-1]) for o in p if p[o]]
    largest = max(p / q if q else inf for p, q in atoms)
    curve = privacy_curve(mechanism, ONE_BIT)
    assert curve.ratio(0) == largest
    assert curve.epsilon(0) == pytest.approx(log(largest), rel=1e-14, abs=0)
    if largest < inf:
        assert curve.is_stable(curve.epsilon(0), 0)
        assert largest == 1 or not curve.is_stable(curve.epsilon(0) * (1 - 1e-13), 0)


@given(mechanisms(4))
def test_the_witness_attains_the_curve(mechanism):
    curve = privacy_curve(mechanism, ONE_BIT)
    for epsilon in (0, 0.1, 1, 3.0, inf):
        witness = curve.worst(epsilon)
        law, rival = mechanism(witness.database), mechanism(witness.neighbour)
        p, q = sum(law[o] for o in witness.event), sum(rival[o] for o in witness.event)
        assert (p, q) == (witness.probability, witness.neighbour_probability)
        value = p - exp(epsilon) * float(q) if q else p
        assert float(value) == pytest.approx(curve.delta(epsilon), abs=1e-14)
        assert witness.event or curve.delta(epsilon) == 0


@given(mechanisms(5))
def test_the_curve_is_non_increasing_and_convex_in_the_ratio(mechanism):
    curve = privacy_curve(mechanism, ONE_BIT)
    finite = RATIOS[:-1]
    deltas = [curve.delta_at(ratio) for ratio in finite]
    assert deltas[0] <= 1
    assert deltas[-1] >= curve.delta_at(inf) >= 0
    assert deltas == sorted(deltas, reverse=True)
    for a, b in combinations(finite, 2):
        assert curve.delta_at((a + b) / 2) <= (curve.delta_at(a) + curve.delta_at(b)) / 2


@given(st.lists(mechanisms(3), min_size=1, max_size=4))
def test_a_curve_is_in_canonical_form(choices):
    curves = [privacy_curve(mechanism, ONE_BIT) for mechanism in choices]
    worst = worst_of(curves)
    for ratio in RATIOS:
        assert worst.delta_at(ratio) == max(curve.delta_at(ratio) for curve in curves)
    assert all(curve.within(worst) for curve in curves)
    assert worst_of([*curves, *curves[::-1]]) == worst == worst_of([worst])
    corners = worst.trade_off.corners
    slopes = [(p1 - p0) / (q1 - q0) for (q0, p0), (q1, p1) in pairwise(corners)]
    assert corners[0][0] == 0
    assert slopes == sorted(set(slopes), reverse=True)
    assert all(slope > 1 for slope in slopes)
    assert TradeOff.of_events(corners) == worst.trade_off


def test_neighbours_by_replacement():
    pairs = list(replace_neighbours("abc", 2))
    assert len({frozenset(p) for p in pairs}) == len(pairs) == 3**2 * 2 * 2 // 2
    assert all(sum(x != y for x, y in zip(*p, strict=True)) == 1 for p in pairs)


def test_neighbours_by_adding_or_removing():
    pairs = list(add_remove_neighbours("ab", 2))
    assert len(set(pairs)) == len(pairs)
    assert (("a",), ()) in pairs
    assert (("a", "b"), ("a",)) in pairs
    assert (("a", "b"), ("b",)) in pairs
    assert len(pairs) == 2 + 2 + 2 * 2  # one row; two equal rows; two different rows, either of which may go


# Examples of the lecture


@pytest.mark.parametrize("keep", [Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), Fraction(99, 100)])
def test_randomized_response_has_its_closed_form(keep):
    curve = privacy_curve(randomized_response(keep), ONE_BIT)
    assert curve.ratio(0) == keep / (1 - keep)
    for ratio in RATIOS[:-1]:
        delta = max(Fraction(0), keep - ratio * (1 - keep))
        assert curve.delta_at(ratio) == delta
    assert curve.delta(inf) == 0
    assert curve.is_stable(log(keep / (1 - keep)), 0)


def test_randomized_response_with_too_large_an_epsilon_is_caught():
    def respond(epsilon):
        return randomized_response(exp(epsilon) / (1 + exp(epsilon)))

    for epsilon in (0.1, 0.5, 1.0, 3.0):
        assert privacy_curve(respond(epsilon), ONE_BIT).is_stable(epsilon, 0)
        mutant = privacy_curve(respond(1.05 * epsilon), ONE_BIT)
        assert not mutant.is_stable(epsilon, 0)
        assert mutant.worst(epsilon).event
        assert not mutant.is_stable(epsilon, mutant.delta(epsilon) * 0.999)
        assert mutant.is_stable(epsilon, mutant.delta(epsilon))


def geometric(decay, centre, value):
    """Two-sided geometric noise around `centre`: Pr[value] ∝ decay^|value − centre|."""
    return (1 - decay) / (1 + decay) * decay ** abs(value - centre)


def geometric_tail(decay, at_least):
    """Pr[noise ≥ at_least], exactly."""
    if at_least > 0:
        return decay**at_least / (1 + decay)
    return 1 - decay ** (1 - at_least) / (1 + decay)


def clamped_geometric(decay, low, high):
    """The counting query plus geometric noise, clamped (post-processing) to a finite range."""

    def law(rows):
        count = sum(rows)
        inside = {v: geometric(decay, count, v) for v in range(low + 1, high)}
        return inside | {low: geometric_tail(decay, count - low), high: geometric_tail(decay, high - count)}

    return law


@pytest.mark.parametrize("neighbours", [replace_neighbours, add_remove_neighbours])
def test_lecture4_theorem_5(neighbours):
    """The Laplace mechanism on integers, where a query of sensitivity 1 has e^(−ε) = decay."""
    decay = Fraction(2, 5)
    curve = privacy_curve(clamped_geometric(decay, -4, 7), neighbours(BITS, 3))
    assert curve.ratio(0) == 1 / decay
    assert curve.is_stable(-log(decay), 0)
    mutant = privacy_curve(clamped_geometric(decay**2, -4, 7), neighbours(BITS, 3))
    assert not mutant.is_stable(-log(decay), 0)


def test_lecture4_theorem_5_laplace_itself():
    """Lap(1/ε) on a grid of intervals: its curve from below, 1 − e^((ε′ − ε)/2) up to the width of a cell."""
    claimed, cells = 1.0, 64
    edges = [k / cells for k in range(-4 * cells, 5 * cells + 1)]

    def cdf(x):
        return exp(claimed * x) / 2 if x < 0 else 1 - exp(-claimed * x) / 2

    def between(a, b):
        return cdf(b) - cdf(a) if b <= 0 else cdf(-a) - cdf(-b) if a >= 0 else 1 - cdf(a) - cdf(-b)

    def law(rows):
        bounds = [-inf, *(edge - rows[0] for edge in edges), inf]
        return {k: between(a, b) for k, (a, b) in enumerate(pairwise(bounds))}

    curve = privacy_curve(law, ONE_BIT)
    assert curve.rounding == ROUNDING
    assert curve.is_stable(claimed, 0)
    assert not curve.is_stable(claimed - 1e-9, 0)
    for epsilon in (0.0, 0.25, 0.5, 0.99):
        true = 1 - exp((epsilon - claimed) / 2)
        assert true - 1 / cells <= curve.delta(epsilon) <= true + 1e-12


def test_lecture4_question_exact_mean_is_not_stable():
    curve = privacy_curve(
        deterministic(lambda rows: Fraction(sum(rows), len(rows))), replace_neighbours(BITS, 4)
    )
    assert curve.delta(1000) == curve.delta(inf) == 1
    assert curve.epsilon(0.999) == inf
    assert curve.epsilon(1) == 0
    witness = curve.worst(5)
    assert witness.probability == 1
    assert witness.neighbour_probability == 0
    assert sum(witness.database) != sum(witness.neighbour)


def test_lecture4_question_truncation_is_not_stable():
    def truncated(rows):
        """The mean rounded down to a multiple of 1/2."""
        return Fraction(floor(Fraction(sum(rows), len(rows)) * 2), 2)

    mechanism = deterministic(truncated)
    curve = privacy_curve(mechanism, replace_neighbours(BITS, 4))
    assert not curve.is_stable(inf, 0.999)
    witness = curve.worst(inf)
    assert truncated(witness.database) != truncated(witness.neighbour)
    inside_a_cell = [p for p in replace_neighbours(BITS, 4) if truncated(p[0]) == truncated(p[1])]
    assert privacy_curve(mechanism, inside_a_cell).is_stable(0, 0)


# The theorems


@given(
    mechanisms(4),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.lists(weights(3), min_size=4, max_size=4),
)
def test_lecture4_theorem_4_post_processing(mechanism, merge, kernel):
    curve = privacy_curve(mechanism, ONE_BIT)
    for process in (deterministic(merge.__getitem__), kernel.__getitem__):
        assert privacy_curve(post_process(mechanism, process), ONE_BIT).within(curve)


def test_lecture4_theorem_4_is_not_vacuous():
    """Processing that looks at the data again is no post-processing, and is seen above the curve."""
    mechanism = randomized_response(Fraction(3, 4))
    curve = privacy_curve(mechanism, ONE_BIT)
    peeking = privacy_curve(then(mechanism, lambda rows, outcome: mechanism(rows)), ONE_BIT)
    assert peeking == curve
    peeking_at_both = privacy_curve(then_both(mechanism, lambda rows, outcome: mechanism(rows)), ONE_BIT)
    assert not peeking_at_both.within(curve)


@given(mechanisms(), mechanisms())
def test_lecture4_theorem_7_basic_composition(first, second):
    one, two = privacy_curve(first, ONE_BIT), privacy_curve(second, ONE_BIT)
    both = privacy_curve(pair(first, second), ONE_BIT)
    assert one.within(both)
    assert two.within(both)
    for t1, t2 in product(RATIOS, repeat=2):
        assert both.delta_at(t1 * t2) <= one.delta_at(t1) + two.delta_at(t2)


def test_lecture4_theorem_7_is_attained():
    third = randomized_response(Fraction(3, 4))
    assert privacy_curve(pair(third, third), ONE_BIT).ratio(0) == 9
    assert privacy_curve(pair(third, third), ONE_BIT).is_stable(2 * log(3), 0)


@given(mechanisms(2), mechanisms(), mechanisms())
def test_lecture4_theorem_8_adaptive_composition(first, if_zero, if_one):
    def second(rows, parameter):
        return (if_zero, if_one)[parameter](rows)

    one = privacy_curve(first, ONE_BIT)
    two = worst_of(privacy_curve(m, ONE_BIT) for m in (if_zero, if_one))
    last = privacy_curve(then(first, second), ONE_BIT)
    both = privacy_curve(then_both(first, second), ONE_BIT)
    assert last.within(both)
    for t1, t2 in product(RATIOS, repeat=2):
        assert both.delta_at(t1 * t2) <= one.delta_at(t1) + two.delta_at(t2)


# Interactive mechanisms


@dataclass(frozen=True)
class Tabled:
    """A mechanism on one bit whose every law is looked up: states 0..1, queries a/b, answers 0..1."""

    starts: tuple[Law, Law]
    answers: Mapping[tuple[int, str], Law]
    halting: bool

    def start(self, database):
        return self.starts[database[0]]

    def queries(self, transcript):
        return () if self.halting and ("a", 1) in transcript else ("a", "b")

    def answer(self, state, query):
        return self.answers[state, query]


@st.composite
def tabled(draw):
    joint = weights(4).map(lambda law: {divmod(i, 2): p for i, p in law.items()})
    answers = {key: draw(joint) for key in product(range(2), "ab")}
    return Tabled((draw(weights(2)), draw(weights(2))), answers, draw(st.booleans()))


def deterministic_analysts(depth):
    """Every function from transcripts shorter than `depth` to the queries a, b."""
    rounds = list(product("ab", range(2)))
    transcripts = [t for length in range(depth) for t in product(rounds, repeat=length)]
    for choice in product("ab", repeat=len(transcripts)):
        yield dict(zip(transcripts, choice, strict=True))


@settings(max_examples=25)
@given(tabled())
def test_the_recursion_is_the_maximum_over_all_deterministic_analysts(mechanism):
    depth = 2
    everyone = worst_of(
        privacy_curve(interact(mechanism, analyst.__getitem__, depth), ONE_BIT)
        for analyst in deterministic_analysts(depth)
    )
    assert interactive_curve(mechanism, ONE_BIT, depth) == everyone


@given(tabled())
def test_the_interactive_witness_attains_the_curve(mechanism):
    curve = interactive_curve(mechanism, ONE_BIT, 3)
    for epsilon in (0, Fraction(1, 3), 1, inf):
        witness = curve.worst(epsilon)
        transcripts = interact(mechanism, (witness.analyst or {}).get, 3)
        p = sum(transcripts(witness.database)[t] for t in witness.event)
        q = sum(transcripts(witness.neighbour).get(t, 0) for t in witness.event)
        assert (p, q) == (witness.probability, witness.neighbour_probability)
        assert float(p - Fraction(exp(epsilon)) * q if q else p) == pytest.approx(
            curve.delta(epsilon), abs=1e-14
        )
        assert witness.event or curve.delta(epsilon) == 0


@given(tabled())
def test_more_queries_never_tell_less(mechanism):
    curves = [interactive_curve(mechanism, ONE_BIT, depth) for depth in (1, 2, 3)]
    assert curves[0].within(curves[1])
    assert curves[1].within(curves[2])


@settings(max_examples=50)
@given(tabled(), weights(3), st.data())
def test_lecture4_exercise_deterministic_analysts_suffice(mechanism, coins, data):
    """The coins of a random analyst are part of the output, and it still achieves no more."""
    depth = 2
    analysts = [data.draw(st.sampled_from(list(deterministic_analysts(depth)))) for _ in coins]

    def transcript(rows, coin):
        return interact(mechanism, analysts[coin].__getitem__, depth)(rows)

    random = privacy_curve(then_both(lambda _: coins, transcript), ONE_BIT)
    everyone = interactive_curve(mechanism, ONE_BIT, depth)
    assert random.within(everyone)
    alone = [privacy_curve(interact(mechanism, a.__getitem__, depth), ONE_BIT) for a in analysts]
    for ratio in RATIOS:
        average = sum(coins[coin] * curve.delta_at(ratio) for coin, curve in enumerate(alone))
        assert random.delta_at(ratio) <= average <= everyone.delta_at(ratio)


@dataclass(frozen=True)
class Translator:
    """Puts up to two queries for one reply, by coins and by what it has heard, and replies with noise."""

    kernels: tuple[dict[int, Fraction], ...]

    def start(self):
        return self.kernels[0]

    def queries(self, transcript):
        return ("same", "both") if len(transcript) < 2 else ("same",)

    def step(self, state, message):
        if isinstance(message, Ask):
            stage = "last" if message.query == "same" else "more"
            return {(Ask("ab"[state ^ coin]), (stage, coin)): p for coin, p in self.kernels[0].items()}
        stage, coin = state
        if stage == "more":
            return {(Ask("ab"[message.answer]), ("last", coin)): 1}
        law = self.kernels[1 + message.answer]
        return {
            (Reply((coin, said)), heard): p * self.kernels[0][heard]
            for said, p in law.items()
            for heard in BITS
        }


@settings(max_examples=30)
@given(tabled().filter(lambda m: not m.halting), st.tuples(weights(2), weights(2), weights(2)))
def test_lecture4_exercise_interactive_post_processing(mechanism, kernels):
    processed = PostProcessed(mechanism, Translator(kernels), asks=2)
    curve = interactive_curve(processed, ONE_BIT, 2)
    assert curve.within(interactive_curve(mechanism, ONE_BIT, 4))


def test_a_processor_that_changes_nothing_costs_nothing():
    @dataclass(frozen=True)
    class Messenger:
        def start(self):
            return {None: 1}

        def queries(self, transcript):
            return ("a", "b")

        def step(self, state, message):
            return {(message, state): 1}

    third = {
        (bit, query): {(bit, bit): Fraction(3, 4), (1 - bit, bit): Fraction(1, 4)}
        for bit in BITS
        for query in "ab"
    }
    mechanism = Tabled(({0: 1, 1: 0}, {0: 0, 1: 1}), third, halting=False)
    curve = interactive_curve(mechanism, ONE_BIT, 3)
    assert curve.ratio(0) == 27
    assert interactive_curve(PostProcessed(mechanism, Messenger()), ONE_BIT, 3) == curve


# Above-threshold: the correct one passes, its famous variants are caught

HALF = Fraction(1, 2)
ROWS = tuple(product(BITS, repeat=2))
ONE_ROW = list(replace_neighbours(ROWS, 1))
CLAMP = 40


@dataclass(frozen=True)
class AboveThreshold:
    """AboveThreshold with geometric noise; a row (x, y) counts x for query 0 and y for query 1.

    The threshold moves by one row's worth, e^ε₁ = 2; a query against it by two, e^ε₂ = 2²; so it is
    3 ln 2-stable, but for the threshold's noise being clamped to ±CLAMP. That moves the law of transcripts by
    at most Pr[|noise| > CLAMP] in total variation, hence δ ≤ (1 + e^ε)·Pr[|noise| > CLAMP].
    """

    query_decay: Fraction = HALF
    positives: int = 1
    threshold: int = 1

    def start(self, database):
        tail = geometric_tail(HALF, CLAMP)
        noise = {z: geometric(HALF, 0, z) for z in range(1 - CLAMP, CLAMP)} | {-CLAMP: tail, CLAMP: tail}
        return {(database, z): p for z, p in noise.items()}

    def queries(self, transcript):
        return () if sum(answer for _, answer in transcript) >= self.positives else (0, 1)

    def answer(self, state, query):
        database, z = state
        count = sum(row[query] for row in database)
        above = geometric_tail(self.query_decay, self.threshold + z - count)
        return {(1, state): above, (0, state): 1 - above}


CLAIM = 3 * log(2)
CLAMPING = (1 + 8) * 2 * geometric_tail(HALF, CLAMP + 1)


def test_above_threshold_is_stable_at_its_claim():
    curve = interactive_curve(AboveThreshold(), ONE_ROW, 5)
    assert CLAMPING < 1e-10
    assert curve.is_stable(CLAIM, CLAMPING)
    # The analyst comes close: most of the claimed epsilon is really spent.
    assert curve.epsilon(CLAMPING) > 0.75 * CLAIM


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(AboveThreshold(positives=2), id="one answer too many under the same threshold noise"),
        pytest.param(
            AboveThreshold(query_decay=Fraction(1, 4)), id="query noise for one row's worth, not two"
        ),
    ],
)
def test_wrong_above_thresholds_are_caught(mutant):
    curve = interactive_curve(mutant, ONE_ROW, 5)
    assert not curve.is_stable(CLAIM, CLAMPING)
    witness = curve.worst(CLAIM)
    assert witness.probability > 8 * witness.neighbour_probability + CLAMPING
    assert witness.analyst


# Numbers and refusals


def test_float_laws_are_read_with_their_stated_rounding_only():
    third = 1 / 3
    curve = privacy_curve(lambda rows: {rows[0]: 2 * third, 1 - rows[0]: third * (1 + 1e-15)}, ONE_BIT)
    assert curve.is_stable(log(2), 0)
    off = privacy_curve(randomized_response(2 * third + 1e-11), ONE_BIT)
    assert not off.is_stable(log(2), 0)
    exactly = privacy_curve(randomized_response(Fraction(2, 3) + Fraction(1, 10**14)), ONE_BIT)
    assert not exactly.is_stable(log(2), 0)


def test_the_rounding_of_float_answers_adds_up_over_the_queries():
    third = 1 / 3
    answers = {(b, q): {(b, b): 2 * third, (1 - b, b): third * (1 + 1e-15)} for b in BITS for q in "ab"}
    mechanism = Tabled(({0: 1}, {1: 1}), answers, halting=False)
    curve = interactive_curve(mechanism, ONE_BIT, 4)
    assert curve.rounding == 5 * ROUNDING
    assert curve.is_stable(4 * log(2), 0)
    assert not curve.is_stable(4 * log(2) - 1e-10, 0)


def test_a_very_small_epsilon_keeps_its_digits():
    curve = privacy_curve(randomized_response(HALF + Fraction(1, 10**30)), ONE_BIT)
    assert curve.epsilon(0) == pytest.approx(4e-30, rel=1e-14, abs=0)


def test_epsilon_may_be_exact():
    e = Fraction("2.718281828459045235360287471352662497757")
    for ratio, stable in ((e - Fraction(1, 10**38), True), (e + Fraction(1, 10**38), False)):
        curve = privacy_curve(randomized_response(ratio / (1 + ratio)), ONE_BIT)
        assert curve.is_stable(Fraction(1), 0) is stable
        assert curve.is_stable(1.0, 0)


def test_probabilities_beyond_floats():
    tiny = Fraction(1, 10**400)
    curve = privacy_curve(randomized_response(1 - tiny), ONE_BIT)
    assert curve.epsilon(0) == pytest.approx(400 * log(10), rel=1e-14, abs=0)
    assert curve.is_stable(922, 0)
    assert not curve.is_stable(921, 0)


@pytest.mark.parametrize(
    "law", [{0: 0.5}, {0: Fraction(2, 3)}, {0: -1, 1: 2}, {0: float("nan"), 1: 1}, {0: "1"}, {}]
)
def test_what_is_no_law_is_refused(law: Any):
    with pytest.raises(ParameterError):
        privacy_curve(lambda rows: law, ONE_BIT)


def test_senseless_parameters_are_refused():
    curve = privacy_curve(randomized_response(HALF), ONE_BIT)
    for call in (
        lambda: curve.delta(-1),
        lambda: curve.delta(1001),
        lambda: curve.epsilon(-0.1),
        lambda: curve.delta_at(Fraction(1, 2)),
        lambda: curve.is_stable(float("nan"), 0),
        lambda: privacy_curve(randomized_response(HALF), []),
        lambda: worst_of([]),
        lambda: interactive_curve(AboveThreshold(), ONE_ROW, 0),
    ):
        with pytest.raises(ParameterError):
            call()


def test_a_query_that_is_not_taken_is_refused():
    with pytest.raises(QueryError):
        interact(AboveThreshold(), lambda _: 7, 1)(ONE_ROW[0][0])


def test_a_processor_that_asks_too_much_is_refused():
    mechanism = Tabled(
        ({0: Fraction(1)}, {1: Fraction(1)}),
        {key: {(0, key[0]): Fraction(1)} for key in product(range(2), "ab")},
        halting=False,
    )
    kernels = ({0: HALF, 1: HALF},) * 3
    with pytest.raises(ParameterError, match="more than 1 queries"):
        interactive_curve(PostProcessed(mechanism, Translator(kernels)), ONE_BIT, 1)


def test_a_curve_can_be_stored():
    curve = interactive_curve(AboveThreshold(), ONE_ROW[:1], 1)
    again = pickle.loads(pickle.dumps(curve))
    assert again == curve
    assert again.worst(0) == curve.worst(0)
