"""The parts of a release's report that say how good it is: warnings, scores, worst cells, pairs as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from understudy.domain.bins import Bins
from understudy.pages.heat import LINE, HeatCell, depth_of, heat
from understudy.pages.markup import (
    CellMarkup,
    banner,
    details,
    escaped,
    figure,
    legend,
    many,
    paragraph,
    section,
    table,
)
from understudy.pages.svg import swatch
from understudy.releases.quality import MarginalQuality, QualityJudge, ReleaseQuality, is_doubtful
from understudy.releases.report_words import of_thousand, percent

if TYPE_CHECKING:
    from understudy.releases.release import Release

NEAR = 3.0
"""A distance of at most so many sampling errors is told as near to them."""
MOST_PAIRS_LISTED = 300
MOST_PAIRS_DRAWN = 6
MOST_NAMED = 20
"""Categories that a heat map has room to name, every one."""
MOST_SIDE = 60
"""Cells of a column that a heat map is drawn of."""

VERDICTS = {
    "good": "within sampling error",
    "near": f"up to {NEAR:g} times sampling error",
    "above": f"more than {NEAR:g} times sampling error",
    "noise": "mostly noise",
    "none": "no error bar",
}
SHORT = ("", "cells", "score", "wrong of 1,000", "fresh sample", "certainly ≤", "verdict")
"""The heads of the quality table on a telephone."""
_COLOURS = {
    "good": ("heat good", 0.5),
    "near": ("bar", 0.95),
    "above": ("heat warn", 0.6),
    "noise": ("heat bad", 0.85),
}
_WORD_KINDS = {
    "good": "good-word",
    "near": "near-word",
    "above": "warn-word",
    "noise": "bad-word",
    "none": "note",
}


def verdict(found: MarginalQuality) -> str:
    """The key of `VERDICTS` for a column or pair."""
    if found.ratio is None:
        return "noise" if found.is_noise else "none"
    if found.is_noise:
        return "noise"
    return "good" if found.ratio <= 1 else "near" if found.ratio <= NEAR else "above"


class NoiseWords(NamedTuple):
    """What is said of a release that is noise, as a whole (`bad`) or in parts (`warn`)."""

    kind: str
    title: str
    text: str


def noise_words(quality: ReleaseQuality) -> NoiseWords | None:
    """The warning about a release that is mostly noise, or of which many pairs are; None for any other."""
    noisy = sum(found.is_noise for found in quality.columns)
    help_ = "Fewer or smaller marginals, wider ranges, a larger ε or more people would help."
    pairs = f"{quality.noisy_pairs:,} of {many(len(quality.pairs), 'pair')}"
    if quality.is_noise:
        also = f" and {pairs}" if quality.pairs else ""
        return NoiseWords(
            "bad",
            "Mostly noise",
            f"In {noisy:,} of {many(len(quality.columns), 'column')}{also} most people are in cells whose error "
            "bar is at least as large as the count. The privacy of the people is kept; the numbers say little "
            f"about them. {help_}",
        )
    if noisy or quality.noisy_pairs * 4 > len(quality.pairs):
        parts = [many(noisy, "column")] if noisy else []
        parts += [f"{pairs} of columns"] if quality.pairs else []
        return NoiseWords(
            "warn",
            "Some parts are mostly noise",
            f"In {' and '.join(parts)} most people are in cells whose error bar is at least as large as the "
            f"count. {help_}",
        )
    return None


def warning(quality: ReleaseQuality) -> str:
    """The same as a banner of the report; empty where there is nothing to warn of."""
    words = noise_words(quality)
    if words is None:
        return ""
    marked = " They are marked below." if words.kind == "warn" else ""
    return banner(words.kind, words.title, f"{words.text}{marked}")


def quality_part(quality: ReleaseQuality) -> str:
    """Scores of columns and pairs beside the sampling error, and the cells that may be furthest off."""
    certified = any(found.distance is not None for found in (*quality.columns, *quality.pairs))
    words = (
        "Of 1,000 people, how many would have to be moved to another cell for the synthetic table to agree "
        "with the real one? Beside it stands the same number for a fresh sample of as many people: every "
        "table of people is off by that much from its population. All of this is worked out from released "
        "numbers and the known spread of the noise; nobody looked at the table for it."
    )
    if not certified:
        words += (
            " This release has no error bars that rest on noise, so only sampling errors and certain bounds "
            "are told."
        )
    body = paragraph(words) + _listed(quality.columns, "column", "Quality of the columns")
    if quality.pairs:
        body += "<h3>Pairs of columns</h3>" + _matrix(quality)
        ranked = sorted(
            quality.pairs, key=lambda found: -(found.distance if found.distance is not None else found.bound)
        )
        listed = _listed(ranked[:MOST_PAIRS_LISTED], "pair", "Quality of the pairs")
        if len(ranked) > MOST_PAIRS_LISTED:
            listed += paragraph(f"The other {len(ranked) - MOST_PAIRS_LISTED:,} are better.", "note")
        body += details(f"All {many(len(ranked), 'pair')}, the worst first", listed)
    if quality.left_out:
        body += paragraph(
            f"{many(quality.left_out, 'pair')} of a wide table or with very many cells were not judged.",
            "note",
        )
    return section("How good it is", body + _worst(quality), name="quality")


def _listed(found: tuple[MarginalQuality, ...] | list[MarginalQuality], what: str, words: str) -> str:
    head = [
        what, "cells", "score", "expected in a wrong cell, of 1,000", "fresh sample, of 1,000",
        "certainly at most, of 1,000", "verdict",
    ]  # fmt: skip
    rows = [
        [
            " × ".join(one.clique),
            f"{one.cells:,}",
            percent(one.score),
            of_thousand(one.distance),
            of_thousand(one.sampling),
            of_thousand(one.bound),
            _verdict_cell(one),
        ]
        for one in found
    ]
    return table(head, rows, numbers=range(1, 6), words=words, stack=True, short=SHORT)


def _verdict_cell(found: MarginalQuality) -> CellMarkup:
    kind = verdict(found)
    words = f"{found.ratio:.1f} × sampling error" if kind in ("near", "above") else VERDICTS[kind]
    return CellMarkup(f'<span class="{_WORD_KINDS[kind]}">{escaped(words)}</span>')


def _matrix(quality: ReleaseQuality) -> str:
    """Every pair in the colour of its verdict, columns on the diagonal."""
    paired = {name for found in quality.pairs for name in found.clique}
    names = [found.clique[0] for found in quality.columns if found.clique[0] in paired]
    known = {found.clique: found for found in (*quality.columns, *quality.pairs)}
    grid: list[list[HeatCell | None]] = []
    for i, first in enumerate(names):
        line: list[HeatCell | None] = []
        for second in names[: i + 1]:
            clique = (first,) if first == second else (second, first)
            line.append(_judged_cell(known[clique]) if clique in known else HeatCell(None))
        grid.append(line + [None] * (len(names) - i - 1))
    entries = [(swatch(kind, depth=depth), VERDICTS[key]) for key, (kind, depth) in _COLOURS.items()]
    drawn = heat(
        names,
        names,
        grid,
        words="Quality of every pair of columns",
        width=360,
        least=16,
        largest=26,
        thin=False,
    )
    return legend([*entries, (swatch("unknown"), VERDICTS["none"])]) + figure(
        drawn, "", "Each square is a pair; the diagonal is the column itself", wide=True
    )


def _judged_cell(found: MarginalQuality) -> HeatCell:
    kind = verdict(found)
    hint = f"{' × '.join(found.clique)}: {VERDICTS[kind]}; score {percent(found.score)}"
    if kind == "none":
        return HeatCell(None, hint=hint)
    colour, depth = _COLOURS[kind]
    return HeatCell(depth, colour, hint=hint)


def _worst(quality: ReleaseQuality) -> str:
    if not quality.worst:
        return ""
    rows = [
        [
            ", ".join(f"{name}: {label}" for name, label in zip(cell.clique, cell.labels, strict=True)),
            f"{cell.rows:,.0f}",
            f"{cell.value:,.0f}, between {cell.low:,.0f} and {cell.high:,.0f}",
            f"{cell.reach:,.0f}",
        ]
        for cell in quality.worst
    ]
    return (
        "<h3>The worst cells</h3>"
        + paragraph(
            "Where the synthetic rows may be furthest from the table's own count, in people: as far as the "
            "farther end of the answer's error bar, which can be the whole length of the bar away, or more."
        )
        + table(
            ["cell", "synthetic rows, as people", "released answer", "certainly off by at most"],
            rows, numbers=(1, 2, 3), words="The cells that may be furthest off", stack=True,
        )
    )  # fmt: skip


# ---- pairs, drawn


def pairs_part(release: Release, judge: QualityJudge, quality: ReleaseQuality) -> str:
    """The pairs that are least like independent columns, as two heat maps each: the answers, and the rows."""
    sizes = {name: release.domain[name].size for name in release.domain.names}
    drawable = [found for found in quality.pairs if all(sizes[name] <= MOST_SIDE for name in found.clique)]
    # What noise alone would show of an association is taken off before pairs are compared.
    chosen = sorted(drawable, key=lambda found: (found.expected or 0.0) - found.association)[
        :MOST_PAIRS_DRAWN
    ]
    if not chosen:
        return ""
    figures = "".join(_pair(release, judge, found) for found in chosen)
    return section(
        "Pairs of columns",
        paragraph(
            f"The {many(len(chosen), 'pair')} whose columns depend most on each other by the released "
            "numbers, beyond what noise alone would show. The stronger its colour, the more people a cell "
            "holds; the two maps of a pair should look alike."
        )
        + f'<div class="pairs">{figures}</div>',
    )


def _pair(release: Release, judge: QualityJudge, found: MarginalQuality) -> str:
    first, second = (release.domain[name] for name in found.clique)
    answer, rows = judge.shown(found.clique)
    value = answer.value
    doubtful = np.zeros(value.shape, bool)
    if answer.low is not None and answer.high is not None:
        doubtful = is_doubtful(value, answer.low, answer.high)
    most = float(max(value.max(initial=0.0), 0.0 if rows is None else rows.max(initial=0.0)))
    panels: list[str] = []
    for title, counts in (("released answers", value), ("synthetic rows", rows)):
        if counts is None:
            continue
        grid: list[list[HeatCell | None]] = [
            [
                HeatCell(
                    depth_of(float(counts[i, j]), most),
                    doubtful=bool(doubtful[i, j] and value[i, j] > 0.002 * most),
                    hint=f"{a}, {b}: {counts[i, j]:,.0f} people",
                )
                for j, b in enumerate(second.labels)
            ]
            for i, a in enumerate(first.labels)
        ]
        drawn = heat(
            first.labels,
            second.labels,
            grid,
            words=f"{title} by {first.name} and {second.name}",
            width=235,
            least=0 if isinstance(second, Bins) or second.size > MOST_NAMED else LINE,
            thin=isinstance(second, Bins),
        )
        panels.append(figure(drawn, "", title))
    name = f"{first.name} (down) × {second.name} (across)"
    key = legend(
        [
            (swatch("heat", depth=depth_of(0.04, 1)), f"{most * 0.04:,.0f}"),
            (swatch("heat", depth=depth_of(0.25, 1)), f"{most / 4:,.0f}"),
            (swatch("heat"), f"{most:,.0f} people"),
            (swatch("doubt", shape="dot"), "error bar at least as large as the count"),
        ]
    )
    return (
        f"<figure><figcaption>{escaped(name)}</figcaption><div"
        f' class="panels">{"".join(panels)}</div>{key}</figure>'
    )
