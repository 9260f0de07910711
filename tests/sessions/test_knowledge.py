"""Deductions from bands, against brute force on small grids."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.noise.law import discrete_laplace_log_law, discrete_laplace_tail
from understudy.noise.samplers import SeededNoise, discrete_gaussian, discrete_laplace
from understudy.query.box import Box, Grid, as_text, from_plain, from_text, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import one_way, simulation
from understudy.sessions.knowledge import IntervalTable, Knowledge, ReleasedTable, nearest
from understudy.sessions.one_way import OneWay, half_widths, suprema

DOMAIN = Domain(
    (
        Bins.integers("age", 0, 4),
        Categories(name="sex", values=("F", "M")),
        Categories(name="town", values=tuple(f"t{i}" for i in range(70))),
    )
)
GRID = Grid(DOMAIN)


def side(name):
    size = DOMAIN[name].size
    return st.lists(st.booleans(), min_size=size, max_size=size).map(np.array).filter(lambda c: c.any())


@st.composite
def boxes(draw):
    names = draw(st.sets(st.sampled_from(DOMAIN.names)))
    query = LinearQuery.conjunction(DOMAIN, {name: draw(side(name)) for name in names})
    return Box.of(query)


def cells_of(box):
    found = np.ones(DOMAIN.shape(DOMAIN.names), bool)
    for axis, name in enumerate(DOMAIN.names):
        if name in box.sides:
            found &= box.sides[name].reshape([-1 if i == axis else 1 for i in range(3)])
    return found


TRUTH = np.random.default_rng(4).poisson(2.0, DOMAIN.shape(DOMAIN.names)).astype(float)
ROWS = float(TRUTH.sum())


def count(box):
    return float(TRUTH[cells_of(box)].sum())


@given(boxes(), boxes())
def test_words_compare_boxes_as_sets(one, two):
    a, b = GRID.words(one), GRID.words(two)
    assert ((a & b) == a).all() == (not (cells_of(one) & ~cells_of(two)).any())
    assert (one.key == two.key) == bool((cells_of(one) == cells_of(two)).all())


@given(boxes())
def test_a_box_is_its_query_and_one_of_it_and_its_complement_is_canonical(box):
    assert Box.of(box.query).key == box.key
    other = box.complement()
    if other is not None:
        assert (cells_of(box) ^ cells_of(other)).all()
        assert box.is_canonical != other.is_canonical


def test_what_is_no_box_has_none():
    table = LinearQuery.table(DOMAIN, ("age", "sex"), np.eye(5, 3))
    weighted = LinearQuery.conjunction(DOMAIN, {"age": np.linspace(0, 1, 5)})
    nobody = LinearQuery.conjunction(DOMAIN, {"age": np.zeros(5)})
    assert [Box.of(query) for query in (table, weighted, nobody)] == [None, None, None]


@given(boxes(), st.sampled_from([(), ("age",), ("sex", "town")]))
def test_a_question_can_be_written_down(box, by):
    marginal = Marginal(DOMAIN, by, box.query)
    assert from_plain(DOMAIN, plain(marginal)).key == marginal.key


@given(st.lists(st.tuples(boxes(), st.integers(0, 40), st.integers(0, 40)), max_size=15), boxes(), st.data())
@settings(max_examples=60)
def test_every_deduction_contains_the_truth_when_the_bands_do(learnt, asked, data):
    knowledge = Knowledge(GRID, (ROWS - data.draw(st.integers(0, 9)), ROWS + data.draw(st.integers(0, 9))))
    for name in data.draw(st.sets(st.sampled_from(DOMAIN.names))):
        axes = tuple(i for i, other in enumerate(DOMAIN.names) if other != name)
        exact = TRUTH.sum(axis=axes)
        off = data.draw(st.integers(-6, 6))
        widths = abs(off) * np.arange(exact.size + 1, dtype=float)
        knowledge.one_ways[name] = OneWay(exact + off, widths, ordered=name == "age")
    for box, below, above in learnt:
        knowledge.learn(box, (count(box) - below, count(box) + above))
    for by in [("sex",), ("age", "sex")]:
        if not set(by) & set(asked.sides):
            knowledge.learn_table(by, asked, exact_table(by, asked, 3.0))
            break
    low, high = knowledge.interval(asked)
    assert low <= count(asked) <= high
    for by in [("town",), ("age", "sex")]:
        if not set(by) & set(asked.sides):
            exact, table = exact_table(by, asked, 0.0).low, knowledge.table(by, asked)
            assert (table.low <= exact).all()
            assert (exact <= table.high).all()


def exact_table(by, box, slack):
    axes = tuple(i for i, name in enumerate(DOMAIN.names) if name not in by)
    exact = (TRUTH * cells_of(box)).sum(axis=axes)
    return IntervalTable(exact - slack, exact + slack)


def test_supersets_subsets_complements_and_cells_are_used():
    knowledge = Knowledge(GRID, (ROWS, ROWS))
    young = Box(DOMAIN, {"age": np.arange(5) < 2})
    women = young.within("sex", np.array([True, False, False]))
    knowledge.learn(young, (90.0, 110.0))
    assert knowledge.interval(women) == (0.0, 110.0)
    assert knowledge.interval(young.complement()) == (ROWS - 110, ROWS - 90)
    knowledge.learn(women, (40.0, 50.0))
    assert knowledge.interval(Box(DOMAIN, {"age": np.arange(5) < 3})) == (90.0, ROWS)
    knowledge.learn_table(("sex",), young, IntervalTable(np.array([44.0, 5, 6]), np.array([46.0, 50, 60])))
    assert knowledge.interval(women) == (44.0, 46.0)


class Claim:
    """A class that says of every count that it lies in one interval."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def interval(self, box):
        return self.low, self.high

    def table(self, by, where):
        shape = DOMAIN.shape(by)
        low = np.where(np.arange(shape[-1]) == 0, self.low, 0.0)
        return IntervalTable(np.broadcast_to(low, shape), np.full(shape, self.high))


def test_what_contradicts_itself_counts_as_unknown():
    knowledge = Knowledge(GRID, (ROWS, ROWS))
    knowledge.marginals.append(Claim(40.0, 60.0))
    young = Box(DOMAIN, {"age": np.arange(5) < 2, "sex": np.arange(3) < 1})
    knowledge.learn(young, (60.0 + 1e-9, 70.0))
    assert knowledge.interval(young) == pytest.approx((60, 60))
    assert not knowledge.contradicted
    knowledge.marginals.append(Claim(45.0, 50.0))
    assert knowledge.interval(young) == (0.0, ROWS)
    assert knowledge.contradicted
    knowledge._contradiction.is_found = False
    knowledge.marginals.append(Claim(55.0, 90.0))
    table = knowledge.table(("age", "sex"), Box(DOMAIN, {}))
    assert knowledge.contradicted
    assert (table.low[:, 0] == 0).all()
    assert (table.high[:, 0] == ROWS).all()
    assert (table.high[:, 1:] == 50).all()


def test_a_new_band_replaces_what_it_contradicts():
    knowledge = Knowledge(GRID, (ROWS, ROWS))
    known = IntervalTable(np.array([0.0, 100.0, 500.0, 0.0]), np.array([50.0, 300.0, 600.0, ROWS]))
    found = knowledge.met(known, np.array([45.0, 320.0, 300.0, -80.0]), 50.0)
    assert found.low.tolist() == [0.0, 270.0, 250.0, 0.0]
    assert found.high.tolist() == [50.0, 300.0, 350.0, 50.0]
    assert knowledge.contradicted


@given(st.floats(-50, 200), st.floats(0, 100), st.floats(0, 100).filter(lambda w: w > 1), st.floats(0, 1))
def test_the_answer_is_the_estimate_as_far_as_its_error_allows(estimate, low, width, part):
    high = low + 2 * width * part
    known = IntervalTable(np.array(low), np.array(high))
    value, error = nearest(known, np.array(estimate), width)
    assert low - 1e-9 <= value <= high + 1e-9
    assert error <= width + 1e-9
    assert value - error <= low + 1e-9
    assert value + error >= high - 1e-9
    if high - width <= estimate <= low + width and low <= estimate <= high:
        assert value == estimate


def test_the_oldest_releases_are_forgotten_first(monkeypatch):
    monkeypatch.setattr("understudy.sessions.knowledge.MOST_RELEASED", 10)
    knowledge = Knowledge(GRID, (ROWS, ROWS))
    everyone = Box(DOMAIN, {})
    for i in range(6):
        knowledge.keep(ReleasedTable(("sex",), everyone, np.full(3, float(i)), 1.0))
    assert [r.counts[0] for r in knowledge.released] == [3, 4, 5]
    knowledge.keep(ReleasedTable(("town",), everyone, np.zeros(71), 1.0))
    assert [r.counts[0] for r in knowledge.released] == [3, 4, 5]


@given(boxes())
def test_a_box_can_be_had_from_its_key(box):
    assert Box.from_key(DOMAIN, box.key).key == box.key
    cells = cells_of(box)
    assert (from_text(as_text(cells), cells.shape) == cells).all()


def test_the_oldest_boxes_are_forgotten_first(monkeypatch):
    monkeypatch.setattr("understudy.sessions.box_bounds.MOST_BOXES", 100)
    knowledge = Knowledge(GRID, (ROWS, ROWS))
    for i in range(150):
        cells = np.arange(71) == i % 71
        knowledge.learn(Box(DOMAIN, {"town": cells}), (0.0, 1000.0 + i))
    assert len(knowledge._boxes._low) <= 128
    assert knowledge.interval(Box(DOMAIN, {"town": np.arange(71) == 7})) == (0.0, 1078.0)


# ---- bands


def test_the_largest_ranges_of_many_draws_are_exact_to_the_last_bit():
    """Prices follow from them: they are the same however the draws are cut into blocks."""
    noise = np.random.default_rng(3).normal(size=(one_way.BLOCK + 900, 6))
    prefix = np.concatenate([np.zeros((len(noise), 1)), np.cumsum(noise, axis=1)], axis=1)
    for layout in (noise, np.asfortranarray(noise)):
        found = suprema(layout, ordered=True)
        assert found.flags.c_contiguous  # the order of sums over draws is that of the memory
        for k in range(7):
            expected = np.abs(prefix[:, k:] - prefix[:, : 7 - k]).max(axis=1)
            assert np.array_equal(found[:, k], expected)


@given(
    st.integers(2, 6).flatmap(
        lambda size: st.lists(st.integers(-50, 50), min_size=size, max_size=size).map(np.array)
    ),
    st.booleans(),
    st.booleans(),
)
def test_suprema_are_those_of_all_sets(noise, ordered, centred):
    noise = noise.astype(float)
    size = noise.size
    used = HistogramDesign(size, ordered=ordered, centred=centred, laplace=True).noise_of(noise[None, :])[0]
    best = np.zeros(size + 1)
    for bits in range(2**size):
        cells = np.array([bits >> i & 1 for i in range(size)], bool)
        runs = int(np.abs(np.diff(np.r_[0, cells, 0])).sum()) // 2
        if not ordered or runs <= 1:
            best[cells.sum()] = max(best[cells.sum()], abs(used[cells].sum()))
    assert suprema(used[None, :], ordered=ordered)[0] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_band_covers_its_whole_class(laplace, ordered):
    """Fresh draws on the exact law pass the band with probability at most beta; bands 10% narrower do not hold."""
    beta, size, spread = 0.02, 6, Fraction(400)
    design = HistogramDesign(size, ordered=ordered, centred=True, laplace=laplace)
    spread *= 1 if design.is_plain else 10**4
    widths = half_widths(design, spread, beta)
    draw = discrete_laplace if laplace else discrete_gaussian
    noise = draw(spread, 40_000 * size, noise=SeededNoise(77)).reshape(-1, size).astype(float)
    found = suprema(design.noise_of(noise), ordered=ordered)
    assert_at_most(int((found > widths + 1e-9).any(axis=1).sum()), len(found), beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > 0.9 * widths + 1e-9).any(axis=1).sum()), len(found), beta)


@pytest.mark.parametrize("spread", [Fraction(9), Fraction(400), Fraction(12345, 7)])
@pytest.mark.parametrize("step", [2, 3, 40, 1000])
def test_noise_on_a_coarser_lattice_is_near_the_noise_itself(spread, step):
    """By the exact laws: P[X ≥ m] is at most P[sY + slack ≥ m] for every m. Less than half of it would not do."""
    for m in range(-6 * step, 6 * step + 1):
        above = _reached(spread, m)
        assert above <= _reached(spread / step, -((step - 1 - m) // step)) * (1 + 1e-12)
    assert any(
        _reached(spread, m) > _reached(spread / step, -((step // 2 - 1 - m) // step)) * (1 + 1e-6)
        for m in range(1, 6 * step)
    )


def _reached(scale, m):
    """P[X ≥ m] of discrete Laplace noise."""
    tail = discrete_laplace_tail(scale, abs(m) - 1 if m > 0 else abs(m)) / 2
    return tail if m > 0 else 1 - tail


@pytest.mark.parametrize("step", [1, 40])
def test_drawn_noise_follows_its_law_on_every_lattice(monkeypatch, step):
    """Draws are `step` times draws of noise of a scale that many times smaller."""
    monkeypatch.setattr(simulation, "LONGEST_SCALE", 10)
    source = simulation.LatticeNoise.of(Fraction(10 * step), laplace=True)
    assert (source.step, source.slack) == (step, step - 1)
    drawn = source.draw((200_000,)) / step
    values = np.arange(-60, 61)
    counts = [int((drawn == value).sum()) for value in values]
    for scale, check in ((10, assert_follows), (Fraction(10.3), assert_does_not_follow)):
        law = np.exp(discrete_laplace_log_law(scale, values))
        check([*counts, len(drawn) - sum(counts)], [*law, 1 - law.sum()])


@pytest.mark.parametrize("ordered", [False, True])
def test_a_band_from_a_coarser_lattice_covers_its_whole_class(monkeypatch, ordered):
    """Noise of scale 60 by multiples of 300; without the slack, such bands are passed too often."""
    monkeypatch.setattr(simulation, "LONGEST_SCALE", Fraction(1, 5))
    beta, size, spread = 0.02, 6, Fraction(60)
    design = HistogramDesign(size, ordered=ordered, centred=False, laplace=True)
    wide = one_way._by_drawing(design, spread, beta)
    monkeypatch.setattr(simulation.LatticeNoise, "slack", 0)
    narrow = one_way._by_drawing(design, spread, beta)
    noise = discrete_laplace(spread, 40_000 * size, noise=SeededNoise(78)).reshape(-1, size).astype(float)
    found = suprema(design.noise_of(noise), ordered=ordered)
    assert_at_most(int((found > wide + 1e-9).any(axis=1).sum()), len(found), beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > narrow + 1e-9).any(axis=1).sum()), len(found), beta)


@pytest.mark.parametrize("spread", [Fraction(10**6), Fraction(2**33) / 3])
def test_a_band_of_large_laplace_noise_is_hardly_wider_than_it_must_be(spread):
    """The band of one cell, by the exact law: the failure is at most β, and would not be with a tenth less."""
    design = HistogramDesign(1, ordered=False, centred=False, laplace=True)
    width = float(half_widths(design, spread, 1e-3)[1])
    assert discrete_laplace_tail(spread, int(width)) <= 1e-3
    assert discrete_laplace_tail(spread, int(0.9 * width)) > 1e-3


def test_the_safe_quantile_is_safe():
    generator = np.random.default_rng(5)
    for _ in range(50):
        sample = generator.exponential(size=40_000)
        assert simulation.safe_quantile(sample, 0.01) >= np.log(100)
    with pytest.raises(ValueError, match="draws"):
        simulation.safe_quantile(np.zeros(100), 0.001)


def test_runs_of_an_ordered_attribute_add_up():
    widths = np.array([0.0, 2, 3, 4, 5, 6])
    known = OneWay(np.arange(5.0), widths, ordered=True)
    assert known.interval(np.array([True, True, False, False, True])) == (5 - 3 - 2, 5 + 3 + 2)
    unordered = OneWay(np.arange(5.0), widths, ordered=False)
    assert unordered.interval(np.array([True, True, False, False, True])) == (5 - 4, 5 + 4)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("size", [3, 10, 40])
def test_a_range_design_gives_the_histogram_back_and_is_cheaper_than_plain_counts(size, centred):
    design = HistogramDesign(size, ordered=True, centred=centred)
    counts = np.random.default_rng(size).integers(0, 99, size).astype(float)
    assert design.histogram(design.matrix @ counts, counts.sum()) == pytest.approx(counts, abs=1e-6)
    plain = HistogramDesign(size, ordered=True, centred=centred, laplace=True)
    assert cost(design) < cost(plain) * (1.001 if size == 3 else 0.8)


def cost(design):
    """(largest variance of a range) × (price for the worst pair, or cell)."""
    weights = design.matrix.astype(float)
    ranges = [
        [float(a <= cell < b) for cell in range(design.size)]
        for a in range(design.size)
        for b in range(a + 1, design.size + 1)
    ]
    reach = np.array(ranges) @ design.noise_of(np.eye(len(weights))).T
    gram = weights.T @ weights
    own = np.diag(gram)
    price = (own[:, None] + own[None, :] - 2 * gram).max() if design.centred else own.max()
    return (reach**2).sum(axis=1).max() * price
