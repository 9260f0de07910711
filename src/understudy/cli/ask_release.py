"""`understudy ask --release`: questions to a release, which has the table's place; they cost nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from understudy.cli.answer_file import answers_for_machines, check_answer_file, write_answer_file
from understudy.cli.options import emit
from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.releases.release import Release


def check_free_of_terms(given: Mapping[str, Any]) -> None:
    """Refuse options that are about a price, a table or a session, with a `ParameterError` that names them."""
    wrong = [f"--{name.replace('_', '-')}" for name, said in given.items() if said]
    if wrong:
        raise ParameterError(
            f"{' and '.join(wrong)} cannot be said to a release",
            remedy="leave it out: a release is asked without a price, a table or a session",
        )


def ask_release(
    questions: list[str],
    release: str,
    *,
    url: str,
    everything: bool,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Answer questions from the folder of a release, or with a `url` from a release that a server shows.

    Neither the table nor its declaration is needed, and nothing is charged. A mistake in any question is found
    before the first answer is shown.
    """
    check_answer_file(out, questions, overwrite=overwrite)
    with _opened(release, url) as asked:
        answers = [asked.answer(question) for question in questions]
        told = {"release": release, "table": asked.certificate["table"], "beta": asked.beta}
    if not as_json:
        from understudy.cli.show_answers import show

        for question, answer in zip(questions, answers, strict=True):
            show(question, answer, None, everything=everything)
    if out is not None:
        write_answer_file(out, answers[0], overwrite=overwrite, quiet=as_json)
    if as_json:
        rows = [
            {"question": question, **answer.as_dict()}
            for question, answer in zip(questions, answers, strict=True)
        ]
        emit(answers_for_machines(rows, out, **told))


@contextmanager
def _opened(release: str, url: str) -> Iterator[Release]:
    """The release in a folder, or the one of that name on a server, fetched into a folder for the while."""
    from understudy.releases.release import Release

    if not url:
        yield Release.load(Path(release))
        return
    from understudy.client.connect import connect

    with connect(url) as server, TemporaryDirectory(prefix="understudy-") as place:
        shown = server.releases()
        if release not in shown:
            known = ", ".join(shown) or "none"
            raise ParameterError(f"the server shows no release {release!r}", remedy=f"it shows: {known}")
        shown[release].download(Path(place) / "release")
        yield Release.load(Path(place) / "release")
