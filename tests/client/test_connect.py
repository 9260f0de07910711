"""`us.connect` against a real server: what comes back is what the library gives where the table is one's own."""

from __future__ import annotations

import re
import shutil
import threading
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import pytest

import tiny_release
import understudy as us
from same_answers import check_same
from served import people
from understudy.client import remote_table
from understudy.client.connect import Connection
from understudy.client.history import PAGE
from understudy.errors import (
    AccessError,
    ApprovalNeededError,
    ClosedError,
    DomainError,
    InsufficientBudgetError,
    ParameterError,
    QueryError,
    RefusedError,
    RequestConflictError,
    ServerError,
)
from understudy.privacy.budget import Budget
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.server.config import ApproveAbove

ASKED = [  # the first is bought, and the others follow from it: a second purchase would take seconds to plan
    "count by sex, area, job",
    "count job = true",
    "share job = true by area",
    "rate job = true within sex",
    "SELECT sex, job, count(*) AS people FROM people GROUP BY sex, job",
]


def opened(server):
    """The project and the session of the served table, in this process."""
    return server.service.gate.served.tables["people"].use()


class TestAsking:
    @pytest.mark.parametrize("question", ASKED)
    def test_an_answer_of_the_session_is_the_librarys_own(self, server, ada, question):
        first, again = ada.ask(question), ada.ask(question)
        assert (again.cost.units, again.source != "measured") == (0, True)
        assert first.noise == again.noise == "gaussian"
        with opened(server) as here:
            own = here.session("ada").ask(question, analyst="ada")
        # A session calls what it deduced a `repeat` when it is asked again; a server goes on calling it `implied`.
        if isinstance(own, us.SqlAnswer):
            own = replace(own, sources=again.sources)
        else:
            own = replace(own, source=again.source)
        check_same(own, again)
        assert first.as_dict().get("rows", first.as_dict().get("value")) == own.as_dict().get(
            "rows", own.as_dict().get("value")
        )

    @pytest.mark.parametrize("question", ASKED)
    def test_a_question_with_a_price_is_the_recorded_release(self, server, ada, question):
        name = f"direct-{ASKED.index(question)}"
        there = ada.ask(question, rho=0.01, request=name)
        with opened(server) as here:
            recorded = here.project.prepare(question, rho=0.01).run(request=f"ada/{name}", analyst="ada")
        check_same(recorded, there)
        assert ada.ask(question, rho=0.01, request=name).as_dict() == there.as_dict()

    def test_every_call_is_a_request_of_its_own(self, server, ada):
        with opened(server) as here:
            before = here.project.ledger.spent.units
        assert ada.ask("count by area", rho=0.001).cost.units > 0
        assert ada.ask("count by area", rho=0.001).cost.units > 0
        with opened(server) as here:
            assert here.project.ledger.spent.units > before
        found = [one.request for one in ada.history()]
        assert len(set(found)) == len(found)

    def test_sql_takes_sql_alone_and_does_not_send_anything_else(self, ada, server):
        answer = ada.sql("SELECT count(*) FROM people WHERE sex = 'F'")
        assert isinstance(answer, us.SqlAnswer)
        asked = len(list(ada.history()))
        with pytest.raises(QueryError, match="no SELECT statement"):
            ada.sql("count by sex")
        assert len(list(ada.history())) == asked

    def test_a_price_never_looks(self, server, ada):
        ada.ask(ASKED[0])
        with opened(server) as here:
            before = here.project.ledger.spent.units
        quote = ada.quote(
            "count age < 47 and job = true"
        )  # many people, and nothing that is known tells how many
        direct = ada.quote("rate job = true within area", epsilon=0.1)
        with opened(server) as here:
            assert here.project.ledger.spent.units == before
        assert (quote.is_free, quote.is_payable, quote.needs_approval) == (False, True, False)
        assert quote.cost.units > 0
        assert quote.more_like_this is not None
        assert direct.forecast[0].unit == "rate within area"
        groups = "CASE WHEN area IN ('n', 'e') THEN 'a' WHEN area = 's' THEN 'b' ELSE 'c' END"
        merged = f"SELECT {groups} AS g, count(*) FROM people GROUP BY 1"  # a group of two cells
        assert ada.quote(merged).error == 2 * ada.quote("count by area").error
        assert ada.quote(merged, error=50).error <= 50
        dear = ada.quote("count by age, sex, area", rho=1000)
        assert not dear.is_payable
        assert ada.quote(ASKED[0]).is_free

    def test_threads_ask_at_once(self, ada):
        found: list[float] = []
        threads = [
            threading.Thread(target=lambda: found.append(float(ada.ask("count job = true").value)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1

    def test_other_things_than_text_are_not_sent(self, ada):
        with pytest.raises(QueryError, match="is text"):
            ada.ask(3)
        with pytest.raises(ParameterError, match="one price"):
            ada.ask("count", epsilon=1, rho=1)
        for wrong in (3, b"count", None, ["count"]):
            for put in (ada.quote, ada.session().price, lambda text: ada.table().quote_all([text])):
                with pytest.raises(QueryError, match="is text"):
                    put(wrong)
        for wrong in ("count", b"count", None, 3):
            for put in (ada.table().quote_all, ada.ask_all):
                with pytest.raises(QueryError, match="are a list of texts"):
                    put(wrong)
        with pytest.raises(ParameterError, match="a request's name is text, not 7"):
            ada.ask("count", request=7)
        with pytest.raises(ParameterError, match="`at_once` is a number from 1 to 16, not 'x'"):
            ada.ask_all(["count"], at_once="x")

    @pytest.mark.parametrize("name", ["epsilon", "rho", "error", "most"])
    @pytest.mark.parametrize("wrong", ["x", "0.1", True, [1], 1j, float("nan"), 10**400])
    def test_what_is_no_number_is_refused_as_for_a_table_of_ones_own(self, ada, name, wrong):
        session = ada.session()
        doors = [ada.ask] if name == "most" else [ada.ask, ada.quote]
        doors += {"error": [session.ask, session.price], "most": [session.ask]}.get(name, [])
        for door in doors:
            with pytest.raises(ParameterError, match=f"{name} must be"):
                door("count by job", **{name: wrong})

    def test_a_condition_may_cut_bins_and_its_groups_are_parts_of_them(self, server, ada):
        told = ada.ask("count age < 28 by age")
        assert [labels for labels, _, _ in told.rows()] == [("0-17",), ("18-27",), ("28-64",), ("65-120",)]
        assert (ada.ask("count age < 28 by age").cost.units, told.error[2:].tolist()) == (0, [0.0, 0.0])
        with opened(server) as here:
            own = here.session("ada").ask("count age < 28 by age", analyst="ada")
        check_same(replace(ada.ask("count age < 28 by age"), source=own.source), own)
        with pytest.raises(QueryError, match="age is a number"):
            ada.ask("SELECT count(*) FROM people WHERE age < '28; DROP TABLE people'")


class TestErrors:
    def test_the_librarys_errors_come_back(self, ada):
        with pytest.raises(QueryError, match="'f' is not a declared value of sex") as caught:
            ada.ask("count sex = f")
        assert caught.value.suggestions == ("F",)
        with pytest.raises(QueryError, match="no attribute 'agee'"):
            ada.quote("count agee < 18")
        ada.ask("count", request="taken")
        with pytest.raises(RequestConflictError, match="'taken'") as conflict:
            ada.ask("count by sex", request="taken")
        assert conflict.value.request == "taken"

    def test_a_budget_that_cannot_pay_is_told_with_its_numbers(self, server, ada):
        with opened(server) as here, pytest.raises(InsufficientBudgetError) as own:
            here.project.prepare("count by sex", rho=1000).run(analyst="ada")
        with pytest.raises(InsufficientBudgetError) as caught:
            ada.ask("count by sex", rho=1000)
        assert (caught.value.requested, caught.value.remaining, caught.value.currency, caught.value.limit) == (
            own.value.requested, own.value.remaining, own.value.currency, own.value.limit
        )  # fmt: skip

    def test_tokens_that_may_not_are_told_so(self, server):
        with pytest.raises(AccessError, match="does not know this token"):
            us.connect(server.url, "us_" + "x" * 43)
        auditor = server.connect("the auditor", role="auditor")
        with pytest.raises(AccessError, match="the role auditor"):
            auditor.ask("count")
        reader = server.connect("visitor", read_only=True)
        with pytest.raises(AccessError, match="read-only token never pays"):
            reader.ask("count age < 53 and job = true")
        with pytest.raises(AccessError, match="does not know this token"):
            us.connect(server.url, server.token("ada", doors=("pg",)))

    def test_an_unknown_question_or_table_is_told(self, ada):
        with pytest.raises(RefusedError, match="no such question of yours"):
            ada.answer("0123456789abcdef0123")
        with pytest.raises(DomainError, match="no table 'poeple'; it has: people") as caught:
            ada.ask("count", table="poeple")
        assert caught.value.suggestions == ("people",)

    def test_what_was_closed_says_so(self, server):
        with us.connect(server.url, server.token("ada")) as connection:
            connection.ask("count")
        with pytest.raises(ClosedError, match=r"us\.connect"):
            connection.ask("count")


class TestReading:
    def test_the_budget_and_the_session(self, server, ada):
        budget, session = ada.budget(), ada.session()
        with opened(server) as here:
            ledger = here.project.ledger
            assert budget.cap.amount == ledger.budget.cap.amount
            assert budget.left.amount == ledger.remaining.amount
            assert session.width == here.session("ada").width
            assert session.purchases == here.session("ada").purchases
        assert session.is_shared
        assert session.price("count by sex").error == session.width
        assert session.ask("count").cost.units == 0
        with pytest.raises(RefusedError, match="share one session"):
            ada.session(own=True)

    @pytest.mark.parametrize("kept", ["renyi", "gdp"])
    def test_a_budget_says_which_filter_keeps_it(self, serve, kept):
        """And whoever knows what it says can work out the whole, as `understudy ask --url` does."""
        server = serve(budget=f"{{epsilon: 4, delta: 1e-9, filter: {kept}}}")
        with us.connect(server.url, server.token("ada")) as ada:
            ada.ask("count by sex", epsilon=0.1)
            budget = ada.budget()
        assert budget.kept["filter"] == kept
        assert "rho is" in budget.kept["meaning"]
        parts = {name: Fraction(budget.kept[name]) for name in ("order", "reserve") if name in budget.kept}
        whole = Budget.of(budget.epsilon, budget.delta, filter=kept, **parts)
        assert whole.cap.amount == budget.cap.amount
        assert budget.spent_epsilon is not None
        assert 0 < budget.spent_epsilon < 4
        assert f"{kept}: rho is" in budget._repr_html_()

    def test_the_history_is_fetched_page_by_page(self, server):
        bob = server.connect("bob")
        for i in range(PAGE + 5):
            bob.ask("count", request=f"bob-{i}")
        with pytest.raises(QueryError):
            bob.ask("count nothing")
        found = list(bob.history(state="answered"))
        assert [one.request for one in found] == [f"bob-{i}" for i in reversed(range(PAGE + 5))]
        assert {one.analyst for one in found} == {"bob"}
        assert found[0].at.tzinfo is not None
        assert bob.answer(found[0].id).as_dict() == bob.ask("count", request=found[0].request).as_dict()
        with pytest.raises(AccessError, match="Analysts see their own"):
            list(bob.history(analyst="ada"))

    def test_the_domain_is_read_again_after_it_was_declared_anew(self, serve):
        served = serve()
        carol = served.connect("carol")
        assert carol.ask("count by sex").value.shape == (3,)
        table = carol.table()
        described = {**table.about, "attributes": [dict(a) for a in table.about["attributes"]]}
        described["attributes"][1]["values"] = ["F", "M", "X"]  # what was declared before
        table._known, table._domain = described, None
        assert table.domain["sex"].size == 4
        assert carol.ask("count by sex").value.shape == (3,)
        assert table.domain["sex"].size == 3

    def test_a_reply_of_another_version_is_told_and_can_be_fetched_again(self, ada, monkeypatch):
        real = ada._transport.post

        def odd(*path, body, request=""):
            status, document = real(*path, body=body, request=request)
            return status, {**document, "answer": {"by": ["sex"], "shape": "new"}}

        monkeypatch.setattr(ada._transport, "post", odd)
        with pytest.raises(ServerError, match="not understood") as caught:
            ada.ask("count by sex", request="kept")
        monkeypatch.undo()
        assert caught.value.request == "kept"
        assert ada.ask("count by sex", request="kept").value.shape == (3,)

    def test_a_domain_that_cannot_be_fetched_leaves_the_id_of_what_was_paid(self, server, monkeypatch):
        gus = server.connect("gus")

        def away(*_, **__):
            raise ServerError("away", remedy="try again")

        monkeypatch.setattr(gus._transport, "get", away)
        with pytest.raises(ServerError, match="away") as caught:
            gus.ask("count by sex", rho=0.001)
        monkeypatch.undo()
        paid = gus.ask("count by sex", rho=0.001, request=caught.value.request)
        assert gus.budget().your_spent.amount == paid.cost.amount

    def test_several_tables(self, serve, tmp_path):
        other = people(tmp_path / "visits", rows=50)
        declared = (other / "understudy.yml").read_text()
        (other / "understudy.yml").write_text(declared.replace("name: people", "name: visits"))
        first = people(tmp_path / "people", rows=50)
        served = serve(tables={"people": first / "understudy.yml", "visits": other / "understudy.yml"})
        dan = served.connect("dan")
        assert dan.tables == ("people", "visits")
        with pytest.raises(ParameterError, match="2 tables: people, visits; name one"):
            dan.ask("count")
        assert dan.ask("count by sex", table="visits").source == "measured"
        assert dan.table("visits").ask("count by sex").source == "repeat"
        assert dan.table("people").ask("count by sex").source == "measured"
        assert {one.table for one in dan.history(table="visits")} == {"visits"}
        assert dan.table("visits") is dan.table("visits")

    def test_a_session_of_ones_own(self, serve):
        served = serve(own_sessions=True)
        eve, flo = served.connect("eve"), served.connect("flo")
        assert not eve.session(own=True).is_shared
        assert eve.session(own=True).ask("count by sex").source == "measured"
        assert flo.ask("count by sex").source == "measured"
        assert eve.session().purchases == 1


class TestApprovals:
    @pytest.fixture
    def careful(self, serve, monkeypatch):
        monkeypatch.setattr(remote_table, "FIRST_LOOK", 0.02)
        return serve(approve_above=ApproveAbove(people=Fraction(1, 10**6), agents=Fraction(1, 10**6)))

    def test_a_question_waits_and_its_answer_is_fetched(self, careful):
        ada, approvals = careful.connect("ada"), careful.service.gate.approvals
        assert ada.quote("count by sex").needs_approval
        with pytest.raises(ApprovalNeededError) as caught:
            ada.ask("count by sex", why="a study")
        told = caught.value
        assert (told.currency, told.share > 0, told.price > 0) == ("rho", True, True)
        with pytest.raises(ApprovalNeededError) as still:
            ada.answer(told.id)
        assert still.value.id == told.id
        with pytest.raises(ApprovalNeededError):
            ada.answer(told.id, wait=0.05)
        (waiting,) = approvals.waiting()
        assert waiting.why == "a study"
        approvals.approve(waiting.id, "the custodian")
        answer = ada.answer(told.id, wait=20)
        assert answer.source == "measured"
        assert ada.ask("count by sex", request=told.request).as_dict() == answer.as_dict()
        # Denied, with a reason that the analyst reads; and waiting until somebody decides.
        decided = threading.Thread(target=self.deny_the_next, args=(approvals,))
        decided.start()
        with pytest.raises(RefusedError, match="denied this question: ask by district"):
            ada.ask("count by area", wait=True)
        decided.join()
        (denied,) = (one for one in ada.history(state="refused") if one.question == "count by area")
        assert "denied this question: ask by district" in denied.problem
        assert denied.finished is not None
        assert not list(ada.history(state="waiting"))
        with pytest.raises(RefusedError, match="ask by district"):
            ada.answer(denied.id)
        with pytest.raises(ParameterError, match="number of seconds"):
            ada.ask("count by job", wait=-1)

    @staticmethod
    def deny_the_next(approvals):
        while not (waiting := approvals.waiting()):
            threading.Event().wait(0.02)
        approvals.deny(waiting[0].id, "the custodian", "ask by district")


class TestReleases:
    def test_a_release_is_listed_fetched_and_opened(self, serve, tmp_path):
        made = release(tiny_release.project(), "2-way", epsilon=1, method=tiny_release.tiny)
        made.save(tmp_path / "shown" / "spring", rows=50)
        served = serve(releases=tmp_path / "shown")
        ada = served.connect("ada")
        found = ada.releases()
        assert list(found) == ["spring"]
        assert found["spring"].method == made.certificate["method"]
        folder = found["spring"].download(tmp_path / "mine" / "spring")
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
            p.name: p.read_bytes() for p in (tmp_path / "shown" / "spring").iterdir()
        }
        loaded = Release.load(folder)
        assert loaded.answer("count by sex").as_dict() == made.answer("count by sex").as_dict()
        with pytest.raises(RefusedError, match="exists already"):
            found["spring"].download(folder)
        assert found["spring"].synthetic().num_rows == 50
        assert list(found["spring"].answers("pandas").columns) == [
            "marginal",
            "labels",
            "value",
            "error",
            "low",
            "high",
            "basis",
        ]
        assert found["spring"].certificate() == made.certificate
        assert b"<html" in found["spring"].read("report.html")
        with pytest.raises(ParameterError, match="has no file"):
            found["spring"].read("../understudy.yml")
        shutil.rmtree(tmp_path / "shown" / "spring")
        with pytest.raises(RefusedError, match="no such release"):
            found["spring"].download(tmp_path / "gone")
        assert not (tmp_path / "gone").exists()
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


class TestLooks:
    def test_everything_has_a_short_repr_and_a_page(self, server, ada, tmp_path):
        ada.ask("count by sex")
        shown: list[object] = [
            ada, ada.table(), ada.quote("count by sex"), ada.quote("rate job = true within sex", rho=5),
            ada.budget(), ada.session(), ada.history(), next(iter(ada.history())), ada.releases(),
            replace(ada.session(), contradicted=True),
        ]  # fmt: skip
        for one in shown:
            assert re.fullmatch(r"\w+\(.{0,120}\)", repr(one)), repr(one)
            page = one._repr_html_()  # pyright: ignore[reportAttributeAccessIssue]
            assert page.count("<table") >= 1
            Closed().feed(page)
        assert str(ada.budget().left).endswith("%")

    def test_labels_and_questions_stay_inert(self, ada):
        evil = "count sex = '<script>alert(1)</script>'"
        with pytest.raises(QueryError):
            ada.ask(evil)
        quote = replace(ada.quote("count"), question="<script>alert(1)</script>")
        assert "<script" not in quote._repr_html_()
        session = replace(ada.session(), name="<script>")
        assert "<script" not in session._repr_html_()

    def test_the_public_name(self):
        assert us.Connection is Connection


class Closed(HTMLParser):
    """Pages without foreign parts."""

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "img", "link")
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)
