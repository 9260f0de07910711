"""Damaged, torn, emptied and foreign ledger files: a clean refusal, or all that was spent; never quietly less.

Three doors: opening a ledger (and asking through it), the verifier, and a chain whose forger also put the hashes
right. A file that was put back whole is an older ledger, which only a witness can tell (`known-gaps`): what a torn
write-ahead log leaves must be an earlier state of the same ledger, and with a witness it is refused.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy.engine import URL

from audit import corpora
from audit.fuzzing import mutations, throw
from ledger.forging import resealed
from memory_folder import memory_folder
from understudy.curator.curator import Curator
from understudy.declaration.file import parse
from understudy.errors import LedgerError, UnderstudyError
from understudy.ledger import export, verifier
from understudy.ledger.books import Books
from understudy.ledger.chain import START, Entry
from understudy.ledger.recorded import Recorded
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise, Selection, SparseVector
from understudy.project import Project
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DECLARED = parse(corpora.PLAIN_DECLARATION)
TRUTH = Truth(in_memory(pa.table({"a": [0, 1, 1, 0], "b": ["x", "y", None, "x"]})), DECLARED.domain)
NAME = DECLARED.name
Files = dict[str, bytes]


def opened(folder: Path, *, witness: bool = False) -> DurableLedger:
    return DurableLedger(
        URL.create("sqlite", database=str(folder / "l")),
        NAME,
        DECLARED.budget,
        witness=Witness(folder / "w") if witness else None,
        timeout=0.5,
    )


def put(folder: Path, files: Files) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


class Stored:
    """A ledger with every kind of entry: its file with the log folded in, and with the log beside it."""

    def __init__(self, folder: Path) -> None:
        Witness(folder / "w").make(NAME, 0, START)
        ledger = opened(folder, witness=True)
        for i in range(12):
            debit = ledger.charge(
                LaplaceNoise(l1=Fraction(1), scale=Fraction(40)), question=f"q{i}", request=f"r{i}"
            )
            ledger.settle(debit, json.dumps([i]).encode())
        handle = ledger.charge(SparseVector(epsilon=Fraction(1, 50)), question="sparse", request="h")
        ledger.settle(handle, b"opened", hidden=b"threshold 1")
        ledger.advance(handle, step=0, question="above", answer=b"false", state=b"threshold 2")
        ledger.charge(Selection(epsilon=Fraction(1, 7)), question="lost", request="lost")
        self.spent = ledger.spent.units
        self.document = export.document(ledger.url, NAME)
        self.hashes = [entry["hash"] for entry in self.document["entries"]]
        self.with_log = {name: (folder / name).read_bytes() for name in ("l", "l-wal")}
        self.witness = {"w": (folder / "w").read_bytes()}
        ledger.close()
        with closing(sqlite3.connect(folder / "l")) as alone:
            alone.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.folded = {"l": (folder / "l").read_bytes()}


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Stored:
    return Stored(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    with memory_folder(tmp_path) as place:
        yield place


# ------------------------------------------------------------------------------------------ what is done to files


def damaged(files: Files, name: str, draw: random.Random) -> Files:
    """Bytes flipped, zeroed, swapped, inserted or cut off."""
    content = bytearray(files[name])
    page = 4096 if name == "l" else 4096 + 24
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(content)) if content else 0
        match draw.randrange(9):
            case 0 | 1 | 2 if content:
                content[at] = draw.randrange(256)
            case 3 if content:
                content[at] ^= 1 << draw.randrange(8)
            case 4:
                del content[at:]
            case 5:
                content[at : at + draw.randrange(1, 64)] = bytes(draw.randrange(1, 64))
            case 6:  # a page lost, or written to where another was
                start, other = (at // page * page, draw.randrange(len(content) // page + 1) * page)
                content[start : start + page] = (
                    content[other : other + page] if draw.random() < 0.5 else bytes(page)
                )
            case 7:
                content[at:at] = draw.randbytes(draw.randrange(1, 40))
            case _:  # the headers, where little changes much
                place = draw.randrange(min(len(content), 100)) if content else 0
                content[place : place + 1] = draw.randbytes(1)
    return {**files, name: bytes(content)}


def sized(files: Files, draw: random.Random) -> Files:
    """The lengths and offsets of one page, changed: cells out of nowhere, cells lost."""
    content = bytearray(files["l"])
    page = draw.randrange(len(content) // 4096) * 4096
    content[page + draw.randrange(0, 140)] = draw.randrange(256)
    return {**files, "l": bytes(content)}


STATEMENTS = (
    "DROP TABLE understudy_{table}",
    "DELETE FROM understudy_{table}",
    "DELETE FROM understudy_entry WHERE number > {n}",
    "DELETE FROM understudy_entry WHERE number = {n}",
    "DELETE FROM understudy_kept WHERE number = {n}",
    "UPDATE understudy_entry SET {column} = {value} WHERE number = {n}",
    "UPDATE understudy_entry SET {column} = {value}",
    "UPDATE understudy_ledger SET entries = {value}",
    "UPDATE understudy_ledger SET head = (SELECT hash FROM understudy_entry WHERE number = {n}), entries = {n}",
    "UPDATE understudy_ledger SET name = {value}",
    "UPDATE understudy_kept SET answer = {value}",
    "UPDATE understudy_kept SET state = {value}, salt = {value}",
    "UPDATE understudy_schema SET version = {value}",
    "INSERT INTO understudy_schema VALUES ({value})",
    "DELETE FROM understudy_schema",
    "DROP INDEX understudy_one_answer",
    "ALTER TABLE understudy_{table} RENAME TO other",
    "ALTER TABLE understudy_{table} ADD COLUMN more TEXT",
    "ALTER TABLE understudy_entry DROP COLUMN terms",
    "CREATE TRIGGER quiet AFTER INSERT ON understudy_entry BEGIN DELETE FROM understudy_entry; END",
    "DROP TABLE understudy_{table}; CREATE VIEW understudy_{table} AS SELECT 1 AS version, 't' AS name",
    "DROP TABLE understudy_{table}; CREATE TABLE understudy_{table} (version, name, entries, head, number)",
    "PRAGMA journal_mode=DELETE",
    "PRAGMA user_version=7",
)
VALUES = (
    "NULL",
    "0",
    "-1",
    "1e999",
    "x'ff00'",
    "'t'",
    "'x'",
    "9223372036854775807",
    "''",
    "0.5",
    "'{{}}'",
    "'[[['",
)


def edited(files: Files, folder: Path, draw: random.Random) -> Files:
    """Somebody was at it with SQL."""
    put(folder, files)
    with closing(sqlite3.connect(folder / "l", isolation_level=None)) as hand:
        for _ in range(draw.choice((1, 1, 2, 3))):
            statement = draw.choice(STATEMENTS).format(
                table=draw.choice(("schema", "ledger", "entry", "kept")),
                column=draw.choice(Entry._fields),
                value=draw.choice(VALUES),
                n=draw.randrange(30),
            )
            try:
                hand.executescript(statement)
            except sqlite3.Error:
                continue
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def foreign(folder: Path, draw: random.Random) -> Files:
    """Not a ledger at all."""
    put(folder, {})
    with closing(sqlite3.connect(folder / "l")) as other:
        kind = draw.choice(("t(a)", "understudy_schema(version)", "understudy_ledger(name, entries, head)"))
        other.execute(f"CREATE TABLE {kind}")
        other.commit()
    made = (folder / "l").read_bytes()
    return {"l": draw.choice((made, b"", b"PAR1", b"SQLite format 3\0", draw.randbytes(5000), bytes(4096)))}


# ------------------------------------------------------------------------------------------ doors


def use(folder: Path, *, witness: bool) -> tuple[int, int]:
    """Open, ask a question, and close: what was spent before it, and after."""
    ledger = opened(folder, witness=witness)
    try:
        before = ledger.spent.units
        curator = Curator(TRUTH, ledger, DECLARED, noise=SeededNoise(1))
        Project(DECLARED, curator).ask("count by a", epsilon=0.01)
        return before, ledger.spent.units
    finally:
        ledger.close()


def made_of(stored: Stored, folder: Path, *, seed: int, witness: bool) -> Iterator[Files]:
    """Files for ever, with the witness beside them or without."""
    draw = random.Random(seed)
    beside = stored.witness if witness else {}
    while True:
        match draw.randrange(10):
            case 0 | 1 | 2:
                found = damaged(stored.folded, "l", draw)
            case 3:
                found = sized(stored.folded, draw)
            case 4 | 5:
                found = damaged(stored.with_log, "l-wal", draw)
            case 6:
                found = damaged(stored.with_log, "l", draw)
            case 7 if witness:
                found = foreign(folder, draw)
            case 8 if witness:
                found = edited(stored.folded, folder, draw)
            case _:
                found = damaged(stored.folded, "l", draw)
        yield {**found, **beside}


def test_a_ledger_with_a_witness_never_shows_less(stored, quick):
    def door(files: Files) -> None:
        put(quick, files)
        before, after = use(quick, witness=True)
        assert before >= stored.spent, f"{stored.spent - before} units were forgotten"
        assert after > before

    made = made_of(stored, quick, seed=1, witness=True)
    throw("ledger files", door, made, 60, parts=3)


def test_a_damaged_ledger_shows_all_or_an_earlier_state_of_itself(stored, quick):
    """Without a witness, and never more than a write-ahead log can take back with it."""

    def door(files: Files) -> None:
        put(quick, files)
        before, _ = use(quick, witness=False)
        if before < stored.spent:
            assert "l-wal" in files, f"{stored.spent - before} units were forgotten"
            kept = [entry["hash"] for entry in export.document(opened(quick).url, NAME)["entries"]]
            shared = kept[: len(stored.hashes)]
            assert before == 0 or shared[:-2] == stored.hashes[: len(shared) - 2]

    made = made_of(stored, quick, seed=2, witness=False)
    throw("ledger files", door, made, 60, parts=3)


def test_verification_never_fails_and_calls_nothing_sound_that_is_less(stored, quick):
    url = URL.create("sqlite", database=str(quick / "l"))

    def door(files: Files) -> None:
        put(quick, files)
        verdict = export.verify(url, NAME, witness=Witness(quick / "w"))
        assert not verdict["sound"] or verdict["spent_units"] >= stored.spent
        assert verdict["sound"] == (not verdict["problems"])

    made = made_of(stored, quick, seed=3, witness=True)
    throw("ledger files", door, made, 60, parts=3)


def test_witness_files_are_read_or_refused(stored, quick):
    """What is not a witness is refused; one that says less than it did lets in no more than the ledger shows."""
    put(quick, {**stored.folded, **stored.witness})
    url = URL.create("sqlite", database=str(quick / "l"))

    def door(content: bytes) -> None:
        (quick / "w").write_bytes(content)
        verdict = export.verify(url, NAME, witness=Witness(quick / "w"))
        assert verdict["spent_units"] == stored.spent

    words = corpora.words('"t" "entries" "head" null -5 1e999 [] {} "x" NaN')
    throw("witness files", door, mutations([stored.witness["w"]], words, seed=4), 80)


# ------------------------------------------------------------------------------------------ forged chains


def test_forged_entries_are_refused_or_cost_the_same_to_both_readers(stored):
    """The program and the verifier share no code: what both let in must come to one total."""
    short = {**stored.document, "entries": stored.document["entries"][:4], "answers": None}
    events = mutations((*corpora.EVENTS, short["entries"][0]["terms"]), corpora.EVENT_WORDS, seed=5)
    draw = random.Random(6)

    def door(text: str) -> None:
        place, name = draw.choice(
            ((0, "terms"), (0, "event"), (1, "event"), (1, "event"), (3, "event"), (2, "answer"))
        )
        forged = resealed(short, lambda entries: entries[place].__setitem__(name, text))
        verdict = verifier.verify(forged)
        assert verifier.report(forged)[1] == bool(verdict["problems"])
        total = program_total([Entry(**entry) for entry in forged["entries"]])
        if verdict["sound"]:
            assert total == verdict["spent_units"]

    throw("forged entries", door, events, 300, parts=2)


def essence(document: dict) -> list:
    """What an export says; a key that nobody reads says nothing."""
    return [document["table"], document["head"]["entries"], document["head"]["hash"], document["entries"]]


def test_exports_that_were_changed_are_called_unsound(stored):
    """The verifier alone, on the text of an export: whatever it is, there is a verdict."""
    short = {**stored.document, "entries": stored.document["entries"][:4], "answers": None}
    sound = resealed(short, lambda entries: None)
    assert verifier.verify(sound)["sound"]

    def door(text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        verdict = verifier.verify(document)
        assert verdict["sound"] == (not verdict["problems"])
        assert not verdict["sound"] or essence(document) == essence(sound)
        assert verifier.report(document)[0]

    made = mutations([json.dumps(sound)], corpora.EVENT_WORDS, seed=7)
    throw("forged entries", door, made, 300, parts=2)


def program_total(entries: list[Entry]) -> int | None:
    """What the program makes of a chain; None where it refuses it."""
    recorded = Recorded(Books(Budget.of(1)))
    try:
        for entry in entries:
            recorded.read(entry)
    except LedgerError:
        return None
    except UnderstudyError as error:
        raise AssertionError(f"{error!r} is not about the ledger") from error
    return recorded.books.spent.units
