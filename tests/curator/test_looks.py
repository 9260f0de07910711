"""The low-level door of a Curator: what a look says of its price is held against the noise that it draws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import understudy as us
from audit.mutants.looks import REPLACE, CostsNothing, Counts, DrawsLess, HalfThePrice, NamesNoEvent
from audit.mutants.tables import ROWS, SETTING
from understudy.curator.curator import Curator
from understudy.curator.row_sums import SUMS
from understudy.errors import ParameterError
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.look import Blocks, checked_event
from understudy.mechanism.matrix.many_marginals import Centred, JointStrategy, StrategyPart
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.matrix.residuals_of_order import ResidualLook, ResidualsOfOrder
from understudy.mechanism.merged import MergedGaps, MergedStrategy
from understudy.mechanism.net import NetMechanism
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.small_database import SmallDatabase
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise.samplers import SeededNoise
from understudy.privacy.event import Located, Span, Together, unversioned
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.family import prefixes
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging
from understudy.standin.table import SmallTable
from understudy_audit.acts import AB, DOMAIN, A, B

ONE, EPSILON, RHO = Fraction(1), Price.of(epsilon=1), Price.of(rho=1)
RELATIONS = [REPLACE, Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.ADD_REMOVE, 3)]
MERGING = Merging(
    DOMAIN,
    (np.array([0, 1]), np.array([0, 1])),
    (np.array([1.0, 1.0]), np.array([1.0, 0.5, 0.5])),
)
"""The last two values of b are one group."""
GUESSES = (Guess(A, np.array([6, 6])), Guess(AB, np.full((2, 3), 2), weight=Fraction(1, 2)))
PARTS = tuple(StrategyPart(clique, Fraction(1, 3)) for clique in (("a",), ("a", "b")))
CENTRED = {"a": Centred(2), "b": Centred(3)}

LOOKS = {
    "strategy": lambda r: Strategy(AB, (np.eye(2, dtype=int), np.tri(3, dtype=int)), r, EPSILON),
    "joint strategy": lambda r: JointStrategy(DOMAIN, CENTRED, PARTS, r),
    "residuals": lambda r: ResidualLook(DOMAIN, ResidualsOfOrder((2, 3), 2), (3, 2, 1), r, RHO),
    "worst guess": lambda r: WorstGuess(GUESSES, ONE, r),
    "gaps": lambda r: NoisyGaps(GUESSES, r, EPSILON),
    "worst query": lambda r: WorstQuery(QueryClass(DOMAIN, (AB,)), np.zeros(6), ONE, r),
    "noisy max": lambda r: WorstQuery(QueryClass(DOMAIN, (AB,)), np.zeros(6), ONE, r, law="noisy-max"),
    "merged gaps": lambda r: MergedGaps(MERGING, (B,), (np.zeros(2, np.int64),), (3,), RHO, r),
    "merged strategy": lambda r: MergedStrategy(
        MERGING, JointStrategy(MERGING.coarse, {n: Centred(2) for n in "ab"}, PARTS, r)
    ),
}
"""Every look of the library that is made for a relation."""


@pytest.mark.parametrize("project", RELATIONS, ids=str)
@pytest.mark.parametrize("made_for", RELATIONS, ids=str)
@pytest.mark.parametrize("name", LOOKS)
def test_a_look_is_charged_where_it_was_made_for_the_project_s_relation_and_else_refused(
    name, made_for, project
):
    look = LOOKS[name](made_for)
    alike = look.event == LOOKS[name](project).event
    if made_for == project:
        assert checked_event(look, project) == look.event
    elif not alike:  # a joint price may be that of both: then nothing is wrong with it
        with pytest.raises(ParameterError, match="the event of the noise that it draws"):
            checked_event(look, project)


@pytest.mark.parametrize("name", LOOKS)
def test_looks_that_are_listed_as_sums_over_rows_are_sums_of_one_noise(name):
    """Theorem T is applied to them by the beginning of their key: their values add up over tables, and their event
    has the variance, or the scale, of the noise that is drawn. All others that have such an event are not sums, or
    draw several noises under one event."""
    look = LOOKS[name](REPLACE)
    draw = np.random.default_rng(1)
    tables = [[draw.integers(-9, 9, m.shape) for m in look.marginals] for _ in range(2)]
    if len(look.marginals) == 2:  # two marginals of one table of three columns
        tables = [[t.sum(1), t.sum(0)] for t in (draw.integers(-9, 9, (2, 3)) for _ in range(2))]
    added = [one + other for one, other in zip(*tables, strict=True)]
    drawn = getattr(look.mechanism, "mechanisms", (look.mechanism,))
    one_noise = all(isinstance(one, LaplaceMechanism | GaussianMechanism) for one in drawn)
    parts = look.event.events if isinstance(look.event, Together) else (unversioned(look.event),) * len(drawn)
    told = [look.values(counts) for counts in (*tables, added)]
    is_sum = len(told[0]) == len(told[1]) and bool((told[0] + told[1] == told[2]).all())
    listed = SUMS.match(look.key) is not None
    assert listed == (name in ("strategy", "residuals", "merged counts"))
    assert listed == (is_sum and one_noise)
    if listed:
        for mechanism, event in zip(drawn, parts, strict=True):
            field = "scale" if isinstance(mechanism, LaplaceMechanism) else "variance"
            assert getattr(mechanism.event, field) == getattr(event, field)


@pytest.mark.parametrize("rows_of_a_person", [1, 2])
def test_small_databases_and_nets_are_for_persons_of_one_row(rows_of_a_person):
    """Their scores are made for one row; under a relation with more, the same draw would cost more."""
    corners = [SmallTable.of_rows(DOMAIN, rows) for rows in ([(0, 0)], [(1, 2)])]
    queries = DistinctQueries.of_queries(prefixes(DOMAIN, "b"))
    relation = Relation(Neighbours.ADD_REMOVE, rows_of_a_person)
    for look in (NetMechanism.of(corners, [AB], rows=6, epsilon=1), SmallDatabase(queries, 2, 6, ONE)):
        assert checked_event(look, REPLACE) == look.event
        assert look.event_under(relation).epsilon == rows_of_a_person
        if rows_of_a_person > 1:
            with pytest.raises(ParameterError):
                checked_event(look, relation)


@pytest.mark.parametrize(
    ("look", "says"),
    [
        (CostsNothing(), r"under `replace` that is LaplaceNoise\(l1=Fraction\(2, 1\)"),
        (NamesNoEvent(), "the event of the noise that it draws"),
        (HalfThePrice(), "the event of the noise that it draws"),
        (DrawsLess(), "not by Quiet: only those are known to draw what their events say"),
    ],
)
def test_a_look_whose_event_is_not_that_of_its_noise_is_refused_before_the_charge(look, says):
    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    with pytest.raises(ParameterError, match=says):
        curator._buy(look)
    assert not curator.ledger.debits()
    assert len(curator._buy(Counts()).released) == AB.size  # the honest one is charged and told


class Whole(Counts):
    """The number of rows, which nobody can move where it is public."""

    @property
    def mechanism(self):
        return LaplaceMechanism(epsilon=ONE, l1=0)


def test_a_look_that_costs_nothing_reads_only_what_nobody_can_move():
    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    assert curator._buy(Whole(marginal=Marginal(DOMAIN, ()))).released == [curator.rows]
    with pytest.raises(ParameterError):
        curator._buy(Whole(marginal=A))
    assert curator.ledger.spent.units == 0


def test_a_prepared_measurement_is_held_against_this_curator_s_relation():
    """It is a public value that a caller can build: a Curator checks it as it checks a look."""
    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    prepared = curator.calibration.prepare([A], EPSILON)
    ((mechanism, resolution),) = prepared.mechanisms
    for sensitivity in (0, 1, 3):
        other = LaplaceMechanism(epsilon=mechanism.epsilon, l1=sensitivity)
        with pytest.raises(ParameterError, match="another sensitivity"):
            curator.perform(replace(prepared, mechanisms=((other, resolution),)))
    with pytest.raises(ParameterError, match="another sensitivity"):
        curator.perform(replace(prepared, mechanisms=((mechanism, 2),)))
    assert not curator.ledger.debits()
    assert curator.perform(prepared)[0].value.shape == A.shape


def test_a_curator_offers_no_door_for_looks():
    """What takes a look is private to the library: a project offers questions, measurements and handles."""
    public = {name: method for name, method in vars(Curator).items() if not name.startswith("_")}
    assert {"measure", "measure_all", "choose", "sparse"} <= public.keys()
    taking = [n for n, m in public.items() if "Look" in getattr(m, "__annotations__", {}).values()]
    assert not taking
    assert "Look" in Curator._buy.__annotations__.values()  # the annotation that is looked for
    assert "Look" not in us.__all__


class Foreign(LaplaceMechanism):
    """Draws nothing, and says that it is of the library."""

    def release(self, values, *, noise):
        del noise
        return values


Foreign.__module__ = LaplaceMechanism.__module__


class Drawing(Counts):
    """Counts whose noise is drawn by another mechanism than its event tells of."""

    def __init__(self, drawn):
        super().__init__()
        object.__setattr__(self, "drawn", drawn)

    @property
    def mechanism(self):
        return self.drawn

    @property
    def event(self):
        return Counts().event

    def event_under(self, relation):
        return Counts().event_under(relation)


@pytest.mark.parametrize(
    "drawn",
    [
        Foreign(epsilon=ONE, l1=2),
        LaplaceMechanism(epsilon=ONE, l1=0),
        LaplaceMechanism(epsilon=900 * ONE, l1=2),
        Blocks((Blocks((Foreign(epsilon=ONE, l1=2),), (6,)),), (6,)),  # type: ignore[arg-type]
        Blocks((Foreign(epsilon=ONE, l1=2),), (6,)),
    ],
    ids=[
        "says it is known",
        "made for what nobody moves",
        "less noise",
        "blocks in blocks",
        "a foreign block",
    ],
)
def test_noise_that_the_event_does_not_tell_of_is_refused_before_the_charge(drawn):
    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    with pytest.raises(ParameterError):
        curator._buy(Drawing(drawn))
    assert not curator.ledger.debits()


def test_a_region_inside_a_compound_event_is_refused():
    class Wrapped(Counts):
        @property
        def event(self):
            noise = unversioned(Counts().event)
            return Together(
                (Located(noise=noise, region=(Span("a", 2, 1),), relation="replace", split=True),)
            )

        def event_under(self, relation):
            return Together((Counts().event_under(relation),))

        @property
        def mechanism(self):
            return Blocks((Counts().mechanism,), (AB.size,))

    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    with pytest.raises(ParameterError):
        curator._buy(Wrapped())
    assert not curator.ledger.debits()


@pytest.mark.parametrize("starts", [[1], [], [0, 0], [0, 2, 1], [0, 3], [1, 0, 1, 0, 1]])
def test_groups_that_are_no_partition_are_refused(starts):
    with pytest.raises(ParameterError, match="every value is in one"):
        Merging(DOMAIN, (np.array([0, 1]), np.array(starts, int)), (np.ones(2), np.ones(3)))


def test_what_a_price_was_worked_out_for_cannot_be_changed_afterwards():
    factors = dict(CENTRED)
    look = JointStrategy(DOMAIN, factors, PARTS, REPLACE)
    before = look.event
    factors["a"] = Centred(1000)
    assert JointStrategy(DOMAIN, CENTRED, PARTS, REPLACE).event == before
    assert look.factors["a"] == CENTRED["a"]
