"""The demo as a page: every question with its private answer, its error bar, and the truth that only an
invented town can show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import banner, facts, figure, glossary, legend, paragraph, section, table
from understudy.pages.shell import document
from understudy.pages.svg import swatch
from understudy_demo.trials import ALPHA, DELTA, EPSILON, Trials

if TYPE_CHECKING:
    from understudy_demo.demo import Exchange, Town

KIND = "demo"
MOST_BARS = 40

GLOSSARY = {
    "answer": "The count or share with noise added. It is all that an analyst would ever see.",
    "error bar": "The truth lies within it, for all error bars of the demo at once, in 19 of 20 towns.",
    "truth": (
        "The exact count. Nobody in this town exists, so it may be shown here; for a real table it never is."
    ),
    "epsilon": (
        "The price of an answer: how much it can tell about one person. The table has a budget of it, spent "
        "once."
    ),
    "release": "A synthetic table and thousands of answers, made once and then public.",
    "session": "Many questions under one promise; what is known already is answered for nothing.",
    "holdout, attacked": (
        "An adversary submits to a leaderboard to look better than chance. A plain holdout believes it; the "
        "modes of this program do not."
    ),
}


def demo_page(town: Town) -> str:
    """The page of a town that was questioned."""
    held, shown = town.held
    words = f"{held} of {shown} error bars hold the truth; all of them should, in 19 of 20 towns."
    figures = "".join(map(_exchange, town.exchanges))
    return document(
        KIND,
        f"An invented town of {town.people:,} people, questioned privately",
        banner("good" if held == shown else "warn", "The truth beside every answer", words),
        facts(
            {
                "people": (f"{town.people:,}", "none of them exists"),
                "questions": f"{len(town.exchanges)}",
                "budget": f"{town.spent.currency} {town.budget:g}",
                "spent": f"{town.spent.amount:.4g}",
                "error bars that hold": f"{held} of {shown}",
            }
        ),
        section(
            "Questions and answers",
            legend(
                [
                    (swatch("bar"), "private answer"),
                    (swatch("whisker", shape="whisker"), "its error bar"),
                    (swatch("target", shape="target"), "the truth"),
                ]
            )
            + f'<div class="grid">{figures}</div>',
        ),
        _trials(town.trials),
        glossary(GLOSSARY),
        lead="What an analyst may ask of a table that nobody may see, and how good the answers are.",
        made="This page fetches nothing and runs no script.",
    )


def _exchange(exchange: Exchange) -> str:
    shares = exchange.question.text.startswith("share")
    scale = 100.0 if shares else 1.0
    cost = exchange.answer.cost
    lines = [
        PlotBar(
            label or ("share" if shares else "people"),
            value * scale,
            max(value - error, 0.0) * scale,
            (value + error) * scale,
            truth * scale,
            doubtful=error >= value,
            hint=f"{label}: {value * scale:,.1f} ± {error * scale:,.1f}, truth {truth * scale:,.1f}",
        )
        for label, value, error, truth in exchange.cells
    ][:MOST_BARS]
    drawn = bars(lines, words=exchange.question.text, unit="% of the people" if shares else "people")
    return figure(drawn, exchange.question.text, f"{cost.currency} {cost.amount:.3g}")


def _trials(trials: Trials) -> str:
    held, of = trials.bars_held
    told = ", ".join(f"{count:,} {source}" for source, count in sorted(trials.sources.items()))
    rows = [
        [
            "release, all pairs of columns",
            (
                f"method {trials.method} at epsilon {EPSILON}, delta {DELTA:g}: mean distance "
                f"{trials.mean_distance:.4f}, largest error {trials.largest_gap:,.0f} people; {held:,} of "
                f"{of:,} error bars hold"
            ),
        ],
        [
            f"session, {sum(trials.sources.values()):,} questions",
            (
                f"{trials.session_held:,} within ± {ALPHA:.0%} of the people, or what the answer says; "
                f"{told}; rho {trials.session_spent:.3g} of {trials.session_budget:.3g}"
            ),
        ],
        *(
            [
                f"holdout attacked, {finding.mode}",
                (
                    f"claims {finding.claimed:.3f} ± {finding.width:.3f}, truth {finding.truth:.3f}; right in "
                    f"{finding.covered} of {finding.runs} runs"
                ),
            ]
            for finding in trials.attacks
        ),
    ]
    link = (
        f'<p><a href="{trials.folder.name}/report.html">The report of the release</a> is in the folder beside'
        " this page.</p>"
    )
    return section(
        "Released, questioned, attacked",
        table(["what", "result"], rows, words="Three trials", stack=True)
        + paragraph("The truth is beside everything here, because the town is invented.", "note")
        + link,
    )
