"""What fuzzing let escape once, each by the input that showed it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.engine import URL

from audit.corpora import PLAIN_DECLARATION
from understudy.declaration.file import parse
from understudy.errors import DeclarationError, LedgerError, ParameterError, QueryError, SourceError
from understudy.ledger import export, verifier
from understudy.ledger.chain import Entry, is_sealed
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness
from understudy.privacy.accounting_rule import RULES
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise, Located, Span
from understudy.privacy.joint import Joint, JointState
from understudy.privacy.recording import as_plain, from_plain, from_text
from understudy.releases.files import CERTIFICATE, STANDIN
from understudy.releases.release import Release
from understudy.releases.workload_file import as_workload
from understudy.sql import SqlCompiler
from understudy_importers.document import compose

DOMAIN = parse(PLAIN_DECLARATION).domain
BEYOND = ['"\\UFFFFFFFF"', '"\\U00110000"']


@pytest.mark.parametrize("text", BEYOND)
def test_an_escape_beyond_unicode_is_no_yaml(text, tmp_path):
    (tmp_path / "w.yml").write_text(f"[{text}]")
    with pytest.raises(DeclarationError):
        parse(f"name: {text}")
    with pytest.raises(DeclarationError):
        as_workload(DOMAIN, tmp_path / "w.yml")
    with pytest.raises(DeclarationError):
        compose(f"a: {text}", file="d.yml")


@pytest.mark.parametrize("text", ["SELECT coun->1e99999", "SELECT count(*) FROM t WHERE a->'$[1e9]' = 1"])
def test_a_number_that_the_parser_of_sql_chokes_on_is_refused(text):
    with pytest.raises(QueryError):
        SqlCompiler(DOMAIN, tables={"t"}, rows_public=True).compile(text)


EVENTS = {
    "a number that would fill the memory": '{"event": "Selection", "epsilon": "1e999999999"}',
    "digits without end": json.dumps({"event": "Selection", "epsilon": "9" * 5000}),
    "a division by nothing": '{"event": "Selection", "epsilon": "1/0"}',
    "no number": '{"event": "Selection", "epsilon": 1}',
    "a list": "[]",
    "depth": '{"event": "Together", "events": [' * 5000,
    "parts that are none": '{"event": "Together", "events": 7}',
    "a name that is none": '{"event": {}, "epsilon": "1"}',
    "a cell too many": json.dumps(
        {
            "event": "Located", "noise": {"event": "LaplaceNoise", "l1": "1", "scale": "1"}, "relation": "replace",
            "region": [["a", 10**12, "-1"]], "split": False,
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_that_is_none_is_not_understood(name):
    with pytest.raises(ParameterError):
        from_text(EVENTS[name])


def test_a_span_of_a_trillion_cells_takes_no_memory():
    assert Span("a", 10**12, 5).mask == 5
    event = Located(
        noise=LaplaceNoise(l1=Fraction(1), scale=Fraction(40)),
        region=(Span("a", 10**12, 5),),
        relation="replace",
        split=False,
    )
    text = as_plain(event)
    for rule in (1, 2, 3):
        purse = verifier.Purse("epsilon", 10**15, rule)
        purse.pay(text)
        state = Joint(Budget.of(1), RULES[rule]).after(JointState(), event)
        assert purse.shown == state.shown > 0
        assert not purse.blocks
        assert not state.blocks
    with pytest.raises(ParameterError):
        from_plain(None)


# ------------------------------------------------------------------------------------------ ledgers


@pytest.fixture
def ledger(tmp_path) -> URL:
    url = URL.create("sqlite", database=str(tmp_path / "l"))
    books = DurableLedger(url, "t", Budget.of(1))
    debit = books.charge(LaplaceNoise(l1=Fraction(1), scale=Fraction(40)), question="q", request="r")
    books.settle(debit, b"[1]", hidden=b"state")
    books.close()
    return url


EDITS = {
    "a version that is no number": "UPDATE understudy_schema SET version = 'x'",
    "a negative version": "UPDATE understudy_schema SET version = -1",
    "a length that is no number": "UPDATE understudy_ledger SET entries = 'x'",
    "bytes where text belongs": "UPDATE understudy_entry SET kind = x'ff' WHERE number = 2",
    "infinity where a number belongs": "UPDATE understudy_entry SET cost = 1e999 WHERE number = 2",
    "a number where an answer belongs": "UPDATE understudy_kept SET answer = 9223372036854775807",
    "a number where a state belongs": "UPDATE understudy_kept SET state = -1, salt = 0.5",
}


@pytest.mark.parametrize("name", EDITS)
def test_a_ledger_with_a_wrong_type_is_told_in_words(name, ledger):
    with closing(sqlite3.connect(ledger.database, isolation_level=None)) as hand:
        hand.execute(EDITS[name])
    try:
        assert not export.verify(ledger, "t")["sound"]
    except LedgerError as error:
        assert "version" in name, error  # noqa: PT017 (the others have a verdict)
    if "kept" not in EDITS[name]:
        with pytest.raises(LedgerError):
            DurableLedger(ledger, "t", Budget.of(1))


def test_a_table_whose_name_is_no_text_is_damage(ledger):
    """SQLite complains about a malformed schema by quoting it, and Python cannot read the complaint."""
    path = Path(ledger.database or "")
    with closing(sqlite3.connect(path)) as hand:
        hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    name, broken = b"CREATE TABLE understudy_kept", b"CREATE TABXE understudy_\xb7\xff\xfet"
    assert name in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(name, broken, 1))
    with pytest.raises(LedgerError):
        DurableLedger(ledger, "t", Budget.of(1))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b'{"t": {"entries": Infinity, "head": ""}}',
        b'{"t": {"entries": -5, "head": ""}}',
        b"[" * 9000,
    ],
    ids=["not UTF-8", "infinity", "before the first", "depth"],
)
def test_a_witness_that_is_none_is_refused(content, ledger, tmp_path):
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(LedgerError):
        export.verify(ledger, "t", witness=Witness(tmp_path / "w"))


@pytest.mark.parametrize(
    "document", [[], None, {"entries": 7}, {"entries": [], "head": []}, {"answers": [1]}]
)
def test_the_verifier_has_a_verdict_on_anything(document):
    words, status = verifier.report(document)
    assert status == 1
    assert "NOT SOUND" in words


def test_the_verifier_is_not_held_up_by_a_number(ledger):
    document = export.document(ledger, "t", answers=False)
    for text in ('{"event":"Selection","epsilon":"1e999999999"}', "[" * 9000):
        entry = {**document["entries"][1], "event": text}
        entry["hash"] = verifier.entry_hash(entry)
        assert verifier.verify({**document, "entries": [document["entries"][0], entry]})["problems"]


def test_types_are_part_of_a_seal():
    blank = dict.fromkeys(Entry._fields)
    used = {"number": 1, "kind": "open", "at": "x", "cost": 0, "total": 0, "previous": "0"}
    entry = Entry(**{**blank, **used})  # type: ignore[arg-type]
    assert is_sealed(entry.sealed())
    assert not is_sealed(entry._replace(kind=b"open"))  # type: ignore[arg-type]
    assert not is_sealed(entry._replace(total=0.0).sealed())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ releases


@pytest.mark.parametrize("content", [b"[" * 9000, b'{"format": 1, "domain": {"attributes": [7]}}', b"7"])
def test_a_certificate_that_is_none_is_refused(content, tmp_path):
    (tmp_path / CERTIFICATE).write_bytes(content)
    np.savez_compressed(tmp_path / STANDIN, rates=np.ones(2))
    with pytest.raises(SourceError):
        Release.load(tmp_path)
