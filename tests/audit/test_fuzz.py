"""Whatever is thrown at the doors, they answer in words: no crash, no hang, nothing spent by what is refused.

A slice here, a million inputs with UNDERSTUDY_AUDIT. They are mutations of good inputs (`fuzzing`), and a few are
built by hypothesis. `test_fuzz_ledger` has the ledger's files, `coverage_fuzz` a fuzzer that coverage guides.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import corpora
from audit.corpora import PLAIN_DECLARATION, words
from audit.fuzzing import MILLION, mutations, throw
from memory_folder import memory_folder
from understudy.cli.app import main
from understudy.declaration.file import parse
from understudy.errors import ParameterError
from understudy.noise.samplers import SeededNoise
from understudy.privacy.recording import as_plain, from_plain, from_text
from understudy.project import Project
from understudy.query.expression import parse as ask
from understudy.releases.files import ANSWERS, CERTIFICATE, STANDIN
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.releases.workload_file import as_workload
from understudy_importers.formats import read as read_description

DECLARED = parse(PLAIN_DECLARATION)
TABLE = pa.table({"a": [0, 1, 1, 0], "b": ["x", "y", None, "x"]})
PROJECT = Project.frame(TABLE, DECLARED, noise=SeededNoise(1))


def test_the_shares_are_a_million():
    assert sum(MILLION.values()) == 1_000_000


# ------------------------------------------------------------------------------------------ texts


def test_declarations_are_read_or_refused():
    made = mutations(corpora.DECLARATIONS, corpora.YAML_WORDS, seed=1)
    throw("declarations", parse, made, 300)


def test_sql_is_priced_or_refused_and_reads_nothing():
    before = PROJECT.ledger.spent
    made = mutations(corpora.SQL, corpora.SQL_WORDS, seed=2)
    throw("sql", lambda text: PROJECT.quote(f"select {text[7:]}"), made, 300)
    assert PROJECT.ledger.spent == before


def test_questions_are_parsed_or_refused():
    made = mutations(corpora.QUESTIONS, corpora.QUESTION_WORDS, seed=3)
    throw("questions", lambda text: ask(text, DECLARED.domain), made, 800)


# ------------------------------------------------------------------------------------------ files


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    with memory_folder(tmp_path) as place:
        yield place


def put(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@pytest.mark.parametrize("name", corpora.WORKLOADS)
def test_workload_files_are_read_or_refused(name, quick):
    made = mutations(corpora.WORKLOADS[name], corpora.WORKLOAD_WORDS, seed=4)
    read = partial(as_workload, DECLARED.domain)
    throw("workload files", lambda text: read(put(quick / name, text)), made, 60, parts=3)


def test_descriptions_of_other_programs_are_read_or_refused(quick):
    made = mutations(corpora.DESCRIPTIONS, corpora.DESCRIPTION_WORDS, seed=5)
    throw("descriptions", lambda text: read_description(put(quick / "d.json", text)), made, 120)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> dict[str, bytes]:
    """The files of a small release that are read back."""
    place = tmp_path_factory.mktemp("release") / "r"
    project = Project.frame(TABLE, parse(PLAIN_DECLARATION.replace("epsilon: 1", "epsilon: 1, delta: 1e-6")))
    release(project, "all-1-way", epsilon=1, method="residual").save(place)
    return {name: (place / name).read_bytes() for name in (CERTIFICATE, ANSWERS, STANDIN)}


@pytest.mark.parametrize("name", [CERTIFICATE, ANSWERS, STANDIN])
def test_release_folders_are_read_or_refused(name, released, quick):
    for other, content in released.items():
        (quick / other).write_bytes(content)

    def door(content: bytes) -> None:
        (quick / name).write_bytes(content)
        Release.load(quick)

    made = mutations([released[name]], ('"rows"', '"domain"', "null", "[]", "{}", "'<f8'", "(3,)"), seed=6)
    throw("release folders", door, made, 40, parts=3)


# ------------------------------------------------------------------------------------------ command lines


def command_lines() -> Iterator[list[str]]:
    """Words of the program in any order; audits that would run for minutes get a mechanism that is not there."""
    draw = random.Random(7)
    while True:
        line = [draw.choice(corpora.FLAGS) for _ in range(draw.randrange(7))]
        if "audit" in line or "demo" in line:
            line = ["audit", "privacy", "--mechanism", "nobody", *line[:2]]
        yield line


def _status(main: Callable[[], None]) -> object:
    try:
        main()
    except SystemExit as end:
        return end.code
    return 0


def test_command_lines_end_with_a_status(quick, monkeypatch):
    """`main` itself: every failure is a message and an exit status, never a traceback."""
    put(quick / "understudy.yml", PLAIN_DECLARATION)
    parquet.write_table(TABLE, quick / "t.parquet")
    monkeypatch.chdir(quick)

    def door(line: list[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["understudy", *line])
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            ending = _status(main)
        assert ending in (None, 0, 1, 2), ending
        assert "Traceback" not in said.getvalue()

    throw("command lines", door, command_lines(), 40)


# ------------------------------------------------------------------------------------------ ledger entries


def test_events_are_understood_or_refused():
    """What a damaged or forged ledger holds: never half understood, and written back as it was read."""

    def door(text: str) -> None:
        event = from_text(text)
        assert from_plain(as_plain(event)) == event

    throw("events", door, mutations(corpora.EVENTS, corpora.EVENT_WORDS, seed=8), 800)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["1/2", "1/0", "-1", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KEYS = words(
    "event epsilon l1 scale noise region relation split events l2_squared variance reach largest set_aside order "
    "divergence delta"
)
KINDS = (
    "Selection", "LaplaceNoise", "Located", "Together", "GaussianNoise", "replace", "RoundedNormal", "BoundedNoise"
)  # fmt: skip


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(KEYS), PLAIN | st.sampled_from(KINDS), max_size=5))
def test_events_of_any_shape_are_understood_or_refused(plain):
    with suppress(ParameterError):
        event = from_plain(plain)
        assert from_plain(as_plain(event)) == event
