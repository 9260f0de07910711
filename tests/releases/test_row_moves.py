"""The loops that move synthetic rows: what they rank, and that each is compiled once for each type of rows."""

from __future__ import annotations

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import types
from numba.core.dispatcher import Dispatcher

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.releases import pair_moves, row_moves
from understudy.releases.pair_agreement import meet_pairs
from understudy.releases.row_agreement import RowAgreement
from understudy.releases.run import MarginalAnswer

NUMBERS = st.integers(-(2**15), 2**15 - 1) | st.sampled_from([-32768, -256, -1, 0, 255, 256, 32767])


@given(st.lists(NUMBERS, min_size=1, max_size=300), st.data())
def test_a_number_is_ranked_as_sorting_ranks_it(numbers, data):
    rank = data.draw(st.integers(0, len(numbers) - 1))
    more = np.array(
        [*numbers, -32768, 32767], np.int16
    )  # what stands behind the first so many does not count
    assert row_moves._ranked(more, len(numbers), rank) == sorted(numbers)[rank]


def test_loops_are_compiled_for_types_and_not_for_constants():
    """A constant 0 or -1 that begins a count would have all that takes it compiled a second time."""
    domain = Domain((Bins.integers("a", 0, 2), Bins.integers("b", 0, 3)))
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 3, (2, 400)).astype(np.uint16)
    counts = np.array([[100.0, 50, 25, 5], [50, 50, 5, 5], [90, 10, 5, 5]])
    moving = RowAgreement.of(
        domain, rows, [MarginalAnswer.around(("a", "b"), counts, np.ones_like(counts), "test")]
    )
    before = moving.distance
    moving.descend(np.random.default_rng(2))
    assert moving.distance < before / 4
    meet_pairs(domain, rows, [MarginalAnswer.around(("a", "b"), counts, counts, "test")], (), rng, work=1e6)
    loops = {
        name: loop
        for name, loop in (vars(row_moves) | vars(pair_moves)).items()
        if isinstance(loop, Dispatcher)
    }
    assert {"move_rows", "_choose", "_share", "move_in_pairs", "_best", "_add"} <= set(loops)
    for name, loop in loops.items():
        compiled = compiled_for(loop)
        assert compiled, name
        for signature in compiled:
            assert not any(isinstance(argument, types.Literal) for argument in signature), (name, signature)


def compiled_for(loop: Dispatcher) -> list[tuple[types.Type, ...]]:
    """The types of arguments that a loop was compiled for: in this process, or before and kept on disk."""
    kept = getattr(loop._cache, "_cache_file", None)
    index = {} if kept is None else kept._load_index()
    return [*loop.signatures, *(signature for signature, *_ in index)]


def test_what_is_compiled_for_a_constant_is_noticed():
    """The mutant: a count that begins with a plain 0."""

    @numba.njit
    def taken(some):
        return some + 1

    @numba.njit
    def counted(numbers):
        some = 0
        for number in numbers:
            if number > 0:
                some += 1
        if some:
            some = taken(some)
        return some

    assert counted(np.arange(3)) == 3
    assert any(isinstance(argument, types.Literal) for (argument,) in compiled_for(taken))
