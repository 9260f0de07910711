"""The audit log: chained, verified, and without answers or secrets."""

from __future__ import annotations

import pytest

from understudy.errors import ParameterError
from understudy.server.audit_log import AuditLog
from understudy.server.secret import fresh_secret
from understudy.server.store import ServerStore


@pytest.fixture
def log(store: ServerStore) -> AuditLog:
    found = AuditLog(store)
    for i in range(5):
        found.write("cy", "pause", {"table": f"town {i}", "hours": i})
    return found


def test_entries_follow_each_other_in_pages(log):
    assert [entry.number for entry in log.entries(after=1, limit=3)] == [2, 3, 4]
    first, second = log.entries(limit=2)
    assert second.previous == first.hash
    assert first.as_dict()["facts"] == {"table": "town 0", "hours": 0}
    assert log.head == (5, log.entries(after=4)[0].hash)
    assert log.verify() == []
    assert log.entries(after=10**40, limit=10**40) == []
    assert log.entries(after=-1, limit=-1) == []


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE audit SET who = 'nobody' WHERE number = 3", "entry 3 was changed"),
        ("UPDATE audit SET facts = '{}' WHERE number = 1", "entry 1 was changed"),
        ("UPDATE audit SET at = '2020-01-01T00:00:00Z' WHERE number = 5", "entry 5 was changed"),
        ("UPDATE audit SET number = 9 WHERE number = 5", "entry 5 is missing"),
        ("DELETE FROM audit WHERE number = 2", "entry 2 is missing"),
        ("DELETE FROM audit WHERE number = 1", "entry 1 is missing"),
        ("DELETE FROM audit WHERE number >= 4", "ends with entry 3; the last one written was 5"),
        ("DELETE FROM audit", "ends with entry 0; the last one written was 5"),
        ("UPDATE audit SET previous = hash WHERE number = 4", "entry 4 does not follow"),
        ("DELETE FROM fact WHERE name = 'audit head'", "the last one written was 0"),
    ],
)
def test_tampering_shows(log, store, statement, told):
    with store.writing() as tx:
        tx.execute(statement)
    assert any(told in problem for problem in log.verify()), log.verify()


def test_an_entry_that_is_hashed_anew_does_not_fit_the_next(log, store):
    forged = AuditLog(store)
    with store.writing() as tx:
        row = tx.execute("SELECT * FROM audit WHERE number = 3").fetchone()
        from understudy.server.audit_log import _hash

        hashed = _hash(3, row["at"], "nobody", row["act"], row["facts"], row["previous"])
        tx.execute("UPDATE audit SET who = 'nobody', hash = ? WHERE number = 3", (hashed,))
    assert forged.verify() == ["entry 4 does not follow the one before it"]


@pytest.mark.parametrize(
    "facts",
    [{"answer": 5}, {"values": "1,2"}, {"password": "x"}, {"why": [1]}, {"why": {}}, {"why": "x" * 20_001}],
)
def test_answers_secrets_and_whole_documents_are_not_kept(log, facts):
    with pytest.raises(ParameterError):
        log.write("ada", "ask", facts)
    assert log.head[0] == 5


def test_a_token_in_any_field_is_refused(log):
    secret = fresh_secret()
    for entry in ((secret, "ask", {}), ("ada", secret, {}), ("ada", "ask", {"why": f"with {secret}"})):
        with pytest.raises(ParameterError, match="no tokens"):
            log.write(*entry)


def test_it_is_written_with_what_it_tells_of_or_not_at_all(log, store):
    def fail() -> None:
        with store.writing() as tx:
            log.write_in(tx, "cy", "deny")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert log.head[0] == 5
    assert log.verify() == []
