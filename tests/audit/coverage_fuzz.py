"""The parsers under atheris, a fuzzer that coverage guides: `python tests/audit/coverage_fuzz.py [SECONDS]`.

Each target runs for so many seconds in a process of its own (libFuzzer ends its process), from the corpora of
`test_fuzz` and with the words of its language as a dictionary. An escape ends with a status and the input.
Atheris is in the dependency group `fuzz`; without it this says so and does nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1])]

from audit import corpora  # noqa: E402 (a script finds its neighbours only now)

SECONDS = 60
INSTRUMENTED = ("understudy", "yaml", "sqlglot", "json")


@dataclass(frozen=True)
class FuzzTarget:
    """A parser of text, by what builds it: it is imported under instrumentation."""

    build: Callable[[], Callable[[str], object]]
    corpus: Sequence[str]
    words: Sequence[str]


def declarations() -> Callable[[str], object]:
    from understudy.declaration.file import parse

    return parse


def sql() -> Callable[[str], object]:
    from understudy.declaration.file import parse
    from understudy.sql import SqlCompiler

    domain = parse(corpora.PLAIN_DECLARATION).domain
    return SqlCompiler(domain, tables={"t"}, rows_public=True).compile


def questions() -> Callable[[str], object]:
    from understudy.declaration.file import parse
    from understudy.query.expression import parse as ask

    domain = parse(corpora.PLAIN_DECLARATION).domain
    return lambda text: ask(text, domain)


def workloads() -> Callable[[str], object]:
    from understudy.declaration.file import parse
    from understudy.releases.workload_file import as_workload

    domain = parse(corpora.PLAIN_DECLARATION).domain
    folder = Path(tempfile.mkdtemp(prefix="understudy-"))

    def door(text: str) -> None:
        path = folder / ("w.csv" if text[:1] in "ab" else "w.yml")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        as_workload(domain, path)

    return door


def descriptions() -> Callable[[str], object]:
    from understudy_importers.document import compose
    from understudy_importers.frictionless import is_frictionless
    from understudy_importers.frictionless import outline as frictionless
    from understudy_importers.smartnoise import outline as smartnoise

    def door(text: str) -> None:
        root = compose(text, file="d.json")
        if is_frictionless(root):
            frictionless(root, folder=Path())
        else:
            smartnoise(root)

    return door


def events() -> Callable[[str], object]:
    from understudy.privacy.recording import as_plain, from_plain, from_text

    def door(text: str) -> None:
        event = from_text(text)
        assert from_plain(as_plain(event)) == event

    return door


def exports() -> Callable[[str], object]:
    from understudy.ledger import verifier

    def door(text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        verifier.report(document)

    return door


def certificates() -> Callable[[str], object]:
    from understudy.releases.folder import read

    folder = Path(tempfile.mkdtemp(prefix="understudy-"))

    def door(text: str) -> None:
        (folder / "certificate.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        read(folder)

    return door


def _export() -> str:
    entry = dict.fromkeys(
        ("request", "question", "analyst", "debit", "step", "answer", "state", "terms", "event"), None
    )
    first = {"number": 1, "kind": "open", "at": "2026-01-01T00:00:00.000000Z", "cost": 0, "total": 0}
    terms = '{"cap":1000000000000000,"currency":"epsilon","delta":"0","epsilon":"1","format":1,"table":"t"}'
    filled = {"event": '{"epsilon":"0","event":"SpentBefore"}', "terms": terms}
    entries = [entry | first | filled | {"previous": "0" * 64, "hash": "0" * 64}]
    return json.dumps({"table": "t", "head": {"entries": 1, "hash": "0" * 64}, "entries": entries})


CERTIFICATE = json.dumps(
    {
        "format": 1, "rows": 4.0, "answers": [{"by": ["a"], "basis": "measured"}],
        "domain": {"digest": "", "attributes": [
            {"name": "a", "column": "a", "type": "integer", "outside": "clip", "null": False, "edges": [0, 1, 2]},
            {"name": "b", "column": "b", "type": "category", "outside": "other", "null": True, "values": ["x"]},
        ]},
    }
)  # fmt: skip

DOORS = {
    "declarations": FuzzTarget(declarations, corpora.DECLARATIONS, corpora.YAML_WORDS),
    "sql": FuzzTarget(sql, corpora.SQL, corpora.SQL_WORDS),
    "questions": FuzzTarget(questions, corpora.QUESTIONS, corpora.QUESTION_WORDS),
    "workloads": FuzzTarget(
        workloads, [t for ts in corpora.WORKLOADS.values() for t in ts], corpora.WORKLOAD_WORDS
    ),
    "descriptions": FuzzTarget(descriptions, corpora.DESCRIPTIONS, corpora.DESCRIPTION_WORDS),
    "events": FuzzTarget(events, corpora.EVENTS, corpora.EVENT_WORDS),
    "exports": FuzzTarget(exports, [_export()], corpora.EVENT_WORDS),
    "certificates": FuzzTarget(
        certificates, [CERTIFICATE], [*corpora.EVENT_WORDS, '"edges"', '"type"', '"digest"']
    ),
}


def fuzz(name: str, seconds: int) -> None:
    """One door in this process; libFuzzer does not come back."""
    import atheris

    door, folder = DOORS[name], Path(tempfile.mkdtemp(prefix=f"understudy-{name}-"))
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        put = door.build()
        from audit.fuzzing import helpful
        from understudy.errors import UnderstudyError

    def once(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        try:
            put(text)
        except UnderstudyError as error:
            if not helpful(error):
                raise AssertionError(f"{error!r} helps nobody") from error

    (folder / "corpus").mkdir()
    for i, text in enumerate(door.corpus):
        (folder / "corpus" / f"{i}").write_bytes(text.encode("utf-8", "surrogatepass"))
    quoted = ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in door.words if word]
    (folder / "words").write_text("".join(f'"{word}"\n' for word in quoted))
    options = [f"-dict={folder / 'words'}", f"-max_total_time={seconds}", "-timeout=20", "-max_len=2000"]
    options += ["-rss_limit_mb=2048", "-verbosity=1", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], once)
    atheris.Fuzz()


def main() -> int:
    if find_spec("atheris") is None:
        sys.stdout.write(
            "coverage_fuzz: atheris is not installed (dependency group `fuzz`); nothing was run\n"
        )
        return 0
    if len(sys.argv) > 2 and sys.argv[1] == "--door":
        fuzz(sys.argv[2], int(sys.argv[3]))
    seconds = sys.argv[1] if len(sys.argv) > 1 else str(SECONDS)
    escaped = []
    for name in DOORS:
        command = [sys.executable, str(HERE), "--door", name, seconds]
        done = run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
        said = done.stderr.splitlines()
        runs = next((line.split()[-1] for line in said if "number_of_executed_units" in line), "?")
        sys.stdout.write(f"{name}: {runs} inputs, status {done.returncode}\n")
        if done.returncode:
            escaped.append(name)
            sys.stdout.write("\n".join(said[-40:]) + "\n")
        sys.stdout.flush()
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
