"""Sweeps over all blocks at once are those over each in turn, and change nothing of the state before."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from understudy.privacy.budget import Budget
from understudy.privacy.event import GaussianNoise, Located, Span
from understudy.privacy.joint import Joint, JointState
from understudy.privacy.sweeping import Sweeping

SIZES = {"a": 3, "b": 5, "c": 2, "d": 70, "e": 4, "f": 6, "g": 5, "h": 7}
BUDGET = Budget.of(1000, 1e-6)


def located(draw: np.random.Generator) -> Located:
    """A count, or a breakdown, of a region on one to three attributes."""
    some = sorted(draw.choice(list("abcde"), draw.integers(1, 4), replace=False))
    names = (some, some, ["f"], ["e", "g"], ["g", "h"])[draw.integers(5)]
    region = tuple(
        Span(str(name), SIZES[name], int(draw.integers(1, 2 ** min(SIZES[name], 62) - 1))) for name in names
    )
    noise = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(int(draw.integers(1, 30)), 20))
    return Located(noise=noise, region=region, relation="replace", split=bool(draw.integers(2)))


def state_of(seed: int, events: int = 60) -> JointState:
    draw, accountant = np.random.default_rng(seed), Joint(BUDGET)
    state = accountant.start()
    for _ in range(events):
        state = accountant.after(state, located(draw))
    assert {len(clique) for clique in state.blocks} == {1, 2, 3}
    assert state.dividing
    return state


def numbers(state: JointState) -> list[list[int]]:
    blocks = [
        [*block.table.ravel(), *np.concatenate(block.messages), *block.counts.weights, block.largest]
        for block in state.blocks.values()
    ]
    return [*blocks, *(list(state.beliefs[attribute]) for attribute in sorted(state.beliefs))]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_several_sweeps_are_one_after_the_other(seed, fast):
    state = state_of(seed)
    kept = deepcopy(numbers(state))
    at_once = Sweeping(state.blocks, state.beliefs, fast=fast)
    blocks, beliefs, raised = state.blocks, state.beliefs, 0
    for turn in range(4):
        at_once.sweep(divide=bool(turn % 2))
        alone = Sweeping(blocks, beliefs, fast=not fast)
        alone.sweep(divide=bool(turn % 2))
        blocks, beliefs, raised = alone.blocks(), alone.beliefs(), raised + alone.raised
    after = replace(state, blocks=at_once.blocks(), beliefs=at_once.beliefs())
    assert numbers(after) == numbers(replace(state, blocks=blocks, beliefs=beliefs))
    assert at_once.raised == raised
    assert numbers(state) == kept != numbers(after)


def test_a_sweep_is_that_of_each_block_in_turn():
    """By the formulas of `message_passing`, over whole tables of cells."""
    state = state_of(7)
    sweeping = Sweeping(state.blocks, state.beliefs, fast=False)
    sweeping.sweep(divide=False)
    beliefs = {attribute: belief.copy() for attribute, belief in state.beliefs.items()}
    for (clique, block), swept in zip(state.blocks.items(), sweeping.blocks().values(), strict=True):
        whole, axes = block.table[np.ix_(*block.labels)], range(len(clique))

        def along(vector: np.ndarray, axis: int, whole: np.ndarray = whole) -> np.ndarray:
            return vector.reshape([-1 if i == axis else 1 for i in range(whole.ndim)])

        arriving = [beliefs[attribute] - block.messages[axis] for axis, attribute in enumerate(clique)]
        told = whole + sum(along(one, axis) for axis, one in enumerate(arriving))
        for axis, attribute in enumerate(clique):
            others = tuple(i for i in axes if i != axis)
            # A class has one share for all of its cells: the largest of them less the largest that arrived.
            label, own = block.labels[axis], told.max(axis=others)
            most = np.array([own[label == label[cell]].max() for cell in range(len(label))])
            came = np.array([arriving[axis][label == label[cell]].max() for cell in range(len(label))])
            beliefs[attribute] = (arriving[axis] + most - came) // len(clique)
            assert (swept.messages[axis] == beliefs[attribute] - arriving[axis]).all()
        rest = whole - sum(along(message, axis) for axis, message in enumerate(swept.messages))
        assert swept.largest == rest.max()
    assert all((sweeping.beliefs()[attribute] == belief).all() for attribute, belief in beliefs.items())


def test_what_is_not_divided_is_not_copied():
    state = state_of(1)
    sweeping = Sweeping(state.blocks, state.beliefs, fast=True)
    sweeping.sweep(divide=False)
    for clique, block in sweeping.blocks().items():
        assert block.table is state.blocks[clique].table
        assert block.counts is state.blocks[clique].counts
    assert sweeping.raised == 0
