"""`understudy holdout`: a leaderboard on sealed labels. `understudy audit validity`: attack the modes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import Json, Overwrite, check_output, emit
from understudy.cli.terminal import say, say_table

holdout = typer.Typer(
    cls=ProgramGroup,
    help="A leaderboard on sealed labels, whose scores hold for new labels of the same rows.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

BoardFile = Annotated[Path, typer.Argument(help="The board that `holdout create` wrote.")]


@holdout.command(cls=ProgramCommand)
def create(
    labels: Annotated[Path, typer.Argument(help="CSV or Parquet file with an id and a label for each row.")],
    queries: Annotated[int, typer.Option(help="Submissions that will ever be scored.")],
    board: Annotated[
        Path, typer.Option("--output", "-o", help="The board, a .json file; its .db is made beside it.")
    ] = Path("board.json"),
    id_column: Annotated[str, typer.Option("--id", help="Column of ids.")] = "id",
    label: Annotated[str, typer.Option(help="Column of labels.")] = "label",
    metric: Annotated[
        str,
        typer.Option(
            help="accuracy, brier, log_loss, f1, auc, or one with a public scale: "
            "'mae(scale=10)', 'rmse(scale=10)', 'r2(low=0, high=100)'."
        ),
    ] = "accuracy",
    mode: Annotated[
        str,
        typer.Option(
            help="ladder, gaussian, check, realised, thresholdout, auc, or auto for the narrowest. "
            "free-ladder keeps no file: Python only."
        ),
    ] = "ladder",
    theorem: Annotated[str, typer.Option(help="Certificate of the mode gaussian.")] = "tilting",
    rejections: Annotated[int | None, typer.Option(help="Guesses that may be wrong.")] = None,
    public: Annotated[float, typer.Option(help="Share of rows that guesses are made from.")] = 0.0,
    beta: Annotated[float, typer.Option(help="Chance that any of the widths does not hold.")] = 0.05,
    *,
    as_json: Json = False,
) -> None:
    """Seal labels and fix what is promised about every score that will be given."""
    from understudy.validity.board import create as make

    if_interrupted("nothing was scored: give the same command again")
    made = make(
        board, labels, id=id_column, label=label, public=public, queries=queries, beta=beta,
        metric=metric, mode=mode, theorem=theorem, rejections=rejections,
    )  # fmt: skip
    promised = made.holdout.certificate()
    if as_json:
        emit({"board": str(made.path)} | promised | {"needs_guess": made.needs_guess})
        return
    say(f"Wrote {made.path}: {made.holdout.rows:,} sealed rows, {queries:,} submissions.")
    say(f"{made.path.with_suffix('.db').name} beside it counts them: keep the two together.")
    say(str(made.holdout.promise))
    say(f"Every score is {promised['about']}.")
    if made.needs_guess:
        say(
            f"The mode {made.holdout.mode.name} compares guesses with the sealed rows, and no rows are public: "
            f"every score must bring a guess (`holdout score --guess`). A board with `--public` makes its own."
        )


@holdout.command(cls=ProgramCommand)
def score(
    board: BoardFile,
    submission: Annotated[Path, typer.Argument(help="CSV or Parquet file of ids and predictions.")],
    name: Annotated[str, typer.Option(help="Who submits; the file's name if left out.")] = "",
    guess: Annotated[float | None, typer.Option(help="The score to be checked, from other rows.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Score one submission; a malformed one is refused and not counted."""
    from understudy.validity.board import Board

    if_interrupted(f"a score that was counted is in the board: understudy holdout show {board} lists it")
    standing = Board(board).score(submission, name=name, guess=guess)
    if as_json:
        emit(standing.as_dict())
        return
    found = standing.score
    value = f"{found.value:.4f} ± {found.width:.4f}"
    said = f"no better than the best so far, {value}" if found.repeats else f"{value} ({found.source})"
    say(f"{standing.name}: {said}; {found.left:,} left")


@holdout.command(cls=ProgramCommand)
def show(
    board: BoardFile,
    html: Annotated[Path | None, typer.Option("--html", help="Write it as a page into this file.")] = None,
    *,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Print everything that was said, with certified widths, or write it as a page."""
    from understudy.validity.board import Board

    opened = Board(board)
    if html is not None:
        from understudy import __version__
        from understudy.output import write_file
        from understudy.validity.board_page import board_page

        labels = opened.path.parent / opened.terms.labels
        check_output(
            html, overwrite=overwrite, belonging=(opened.path, opened.path.with_suffix(".db"), labels)
        )
        write_file(html, board_page(opened, made=f"Made with understudy {__version__}."), overwrite=overwrite)
        if not as_json:
            say(f"Wrote {html}.")
            return
    standings = opened.show()
    if as_json:
        emit({"certificate": opened.holdout.certificate(), "scores": [s.as_dict() for s in standings]})
        return
    rows: list[tuple[str, ...]] = [("", "name", "score", "±", "source")]
    for place, standing in enumerate(standings, start=1):
        found = standing.score
        told = ("–", "–", "no better than the best so far")
        if not found.repeats:
            told = (f"{found.value:.4f}", f"{found.width:.4f}", found.source)
        rows.append((str(place), standing.name, *told))
    say_table(rows, left={1, 4}, indent=2)
    say(str(opened.holdout.promise))
    say(f"Every score is {opened.holdout.certificate()['about']}.")


def validity_audit(
    rows: Annotated[int, typer.Option(help="Rows of the holdout.")] = 2000,
    queries: Annotated[int, typer.Option(help="Questions that each analyst asks.")] = 500,
    mode: Annotated[list[str] | None, typer.Option(help="A mode to attack; all if left out.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each attack.")] = 20,
    rejections: Annotated[int, typer.Option(help="Wrong guesses that the modes are made for.")] = 10,
    beta: Annotated[float, typer.Option(help="Chance that any of the widths does not hold.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the invented data.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw claims and truths: .html or .svg.")] = None,
    *,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Attack a holdout seven ways, on invented data: what it claims, what is true, how often its widths hold."""
    from understudy.pages.plot_file import check_format
    from understudy_audit.validity import MODES
    from understudy_audit.validity import validity_audit as attack

    if plot is not None:
        check_format(plot)
        check_output(plot, overwrite=overwrite)

    found = attack(
        rows=rows,
        queries=queries,
        beta=beta,
        modes=mode or MODES,
        runs=runs,
        rejections=rejections,
        seed=seed,
    )
    if plot is not None:
        from understudy_audit.validity_page import draw_findings

        draw_findings(found, plot, overwrite=overwrite)
    if as_json:
        emit([finding.as_dict() for finding in found])
        return
    heads = ("analyst", "mode", "claimed", "true", "±", "worst", "all within")
    say_table([heads, *map(_row, found)], left={0, 1, 6})
    if plot is not None:
        say(f"Wrote {plot}.")


def _row(finding: Any) -> tuple[str, ...]:
    if not finding.runs:
        told = f"refused: {finding.refused.split(';')[0]}"
        return (finding.analyst, finding.mode, "", "", "", "", told)
    numbers = (finding.claimed, finding.truth, finding.width, finding.largest_error)
    stopped = ", stopped early" if finding.refused else ""
    told = f"{finding.covered}/{finding.runs}{stopped}"
    return (finding.analyst, finding.mode, *(f"{x:.3f}" for x in numbers), told)
