"""Synthetic rows that agree with the answers of a release, cell by cell.

A stand-in follows its answers only as far as its tree reaches. Rows that are drawn from it are therefore moved
afterwards: one value of one row at a time, wherever that brings the counts of the rows nearer to the answers. This
is the combinatorial optimisation of population synthesis, with the answered marginals as its tables. Rows have one
joint distribution, so they also settle what noise makes the answers disagree about, and are often nearer to the
table than the answers themselves.

What is in the way, and which moves are made, `row_agreement` says. Everything here is made of released numbers: it
is post-processing and costs nothing.

Where no target is larger than a pair, all moves of a row are weighed at once (`pair_agreement`). Else rows that
are near their targets meet all of them at once. Those that are far, as rows of a weak stand-in are, and
those of long tables, for which that takes too much work, meet the large targets in rounds (`meet_in_rounds`).
Where a long table has few kinds of rows, they are drawn by weights instead (`raking`) and moved a little. Rows
that have met all targets, at once or in rounds, meet columns and pairs together with the larger targets then
(`meet_beside`). Where they stay away from the columns then, they meet columns and pairs alone at last: that takes
them away from larger targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.query.projection import Projection
from understudy.releases.pair_agreement import meet_pairs, of_pairs, pairs_work
from understudy.releases.pair_means import pair_means
from understudy.releases.raking import raked_rows
from understudy.releases.row_agreement import (
    LEAST_PART,
    LONG_GROUPS,
    MOST_WORK,
    SWEEPS,
    Lines,
    RowAgreement,
    look_work,
)
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes, sample_codes

AT_ONCE_WORK = 1_000_000_000
"""Nanoseconds of comparing all rows twice with all targets: a table that takes more is a long one."""

ROUNDS_WORK, ROUNDS_WORK_EACH = 6_200_000_000, 20_000
"""Nanoseconds in which rows of long tables meet their large targets, at most, and for each row."""

PARTS, LOOKED = 8, 0.6
"""In so many parts large targets are met at first, and how many of the rows are looked at for each."""

MOST_MOVED = 0.6
"""Of the rows that were looked at in a round: where fewer were moved, the next part is twice as large."""

ROUNDS_NEARER = 0.02
"""Of the distance: where rounds in which all targets had a turn bring less, the next part is twice as large."""

ROUND_WORK = 40_000_000
"""Rows that are looked at in a round, times its targets, at most."""

FAR = 0.07
"""The part of the rows that would have to be moved, from which on short tables are met in rounds, too. Rows change
about thirty times as many values."""

COLUMNS_OFF = 0.12
"""How far rows may be from the columns, over their mean distance from all targets, before they meet columns and
pairs again. Columns are told with much less noise than larger tables, whose positive counts have other sums: where
rows that met all targets are farther from the columns, these sums keep them there."""

LAST_WORK = 80_000_000
"""Rows that are looked at, times the columns and pairs that they meet at last."""

RAKED_WORK, RAKED_TRIED = 3_400_000_000, 400
"""Nanoseconds in which rows that were raked settle, and how many of them are tried at a time: few must move."""

COLUMN_WEIGHT, PAIR_WEIGHT = 0.03, 0.05
"""Of the losses of columns and pairs that rows meet together with larger targets, for each of those that holds
them."""

LAST_PART, LAST_TRIED = 0.25, 0.05
"""Of the work of rounds, what is kept for columns and pairs beside all larger targets, and the part of the rows
that is tried there: columns have large cells, and rows that all leave the same one would leave too few in it. Rows
that met all targets at once have as much work for it."""

FITTING = 8
"""How often the lines and the columns of a pair are scaled to sums that are told."""


def agreeing_rows(
    standin: Projection, answers: Sequence[MarginalAnswer], rows: int, rng: np.random.Generator
) -> Codes:
    """Rows drawn from a stand-in and moved until their counts agree with the answers; `rows` of them.

    Answers that a theorem certifies are the stand-in's own, so rows that follow it agree with them already.
    """
    codes = sample_codes(standin, rows, rng)
    told = [answer for answer in answers if answer.clique and answer.basis != "certified"]
    if not told or not rows:
        return codes
    domain, asked, zeros = standin.domain, targets(told), _zeros(standin)
    if of_pairs(asked):
        lines = as_lines(domain, codes)
        meet_pairs(domain, lines, asked, zeros, rng, work=pairs_work(rows))
        return _by_name(domain, lines)
    long, settled = is_long(domain, asked, rows), False
    raked = raked_rows(domain, codes, raking_order(asked, rng), rng) if long else None
    lines = as_lines(domain, codes if raked is None else raked)
    if raked is not None:
        every = RowAgreement.of(domain, lines, asked, zeros)
        every.settle(rng, work=RAKED_WORK, part=LEAST_PART, tried=RAKED_TRIED)
    elif long or is_far(every := RowAgreement.of(domain, lines, asked, zeros)):
        _, settled = meet_in_rounds(domain, lines, asked, zeros, rng)
    else:
        every.descend(rng)
        settled = meet_beside(domain, lines, asked, zeros, rng, work=LAST_PART * rounds_work(rows))
    if not settled and (small := small_targets(asked)):
        RowAgreement.of(domain, lines, small, zeros).descend(rng, looks=LAST_WORK // len(small))
    return _by_name(domain, lines)


def _by_name(domain: Domain, lines: Lines) -> Codes:
    return {name: line.astype(np.int64) for name, line in zip(domain.names, lines, strict=True)}


def as_lines(domain: Domain, codes: Codes) -> Lines:
    """The rows with a line for each attribute, in 16 bits where these hold all codes."""
    narrow = max(domain.shape()) <= np.iinfo(np.uint16).max
    return np.stack([codes[name].astype(np.uint16 if narrow else np.uint32) for name in domain.names])


def is_long(domain: Domain, asked: Sequence[MarginalAnswer], rows: int) -> bool:
    """Whether comparing all rows twice with all targets is too much work."""
    holding = sum(len(answer.clique) for answer in asked) / len(domain)
    return SWEEPS * rows * look_work(domain, len(asked), holding) > AT_ONCE_WORK


def is_far(every: RowAgreement) -> bool:
    """Whether rows are so far from their targets that meeting these in rounds pays."""
    return every.distance > FAR


def near_columns(agreement: RowAgreement) -> bool:
    """Whether rows that have met all targets are as near the columns as they should be."""
    return agreement.columns_distance <= COLUMNS_OFF * agreement.distance


def rounds_work(rows: int) -> float:
    """Nanoseconds in which so many rows meet their large targets in rounds."""
    return float(min(ROUNDS_WORK, ROUNDS_WORK_EACH * rows))


def meet_beside(
    domain: Domain,
    lines: Lines,
    asked: Sequence[MarginalAnswer],
    zeros: Sequence[Constraint],
    rng: np.random.Generator,
    *,
    work: float,
) -> bool:
    """Move rows that have met their targets nearer to columns and pairs, which stand beside the larger targets.

    Returns whether rows are as near the columns as they should be. Every move that is made for columns and pairs
    alone takes rows away from the larger targets: on adult at epsilon 10 they would be a tenth farther from those.
    """
    every = with_small_targets(asked)
    agreement = RowAgreement.of(domain, lines, every, zeros, copies=False, weights=small_weights(every))
    agreement.settle(rng, work=work - agreement.work, part=LAST_TRIED, groups=LONG_GROUPS)
    return near_columns(agreement)


def meet_in_rounds(
    domain: Domain,
    lines: Lines,
    asked: Sequence[MarginalAnswer],
    zeros: Sequence[Constraint],
    rng: np.random.Generator,
) -> tuple[list[int], bool]:
    """Move rows in rounds, a random part of the targets in each.

    Returns in how many parts targets were, each time, and whether rows are as near the columns as they should be.

    A move costs as much as there are targets, and gains about the root of that, so that many moves for few targets
    bring rows nearer in the same time than few moves for all. To the targets of other rounds they are noise, so
    that only those are made that gain more than this costs. Once these become few, or rows come no nearer while
    all targets have a turn, as where these contradict each other, parts are made twice as large. When a part is
    all of them, rows settle, at last with columns and pairs beside the larger targets: every move that is made for
    columns and pairs alone takes rows away from the larger targets.
    """
    large, count = [answer for answer in asked if len(answer.clique) > 1], lines.shape[1]
    work = rounds_work(count)
    last, parts, taken, waiting = LAST_PART * work, min(PARTS, len(large)), [], []
    found, before = [], inf  # how far rows were from the part of each round, and those of the time before
    while work > 0 and parts > 1:
        if len(waiting) < len(large) // parts:
            if found and np.mean(found) > (1 - ROUNDS_NEARER) * before:
                parts, found = max(parts // 2, 1), []
            before, found = float(np.mean(found)) if found else inf, []
            waiting = rng.permutation(len(large)).tolist()
        size = len(large) // parts
        part, waiting = [large[i] for i in sorted(waiting[:size])], waiting[size:]
        agreement = RowAgreement.of(domain, lines, part, zeros, copies=False)
        taken.append(parts)
        found.append(agreement.distance)
        looks = int(min(LOOKED * count, ROUND_WORK / size)) + 1
        agreement.descend(rng, looks=looks, tried=MOST_WORK, groups=LONG_GROUPS, unseen=parts - 1)
        work -= agreement.work
        if agreement.moved < MOST_MOVED * agreement.looked:
            parts, found, before = max(parts // 2, 1), [], inf
    if parts > 1:
        return taken, False
    agreement = RowAgreement.of(domain, lines, large, zeros, copies=False)
    agreement.settle(rng, work=work - last - agreement.work, groups=LONG_GROUPS)
    return [*taken, 1], meet_beside(domain, lines, asked, zeros, rng, work=last)


def with_small_targets(asked: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The targets that are larger than pairs, then columns, and pairs as the larger targets tell them together."""
    return [*(answer for answer in asked if len(answer.clique) > 2), *small_targets(asked)]


def small_weights(asked: Sequence[MarginalAnswer]) -> list[float]:
    """What the losses of targets weigh where columns and pairs stand beside the larger targets that hold them."""
    held = Counter(
        part
        for answer in asked
        for order in (1, 2)
        if len(answer.clique) > 2
        for part in combinations(answer.clique, order)
    )
    each = {1: COLUMN_WEIGHT, 2: PAIR_WEIGHT}
    return [max(each.get(len(a.clique), 0.0) * held[a.clique], 1.0) for a in asked]


def raking_order(asked: Sequence[MarginalAnswer], rng: np.random.Generator) -> list[MarginalAnswer]:
    """Targets in the order of a sweep of raking: large ones in random order, then pairs, and columns last."""
    large = [answer for answer in asked if len(answer.clique) > 2]
    small = small_targets(asked)
    return [*(large[i] for i in rng.permutation(len(large))), *reversed(small)]


def small_targets(asked: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The 1-way targets, and all pairs as the larger targets tell them together, with the 1-way targets' sums.

    Columns are told with much less noise than the sums of larger tables. Pairs that had other sums would draw the
    columns of the rows away from their answers.
    """
    shares = [(a.clique, a.counts / max(float(a.counts.sum()), 1e-9)) for a in asked]
    columns = {clique[0]: np.maximum(share, 0.0) for clique, share in shares if len(clique) == 1}
    pairs = {c: _with_sums(mean, [columns.get(name) for name in c]) for c, mean in pair_means(shares).items()}
    return [
        *(answer for answer in asked if len(answer.clique) == 1),
        *(
            MarginalAnswer.around(c, pair, np.full(pair.shape, np.inf), "uncertified")
            for c, pair in pairs.items()
        ),
    ]


def _with_sums(pair: NDArray[np.float64], sums: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
    """The pair fitted to sums of its lines and of its columns by iterative proportions, where they are known."""
    pair = np.maximum(pair, 0.0)
    for _ in range(FITTING if any(known is not None for known in sums) else 0):
        for axis, known in enumerate(sums):
            if known is not None:
                now = pair.sum(axis=1 - axis)
                ratio = np.divide(known, now, out=np.ones_like(now), where=now > 0)
                pair = pair * (ratio[:, None] if axis == 0 else ratio)
    return pair


def _zeros(standin: Projection) -> list[Constraint]:
    """What no row may be in: what the stand-in was told to leave empty, or holds no mass of.

    An answer of 0 that noise proves, however short its interval is, holds with probability 1 - β only, and forbids
    nothing.
    """
    model = getattr(standin, "model", standin)
    found: list[Constraint] = list(getattr(model, "constraints", ()))
    if not hasattr(standin, "sample_codes"):  # every cell is held, and those without mass stay empty
        rates = standin.project(standin.domain.names)
        if (rates <= 0).any() and (rates > 0).any():
            found.append(Constraint(standin.domain.names, rates > 0))
    return found


def targets(answers: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The answers that rows are compared with: marginals that lie in no larger one, and the 1-way ones.

    Other marginals below a larger one are left out: the larger ones tell them together, with less noise.
    """
    below = {
        part
        for answer in answers
        for order in range(2, len(answer.clique))
        for part in combinations(answer.clique, order)
    }
    return [answer for answer in answers if answer.clique not in below]
