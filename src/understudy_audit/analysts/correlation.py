"""Attacks that learn signs from many weak correlations and then ask one strong question. T1-T3.

All are in the form of bounded statistical queries: attribute j agrees with the label or not, and in the population
each does half of the time, so that every classifier made of them is right half of the time.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from understudy.errors import RefusedError
from understudy_audit.analysts.game import Game, other_rows

Draw = np.random.Generator

COLUMNS = 1024
"""How many columns of signs are turned into floats at a time."""


def expected_majority(rows: int, queries: int, sigma: float = 0.0) -> float:
    """Φ(sqrt(2k/(πn))/sqrt(1 + 4nσ²)): what the majority scores on the sample, nearly; the truth is 1/2."""
    return float(ndtr(sqrt(2 * queries / (pi * rows)) / sqrt(1 + 4 * rows * sigma**2)))


def agreements(rows: int, queries: int, draw: Draw) -> NDArray[np.int8]:
    """Whether each row's attribute agrees with its label: ±1, all fair and independent."""
    bits = np.unpackbits(draw.integers(0, 256, (rows, -(-queries // 8)), dtype=np.uint8), axis=1)
    return (2 * bits[:, :queries].astype(np.int8) - 1).astype(np.int8)


def votes(agrees: NDArray[np.int8], weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """The weighted vote of each row, some columns at a time: a table of floats is four times as large as one of
    signs.
    """
    found = np.zeros(len(agrees), dtype=np.float32)
    for start in range(0, len(weights), COLUMNS):
        part = slice(start, start + COLUMNS)
        found += agrees[:, part].astype(np.float32) @ weights[part].astype(np.float32)
    return found


def right(votes: NDArray[np.float32]) -> float:
    """The share of rows on which a vote is right; a tie is half right."""
    return float((np.sign(votes) + 1).mean() / 2)


def voted(agrees: NDArray[np.int8], weights: NDArray[np.float64]) -> float:
    """The share of rows on which the weighted vote is right; a tie is half right."""
    return right(votes(agrees, weights))


def majority(
    game: Game,
    queries: int,
    draw: Draw,
    *,
    log_odds: bool = False,
    hostile: bool = False,
    agrees: NDArray[np.int8] | None = None,
) -> None:
    """T2: ask `queries` correlations, then whether their majority vote is right. The truth of all is 1/2.

    A `hostile` analyst makes wrong guesses on purpose, to be told what the sample says. `agrees` is a sample that
    was drawn before (`agreements`), for several mechanisms to be tried on.
    """
    rows = game.mode.rows
    agrees = agreements(rows, queries, draw) if agrees is None else agrees
    means = (agrees.mean(axis=0, dtype=np.float64) + 1) / 2
    heard: list[float] = []
    try:
        for mean in means:
            guess = 0.0 if hostile else other_rows(0.5, rows, draw)
            heard.append(game.ask(float(mean), 0.5, guess))
        game.ask(
            voted(agrees, _weights(np.array(heard), rows, log_odds=log_odds)), 0.5, 0.0 if hostile else 0.5
        )
    except RefusedError:
        return


def _weights(heard: NDArray[np.float64], rows: int, *, log_odds: bool) -> NDArray[np.float64]:
    if not log_odds:
        return np.sign(heard - 0.5)
    inside = np.clip(heard, 1 / rows, 1 - 1 / rows)
    return np.log(inside / (1 - inside))


def batches(game: Game, queries: int, draw: Draw, *, every: int = 100) -> None:
    """T3: every 100th question is the log-odds vote of all that was heard before it."""
    rows = game.mode.rows
    agrees = agreements(rows, queries, draw)
    heard: list[float] = []
    counted, vote = 0, np.zeros(rows, dtype=np.float32)  # what was heard before keeps its weight
    try:
        for j in range(queries):
            if (j + 1) % every == 0:
                weights = _weights(np.array(heard[counted:]), rows, log_odds=True)
                vote += votes(agrees[:, counted : len(heard)], weights)
                counted = len(heard)
                game.ask(right(vote), 0.5, 0.5)
            else:
                column = agrees[:, len(heard)]
                heard.append(game.ask(float(column.mean() + 1) / 2, 0.5, other_rows(0.5, rows, draw)))
    except RefusedError:
        return


def selection(game: Game, attributes: int, draw: Draw, *, signal: int = 0, top: int = 500) -> list[float]:
    """T1: keep the attributes on which training rows and holdout agree, vote by the strongest, ask how good it is.

    The experiment of [DFHPRR15] with signs for values. The first `signal` attributes agree with the label with
    probability 1/2 + 3/sqrt(n). Returns the accuracies that were heard for 10, 20, … attributes. Given how often a
    column agrees, the rows on which it does are a uniform choice, so that only chosen columns are ever drawn.
    """
    rows = game.mode.rows
    chance = np.full(attributes, 0.5)
    chance[:signal] += 3 / sqrt(rows)
    train, sealed = draw.binomial(rows, chance) / rows, draw.binomial(rows, chance) / rows
    claims: list[float] = []
    try:
        heard = np.array(
            [game.ask(float(s), float(p), float(t)) for s, p, t in zip(sealed, chance, train, strict=True)]
        )
        far = 1 / (2 * sqrt(rows))
        agree = (np.sign(heard - 0.5) == np.sign(train - 0.5)) & (np.abs(train - 0.5) > far)
        kept = np.flatnonzero(agree & (np.abs(heard - 0.5) > far))
        kept = kept[np.argsort(-np.abs(train[kept] - 0.5))][:top]
        sums = {name: np.zeros(rows) for name in ("sealed", "train")}
        signs = np.sign(train - 0.5)
        for count, j in enumerate(kept, start=1):
            for name, means in (("sealed", sealed), ("train", train)):
                column = np.full(rows, -1.0)
                column[draw.permutation(rows)[: round(float(means[j]) * rows)]] = 1.0
                sums[name] += signs[j] * column
            if count % 10 == 0:
                share = {name: float((np.sign(vote) + 1).mean() / 2) for name, vote in sums.items()}
                truth = _vote_truth(chance[kept[:count]], signs[kept[:count]])
                claims.append(game.ask(share["sealed"], truth, share["train"]))
    except RefusedError:
        pass
    return claims


def _vote_truth(chance: NDArray[np.float64], signs: NDArray[np.float64]) -> float:
    """P[Σ sᵢzᵢ > 0] + P[= 0]/2 for independent signs z that are 1 with these chances: exact, by convolution."""
    law = np.ones(1)
    for p, s in zip(chance, signs, strict=True):
        up = p if s > 0 else 1 - p
        law = np.convolve(law, [1 - up, up])
    middle = (len(law) - 1) / 2
    place = np.arange(len(law))
    return float(law[place > middle].sum() + law[place == middle].sum() / 2)
