"""Recorded runs on neighbouring tables: the same control flow, and values no further apart than declared."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from audit.coins import (
    OutOfCoinsError,
    RecordingNoise,
    ReplayedNoise,
    exact_choice_law,
    largest_ratio,
)
from audit.replay import control_flow, differences, perform, sensitivities
from audit.taps import compared, tapped
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.errors import InsufficientBudgetError, UnderstudyError
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.mechanism.gap import Guess, WorstGuess
from understudy.mechanism.look import released
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.releases.residual.residual import planned
from understudy.releases.run import Run
from understudy.sessions.opening import session
from understudy.standin.multiplicative import MultiplicativeWeights
from understudy.validity.choice import mode_of
from understudy.validity.holdout import Holdout
from understudy_audit.acts import AB, CELLS, ONE_CELL, WORKLOAD, A
from understudy_audit.composite import Composite
from understudy_audit.composites import composites
from understudy_audit.neighbours import DOMAIN, Setting, table_pairs

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))
PURE, BOTH = Budget.of(1), Budget.of(1, 1e-6)
SETTINGS = [
    Setting(Budget.of(8), kind, rows_at_least=1, rows_at_most=4096)
    for kind in (Neighbours.REPLACE, Neighbours.ADD_REMOVE)
]


def handed_over(curator: Curator, *, name: str) -> object:
    """A release, and what is made of it: rows, answers and errors."""
    module, _, function = name.partition(":")
    run = Run(curator, WORKLOAD, curator.declaration.budget, "audit")
    found = getattr(import_module(f"understudy.releases.{module}"), function)(run)
    return [
        found.rows,
        [(answer.clique, answer.counts, answer.error, answer.basis) for answer in found.answers],
    ]


def questioned(curator: Curator) -> object:
    """A session whose questions depend on its answers, with prices, sources and errors."""
    opened = session(curator, alpha=0.3, queries=6, name="s")
    told, asked = [], [ONE_CELL, AB, CELLS[0], CELLS[5], ONE_CELL]
    for query in asked:
        told.append(str(opened.price(query)))
        if told[-1] == told[0] and len(told) > 2:
            continue
        answer = opened.ask(query)
        told.append((answer.value, answer.error, answer.source, answer.cost.units))
    return [*told, opened.remaining.units, opened.contradicted]


def weighed(curator: Curator) -> object:
    """Private multiplicative weights, and what they say."""
    terms = practical_terms(curator, alpha=0.6, queries=4, updates=1)
    weights = MultiplicativeWeights(domain=DOMAIN, alpha=Fraction(1, 4), threads=1)
    loop = OnlineConstruction(curator, weights, terms, name="o")
    answers = [loop.ask(query) for query in (CELLS[0], CELLS[5], ONE_CELL, CELLS[0])]
    return [(np.asarray(answer.value), np.asarray(answer.error), answer.source) for answer in answers]


class Known(Composite):
    """A table that is declared to have many rows, where their number is private."""

    @property
    def setting(self) -> Setting:
        return Setting(self.budget, self.neighbours, rows_at_least=60, rows_at_most=4096)


ADD = Neighbours.ADD_REMOVE
FAMILIES = [
    *composites(),
    Composite("adaptive, handed over", "", partial(handed_over, name="adaptive.adaptive:adaptive"), BOTH),
    Composite(
        "adaptive-add-remove", "", partial(handed_over, name="adaptive.adaptive:adaptive"), BOTH, ADD, rows=60
    ),
    Composite("aim", "", partial(handed_over, name="aim:aim"), BOTH),
    Composite("mwem, handed over", "", partial(handed_over, name="mwem:mwem"), BOTH),
    Composite("residual, handed over", "", partial(handed_over, name="residual.residual:residual"), BOTH),
    Composite("residual-add-remove", "", partial(handed_over, name="residual.residual:residual"), BOTH, ADD),
    Composite("session, handed over", "", questioned, Budget.of(4), rows=100),
    Known("session-add-remove", "", questioned, Budget.of(4), ADD, rows=100),
    Composite("online, handed over", "", weighed, rows=400),
]
SLOW = ("mwem", "ic", "session", "adaptive", "residual", "online", "aim")


@pytest.mark.parametrize("composite", FAMILIES, ids=lambda composite: composite.name)
def test_what_an_analyst_sees_is_the_same_on_neighbours(composite: Composite):
    """Calls, prices, sizes, refusals, endings, and what is handed over; and the bound of all that met noise."""
    setting, noise = composite.setting, SeededNoise(5)
    for pair in composite.tables(30 if FULL else 1 if composite.name.startswith(SLOW) else 4):
        with tapped() as first:
            recorded = perform(setting, pair.first, composite.act, noise)
        with tapped() as second:
            replayed = perform(setting, pair.second, composite.act, noise, script=recorded)
        assert differences(recorded, replayed) == [], pair.name
        faults, _ = compared(first, second, composite.budget)
        assert faults == [], pair.name


def test_a_release_that_failed_would_be_seen():
    """A family that always refuses would pass the comparison: none of them does."""
    ended = [perform(f.setting, f.tables(1)[0].first, f.act, SeededNoise(5)).ending for f in FAMILIES]
    assert [end for end in ended if not end.startswith("done")] == []


@dataclass(frozen=True)
class Forced:
    """A holdout's mode that says what another one said, once it has looked for itself."""

    inner: Any
    script: list[dict[str, Any]]
    said: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def say(self, look, heard, *, noise):
        step = self.inner.say(look, heard, noise=noise)
        self.said.append(sorted(step))
        return self.script[len(self.said) - 1] if self.script else step


@pytest.mark.parametrize("kind", ["bounded", "gaussian", "check", "realised", "thresholdout", "ladder"])
def test_a_holdout_shows_the_same_on_neighbours(kind):
    """Counts, widths, sources, refusals and the shape of what is kept depend on what was said alone."""
    labels = np.arange(2000) % 2
    draw = np.random.default_rng(2)
    submissions = [
        np.where(draw.random(2000) < share, labels, 1 - labels) for share in (0.5, 0.6, 0.9, 0.4)
    ] * 3
    seen: list[Any] = []
    script: list[dict[str, Any]] = []
    for changed in (0, 1):
        truth = labels.copy()
        truth[0] ^= changed
        mode = Forced(mode_of(kind, 2000, 10, 0.05, rejections=3), script)
        holdout = Holdout(None, truth, queries=10, mode=mode, noise=SeededNoise(3), tolerance=9.0)
        told: list[Any] = []
        for predicted in submissions:
            try:
                told.append(holdout.score_predictions(predicted, guess=0.55).as_dict())
            except UnderstudyError as error:
                told.append(f"{type(error).__name__}: {error}")
        script = script or holdout._journal.all()
        seen.append((told, mode.said, holdout.certificate(), len(holdout.history())))
    assert seen[0] == seen[1]


def test_releases_on_the_same_coins_differ_by_what_the_tables_differ():
    setting = SETTINGS[0]
    found = 0
    for pair in table_pairs(Neighbours.REPLACE, rows=9):
        differences, compared = sensitivities(
            setting,
            pair.first,
            pair.second,
            lambda c: c.measure_all([A, AB], Price.of(epsilon=1)),
            noise=SeededNoise(3),
        )
        assert differences == []
        found += compared
    assert found == 60


def test_residuals_move_by_no_more_than_their_joint_price():
    """Each part is measured in units of its own noise: Σ t·‖moved‖² is at most what the event says."""
    setting = Setting(Budget.of(1, 1e-6), rows_at_least=1, rows_at_most=4096)
    worst = Fraction(0)
    for pair in table_pairs(Neighbours.REPLACE, rows=12):
        curators = [setting.curator(rows, noise=SeededNoise(1)) for rows in (pair.first, pair.second)]
        found = planned(Run(curators[0], WORKLOAD, setting.budget, "r"))
        assert found is not None
        _, look = found
        tables = [dict(zip([m.by for m in look.marginals], c._truth.sums_of(look.marginals), strict=True))
                  for c in curators]  # fmt: skip
        moved = Fraction(0)
        for part in look.parts:
            holder = next(by for by in tables[0] if set(part.clique) <= set(by))
            dropped = tuple(i for i, name in enumerate(holder) if name not in part.clique)
            one, two = (look.combine(part, table[holder].sum(axis=dropped)) for table in tables)
            moved += part.precision * int(((one - two) ** 2).sum())
        assert moved <= look.event.l2_squared
        worst = max(worst, moved)
    assert worst > look.event.l2_squared * Fraction(9, 10)


SELECTIONS = {
    "worst query": lambda kind: WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 2.0), Fraction(1), kind),
    "worst guess": lambda kind: WorstGuess(
        (Guess(A, np.array([6, 6])), Guess(AB, np.full((2, 3), 2), weight=Fraction(1, 2))), Fraction(1), kind
    ),
}


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.neighbours.value)
def test_selections_on_neighbouring_tables_keep_their_price_exactly(name, setting):
    """From the rows to the choice, by bisection of the coin: whatever the scores are and however they move."""
    worst = 0.0
    for pair in table_pairs(setting.neighbours, rows=12):
        laws = []
        for rows in (pair.first, pair.second):
            look = SELECTIONS[name](Relation(setting.neighbours))
            counts = setting.curator(rows, noise=SeededNoise(1))._truth.sums_of(look.marginals)
            size = 6 if name == "worst query" else 2
            laws.append(exact_choice_law(lambda noise, k=look, c=counts: released(k, c, noise=noise), size))
        worst = max(worst, largest_ratio(*laws))
    assert 0.15 < worst <= 1 + 1e-9


def test_the_curators_own_choice_keeps_its_price_exactly():
    setting = SETTINGS[0]
    candidates = [Candidate(query, Fraction(2)) for query in CELLS]
    for pair in list(table_pairs(Neighbours.REPLACE, rows=12))[:4]:
        laws = [
            exact_choice_law(
                lambda noise, rows=rows: setting.curator(rows, noise=noise).choose(candidates, epsilon=1), 6
            )
            for rows in (pair.first, pair.second)
        ]
        assert largest_ratio(*laws) <= 1 + 1e-9


def test_a_forced_replay_follows_the_script():
    setting = SETTINGS[0]
    first, second = ((0, 0),) * 9, (*((0, 0),) * 8, (1, 2))

    def act(curator):
        handle = curator.sparse(threshold=3, epsilon=1, hits=2)
        asked = [handle.ask(query) for query in (CELLS[0], CELLS[5]) if handle.hits_left]
        return [*asked, curator.measure(AB, epsilon=1).noisy.tolist()]

    one = perform(setting, first, act, SeededNoise(1))
    two = perform(setting, second, act, SeededNoise(2), script=one)
    assert one.calls == two.calls
    assert one.settled == two.settled
    assert one.advanced == two.advanced


def test_refusals_are_part_of_what_is_seen():
    def greedy(curator):
        for _ in range(20):
            curator.measure(A, epsilon=1)

    setting = SETTINGS[0]
    run = perform(setting, ((0, 0),) * 4, greedy, SeededNoise(1))
    assert InsufficientBudgetError.__name__ in run.ending
    assert control_flow(setting, ((0, 0),) * 4, ((0, 0),) * 3 + ((1, 1),), greedy, noise=SeededNoise(1)) == []


def test_replayed_coins_are_the_recorded_ones():
    tape = RecordingNoise(SeededNoise(4))
    words = np.concatenate([tape.words(3), tape.words(2)])
    again = ReplayedNoise(tape.kept)
    assert (again.words(4) == words[:4]).all()
    assert (tape.calls, again.left) == ((3, 2), 1)
    with pytest.raises(OutOfCoinsError):
        again.words(2)
    assert ReplayedNoise(tape.kept, beyond=SeededNoise(1)).words(8).size == 8


def test_pairs_of_tables_are_neighbours():
    for kind in Neighbours:
        for pair in table_pairs(kind, rows=12):
            differ = sum(a != b for a, b in zip(sorted(pair.first), sorted(pair.second), strict=False))
            sizes = len(pair.first) - len(pair.second)
            assert (sizes == 0 and differ >= 1) if kind is Neighbours.REPLACE else sizes == 1
