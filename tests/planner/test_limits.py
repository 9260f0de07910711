from __future__ import annotations

import json
from functools import partial

import pytest

import program
import understudy as us
from understudy.cli.plan import LEGEND
from understudy.errors import RefusedError
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.planner import limits
from understudy.planner.solve import plan
from understudy.releases import methods
from understudy.theory.table import COLUMNS

run = partial(program.call, "plan")
WIDE = us.Domain(tuple(us.Bins.integers(f"a{i}", 0, 99) for i in range(7)))


def option(found, name):
    return next(o for o in found.options if o.mechanism == name)


def test_what_a_release_refuses_is_not_recommended():
    """The theorem certifies SmallDB on 10^14 cells; no release makes it."""
    workload = us.marginals(3).over(WIDE)
    found = plan(rows=48842, epsilon=1, workload=workload)
    small = found.options[0]
    assert (small.mechanism, small.vacuous) == ("smalldb", False)
    assert small.theory_only == limits.CELLS
    assert found.recommended is None
    assert "(theory only: too many cells to run)" in str(found)
    assert "nothing that can be run here says anything: more rows" in str(found)
    assert found.as_dict()["mechanisms"][0]["theory_only"] == limits.CELLS
    assert found.as_dict()["recommended"] is None
    assert "theory only" in found._repr_html_()
    with pytest.raises(RefusedError):
        DistinctQueries.of_workload(workload)


def test_the_next_best_that_can_be_run_is_recommended():
    """By the theorems, SmallDB would answer the most queries on 2^30 cells, and weights the next most."""
    found = plan(rows=10**6, epsilon=1, alpha=0.3, universe=2**30)
    assert [o.mechanism for o in found.options[:3]] == ["smalldb", "iterative-mw", "laplace"]
    assert [o.theory_only for o in found.options[:3]] == [limits.CELLS, limits.CELLS, ""]
    assert found.recommended.mechanism == "laplace"


def test_the_limit_is_that_of_the_release():
    """At the last size that SmallDB compares, and one query beyond."""
    assert limits.CONSTRUCTED_CELLS == methods.MOST_HELD_CELLS
    narrow = us.Domain((us.Bins.integers("a", 0, 2**13 - 1),))
    held = plan(rows=10**6, epsilon=1, queries=2**13, universe=2**13)
    beyond = plan(rows=10**6, epsilon=1, queries=2**13 + 1, universe=2**13)
    DistinctQueries.of_workload(us.marginals(1).over(narrow))
    assert option(held, "smalldb").theory_only != limits.CELLS
    assert option(beyond, "smalldb").theory_only == limits.CELLS


@pytest.mark.parametrize(
    ("mechanism", "least"),
    [("iterative-mw", 1 << 26), ("online-mw", 1 << 28)],
)
def test_what_holds_every_cell_ends_where_it_does(mechanism, least):
    for universe, reason in ((least, ""), (least + 1, limits.CELLS)):
        found = plan(rows=10**9, epsilon=1, queries=20, universe=universe)
        assert option(found, mechanism).theory_only == reason


def test_small_databases_that_are_too_many_to_count():
    assert option(plan(rows=300, epsilon=1, queries=2, universe=2), "smalldb").theory_only == ""
    many = option(plan(rows=10**6, epsilon=1, queries=20, universe=500), "smalldb").theory_only
    assert "but for thresholds and hierarchies" in many
    held = plan(rows=10**7, promise="validity", queries=2, universe=2)
    assert option(held, "median").theory_only == ""
    wide = plan(rows=10**7, promise="validity", queries=100, universe=10**6)
    assert option(wide, "median").theory_only == limits.DATABASES


@pytest.mark.parametrize("unknown", ["rows", "queries", "epsilon"])
def test_the_limit_is_at_what_was_solved_for(unknown):
    known = {"rows": 10**6, "queries": 100, "epsilon": 1, "alpha": 0.3, "universe": 2**30}
    del known[unknown]
    found = plan(**known)
    assert option(found, "smalldb").theory_only == limits.CELLS
    assert found.recommended.mechanism == "laplace"


def test_every_column_of_the_table_is_explained():
    assert list(LEGEND) == list(COLUMNS)


def test_a_plot_is_announced_and_replaces_no_file(tmp_path):
    known = ("--rows", "1e6", "--queries", "100", "--epsilon", "1", "--plot", "frontier.svg")
    plot = tmp_path / "frontier.svg"
    assert run(*known, cwd=tmp_path).stdout.endswith("Wrote frontier.svg.\n")
    plot.write_text("mine", encoding="utf-8")
    assert "--overwrite" in run(*known, cwd=tmp_path, status=2).stderr
    assert plot.read_text(encoding="utf-8") == "mine"
    reply = json.loads(run(*known, "--overwrite", "--json", cwd=tmp_path).stdout)
    assert reply["plot"] == "frontier.svg"
    assert plot.read_text(encoding="utf-8").startswith("<svg")
