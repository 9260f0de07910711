"""Attacks of other kinds: leaderboards, identification, fingerprinting, an honest climber, and blocks. T4-T8."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2, sqrt

import numpy as np
from scipy.special import ndtr

from understudy.errors import RefusedError
from understudy_audit.analysts.correlation import agreements, batches, majority, selection, voted
from understudy_audit.analysts.game import Game, other_rows

Draw = np.random.Generator


def boosting(game: Game, queries: int, draw: Draw) -> None:
    """T4: submit random labels, keep those that score above the best before (or above half), submit their vote.

    [BlumHardt15]. Every submission is right half of the time in the population.
    """
    rows = game.mode.rows
    votes, before = np.zeros(rows), 0.0
    try:
        for _ in range(queries - 1):
            right = 2 * draw.integers(0, 2, rows) - 1  # against the hidden labels, which are as random
            score = game.ask(float(right.mean() + 1) / 2, 0.5, other_rows(0.5, rows, draw))
            better = score > before if game.mode.about_best else score > 0.5
            before = score if game.mode.about_best else before
            votes += right if better else -right if score < 0.5 and not game.mode.about_best else 0
        game.ask(float((np.sign(votes) + 1).mean() / 2), 0.5, 0.5)
    except RefusedError:
        return


def identification(game: Game, draw: Draw, *, times: int = 10) -> None:
    """T5: read the sample out of the digits of exact means, then ask for the share of people who are in it.

    Elements of a universe of `times`·n are given the weights (n+1)^-1, (n+1)^-2, … in chunks that a float can
    hold; the digits of a mean in base n+1 are then the counts of the chunk.
    """
    rows = game.mode.rows
    size = times * rows
    counts = np.bincount(draw.integers(0, size, rows), minlength=size)
    chunk = max(1, int(48 / log2(rows + 1)))
    base, found = rows + 1, np.zeros(size, dtype=bool)
    try:
        for start in range(0, size, chunk):
            weights = float(base) ** -np.arange(min(chunk, size - start))
            mean = float(counts[start : start + chunk] @ weights) / rows
            number = game.ask(mean, float(weights.sum()) / size, float(weights.sum()) / size) * rows
            for place in range(len(weights)):
                digit = int(number + 0.5 * weights[-1])
                found[start + place] = digit > 0
                number = (number - digit) * base
                weights = weights * base
        game.ask(float(counts[found].sum()) / rows, float(found.mean()), float(found.mean()))
    except RefusedError:
        return


def fingerprinting(game: Game, rounds: int, draw: Draw, *, times: int = 10, level: float = 4.0) -> int:
    """T6: an interactive fingerprinting code; returns how many members of the sample were traced out.

    Each round gives every identity a bit with a random bias; identities whose bits go with the answers are accused
    and get zeros from then on. Once most of the sample is accused its mean says nothing of the population's.
    """
    rows = game.mode.rows
    size = times * rows
    members = draw.choice(size, rows, replace=False)
    score, accused = np.zeros(size), np.zeros(size, dtype=bool)
    try:
        for j in range(1, rounds + 1):
            bias = np.sin(draw.uniform(0.1, np.pi / 2 - 0.1)) ** 2
            bits = (draw.random(size, dtype=np.float32) < bias) & ~accused
            answer = game.ask(float(bits[members].mean()), float(bits.mean()), float(bits.mean()))
            # an identity that was accused stays so: what its score does from then on is of no account
            down = -sqrt(bias / (1 - bias))
            score += (2 * answer - 1) * down
            score[bits] += (2 * answer - 1) * (sqrt((1 - bias) / bias) - down)
            if j >= 100:
                accused |= score > level * sqrt(j)
            # the referee ends it; an error before anyone is traced is the chance of few rows
            if accused[members].mean() > 1 / 2 and abs(answer - bits.mean()) > 1 / 3:
                break
    except RefusedError:
        pass
    return int(accused[members].sum())


def climbing(game: Game, queries: int, draw: Draw, *, attributes: int = 20) -> None:
    """T7: an honest agent that keeps a change of its linear classifier when the score says that it is better."""
    rows = game.mode.rows
    centre = np.full(attributes, 0.5 / sqrt(attributes))
    sealed, other = (draw.normal(size=(rows, attributes)) + centre for _ in range(2))
    weights, best = draw.normal(size=attributes), -1.0
    try:
        for _ in range(queries):
            trial = weights + 0.3 * draw.normal(size=attributes)
            truth = float(ndtr(trial @ centre / np.linalg.norm(trial)))
            score = game.ask(float((sealed @ trial > 0).mean()), truth, float((other @ trial > 0).mean()))
            if score > best:
                weights, best = trial, score
    except RefusedError:
        return


def blocks(game: Game, queries: int, draw: Draw) -> None:
    """T8: turn the labels of one block of rows after the other, and keep what scored better.

    Each score differs from the best one by a block alone, so that noise below a block's size is seen through.
    """
    rows = game.mode.rows
    truth, guess = draw.integers(0, 2, rows), draw.integers(0, 2, rows)
    try:
        best = game.ask(float((guess == truth).mean()), 0.5, 0.5)
        for block in np.array_split(draw.permutation(rows), queries - 1):
            changed = guess.copy()
            changed[block] = 1 - changed[block]
            told = game.ask(float((changed == truth).mean()), 0.5, 0.5)
            if told > best:
                guess, best = changed, told
    except RefusedError:
        return


def saving(game: Game, queries: int, draw: Draw) -> None:
    """T2 by an analyst who chooses the noise: coarse or fine by turns, and the vote with the finest that is left.

    For modes with a filter. How fine a question is asked depends on the answers before it.
    """
    rows, noise = game.mode.rows, getattr(game.mode, "filter", None)
    assert noise is not None
    agrees, heard = agreements(rows, queries - 1, draw), list[float]()
    try:
        for mean in (agrees.mean(axis=0, dtype=np.float64) + 1) / 2:
            far = bool(heard) and abs(heard[-1] - 0.5) > noise.planned / 2
            scale = noise.planned * (2.0 if far else 1.25)
            heard.append(game.ask(float(mean), 0.5, scale=min(scale, 1.0)))
        votes = np.sign(np.array(heard) - 0.5)
        game.ask(voted(agrees, votes), 0.5, scale=noise.least_scale(game.heard.units))
    except RefusedError:
        return


def _selecting(game: Game, queries: int, draw: Draw) -> None:
    selection(game, max(10, queries - 51), draw)


def _identifying(game: Game, queries: int, draw: Draw) -> None:
    del queries
    identification(game, draw)


def _fingerprinting(game: Game, queries: int, draw: Draw) -> None:
    fingerprinting(game, queries, draw)


ANALYSTS: dict[str, Callable[[Game, int, Draw], None]] = {
    "T1 selection": _selecting,
    "T2 majority": majority,
    "T3 batches": batches,
    "T4 boosting": boosting,
    "T5 identification": _identifying,
    "T6 fingerprinting": _fingerprinting,
    "T7 climbing": climbing,
    "T8 blocks": blocks,
}
"""Every analyst plays a game of at most so many queries."""


def queries_of(analyst: str, rows: int, queries: int) -> int:
    """How many questions an analyst asks at most, for a mode to be made for."""
    if analyst.startswith("T2"):
        return queries + 1
    if analyst.startswith("T5"):
        return ceil(10 * rows / max(1, int(48 / log2(rows + 1)))) + 1
    return queries
