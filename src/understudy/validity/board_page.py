"""A leaderboard as a page: everything that was said, with its certified width. No label and no secret is on it."""

from __future__ import annotations

from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import escaped, facts, figure, glossary, legend, many, paragraph, section, table
from understudy.pages.shell import document
from understudy.pages.svg import swatch
from understudy.validity.board import Board, Standing

MOST_LISTED = 500
"""Submissions that are listed: the newest."""
MOST_DRAWN = 40

SOURCES = {
    "repeat": "no better than the best so far",
    "measured": "measured",
    "checked": "the guess was right",
}

GLOSSARY = {
    "score": (
        "A number from 0 to 1; larger is better. A loss is clipped and turned over, so that 1 is no loss."
    ),
    "certified width": (
        "The score is within this much of what it is about, for all submissions at once, except with the "
        "stated probability, however many submissions were made after seeing earlier scores."
    ),
    "no better than the best so far": (
        "A ladder tells the running best only. Of such a submission it says that it is not "
        "clearly better, and nothing else."
    ),
    "the guess was right": (
        "The submitter's own score on other rows was compared with the sealed rows and told as it is."
    ),
    "submissions left": (
        "The certificate covers a number of submissions that was fixed beforehand; beyond it nothing is "
        "scored."
    ),
}


def board_page(board: Board, *, made: str = "") -> str:
    """The page of an open board."""
    promised, standings = board.holdout.certificate(), board.show()
    told = [standing for standing in standings if not standing.score.repeats]
    best = max(told, key=lambda standing: standing.score.value, default=None)
    mode = board.holdout.mode
    shown: dict[str, str | tuple[str, str]] = {
        "best score": "–" if best is None else (_score(best), best.name),
        "submissions": (f"{board.terms.queries - board.holdout.left:,}", f"{board.holdout.left:,} left"),
        "sealed rows": f"{board.holdout.rows:,}",
        "metric": board.holdout.metric.text,
        "mode": mode.name,
        "holds with probability": f"{1 - board.terms.beta:g}",
    }
    certificate = board.holdout.promise
    assumed = "".join(f"<li>{escaped(line)}</li>" for line in certificate.assumptions)
    return document(
        "leaderboard",
        f"Leaderboard {board.path.stem}",
        facts(shown),
        _drawn(told),
        _listed(standings),
        section(
            "What is promised",
            paragraph(
                f"Every answer is within ± {certificate.width:.4f}, all of them at once, with probability "
                f"{1 - certificate.beta:g}, by: {certificate.theorem}. Scores are {promised['about']}."
            )
            + f"<p>This holds if</p><ul>{assumed}</ul>",
        ),
        glossary(GLOSSARY),
        lead=(
            "Scores on sealed labels that hold for new labels, whatever was submitted after seeing earlier "
            "scores."
        ),
        made=made,
    )


def _score(standing: Standing) -> str:
    return f"{standing.score.value:.4f} ± {standing.score.width:.4f}"


def _drawn(told: list[Standing]) -> str:
    if not told:
        return ""
    shown = told[-MOST_DRAWN:]
    lines = [
        PlotBar(
            standing.name,
            standing.score.value,
            standing.score.low,
            standing.score.high,
            hint=f"{standing.name}: {_score(standing)}",
        )
        for standing in shown
    ]
    words = "Scores that were told, in the order of submission."
    if len(told) > len(shown):
        words = (
            f"The newest {len(shown)} of {many(len(told), 'score')} that were told, in the order of "
            "submission."
        )
    return section(
        "Scores",
        paragraph(words)
        + legend([(swatch("bar"), "score"), (swatch("whisker", shape="whisker"), "certified width")])
        + figure(
            bars(lines, words="Scores with their certified widths", top=1.0, unit="score, larger is better")
        ),
    )


def _listed(standings: list[Standing]) -> str:
    if not standings:
        return section("Submissions", paragraph("Nothing was submitted yet."))
    first = max(len(standings) - MOST_LISTED, 0)
    rows: list[list[str]] = []
    for place, standing in enumerate(standings[first:], start=first + 1):
        found = standing.score
        value = "–" if found.repeats else f"{found.value:.4f}"
        width = "–" if found.repeats else f"{found.width:.4f}"
        rows.append([standing.name, str(place), value, width, SOURCES.get(found.source, found.source)])
    more = paragraph(f"{many(first, 'earlier submission')} are not listed.", "note") if first else ""
    listed = table(
        ["name", "submission", "score", "certified width", "what was told"], rows, numbers=(1, 2, 3),
        words="Submissions", stack=True,
    )  # fmt: skip
    return section("Submissions", listed + more)
