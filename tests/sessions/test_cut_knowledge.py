"""What follows from counts that cut declared cells: against brute force and linear programs, and mutants of it."""

from __future__ import annotations

import json
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyarrow
import pytest
from scipy.optimize import linprog

import understudy as us
from cut_rows import DOMAIN, between, count, table
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.refinement import refined
from understudy.query.box import Box, Grid, from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.refined import least_refined
from understudy.sessions import cut_knowledge, cut_line
from understudy.sessions.cut_knowledge import CutKnowledge
from understudy.sessions.cut_line import END, RangeBounds, RangeFact, holds, runs_of, without
from understudy.sessions.direct import intervals
from understudy.sessions.knowledge import IntervalTable, Knowledge

TRUTH = table()


def knowledge(**more) -> Knowledge:
    return Knowledge(Grid(DOMAIN), (float(TRUTH.rows), float(TRUTH.rows)), **more)


def learn(known: Knowledge, marginal: Marginal, below: float, above: float) -> None:
    exact, marginal = count(TRUTH, marginal), least_refined(marginal, DOMAIN)
    bounds = IntervalTable(np.maximum(exact - below, 0.0), exact + above)
    if marginal.domain is DOMAIN:
        box = Box.of(marginal.where)
        assert box is not None
        known.learn(box, (float(bounds.low), float(bounds.high)))
    else:
        known.cuts.learn(marginal, bounds)


def random_box(draw: np.random.Generator) -> Marginal:
    """A conjunction with cuts: ranges and holes of ages, ranges of pays, sexes; and sometimes groups."""
    fine = refined(DOMAIN, "age", draw.integers(1, 101, draw.integers(0, 4)).tolist())
    fine = refined(fine, "pay", np.round(draw.uniform(1, 999, draw.integers(0, 3)), 1).tolist())
    sides = {}
    for name in draw.choice(["age", "pay", "sex"], draw.integers(1, 4), replace=False).tolist():
        size = fine[name].size
        low, high = np.sort(draw.integers(0, size, 2))
        cells = (np.arange(size) >= low) & (np.arange(size) <= high)
        sides[name] = ~cells if draw.random() < 0.2 and not cells.all() else cells
    by = ("sex",) if "sex" not in sides and draw.random() < 0.3 else ()
    by = ("age",) if not by and draw.random() < 0.15 else by
    return Marginal(fine, by, LinearQuery.conjunction(fine, sides))


def misses(seed: int, *, single: bool = False) -> int:
    """How many intervals do not hold their true count, after random facts that do."""
    draw = np.random.default_rng(seed)
    known = knowledge(cuts=CutKnowledge(one_refinement=single))
    found = 0
    for _ in range(40):
        question = least_refined(random_box(draw), DOMAIN)
        told = intervals(known, question)
        exact = count(TRUTH, question)
        assert told is not None
        found += bool(((exact < told.low - 1e-6) | (exact > told.high + 1e-6)).any())
        if question.domain is not DOMAIN:
            below, above = draw.integers(0, 60, 2)
            learn(known, question, float(below), float(above))
    assert not known.contradicted
    return found


@pytest.mark.parametrize("seed", range(4))
def test_every_interval_holds_the_true_count(seed):
    assert misses(seed) == 0
    assert misses(seed + 100, single=True) == 0


def test_facts_about_other_rows_are_told_apart():
    """A mutant: lines that forget the other conditions of a question."""

    def forgetful(marginal, box, name):
        return name, (), ()

    with patch.object(cut_knowledge, "_line", forgetful), pytest.raises((AssertionError, ValueError)):
        assert sum(misses(seed) for seed in range(3)) == 0


def test_a_part_lies_between_nothing_and_its_cell_and_a_union_of_cells_stays_known():
    known = knowledge()
    learn(known, between(0, 20), 5, 5)
    exact = float(count(TRUTH, between(0, 20)))
    told = intervals(known, between(0, 13))
    assert (float(told.low), float(told.high)) == (0.0, exact + 5)
    told = intervals(known, between(0, 33))
    assert float(told.low) == exact - 5
    spelled = least_refined(Marginal(between(0, 13).domain, (), _prefix(between(0, 13).domain, 20)), DOMAIN)
    assert spelled.domain is DOMAIN
    assert float(intervals(known, spelled).high) == exact + 5


def _prefix(domain, end: int) -> LinearQuery:
    return LinearQuery.conjunction(domain, {"age": [start < end for start in domain["age"].starts]})


def test_complements_differences_and_sums_of_exact_counts_are_exact():
    known = knowledge()
    for low, high in [(0, 13), (0, 37), (37, 60)]:
        learn(known, between(low, high), 0, 0)
    for low, high in [(13, 37), (13, 101), (0, 60), (13, 60), (60, 101)]:
        told, exact = intervals(known, between(low, high)), float(count(TRUTH, between(low, high)))
        assert float(told.low) == pytest.approx(exact)
        assert float(told.high) == pytest.approx(exact)
    other = intervals(known, between(13, 37, sex="F"))  # at most all people of these ages
    assert float(other.low) == 0
    assert float(other.high) == pytest.approx(float(count(TRUTH, between(13, 37))))


def test_groups_and_groups_of_the_cut_attribute_tell_of_each_other():
    known = knowledge()
    learn(known, between(0, 13, by=("sex",)), 0, 0)
    everyone = Marginal(DOMAIN, ("sex",))
    known.learn_table(
        ("sex",), Box(DOMAIN, {}), IntervalTable(count(TRUTH, everyone) - 2, count(TRUTH, everyone) + 2)
    )
    rest = between(13, 101, by=("sex",))
    told, exact = intervals(known, rest), count(TRUTH, rest)
    assert (np.abs(told.high - exact - 2) < 1e-9).all()
    assert (told.low >= exact - 2 - 1e-9).all()
    fine = refined(DOMAIN, "age", [13])
    by_age = Marginal(fine, ("age",))
    learn(known, by_age, 0, 0)
    assert float(intervals(known, between(0, 13)).high) == float(count(TRUTH, between(0, 13)))
    assert float(intervals(known, between(13, 20)).low) == float(count(TRUTH, between(13, 20)))


def test_declared_questions_learn_from_parts():
    known = knowledge()
    learn(known, between(0, 13), 0, 0)
    learn(known, between(13, 20), 0, 0)
    whole = least_refined(between(0, 20), DOMAIN)
    assert whole.domain is DOMAIN
    assert float(intervals(known, whole).high) == float(count(TRUTH, whole))


def test_with_rows_left_out_facts_about_two_refinements_are_not_combined():
    known = knowledge(cuts=CutKnowledge(one_refinement=True))
    fine = refined(refined(DOMAIN, "age", [13]), "pay", [99.5])
    both = LinearQuery.conjunction(fine, {"age": [1, 0, 0, 0], "pay": [1, 0, 0, 0]})
    learn(known, Marginal(fine, (), both), 0, 0)
    assert not known.cuts
    learn(known, between(0, 13), 0, 0)
    assert float(intervals(known, Marginal(fine, (), both)).high) > float(count(TRUTH, between(0, 13)))
    assert float(intervals(known, between(13, 101)).high) < TRUTH.rows


def test_contradictions_are_noticed_and_then_nothing_is_known():
    known = knowledge()
    for low, high, number in [(0, 13, 10.0), (0, 37, 500.0), (13, 37, 100.0)]:
        known.cuts.learn(
            least_refined(between(low, high), DOMAIN),
            IntervalTable(np.array(number), np.array(number)),
        )
    told = intervals(known, between(13, 60))
    assert known.contradicted
    assert (float(told.low), float(told.high)) == (0.0, TRUTH.rows)


@pytest.mark.parametrize("passes", [0, cut_line.PASSES])
def test_no_narrower_interval_follows_from_ranges(passes, monkeypatch):
    """The ends are those of the linear program over all counts that agree with the facts, either way."""
    monkeypatch.setattr(cut_line, "PASSES", passes)  # with 0, from each edge by itself
    draw = np.random.default_rng(3)
    edges = [(0, place) for place in range(7)]
    counts = draw.integers(0, 9, 6).astype(float)
    for _ in range(25):
        facts = []
        for _ in range(draw.integers(1, 6)):
            low, high = sorted(draw.choice(7, 2, replace=False).tolist())
            exact, (below, above) = counts[low:high].sum(), draw.integers(0, 5, 2)
            facts.append(
                RangeFact(
                    ((edges[low], edges[high]),), np.array(max(exact - below, 0)), np.array(exact + above)
                )
            )
        facts.append(RangeFact(((edges[0], edges[6]),), np.array(0.0), np.array(60.0)))
        low, high = sorted(draw.choice(7, 2, replace=False).tolist())
        bounds = RangeBounds(facts, edges, ())
        told = bounds.interval(((edges[low], edges[high]),))
        rows, most = [], []
        for fact in facts:
            ((_, start), (_, end)) = fact.runs[0]
            row = np.zeros(6)
            row[start:end] = 1
            rows += [row, -row]
            most += [float(fact.high), -float(fact.low)]
        goal = np.zeros(6)
        goal[low:high] = 1
        ends = [sign * linprog(sign * goal, np.array(rows), most).fun for sign in (1, -1)]
        assert (float(told[0]), float(told[1])) == pytest.approx(tuple(ends))


def test_paths_between_all_edges_are_those_from_each_of_them(monkeypatch):
    """In several groups at once, some of which contradict themselves."""
    draw, edges = np.random.default_rng(8), [(0, place) for place in range(9)]
    contradicted = 0
    for _ in range(40):
        facts = [RangeFact(((edges[0], edges[8]),), np.zeros(5), np.full(5, 40.0))]
        for _ in range(6):
            low, high = sorted(draw.choice(9, 2, replace=False).tolist())
            least = draw.integers(0, 20, 5).astype(float)
            facts.append(RangeFact(((edges[low], edges[high]),), least, least + draw.integers(0, 20, 5)))
        asked = [((edges[low], edges[low + 1]),) for low in range(8)]
        told = []
        for passes in (0, cut_line.PASSES):
            with patch.object(cut_line, "PASSES", passes):
                bounds = RangeBounds(facts, edges, (5,), len(edges))
                for _ in range(2):  # what contradicts itself is known once all paths were
                    found = [bounds.interval(runs) for runs in asked]
                told.append(np.array(found))
        assert told[0] == pytest.approx(told[1])
        contradicted += int((told[1][0, 0] > told[1][0, 1]).sum())
    assert 0 < contradicted < 200


def test_of_too_many_parts_only_what_was_told_of_themselves_is_used(monkeypatch):
    """No interval is wrong; a part that was counted is known, and its neighbour is not told by a difference."""
    monkeypatch.setattr(cut_knowledge, "MOST_STEPS", 1)
    for seed in range(3):
        assert misses(seed) == 0
    known = knowledge()
    learn(known, between(0, 13), 0, 0)
    learn(known, between(0, 37), 0, 0)
    assert float(intervals(known, between(0, 13)).low) == float(count(TRUTH, between(0, 13)))
    assert float(intervals(known, between(13, 37)).low) == 0
    parts = Marginal(refined(DOMAIN, "age", [13, 37]), ("age",))
    learn(known, parts, 2, 2)
    again = Marginal(refined(DOMAIN, "age", [13, 37, 38]), ("age",))
    told, exact = intervals(known, again), count(TRUTH, again)
    first = again.domain["age"].starts.index(13)
    assert float(told.low[first]) == float(exact[first]) - 2
    assert ((told.low <= exact) & (exact <= told.high)).all()


def test_groups_by_the_hours_of_a_month_are_deduced_in_bounded_work():
    """Paths between all 480 edges, each by itself, took 15 CPU seconds, and those of two months never ended."""
    declared = parse(
        "understudy: 1\nname: calls\nsource: calls.parquet\nbudget: {epsilon: 100, delta: 1e-6}\n"
        "neighbours: replace\nattributes:\n  at: {type: timestamp, width: 86400, "
        "bounds: [2024-01-01 00:00:00, 2024-01-20 23:59:59]}\n"
    )
    draw = np.random.default_rng(2)
    at = np.datetime64("2024-01-01T00:00:00") + draw.integers(0, 20 * 86_400, 5_000)
    session = us.session(us.Project.frame(pyarrow.table({"at": at}), declared), alpha=0.05)
    work, bounds = [], cut_knowledge.RangeBounds

    def counted(facts, edges, shape, starts):
        size = len(set(edges))
        work.append(min(cut_line.PASSES * starts, size) * size**2)
        return bounds(facts, edges, shape, starts)

    with patch.object(cut_knowledge, "RangeBounds", counted):
        session.ask("SELECT count(*) FROM calls WHERE at < timestamp '2024-01-02 12:30:00'")
        by_hour = session.ask("SELECT hour(at), count(*) FROM calls GROUP BY 1")
        for first in range(0, 20, 4):
            session.ask(f"SELECT count(*) FROM calls WHERE hour(at) BETWEEN {first} AND {first + 2}")
    assert 0 < max(work) <= cut_knowledge.MOST_STEPS
    hours = np.bincount(hours_of(at), minlength=24)
    assert all(cell.low <= hours[int(hour)] <= cell.high for hour, cell in by_hour.cells)


def hours_of(at):
    return (at - at.astype("datetime64[D]")).astype("timedelta64[h]").astype(int)


def test_sets_of_values():
    ages = refined(DOMAIN, "age", [13, 33])["age"]
    cells = np.array([True, False, False, True, True])
    runs = runs_of(ages, cells)
    assert runs == (((0, 0), (0, 13)), ((0, 33), END))
    assert holds(runs, (((0, 2), (0, 5)),))
    assert not holds(runs, (((0, 2), (0, 14)),))
    assert without((((0, 0), END),), runs) == (((0, 13), (0, 33)),)
    pay = DOMAIN["pay"]
    assert isinstance(pay, Bins)
    assert runs_of(pay, np.array([False, True, True])) == (((0, 250.0), END),)
    assert runs_of(pay, np.array([False, True, False])) == (((0, 250.0), (1, 0)),)


def test_a_refined_question_is_read_back_as_it_was():
    for question in (between(7, 41, sex="F"), between(0, 20), between(3, 100, by=("sex",))):
        kept = least_refined(question, DOMAIN)
        written = plain(kept)
        assert ("edges" in written) == (kept.domain is not DOMAIN)
        assert from_plain(DOMAIN, written).key == kept.key
    fine = refined(DOMAIN, "pay", [0.1 + 0.2])
    odd = Marginal(fine, (), LinearQuery.conjunction(fine, {"pay": [1, 0, 0, 0]}))
    assert from_plain(DOMAIN, json.loads(json.dumps(plain(odd)))).key == odd.key


def test_the_least_refinement_asks_the_same():
    draw = np.random.default_rng(1)
    for _ in range(30):
        question = random_box(draw)
        least = least_refined(question, DOMAIN)
        assert (count(TRUTH, least) == count(TRUTH, question)).all()
        assert all(a.size <= b.size for a, b in zip(least.domain, question.domain, strict=True))
    starts = refined(DOMAIN, "age", [13])["age"].starts
    assert all(a < b for a, b in pairwise(starts))
