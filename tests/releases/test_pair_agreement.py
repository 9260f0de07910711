"""Rows that meet pairs and columns: the compiled moves are those of a slow search, and bring rows near."""

from __future__ import annotations

from itertools import combinations
from math import ceil, sqrt

import numpy as np
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.releases import pair_agreement
from understudy.releases.agreement import agreeing_rows, as_lines
from understudy.releases.pair_agreement import (
    COLUMN_WEIGHT,
    MOST_PUSH,
    meet_pairs,
    of_pairs,
    pair_look_work,
    pair_losses,
    pair_tables,
    pair_weights,
    pairs_work,
)
from understudy.releases.pair_moves import move_in_pairs, write_slopes
from understudy.releases.row_agreement import LEAST_GAIN, RowAgreement
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import StoredRates

SIZES = (3, 4, 2, 5, 3, 2)
SIX = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in zip("abcdef", SIZES, strict=True)))
LIMITED = (0, 2, 3)
"""Attributes of which some values are not allowed together."""
PAIRS = tuple(combinations(SIX.names, 2))
SOME = [("d",), ("a", "b"), ("a", "c"), ("a", "f"), ("b",), ("b", "d"), ("c", "e"), ("d", "e"), ("d", "f")]
"""Targets with gaps: lines of several runs, and attributes without a column."""


def table(clique, drawn):
    at = np.ravel_multi_index([drawn[name] for name in clique], SIX.shape(clique))
    return np.bincount(at, minlength=SIX.size(clique)).reshape(SIX.shape(clique)).astype(float)


def told(clique, counts):
    return MarginalAnswer.around(clique, np.asarray(counts, float), np.ones(np.shape(counts)), "measured")


def people(rows, seed=0):
    """Six attributes that depend on each other by three hidden classes."""
    draw = np.random.default_rng(seed)
    hidden = draw.integers(0, 3, rows)
    found = {}
    for a, (name, size) in enumerate(zip(SIX.names, SIZES, strict=True)):
        rates = np.random.default_rng(100 + a).dirichlet(np.full(size, 0.5), 3).cumsum(axis=1)
        found[name] = (draw.random((rows, 1)) > rates[hidden]).sum(axis=1).clip(0, size - 1)
    return found


def permuted(drawn):
    """Rows with the columns of others and nothing else of them."""
    return {name: np.random.default_rng(a).permutation(drawn[name]) for a, name in enumerate(SIX.names)}


def prepared(drawn, answers, constraints=(), weights=None):
    """Rows with all that the compiled loop is handed: targets, losses, slopes."""
    agreement = RowAgreement.of(
        SIX,
        as_lines(SIX, drawn),
        answers,
        constraints,
        copies=False,
        weights=weights or pair_weights(answers),
    )
    tables = pair_tables(SIX, agreement.places)
    slopes, columns = (np.zeros(int(end[-1]), np.int16) for end in (tables.lines, tables.places))
    losses = pair_losses(agreement)
    write_slopes(agreement.off, tables, losses, slopes, columns)
    return agreement, tables, losses, slopes, columns


def moved(prepared_rows, start, looks, tries):
    agreement, tables, losses, slopes, columns = prepared_rows
    return move_in_pairs(
        agreement.rows,
        start,
        looks,
        tries,
        agreement.off,
        tables,
        losses,
        slopes,
        columns,
        agreement.constrained,
    )


def one_by_one(drawn, answers, weights, start, looks, tries, allowed):
    """The same moves by weighing each of them anew, cell by cell of every target.

    Also returned is how often a move was barred that was the best of a row.
    """
    agreement = RowAgreement.of(SIX, as_lines(SIX, drawn), answers, copies=False, weights=weights)
    rows, steepness = agreement.rows, agreement.steepness()
    off = np.split(agreement.off, agreement.places.starts[1:])
    members = [[SIX.position(name) for name in answer.clique] for answer in answers]
    off = [cells.reshape([SIZES[a] for a in own]) for cells, own in zip(off, members, strict=True)]
    holding = [[t for t, own in enumerate(members) if a in own] for a in range(len(SIZES))]
    scale = np.float32(MOST_PUSH / max(sum(weights[t] for t in held) for held in holding))
    steep = [scale * (np.float32(w) * s) for w, s in zip(weights, steepness, strict=True)]
    least = [
        ceil(scale * (sum(float(np.float32(weights[t]) * steepness[t]) for t in held) + LEAST_GAIN))
        for held in holding
    ]
    made = barred = 0

    def weighs(row, a, v):
        row = [*row[:a], v, *row[a + 1 :]]
        cells = ((t, off[t][tuple(row[k] for k in members[t])]) for t in holding[a])
        most = [np.float32(weights[t]) * scale for t in range(len(weights))]
        return sum(int(min(max(cell * steep[t], -most[t]), most[t])) for t, cell in cells)

    for i in range(looks):
        r = (start + i) % rows.shape[1]
        closed, own = set(), 0
        while own < tries:
            row, best = rows[:, r].tolist(), (0, None)
            for a, size in enumerate(SIZES):
                stays = weighs(row, a, row[a]) - least[a]
                for v in range(size):
                    gain = stays - weighs(row, a, v)
                    if gain > best[0] and (a, v) not in closed:
                        best = gain, (a, v)
            if best[1] is None:
                break
            a, v = best[1]
            after = [*row[:a], v, *row[a + 1 :]]
            if a in LIMITED and not allowed[tuple(after[k] for k in LIMITED)]:
                closed.add((a, v))
                barred += 1
                continue
            for t in holding[a]:
                off[t][tuple(row[k] for k in members[t])] -= 1
                off[t][tuple(after[k] for k in members[t])] += 1
            rows[a, r], own = v, own + 1
        made += own
    return rows, made, barred


@pytest.mark.parametrize("width", [1.0, 10.0])
@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize("limited", [False, True])
def test_moves_are_those_of_a_slow_search(monkeypatch, width, tries, limited):
    """With gaps between the targets, from any row on, round the end; losses linear in part and quadratic.

    With cells that rows may not enter a row makes the best of its other moves.
    """
    monkeypatch.setattr("understudy.releases.row_agreement.WIDTH", width)
    exact, weights = people(300), [2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 4.0, 1.0]
    answers, drawn = [told(c, table(c, exact)) for c in SOME], permuted(people(300, seed=1))
    allowed = np.random.default_rng(3).random([SIZES[a] for a in LIMITED]) > (0.3 if limited else 0)
    zeros = [Constraint(tuple(SIX.names[a] for a in LIMITED), allowed)] if limited else []
    rows = prepared(drawn, answers, zeros, weights)
    made = moved(rows, 200, 450, tries)
    slow, slowly, barred = one_by_one(drawn, answers, weights, 200, 450, tries, allowed)
    assert made == slowly > 100
    np.testing.assert_array_equal(rows[0].rows, slow)
    assert barred > 20 if limited else not barred


def test_what_is_kept_of_the_rows_is_what_counting_them_finds():
    """Cells and slopes, in the lines of both attributes, through thousands of moves."""
    answers = [told(c, table(c, people(3000))) for c in SOME]
    agreement, tables, losses, slopes, columns = rows = prepared(permuted(people(3000, seed=1)), answers)
    assert moved(rows, 17, 6000, 4) > 500
    again = RowAgreement.of(SIX, agreement.rows, answers, copies=False)
    np.testing.assert_allclose(agreement.off, again.off, atol=1e-2)
    before = slopes.copy(), columns.copy()
    write_slopes(agreement.off, tables, losses, slopes, columns)
    np.testing.assert_array_equal(slopes, before[0])
    np.testing.assert_array_equal(columns, before[1])


def test_tables_say_where_the_cells_of_every_pair_are():
    agreement, tables, _, slopes, _ = prepared(people(50), [told(c, np.ones(SIX.shape(c))) for c in SOME])
    agreement.off[:] = np.arange(agreement.off.size)
    slopes[:], seen = -1, set()
    for a in range(len(SIZES)):
        for h in range(tables.own[a], tables.own[a + 1]):
            b = int(tables.others[h])
            own = SOME.index(tuple(sorted((SIX.names[a], SIX.names[b]))))
            cells = agreement.off[agreement.places.starts[own] :][: SIZES[a] * SIZES[b]]
            cells = cells.reshape(SIZES[a], SIZES[b]) if a < b else cells.reshape(SIZES[b], SIZES[a]).T
            u, v = np.indices(cells.shape)
            at = tables.cells[h] + u * tables.steps[h] + v * tables.other_steps[h]
            np.testing.assert_array_equal(agreement.off[at], cells)
            slopes[tables.lines[a] + u * tables.length[a] + tables.inside[h] + v] = cells
            other = tables.lines[b] + v * tables.length[b] + tables.back[h] + u
            if (b, a) in seen:
                np.testing.assert_array_equal(slopes[other], cells)
            seen.add((a, b))
    assert (slopes >= 0).all()
    assert len(seen) == 2 * sum(len(c) == 2 for c in SOME)
    # The runs of a line hold every value of every other attribute once, those that stand side by side together.
    for a in range(len(SIZES)):
        runs = tables.runs[tables.own_runs[a] : tables.own_runs[a + 1]]
        held = [at + i for at, _, many in runs for i in range(many)]
        others = tables.others[tables.own[a] : tables.own[a + 1]]
        assert held == [i for b in others for i in range(tables.places[b], tables.places[b + 1])]
        assert runs[:, 2].sum() == tables.length[a]
    assert [tables.own_runs[a + 1] - tables.own_runs[a] for a in range(6)] == [2, 2, 2, 2, 1, 2]
    starts = {SOME[t][0]: int(agreement.places.starts[t]) for t in (0, 4)}
    assert tables.columns.tolist() == [starts.get(name, -1) for name in SIX.names]


def test_slopes_of_all_values_fit_16_bits():
    """Also where every cell is as far off as can be, and of the attribute that most targets hold."""
    rows = {name: np.zeros(4000, np.int64) for name in SIX.names}
    answers = [told(c, table(c, {n: np.ones(10, np.int64) for n in c})) for c in (*PAIRS, ("a",), ("d",))]
    losses = prepared(rows, answers)[2]
    tables = prepared(rows, answers)[1]
    for a in range(len(SIZES)):
        held = losses.most[tables.own[a] : tables.own[a + 1]].sum() + losses.most_column[a]
        assert held <= MOST_PUSH * 1.0001 < 2**15
    assert losses.most[tables.own[0] : tables.own[1]].sum() + losses.most_column[0] > 0.99 * MOST_PUSH
    near, drawn = prepared(rows, answers), dict(rows)
    assert moved(near, 0, 2000, 6) == 2000 * 6  # every cell of the first rows wants them away
    assert (near[0].rows[:, :2000] == 1).all()
    assert (near[0].rows[:, 2000:] == 0).all()
    assert all((column == 0).all() for column in drawn.values())


def test_no_row_enters_a_cell_that_is_declared_to_be_empty():
    allowed = np.ones((3, 2, 5), bool)
    allowed[1, 1] = allowed[0, 0, 3] = allowed[2, 1, 4] = False
    start = people(4000, seed=2)
    inside = ~allowed[start["a"], start["c"], start["d"]]
    start = {name: np.where(inside, 0, column) for name, column in start.items()}
    answers = [told(c, table(c, permuted(people(4000)))) for c in (*PAIRS, ("a",))]
    found = []
    for zeros in ([Constraint(("a", "c", "d"), allowed)], []):
        lines = as_lines(SIX, start)
        agreement = meet_pairs(SIX, lines, answers, zeros, np.random.default_rng(0), work=1e9)
        assert agreement.moved > 500
        found.append(allowed[lines[0], lines[2], lines[3]].all())
    assert found == [True, False]  # without the constraint rows are where no row may be


def distances(drawn, exact):
    """The mean distance of rows from a table over all columns and all pairs."""
    rows = len(exact["a"])
    return [
        float(np.mean([np.abs(table(c, drawn) - table(c, exact)).sum() / 2 / rows for c in cliques]))
        for cliques in ([(name,) for name in SIX.names], PAIRS)
    ]


def test_rows_that_know_nothing_are_moved_until_they_have_the_pairs():
    rows, exact = 20_000, people(20_000)
    answers = [told(c, table(c, exact)) for c in (*PAIRS, *((name,) for name in SIX.names))]
    drawn = permuted(exact)
    lines = as_lines(SIX, drawn)
    agreement = meet_pairs(SIX, lines, answers, (), np.random.default_rng(0), work=pairs_work(rows))
    columns, pairs = distances(agreement.codes, exact)
    assert distances(drawn, exact)[1] > 0.05
    assert pairs < 12 / rows
    assert columns < 4 / rows
    assert agreement.looked < 8 * rows  # few of them move then, and the rest of the work is not done
    again = as_lines(SIX, drawn)
    meet_pairs(SIX, again, answers, (), np.random.default_rng(0), work=pairs_work(rows))
    np.testing.assert_array_equal(lines, again)


def test_the_work_bounds_how_many_rows_are_looked_at():
    exact = people(20_000)
    answers = [told(c, table(c, exact)) for c in PAIRS]
    for part in (0.1, 1.5):
        lines = as_lines(SIX, permuted(exact))
        each = pair_look_work(
            SIX, pair_tables(SIX, RowAgreement.of(SIX, lines, answers, copies=False).places)
        )
        agreement = meet_pairs(SIX, lines, answers, (), np.random.default_rng(0), work=part * 20_000 * each)
        assert 0 < agreement.looked <= part * 20_000 + 2
    assert pairs_work(10**9) == pairs_work(10**10) <= 10e9


def test_rows_meet_columns_that_sums_of_pairs_tell_less_well(monkeypatch):
    """Noisy pairs that are kept positive tell too many people in rare values; the columns know better."""
    exact, draw = people(8_000), np.random.default_rng(6)
    pairs = [told(c, np.maximum(table(c, exact) + draw.normal(0, 120, SIX.shape(c)), 0.0)) for c in PAIRS]
    answers = [*pairs, *(told((name,), table((name,), exact)) for name in SIX.names)]
    standin = StoredRates(SIX, np.full(SIX.shape(), 1 / SIX.size()))
    apart = []
    for weight in (COLUMN_WEIGHT, 1 / sqrt(5)):  # as it is, and columns that weigh no more than pairs
        monkeypatch.setattr(pair_agreement, "COLUMN_WEIGHT", weight)
        apart.append(distances(agreeing_rows(standin, answers, 8_000, np.random.default_rng(0)), exact))
    assert apart[0][0] < apart[1][0] / 2
    assert apart[0][1] < apart[1][1]


def test_columns_weigh_by_the_root_of_the_pairs_that_hold_them():
    answers = [told(c, np.ones(SIX.shape(c))) for c in (("a",), ("b",), ("c",), ("a", "b"), ("a", "d"))]
    assert pair_weights(answers) == pytest.approx([COLUMN_WEIGHT * sqrt(2), COLUMN_WEIGHT, 1.0, 1.0, 1.0])
    assert of_pairs(answers)
    assert not of_pairs([*answers, told(("a", "b", "c"), np.ones(SIX.shape(("a", "b", "c"))))])
