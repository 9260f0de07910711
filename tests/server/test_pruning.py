"""Old questions are forgotten, and nothing is lost by it that anybody pays for."""

from __future__ import annotations

import pytest

from served import Client, config, people, serving, tokens
from understudy.errors import ParameterError
from understudy.privacy.cost import ZCDP
from understudy.server import pruning
from understudy.server.approvals import Approvals
from understudy.server.asked import Asked, KeptReply
from understudy.server.audit_log import AuditLog
from understudy.server.logins import Logins
from understudy.server.pruning import prune
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens

DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def kept(asked: Asked, request: str) -> str:
    reply = KeptReply(
        table="town", analyst="ada", question="count", request=request, terms={}, answer='{"value":1}',
        price=ZCDP(1), share=0.1, source="measured", ledger_request=f"ada/{request}",
    )  # fmt: skip
    return asked.keep(reply).id


def test_what_ended_long_ago_is_removed_in_small_transactions_and_what_is_open_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(pruning, "ROWS", 4)
    clock = Clock()
    with ServerStore(tmp_path / "server.db", clock=clock) as store:
        asked, approvals, tokens_ = Asked(store), Approvals(store), Tokens(store)
        token, _ = tokens_.make("ada", days=300)
        login = Logins(store, tokens_)
        link, secret = tokens_.make_link()
        assert login.open_by_link(secret) is not None
        for i in range(11):
            kept(asked, f"old {i}")
        denied = approvals.ask(token.caller, "town", "q", "denied", {}, ZCDP(1), 0.1)
        approvals.deny(denied, "cy", reason="no")
        asked.refused(asked.begin("town", "ada", "q", "denied", {}).id, {"code": "denied"})
        clock.now += 95 * DAY
        recent = kept(asked, "recent")
        waiting = asked.begin("town", "ada", "q", "waits", {})
        asked.wait(waiting.id)
        approvals.ask(token.caller, "town", "q", "waits", {}, ZCDP(1), 0.1)
        clock.now += 3 * DAY

        for days in (7.9, 0, -1, float("nan")):
            with pytest.raises(ParameterError, match="at least 8 days"):
                prune(store, days=days, by="cy")
        done = prune(store, days=90, by="cy")
        assert (done.questions, done.approvals, done.logins) == (12, 1, 1)
        assert done.before == clock.now - 90 * DAY
        left, _ = asked.page(limit=50)
        assert [one.id for one in left] == [waiting.id, recent]
        assert approvals.find("town", "ada", "waits").state == "waiting"
        again = prune(store, days=90, by="cy")
        assert (again.questions, again.approvals, again.logins) == (0, 0, 0)
        assert {token.id, link.id} <= {one.id for one in tokens_.all()}
        assert AuditLog(store).verify() == []
        assert [entry.act for entry in AuditLog(store).entries(limit=100)].count("prune") == 2


def test_a_paid_request_whose_question_was_forgotten_is_answered_from_the_ledger(tmp_path):
    configured = config(people(tmp_path))
    (ada,) = tokens(configured, "ada")
    questions = {
        "direct": {"question": "count age < 18", "rho": 1e-4},
        "session": {"question": "count by area"},
    }
    with serving(configured) as service:
        client = Client(service, ada)
        first = {name: client.ask(**asked, request=name)[1] for name, asked in questions.items()}
        left = client.get("/v1/tables/people/budget")[1]["left"]
        store = service.gate.store
        with store.writing() as tx:
            tx.execute("UPDATE asked SET at = 1.0, finished = 1.0")
        assert prune(store, days=30, by="cy").questions == 2
        assert client.get("/v1/history")[1]["questions"] == []
        for name, asked in questions.items():
            status, told = client.ask(**asked, request=name)
            assert status == 200
            free = {"cost", "share", "source"}  # the session's own answer costs nothing the second time
            was, is_now = (
                {key: value for key, value in one["answer"].items() if key not in free}
                for one in (first[name], told)
            )
            assert was == is_now
        assert client.get("/v1/tables/people/budget")[1]["left"] == left
