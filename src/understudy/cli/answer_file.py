"""`-o`: the rows of one answer in a file of its own, for every way in which `understudy ask` is answered."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.cli.options import check_output
from understudy.cli.terminal import say
from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.answer.sql_answer import SqlAnswer


def check_answer_file(
    out: Path | None, questions: list[str], *, overwrite: bool, belonging: Iterable[Path] = ()
) -> None:
    """Find out before anything is paid whether the answer can be written where it is wanted, if anywhere.

    Raises a `ParameterError` as `check_output` does, for a format that nobody here writes, and for several
    questions.
    """
    if out is None:
        return
    from understudy.answer.writing import check_format

    check_format(out)
    if len(questions) > 1:
        raise ParameterError("-o writes the rows of one answer: ask one question at a time")
    check_output(out, overwrite=overwrite, belonging=belonging)


def write_answer_file(out: Path, answer: Answer | SqlAnswer, *, overwrite: bool, quiet: bool) -> None:
    """Write the answer to a file, and say so, unless the command speaks to machines."""
    from understudy.answer.writing import write_answer

    written = write_answer(out, answer, overwrite=overwrite)
    if not quiet:
        say(f"Wrote {out}: {written:,} rows.")


def answers_for_machines(answers: list[dict[str, Any]], out: Path | None, **told: Any) -> dict[str, Any]:
    """What `--json` prints of answers, with what else is `told`: rows that are in a file are not repeated.

    What has no bound is null.
    """
    from understudy.answer.plain import without_infinity

    if out is None:
        return {"answers": without_infinity(answers), **told}
    shown = [{key: value for key, value in answer.items() if key != "rows"} for answer in answers]
    return {"answers": without_infinity(shown), **told, "written": str(out)}
