"""Attack a mode with every analyst, and say what it claimed, what was true, and how often all widths held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from understudy.errors import ParameterError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.theory.arguments import whole
from understudy.validity.choice import MODE_CARDS, mode_of
from understudy.validity.modes import HoldoutMode
from understudy_audit.analysts.game import Game, GameResult, Plain
from understudy_audit.analysts.others import ANALYSTS, queries_of

PLAIN = "plain"
MODES = (PLAIN, *(card.name for card in MODE_CARDS.values() if card.certified))


@dataclass(frozen=True)
class AttackFinding:
    """One analyst against one mode, over some runs; `refused` says why, where the mode would not even begin."""

    analyst: str
    mode: str
    runs: int
    claimed: float
    truth: float
    width: float
    largest_error: float
    covered: int
    refused: str = ""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def validity_audit(
    *,
    rows: int = 2000,
    queries: int = 500,
    beta: float = 0.05,
    modes: Sequence[str] = MODES,
    analysts: Sequence[str] = tuple(ANALYSTS),
    runs: int = 20,
    rejections: int = 10,
    seed: int = 0,
) -> list[AttackFinding]:
    """Every analyst against every mode, on invented data. Mean claim, truth and width are of the last answer.

    Raises a `ParameterError` where there is nothing to attack: an analyst needs two `rows` and two `queries`.
    """
    least = {"rows": (rows, 2), "queries": (queries, 2), "runs": (runs, 1), "seed": (seed, 0)}
    for name, (given, at_least) in least.items():
        whole(given, name, at_least=at_least)
    for name in analysts:
        if name not in ANALYSTS:
            raise ParameterError(f"no analyst {name!r}; there are: {', '.join(ANALYSTS)}")
    return [
        _attacked(analyst, mode, rows, queries, beta, runs, rejections, seed)
        for analyst in analysts
        for mode in modes
    ]


def _attacked(
    analyst: str, mode: str, rows: int, queries: int, beta: float, runs: int, rejections: int, seed: int
) -> AttackFinding:
    asked = queries_of(analyst, rows, queries)
    attacked = made(mode, rows, asked, beta, rejections)
    try:
        played = [play(ANALYSTS[analyst], attacked, queries, seed + run) for run in range(runs)]
    except RefusedError as error:
        return AttackFinding(analyst, mode, 0, 0.5, 0.5, 1.0, 0.0, 0, str(error))
    return AttackFinding(
        analyst, mode, runs,
        fmean(o.claimed for o in played), fmean(o.truth for o in played), fmean(o.width for o in played),
        max(o.largest_error for o in played), sum(o.covered for o in played),
        next((o.refusal for o in played if o.refusal), ""),
    )  # fmt: skip


def made(mode: str, rows: int, queries: int, beta: float, rejections: int = 10) -> HoldoutMode:
    """A mode by its name, the plain holdout among them."""
    if mode == PLAIN:
        return Plain(rows, queries, beta)
    return mode_of(mode, rows, queries, beta, rejections=rejections)


def play(
    analyst: Callable[[Game, int, np.random.Generator], None],
    mode: HoldoutMode,
    queries: int,
    seed: int,
    *,
    vacuous: bool = False,
) -> GameResult:
    """One run; refused before it begins where the mode's certificate says nothing, unless that is wanted."""
    game = Game(mode, SeededNoise(seed), vacuous=vacuous)
    analyst(game, queries, np.random.default_rng(seed))
    return game.outcome
