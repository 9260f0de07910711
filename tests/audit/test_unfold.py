"""Runs that go on as one have the law of runs one by one; what would break that is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count

import numpy as np
import pytest

from statistical import assert_does_not_follow, assert_follows
from understudy.curator.curator import Curator
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.look import released
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.net import NetMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.small_database import SmallDatabase
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.family import prefixes
from understudy.query.marginal import Marginal
from understudy.standin.table import SmallTable
from understudy_audit.acts import AB, CELLS, ONE_CELL, A
from understudy_audit.claim import PureClaim
from understudy_audit.composite import Composite
from understudy_audit.composites import composites
from understudy_audit.events import UNSAID
from understudy_audit.neighbours import DOMAIN, Setting
from understudy_audit.privacy import Subject, audit
from understudy_audit.scripted import UnfoldingError
from understudy_audit.unfold import Unfolding, beginning

ROWS = ((0, 0),) * 4 + ((1, 2),) * 2
SETTING = Setting(Budget.of(4))
REPLACE = Relation(Neighbours.REPLACE)


def unfolding(act, looks, width=6):
    return Unfolding(act, partial(SETTING.curator, ROWS, noise=SeededNoise(0)), looks, width)


def one_after_another(act, runs, noise):
    found = []
    for _ in range(runs):
        curator = SETTING.curator(ROWS, noise=noise)
        act(curator)
        found.append(tuple(curator.ledger.told))
    return found


def adaptive(curator):
    """What is asked last depends on what was told first, and a sparse vector has a hidden state in between."""
    first = curator.measure(A, epsilon=2).value.ravel()
    handle = curator.sparse(threshold=1, epsilon=1)
    above = handle.ask(CELLS[0] if first[0] > 3 else CELLS[1])  # four rows, or none
    if above:
        curator._buy(
            WorstGuess((Guess(A, np.array([3, 3])), Guess(AB, np.full((2, 3), 1))), Fraction(1), REPLACE)
        )


def symbols(rows):
    """The first count in three steps, the comparison, and the choice."""
    return [(min(max(row[0], 2), 5), *(*row, -9, -9)[2:4]) for row in rows]


def test_runs_that_are_unfolded_have_the_law_of_runs_one_by_one():
    """Against the frequencies of many unfolded runs, which a run that forgets its first answer does not follow."""
    drawn = unfolding(adaptive, 4, width=4).draw(16_000, SeededNoise(1))
    told = [tuple(number for number in row if number > -(2**30)) for row in drawn.tolist()]
    kinds = sorted(set(symbols(told)))
    law = Counter(symbols(told))

    def counts(act, seed):
        seen = symbols(one_after_another(act, 800, SeededNoise(seed)))
        return [seen.count(kind) for kind in kinds]

    expected = [law[kind] / len(told) for kind in kinds]
    assert_follows(counts(adaptive, 2), expected)

    def forgetful(curator):
        curator.measure(A, epsilon=2)
        if curator.sparse(threshold=1, epsilon=1).ask(CELLS[0]):
            curator._buy(
                WorstGuess((Guess(A, np.array([3, 3])), Guess(AB, np.full((2, 3), 1))), Fraction(1), REPLACE)
            )

    assert_does_not_follow(counts(forgetful, 3), expected)


def test_rows_come_in_the_order_of_runs_and_not_sorted():
    """The two halves of a batch are as independent as its rows."""
    drawn = unfolding(lambda curator: curator.measure(A, epsilon=1), 1, width=2).draw(4_000, SeededNoise(4))
    halves = drawn[:2_000, 0].mean(), drawn[2_000:, 0].mean()
    assert abs(halves[0] - halves[1]) < 0.6
    assert (np.diff(drawn[:, 0]) < 0).any()


def test_a_coin_outside_a_look_is_refused():
    def tossing(curator):
        curator._noise.words(1)

    with pytest.raises(UnfoldingError, match="outside a look"):
        unfolding(tossing, 1).draw(5, SeededNoise(5))


def test_more_looks_than_were_said_are_refused():
    def twice(curator):
        curator.measure(A, epsilon=1)
        curator.measure(A, epsilon=1)

    with pytest.raises(UnfoldingError, match="more than 1"):
        unfolding(twice, 1).draw(50, SeededNoise(6))
    with pytest.raises(UnfoldingError, match="more than 1"):
        unfolding(twice, 1).draw(1, SeededNoise(6))
    assert unfolding(twice, 2).draw(50, SeededNoise(6)).shape == (50, 6)


def test_a_run_that_is_said_to_be_over_and_is_not_is_refused():
    def twice(curator):
        curator.measure(A, epsilon=1)
        curator.measure(A, epsilon=1)

    fresh = partial(SETTING.curator, ROWS, noise=SeededNoise(0))
    with pytest.raises(UnfoldingError, match="looks more"):
        Unfolding(twice, fresh, 2, 4, lambda value: True).draw(50, SeededNoise(6))
    once = Unfolding(lambda curator: curator.measure(A, epsilon=1), fresh, 2, 4, lambda value: True)
    assert (once.draw(50, SeededNoise(6))[:, :2] > -(2**30)).all()


def test_a_run_is_left_after_its_last_look():
    """What it would do then is told to nobody; some runs are gone on with, to see that they told all."""
    ends = []

    def once(curator):
        curator.measure(A, epsilon=1)
        ends.append(True)

    for runs in (1, 2, 2_000):
        ends.clear()
        assert (unfolding(once, 1, width=2).draw(runs, SeededNoise(6)) > -(2**30)).all()
        assert len(ends) == min(runs, 8)


def test_runs_with_a_fixed_beginning_have_the_law_of_runs_that_began_so():
    """Rows hold what follows; another beginning has another law, and a price that is what was not spent yet."""
    curator = partial(SETTING.curator, ROWS, noise=SeededNoise(0))
    low, high = (
        next(b for b in begun(adaptive, curator) if (b.outcomes[0].told[0] > 3) == up) for up in (0, 1)
    )
    assert low.spent.amount == high.spent.amount == 2

    def above(beginning, seed):
        drawn = Unfolding(adaptive, curator, 4, 4, begun=beginning.outcomes).draw(4_000, SeededNoise(seed))
        hits = int((drawn[:, 0] == 1).sum())
        return [hits, 4_000 - hits]

    assert_follows(above(high, 3), [share / 4_000 for share in above(high, 4)])
    asked = [row for row in one_after_another(adaptive, 1_500, SeededNoise(5)) if row[0] > 3]
    hits = sum(row[2] for row in asked)
    many = Unfolding(adaptive, curator, 4, 4, begun=high.outcomes).draw(30_000, SeededNoise(6))
    share = float((many[:, 0] == 1).mean())
    assert_follows([hits, len(asked) - hits], [share, 1 - share])
    assert_does_not_follow(above(low, 7), [share, 1 - share])


def begun(act, curator):
    return (beginning(act, curator, 1, SeededNoise(seed)) for seed in count())


def test_a_run_that_is_shorter_than_its_beginning_is_refused():
    curator = partial(SETTING.curator, ROWS, noise=SeededNoise(0))
    with pytest.raises(UnfoldingError, match="fewer"):
        beginning(lambda curator: curator.measure(A, epsilon=1), curator, 2, SeededNoise(1))


def test_a_beginning_whose_price_does_not_add_up_cannot_be_given():
    """Questions about different people cost as one, and a sparse vector hides its threshold."""
    curator = partial(Setting(Budget.of(4), Neighbours.ADD_REMOVE).curator, ROWS, noise=SeededNoise(0))
    with pytest.raises(UnfoldingError, match="jointly"):
        beginning(lambda c: c.measure(Marginal.of(CELLS[0]), epsilon=1), curator, 1, SeededNoise(1))
    with pytest.raises(UnfoldingError, match="hidden"):
        beginning(lambda c: c.sparse(threshold=1, epsilon=1), curator, 1, SeededNoise(1))


def test_a_run_that_spends_more_than_was_said_is_refused():
    fresh = partial(SETTING.curator, ROWS, noise=SeededNoise(0))
    for most, is_enough in ((Budget.of(1).cap, True), (Budget.of(Fraction(999, 1000)).cap, False)):
        unfolded = Unfolding(lambda c: c.measure(A, epsilon=1), fresh, 1, 2, spends=most)
        if is_enough:
            unfolded.draw(20, SeededNoise(1))
        else:
            with pytest.raises(UnfoldingError, match="spent"):
                unfolded.draw(20, SeededNoise(1))


def test_runs_that_are_cut_off_may_go_on():
    def twice(curator):
        curator.measure(A, epsilon=1)
        curator.measure(A, epsilon=1)

    fresh = partial(SETTING.curator, ROWS, noise=SeededNoise(0))
    drawn = Unfolding(twice, fresh, 1, 4, is_cut=True).draw(50, SeededNoise(6))
    assert (drawn[:, :2] > -(2**30)).all()
    assert (drawn[:, 2:] == UNSAID).all()


def test_what_follows_a_beginning_is_held_to_what_the_beginning_left():
    """A subject with given looks claims the rest of the budget, and catches one that spends the whole again."""
    composite = Composite("twice", "here", spends_twice, given=1, looks=2)
    pair = composite.pair(0)
    assert pair.claim == PureClaim(Fraction(1, 2))
    assert not audit(
        Subject("twice", "here", "run", lambda: [pair]), samples=40_000, noise=SeededNoise(3)
    ).sound


def spends_twice(curator):
    """Half of the budget, and then noise for all of it at the price of the other half."""
    curator.measure(A, epsilon=Fraction(1, 2))
    curator._buy(
        HalfPrice((Guess(Marginal.of(ONE_CELL), np.array(5)),), curator.relation, Price.of(epsilon=1))
    )


class HalfPrice(NoisyGaps):
    """Says that a person moves its values half as far: the one word of a look that the Curator has to believe."""

    @property
    def event(self):
        honest = super().event
        return replace(honest, l1=honest.l1 / 2)

    def event_under(self, relation):
        return self.event


def test_what_was_reached_is_drawn_from_anew():
    """The next batch has other coins, those of another source are its own."""
    unfolded = unfolding(lambda curator: curator.measure(A, epsilon=1), 1, width=2)
    noise = SeededNoise(12)
    one, two = unfolded.draw(200, noise), unfolded.draw(200, noise)
    assert (one != two).any()
    assert (unfolded.draw(200, SeededNoise(12)) == one).all()


def test_an_error_of_a_run_is_an_error_of_the_audit():
    def failing(curator):
        raise KeyError("lost")

    with pytest.raises(KeyError):
        unfolding(failing, 1).draw(5, SeededNoise(7))


@pytest.mark.parametrize("composite", composites(), ids=lambda composite: composite.name)
def test_no_run_looks_more_often_than_its_subject_says(composite):
    """Runs to the end, whose rows are as wide as those of runs that go on as one."""
    rows = composite.tables(1)[0].first
    single = composite.draw_singly(rows)(3, SeededNoise(8))
    together = composite.draw(rows)(3, SeededNoise(9))
    assert single.shape == together.shape == (3, composite.width)


# ---- many at once are one at a time


CHAIN, TREE = (
    DistinctQueries.of_queries(prefixes(DOMAIN, "b")),
    DistinctQueries.of([Marginal(DOMAIN, ("b",))]),
)
SOME = DistinctQueries.of([A, Marginal.of(ONE_CELL), Marginal.of(CELLS[1])])
CORNERS = [SmallTable.of_rows(DOMAIN, rows) for rows in ([(0, 0)], [(1, 2)], [(0, 1)])]
LOOKS = [
    WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 1.0), Fraction(1), REPLACE),
    WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 1.0), Fraction(1), REPLACE, law="noisy-max"),
    WorstGuess((Guess(A, np.array([3, 3])), Guess(AB, np.full((2, 3), 1))), Fraction(1), REPLACE),
    NoisyGaps((Guess(A, np.array([3, 3])),), REPLACE, Price.of(epsilon=1)),
    NetMechanism.of(CORNERS, [AB], rows=6, epsilon=1),
    Strategy(AB, (np.array([[1, 1], [1, -1]]), np.eye(3, dtype=np.int64)), REPLACE, Price.of(epsilon=1)),
    *(SmallDatabase(queries, 2, 6, Fraction(1)) for queries in (CHAIN, TREE, SOME)),
]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.key[:34])
def test_many_releases_follow_the_law_of_one(look):
    """One release is a vector of one; many have its law, and not that of the table turned round."""
    counts = SETTING.curator(ROWS, noise=SeededNoise(0))._truth.sums_of(list(look.marginals))
    many = Counter(map(repr, look.mechanism.draw_many(look.values(counts), 10_000, noise=SeededNoise(10))))
    noise = SeededNoise(11)
    single = Counter(repr(released(look, counts, noise=noise)) for _ in range(1_000))
    kinds = [kind for kind, count in many.most_common(12) if count > 100]
    shares, seen = [many[kind] / 10_000 for kind in kinds], [single[kind] for kind in kinds]
    if 1 - sum(shares) > 0.001:
        shares, seen = [*shares, 1 - sum(shares)], [*seen, 1_000 - sum(seen)]
    assert_follows(seen, shares)
    if len(seen) > 1:
        assert_does_not_follow([*seen[1:], seen[0]], shares)


@pytest.mark.parametrize("kind", [ExponentialMechanism, ReportNoisyMax])
def test_one_choice_is_a_vector_of_one(kind):
    mechanism, scores = kind(epsilon=Fraction(1), sensitivity=2), np.array([0, 3, 3, -5])
    ones = [mechanism.choose(scores, noise=SeededNoise(seed)) for seed in range(60)]
    assert ones == [int(mechanism.choose_many(scores, 1, noise=SeededNoise(seed))[0]) for seed in range(60)]
    assert len(set(ones)) > 1


@pytest.mark.parametrize("kind", [AboveThreshold, NumericSparse])
def test_one_handle_is_a_vector_of_one(kind):
    """On the same coins the same thresholds, answers and hits, value by value."""
    mechanism = kind(epsilon=Fraction(1), sensitivity=1, threshold=3, hits=2)
    heard = set()
    for seed in range(40):
        alone, beside = SeededNoise(seed), SeededNoise(seed)
        state, states = mechanism.open(noise=alone), mechanism.open_many(1, noise=beside)
        for value in (0, 5, 2, 9, 4):
            if state.above == mechanism.hits:
                break
            answer, state = mechanism.ask(state, value, noise=alone)
            above, *told, states = mechanism.ask_many(states, value, noise=beside)
            assert bool(above[0]) == (answer is not None and answer is not False)
            if told and above[0]:
                assert told[0].tolist() == [answer]
            assert (states.noisy_threshold[0], states.above[0]) == (state.noisy_threshold, state.above)
            heard.add(bool(above[0]))
    assert heard == {True, False}


KINDS = {
    "adaptive": {"measure", "MergedGaps", "MergedStrategy"},
    "adaptive-workload": {"measure", "MergedGaps", "MergedStrategy"},
    "adaptive-pairs": {"measure", "MergedGaps", "MergedStrategy"},
    "mwem-begun": {"measure", "WorstGuess", "NoisyGaps"},
    "mwem-gaussian": {"measure", "WorstGuess", "NoisyGaps"},
    "aim": {"measure", "WorstGuess"},
    "ic": {"measure", "WorstQuery"},
    "session": {"measure"},
    "session-gaussian": {"measure"},
    "online": {"measure", "sparse"},
    "median": {"measure", "sparse"},
}


@pytest.mark.parametrize("name", KINDS)
def test_an_audited_run_makes_every_kind_of_look(name, monkeypatch):
    """Picks, gaps, comparisons, sweeps: what is never run is never audited."""
    (subject,) = [found for found in composites() if found.name == name]
    seen = set()

    def watched(method, kind):
        original = getattr(Curator, method)

        def looked(self, *rest, **options):
            seen.add(kind(*rest))
            return original(self, *rest, **options)

        monkeypatch.setattr(Curator, method, looked)

    watched("_buy", lambda look: type(look).__name__)
    watched("perform", lambda *_: "measure")
    watched("sparse", lambda *_: "sparse")
    tables = subject.tables(10)
    for seed in range(60):
        subject.once(tables[seed % len(tables)].first, SeededNoise(seed))
    assert seen == KINDS[name]


@pytest.mark.parametrize("name", ["session", "session-gaussian", "online", "median", "mwem-begun", "aim"])
def test_what_is_in_doubt_comes_out_both_ways_on_the_pair_of_the_slice(name):
    """Runs that are all told the same tell nothing about the mechanism."""
    (subject,) = [found for found in composites() if found.name == name]
    drawn = subject.draw(subject.tables(1)[0].first)(400, SeededNoise(3))
    lengths = Counter((drawn != UNSAID).sum(axis=1).tolist())
    branches = lengths if len(lengths) > 1 else Counter(drawn[:, 0].tolist())
    assert branches.most_common(1)[0][1] <= 396


@pytest.mark.parametrize("name", ["session", "session-gaussian", "online", "median"])
def test_the_dearest_run_spends_what_its_case_says_and_none_spends_more(name):
    """A case that claimed more than its runs spend would let a mechanism off that loses less than that."""
    (case,) = [found for found in composites() if found.name == name]
    spent, tables = set(), case.tables(10)
    for seed in range(20):
        curator = case.setting.curator(tables[seed % len(tables)].first, noise=SeededNoise(seed))
        case.act(curator)
        spent.add(curator.ledger.spent.units)
    assert case.most.units * 998 // 1000 <= max(spent) <= case.most.units
    assert min(spent) < max(spent)
