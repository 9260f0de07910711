"""Approvals: states, decisions, expiry, and one run at a time across kills."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading

import pytest

from understudy.errors import ParameterError, RequestConflictError
from understudy.privacy.cost import ZCDP
from understudy.server.approvals import Approvals
from understudy.server.asked import Asked
from understudy.server.audit_log import AuditLog
from understudy.server.store import ServerStore
from understudy.server.tokens import Caller

ADA = Caller(analyst="ada", role="analyst", agent=False, read_only=False, token_id="t1")


@pytest.fixture
def approvals(store: ServerStore) -> Approvals:
    return Approvals(store)


def ask(approvals: Approvals, request: str = "r1", question: str = "count") -> str:
    return approvals.ask(ADA, "town", question, request, {"rho": 0.1}, ZCDP(10**14), 0.2, "a paper")


def test_what_a_custodian_sees(approvals):
    id = ask(approvals)
    (found,) = approvals.waiting()
    told = found.as_dict()
    assert (told["id"], told["question"], told["terms"], told["why"]) == (
        id,
        "count",
        {"rho": 0.1},
        "a paper",
    )
    assert (told["price"], told["currency"], told["share"], told["analyst"]) == (0.1, "rho", 0.2, "ada")
    assert "token_id" not in told
    assert told["at"].endswith("Z")


def test_a_request_waits_once(approvals):
    assert ask(approvals) == ask(approvals)
    assert len(approvals.waiting()) == 1
    with pytest.raises(RequestConflictError):
        ask(approvals, question="another")


def test_approved_then_run_once_then_answered(approvals, store):
    id = ask(approvals)
    assert approvals.claim() is None
    assert approvals.approve(id, "cy").state == "approved"
    claimed = approvals.claim()
    assert claimed is not None
    assert claimed.id == id
    assert approvals.claim() is None
    assert Approvals(store).claim() is None  # nor does another part of this server
    approvals.answered(id)
    found = approvals.get(id)
    assert found is not None
    assert (found.state, found.decided_by) == ("answered", "cy")
    acts = [(entry.who, entry.act) for entry in AuditLog(store).entries()]
    assert acts == [("ada", "ask for approval"), ("cy", "approve"), ("server", "approved question answered")]


def test_a_denial_has_a_reason_that_is_read(approvals):
    id = ask(approvals)
    with pytest.raises(ParameterError, match="reason"):
        approvals.deny(id, "cy", "  ")
    assert approvals.deny(id, "cy", "too fine").reason == "too fine"
    for decide in (lambda: approvals.approve(id, "cy"), lambda: approvals.deny(id, "cy", "again")):
        with pytest.raises(ParameterError, match="denied already"):
            decide()
    with pytest.raises(ParameterError, match="approvals list"):
        approvals.approve("none", "cy")
    assert approvals.claim() is None


def test_a_question_waits_no_longer_than_its_approval(approvals, store, clock):
    """Denied, not payable when its turn came, or expired: it is refused, finished, and says why."""
    asked = Asked(store)
    noted = [asked.begin("town", "ada", "count", request, {"rho": 0.1}) for request in ("a", "b", "c", "d")]
    for one in noted:
        asked.wait(one.id)
    denied, unpaid, _, answered = (ask(approvals, one.request) for one in noted)
    approvals.deny(denied, "cy", "too fine")
    for id in (unpaid, answered):
        approvals.approve(id, "cy")
    assert {approvals.claim().id, approvals.claim().id} == {unpaid, answered}
    approvals.refused(unpaid, "it costs more now")
    assert [asked.get(one.id).state for one in noted] == ["refused", "refused", "waiting", "waiting"]
    clock.days(7.1)
    approvals.expire()
    found = [asked.get(one.id) for one in noted]
    assert [one.state for one in found] == ["refused", "refused", "refused", "waiting"]
    assert [one.problem and one.problem["code"] for one in found] == ["denied", "denied", "expired", None]
    assert "too fine" in found[0].problem["detail"]
    assert found[0].finished < found[2].finished == clock()
    assert found[3].finished is None


def test_a_refusal_in_words_of_its_own_stays(approvals, store):
    asked = Asked(store)
    one = asked.begin("town", "ada", "count", "r1", {"rho": 0.1})
    asked.wait(one.id)
    approvals.approve(ask(approvals), "cy")
    approvals.claim()
    asked.refused(one.id, {"code": "budget"})
    approvals.refused(approvals.all()[0].id, "the budget is spent")
    assert asked.get(one.id).problem == {"code": "budget"}


def test_questions_of_an_earlier_version_that_were_decided_wait_no_longer(state):
    with ServerStore(state) as store:
        asked, approvals = Asked(store), Approvals(store)
        ids = [asked.begin("town", "ada", "count", request, {"rho": 0.1}).id for request in ("a", "b")]
        denied, _ = (ask(approvals, request) for request in ("a", "b"))
        approvals.deny(denied, "cy", "too fine; ask by district")
        for id in ids:
            asked.wait(id)  # as it stood there before
    with sqlite3.connect(state) as raw:
        raw.execute("PRAGMA user_version=2")
    raw.close()
    with ServerStore(state) as store:
        found, waits = (Asked(store).get(id) for id in ids)
        assert (found.state, waits.state) == ("refused", "waiting")
        assert found.problem["code"] == "denied"
        assert "too fine; ask by district" in found.problem["detail"]
        assert found.finished == Approvals(store).get(denied).decided


def test_what_cannot_be_paid_any_more_is_denied_by_the_server(approvals):
    id = ask(approvals)
    approvals.approve(id, "cy")
    approvals.claim()
    approvals.refused(id, "the budget is spent")
    found = approvals.get(id)
    assert (found.state, found.decided_by, found.reason) == ("denied", "server", "the budget is spent")


def test_what_nobody_decides_or_runs_expires_after_seven_days(approvals, clock):
    waiting, approved, claimed = (ask(approvals, request) for request in ("a", "b", "c"))
    approvals.approve(claimed, "cy")
    assert approvals.claim().id == claimed
    approvals.approve(approved, "cy")
    clock.days(6.9)
    assert approvals.get(waiting).state == "waiting"
    clock.days(0.2)
    assert [approvals.get(id).state for id in (waiting, approved, claimed)] == [
        "expired",
        "expired",
        "approved",
    ]
    with pytest.raises(ParameterError, match="expired already"):
        approvals.approve(waiting, "cy")
    clock.days(-3)
    assert approvals.waiting() == []
    approvals.answered(claimed)  # it may have been paid for, so it ends as its run ends
    assert approvals.get(claimed).state == "answered"


def test_after_a_kill_the_next_server_runs_what_was_claimed(state):
    program = f"""
import os, signal
from pathlib import Path
from understudy.server.approvals import Approvals
from understudy.server.store import ServerStore
approvals = Approvals(ServerStore(Path({str(state)!r})))
assert approvals.claim() is not None
os.kill(os.getpid(), signal.SIGKILL)
"""
    with ServerStore(state) as store:
        approvals = Approvals(store)
        id = ask(approvals)
        approvals.approve(id, "cy")
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    with ServerStore(state) as store:
        again = Approvals(store)
        claimed = again.claim()
        assert claimed is not None
        assert (claimed.id, claimed.request) == (id, "r1")
        assert again.claim() is None
        again.answered(id)
        assert Approvals(store).claim() is None  # what was answered is never run again


def test_many_threads_claim_each_question_once(approvals):
    ids = {ask(approvals, f"r{i}") for i in range(20)}
    for id in ids:
        approvals.approve(id, "cy")
    claimed: list[str] = []

    def work() -> None:
        while (found := approvals.claim()) is not None:
            claimed.append(found.id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(ids)


def test_a_claim_can_be_given_back(approvals):
    id = ask(approvals)
    approvals.approve(id, "cy")
    approvals.claim()
    approvals.release(id)
    assert approvals.claim().id == id
