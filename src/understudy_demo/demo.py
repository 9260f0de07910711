"""The demo: an invented town, questioned privately, released and attacked, with the truth beside everything."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from rich.console import Console
from rich.table import Table

from understudy.answer.answer import Answer
from understudy.declaration.file import parse
from understudy.errors import ParameterError
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.place import DEFAULT_FILE
from understudy.pages.shell import beginning
from understudy.privacy.cost import Cost
from understudy.project import open_project
from understudy_demo.demo_page import KIND, demo_page
from understudy_demo.town import QUESTIONS, TownQuestion, declaration, true_values
from understudy_demo.town import people as invent
from understudy_demo.trials import Trials, run_trials
from understudy_demo.trials import render as render_trials

PAGE = "demo.html"
TABLE = "town.parquet"
BETA = Fraction(1, 20)
"""All error bars of the demo hold together, except with this probability."""


@dataclass(frozen=True)
class Exchange:
    """One question, its private answer, and what only an invented town can show: the truth."""

    question: TownQuestion
    answer: Answer
    truth: list[float]

    @property
    def cells(self) -> list[tuple[str, float, float, float]]:
        """(label, value, error, truth); a cell that the town cannot fill (`other`) has the truth 0."""
        declared = iter(self.truth)
        return [
            (", ".join(labels), value, error, 0.0 if "other" in labels else next(declared))
            for labels, value, error in self.answer.rows()
        ]


@dataclass(frozen=True)
class Town:
    """Everything the demo shows."""

    folder: Path
    people: int
    exchanges: list[Exchange]
    spent: Cost
    budget: float
    trials: Trials

    @property
    def page(self) -> Path:
        """The page that shows all this."""
        return self.folder / PAGE

    @property
    def held(self) -> tuple[int, int]:
        """How many error bars held, of how many."""
        cells = [cell for exchange in self.exchanges for cell in exchange.cells]
        return sum(abs(value - truth) <= error for _, value, error, truth in cells), len(cells)

    def as_dict(self) -> dict[str, Any]:
        held, shown = self.held
        return {
            "people": self.people,
            "folder": str(self.folder),
            "page": str(self.page),
            "questions": [
                {"question": e.question.text, "truth": e.truth, **e.answer.as_dict()} for e in self.exchanges
            ],
            "spent": {self.spent.currency: self.spent.amount},
            "budget": {self.spent.currency: self.budget},
            "error_bars": {"held": held, "of": shown},
            **self.trials.as_dict(),
        }


def _check_free(folder: Path, text: str) -> None:
    """A town may replace an earlier one, and nothing else."""
    declared, table = folder / "understudy.yml", folder / TABLE
    is_town = declared.is_file() and declared.read_bytes() == text.encode()
    page = folder / PAGE
    ours = not page.exists() or (page.is_file() and page.read_bytes().startswith(beginning(KIND).encode()))
    if not ours or (not is_town and (declared.exists() or table.exists())):
        raise ParameterError(f"{folder} holds another project: invent the town elsewhere with --folder")


def _write_town(folder: Path, table: pa.Table) -> None:
    """Write the table, unless it is there already: a ledger belongs to the people that it was begun with.

    Raises ParameterError where a ledger is there, and other people.
    """
    place = folder / TABLE
    if place.is_file() and _is_table(place, table):
        return
    if (folder / DEFAULT_FILE).exists():
        raise ParameterError(
            f"{folder} has a ledger, which records what was spent on the people who live there, and these would "
            f"be others: invent the town elsewhere with --folder, or remove {folder} if nobody needs it any more"
        )
    parquet.write_table(table, place)


def _is_table(place: Path, table: pa.Table) -> bool:
    try:
        return parquet.read_table(place).equals(table)
    except (OSError, pa.ArrowException):
        return False


def run(folder: Path, *, people: int, seed: int) -> Town:
    """Write the town and its declaration, then spend the whole budget evenly on its questions.

    The folder is a project, which `understudy serve --project` serves. What is asked there is charged to its own
    durable ledger, which this demonstration neither uses nor replaces.
    """
    text = declaration(TABLE)
    _check_free(folder, text)
    folder.mkdir(parents=True, exist_ok=True)
    table = invent(people, seed=seed)
    _write_town(folder, table)
    (folder / "understudy.yml").write_text(text, encoding="utf-8")
    # Each run shows the whole budget spent, in memory; the durable ledger is left to the reader.
    project = open_project(folder, ledger=MemoryLedger(parse(text).budget))
    price = project.declaration.budget.epsilon / len(QUESTIONS)
    beta = BETA / len(QUESTIONS)
    exchanges = []
    for question in QUESTIONS:
        answer = project.ask(question.text, epsilon=price, beta=beta)
        assert isinstance(answer, Answer)  # none of them is a SELECT statement
        exchanges.append(Exchange(question, answer, true_values(table, question)))
    trials = run_trials(table, project.declaration, folder / "release", seed=seed)
    town = Town(folder, people, exchanges, project.ledger.spent, project.ledger.budget.cap.amount, trials)
    town.page.write_text(demo_page(town), encoding="utf-8")
    return town


def render(town: Town, *, program: str = "understudy") -> None:
    """The result as a table in the terminal, and the commands to go on with, as `program` is called here."""
    console = Console(markup=False, emoji=False)
    table = Table(
        title=f"An invented town of {town.people:,} people, questioned privately", title_justify="left"
    )
    table.add_column("question", overflow="fold")
    for name in ("answer", "± error", "price", "truth"):
        table.add_column(name, justify="right", no_wrap=True)
    for exchange in town.exchanges:
        price = f"{exchange.answer.cost.currency} {exchange.answer.cost.amount:.3g}"
        digits = 4 if exchange.question.text.startswith("share") else 0
        if exchange.answer.query.by:
            table.add_row(exchange.question.text, "", "", price, "")
        for label, value, error, truth in exchange.cells:
            single = not exchange.answer.query.by
            table.add_row(
                exchange.question.text if single else f"    {label}",
                f"{value:,.{digits}f}",
                f"{error:,.{digits}f}",
                price if single else "",
                f"{truth:,.{digits}f}",
            )
        table.add_section()
    console.print(table)
    render_trials(town.trials)
    held, shown = town.held
    folder = quote(str(town.folder))
    console.print(
        f"{held} of {shown} error bars held (all of them should, in 19 of 20 towns). Spent {town.spent.currency} "
        f"{town.spent.amount:g} of {town.budget:g}.\n"
        f"All of this is on a page: {town.page}\n"
        f"The town is a project in {town.folder}/ ({TABLE}, understudy.yml, release/): try\n"
        f"  {program} check --project {folder}\n"
        f"  {program} ask --project {folder} 'count age<30 and sex=F by district'\n"
        f"This opens it in a browser, for many people to ask:\n"
        f"  {program} serve --project {folder}",
        highlight=False,
        soft_wrap=True,
    )
