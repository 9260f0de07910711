"""An error of its own in the server's session, at every door; the most that may be charged; prices of several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
import pytest

import understudy as us
from agents import Agent
from page_visitor import PageVisitor
from program import call
from served import WITH_POSTGRES, Client, config, serving, tokens
from served_town import ServedTown
from understudy.client.connect import Connection
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    PriceRoseError,
    RefusedAfterChargeError,
    RefusedError,
)
from understudy.server.approvals import Approval
from understudy.server.config import ApproveAbove
from understudy.server.gate_reply import AskedBy
from understudy.server.http.bodies import AskBody, PriceBody
from understudy.server.inquiry import Inquiry
from understudy.server.problems import Problem
from understudy.server.run import Service
from understudy.server.tokens import Caller

DECLARED = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 40, delta: 1e-9}
neighbours: replace
limits: {analysts: {eve: 0.000001}}
attributes:
  age: {type: integer, edges: [0, 18, 65, 100], resolution: 1}
  pay: {type: real, bounds: [0, 100], bins: 10, resolution: 0.01}
  sex: {type: category, values: [F, M]}
"""
PAY = "SELECT sex, avg(pay) AS pay FROM people GROUP BY sex"
PRICE, ASK = "/v1/tables/people/price", "/v1/tables/people/ask"


@dataclass(frozen=True)
class House:
    service: Service
    tokens: tuple[str, ...]

    @property
    def client(self) -> Client:
        return Client(self.service, self.tokens[0])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.service.addresses['http'].port}"

    def price(self, question: str, **terms: Any) -> dict[str, Any]:
        return self.client("POST", PRICE, {"question": question, **terms})[1]

    def purchases(self) -> int:
        return self.client("GET", "/v1/tables/people/sessions")[1]["sessions"][0]["purchases"]

    def spent(self) -> float:
        with us.connect(self.url, token=self.tokens[0]) as opened:
            return -opened.budget().yours.amount


def declared(folder: Path) -> Path:
    lines = [f"{i * 7 % 100},{i * 13 % 100}.5,{'FM'[i % 2]}" for i in range(4000)]
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text("age,pay,sex\n" + "\n".join(lines) + "\n")
    (folder / "understudy.yml").write_text(DECLARED)
    return folder


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    configured = config(declared(tmp_path / "people"), listen=WITH_POSTGRES)
    secrets = tuple(tokens(configured, "ada", "eve"))
    with serving(configured) as service:
        yield House(service, secrets)


@pytest.fixture
def ada(house: House) -> Iterator[Connection]:
    with us.connect(house.url, token=house.tokens[0]) as opened:
        yield opened


def test_an_average_of_groups_has_an_error_at_the_price_of_the_library(house: House, tmp_path: Path) -> None:
    terms = house.client("GET", "/v1/tables/people/sessions")[1]["sessions"][0]
    project = us.open(declared(tmp_path / "twin") / "understudy.yml")
    session = us.session(project, alpha=terms["alpha"], beta=terms["beta"], queries=terms["queries"])
    expected = session.price(PAY, error=2)
    told = house.price(PAY, error=2, in_session=True)
    assert told["cost"] == {expected.currency: expected.amount}
    assert (told["error"], told["unit"], told["beta"]) == (2, "pay", terms["beta"])
    assert house.client.ask(PAY, error=2)[0] == 422  # by itself nobody can promise it beforehand
    status, answer = house.client.ask(PAY, error=2, in_session=True)
    assert status == 200
    for _, pay in answer["answer"]["rows"][:2]:  # of other values there are no rows, and nothing is promised
        assert (pay["high"] - pay["low"]) / 2 <= 2 * (1 + 1e-9)
        assert pay["low"] <= 50 <= pay["high"]
    (charged,) = answer["answer"]["cost"].values()
    assert 0 < charged <= expected.amount
    assert house.price(PAY, error=2, in_session=True)["free"]
    again = house.client.ask(PAY, error=3, in_session=True)[1]["answer"]
    assert sum(again["cost"].values()) == 0


def test_a_request_is_paid_once_and_belongs_to_its_error(house: House) -> None:
    ask, terms = house.client.ask, {"request": "mine", "error": 50, "in_session": True}
    first = ask("count sex = F", **terms)
    before = house.spent()
    assert ask("count sex = F", **terms) == first
    assert ask("count sex = F", **terms, uncertified=False) == first
    assert house.spent() == before
    assert ask("count sex = F", request="mine", error=40, in_session=True)[0] == 409
    assert ask("count sex = F", request="mine", error=50)[0] == 409
    assert ask("count sex = F", request="mine")[0] == 409


def test_an_error_without_the_word_is_measured_by_itself_as_before(house: House) -> None:
    bought = house.purchases()
    assert house.client.ask("count sex = F", error=60)[1]["answer"]["error"] <= 60
    assert house.purchases() == bought
    house.client.ask("count sex = F", error=60, in_session=True)
    assert house.purchases() > bought
    wide = house.client.ask("count sex = F")[1]["answer"]  # the session's own promise is another question
    assert (wide["source"], sum(wide["cost"].values())) == ("repeat", 0)


def test_a_wide_answer_is_not_kept_for_a_question_on_the_sessions_own_terms(house: House) -> None:
    wide = house.client.ask("count age < 18", error=1500, in_session=True)[1]["answer"]
    usual = house.client.ask("count age < 18")[1]["answer"]
    assert usual["error"] < wide["error"] / 2
    assert house.client.ask("count age < 18")[1]["answer"]["error"] == usual["error"]


def test_the_limit_of_an_analyst_holds_before_anything_is_looked_at(house: House) -> None:
    before = house.purchases()
    status, told = Client(house.service, house.tokens[1]).ask("count sex = F", error=5, in_session=True)
    assert (status, told["code"]) == (402, "budget")
    assert house.purchases() == before


def test_one_that_a_custodian_approves_is_asked_in_the_session(tmp_path: Path) -> None:
    above = ApproveAbove(people=Fraction(1, 10**6), agents=Fraction(1, 10**6))
    configured = config(declared(tmp_path / "people"), approve_above=above)
    [secret] = tokens(configured, "ada")
    [keeper] = tokens(configured, "cus", role="custodian")
    with serving(configured) as service:
        house, keep = House(service, (secret,)), Client(service, keeper)
        terms = {"error": 20, "in_session": True, "request": "w"}
        status, kept = house.client.ask("count age < 18", **terms)
        assert (status, kept["state"], house.purchases()) == (202, "waiting", 0)
        visitor = PageVisitor(ServedTown(service, Path(), {"ada": secret}), "ada")
        [waiting] = keep("GET", "/approvals?state=waiting", door="admin")[1]["approvals"]
        assert keep("POST", f"/approvals/{waiting['id']}", {"decision": "approve"}, door="admin")[0] == 200
        for _ in range(100):
            status, told = house.client.ask("count age < 18", **terms)
            if status == 200:
                break
            sleep(0.1)
        assert told["answer"]["error"] <= 20
        assert house.purchases() > 0
        words = visitor.get(f"/asks/{kept['id']}").words
        assert "an error of 20, in the session" in " ".join(words.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 1, "in_session": True}, "only an error"),
        ({"error": 1, "in_session": True, "noise": "bounded"}, "noise of its own"),
        ({"error": 1, "in_session": "yes"}, "must be true or false"),
        ({"error": 0.0001, "in_session": True}, ""),
        ({"most": -1}, "'most' must be a number"),
        ({"most": "all"}, "'most' must be a number"),
    ],
)
def test_what_has_no_meaning_is_refused(house: House, given: dict[str, Any], words: str) -> None:
    status, told = house.client.ask(PAY, **given)
    assert status in (402, 422)
    assert words in told["detail"]


def test_openapi_tells_of_it() -> None:
    assert AskBody.model_json_schema()["properties"]["in_session"]["type"] == "boolean"
    assert PriceBody.model_json_schema()["properties"]["in_session"]["type"] == "boolean"
    assert "most" in AskBody.model_json_schema()["properties"]


def test_terms_that_are_kept_make_the_same_inquiry_again() -> None:
    """As for a question that a custodian approves days later."""
    asked = Inquiry(table="t", question="count", error=3.0, in_session=True, uncertified=False, most=1.0)
    again = Inquiry(table="t", question="count", **asked.terms)
    assert again.is_same(asked)
    assert (again.within, again.is_direct) == (3.0, False)
    plain = Inquiry(table="t", question="count", in_session=True)
    assert (plain.within, plain.is_direct, plain.terms) == (None, False, {"uncertified": True})
    with pytest.raises(Problem, match="most"):
        Inquiry(table="t", question="count", most=float("nan")).check()


def test_the_client_of_the_library_says_it(ada: Connection) -> None:
    session = ada.session()
    quote = session.price("rate age < 18 within sex", error=0.05)
    assert (quote.error, quote.is_free) == (0.05, False)
    told = session.ask("rate age < 18 within sex", error=0.05)
    assert float(told.error[:2].max()) <= 0.05  # type: ignore[union-attr]
    assert told.cost.units <= quote.cost.units
    assert ada.quote("rate age < 18 within sex", error=0.05, in_session=True).is_free
    assert ada.ask("rate age < 18 within sex", error=0.06, in_session=True).cost.units == 0
    answers = ada.ask_all(["share sex = F", "share age < 18"], error=0.02, in_session=True)
    assert all(float(answer.error.max()) <= 0.02 for answer in answers)  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match="only an error"):
        ada.ask("count", rho=1e-5, in_session=True)


def test_agents_say_it(house: House) -> None:
    agent = Agent(house.service, house.tokens[0])
    told = agent.call("ask", table="people", question=PAY, error=2, in_session=True)
    assert told["answer"]["source"] == "measured"
    (price,) = agent.call("price", table="people", question=PAY, error=2, in_session=True)["prices"]
    assert price["free"]
    detail, _ = agent.refused("ask", table="people", question=PAY, rho=1, in_session=True)
    assert "only an error" in detail
    detail, problem = agent.refused("ask", table="people", question="count age < 18", most=1e-12)
    assert (problem["code"], problem["agreed"]) == ("price-rose", pytest.approx(1e-12, rel=0.01))


def test_postgres_has_a_setting_for_it(house: House) -> None:
    port = house.service.addresses["postgres"].port
    dsn = f"host=127.0.0.1 port={port} user=ada password={house.tokens[0]} dbname=understudy sslmode=disable"
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.execute("SHOW understudy.in_session").fetchall() == [("off",)]
        connection.execute("SET understudy.error = 2")
        connection.execute("SET understudy.in_session = on")
        told = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {PAY}").fetchall())
        assert "in the session, within error 2" in told
        found = dict(connection.execute(PAY).fetchall())
        assert all(abs(found[sex] - 50) < 4 for sex in "FM")


def test_the_page_has_a_box_for_it(house: House) -> None:
    visitor = PageVisitor(ServedTown(house.service, Path(), {"ada": house.tokens[0]}), "ada")
    assert "Keep this error in the shared session" in visitor.get("/tables/people/ask").words
    form = {"question": PAY, "error": "2", "shared": "1"}
    assert "Every number within ± 2 (pay)" in visitor.post("/tables/people/price", form).words
    told = visitor.post("/tables/people/ask", form)
    assert "in_session=True" in told.text
    assert house.price(PAY, error=2, in_session=True)["free"]


FEW = "SELECT avg(age) FROM people WHERE sex = 'M' AND age >= 65 AND age < 67 AND pay < 10"
"""An average of so few rows that there may be none, by what is known once they were counted."""


def test_no_door_counts_rows_for_a_price_that_cannot_be_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the threshold the plain question waits; with an error that cannot be paid nothing may be charged."""
    folder = declared(tmp_path / "people")
    (folder / "understudy.yml").write_text(DECLARED.replace("epsilon: 40", "epsilon: 1"))
    tiny = Fraction(1, 1000)
    configured = config(folder, listen=WITH_POSTGRES, approve_above=ApproveAbove(people=tiny, agents=tiny))
    [secret] = tokens(configured, "ada")
    with serving(configured) as service:
        house = House(service, (secret,))
        before, price = house.spent(), house.price(PAY, error=2, in_session=True)
        assert (price["affordable"], price["needs_approval"]) == (False, False)
        assert "`error` first" in price["hint"]
        status, told = house.client.ask(PAY, error=2, in_session=True)
        assert (status, told["code"]) == (402, "budget")
        assert "`error` first" in told["hint"]
        _, problem = Agent(service, secret).refused(
            "ask", table="people", question=PAY, error=2, in_session=True
        )
        assert problem["code"] == "budget"
        with us.connect(house.url, token=secret) as opened, pytest.raises(InsufficientBudgetError):
            opened.ask(PAY, error=2, in_session=True)
        monkeypatch.setenv("UNDERSTUDY_TOKEN", secret)
        close = ("ask", "--url", house.url, PAY, "--error", "2", "--in-session")
        for more in (("--dry-run",), (), ("--yes",)):
            assert "ask without --error first" in call(*close, *more, cwd=tmp_path, status=1).stderr
        with postgres(house) as connection, pytest.raises(psycopg.Error, match="this costs rho"):
            connection.execute(PAY)
        visitor = PageVisitor(ServedTown(service, Path(), {"ada": secret}), "ada")
        form = {"question": PAY, "error": "2", "shared": "1"}
        assert (
            "The budget cannot pay for it. Ask for a wider error"
            in visitor.post("/tables/people/price", form).words
        )
        told = visitor.post("/tables/people/ask", form)
        assert "Nothing was spent." in told.words
        assert (house.purchases(), house.spent()) == (0, before)
        assert house.client.ask(PAY)[0] == 202  # which counts the rows, and waits for a custodian


def test_every_door_says_what_was_charged_before_a_refusal(house: House, ada: Connection) -> None:
    before = house.spent()
    status, told = house.client.ask(FEW, error=20, in_session=True, request="few")
    assert (status, told["code"], told["currency"]) == (422, "refused-after-charge", "rho")
    assert told["charged"] == pytest.approx(house.spent() - before, rel=1e-6)
    assert f"rho {told['charged']:.4g} was charged for that" in told["detail"]
    [kept] = house.client("GET", "/v1/history")[1]["questions"]
    assert (kept["state"], kept["price"], kept["share"]) == ("refused", told["charged"], told["share"])
    again = house.client.ask(FEW, error=20, in_session=True, request="few")[1]
    assert again["code"] == "refused"
    assert house.client("GET", "/v1/history")[1]["questions"][0]["price"] == told["charged"]
    visitor = PageVisitor(ServedTown(house.service, Path(), {"ada": house.tokens[0]}), "ada")
    part = "of the whole budget; what was bought stays known"
    assert part in visitor.get(f"/asks/{kept['id']}").words
    for page in ("/history", "/tables/people/ask"):
        assert "of the budget" in row_of(visitor.get(page).text, kept["id"])
    others = [FEW.replace("pay < 10", f"pay >= {pay} AND pay < {pay + 10}") for pay in (20, 40, 60, 80)]
    form = {"question": others[0], "error": "20", "shared": "1"}
    shown = visitor.post("/tables/people/ask", form).words
    assert "was charged for that" in shown
    assert "Nothing was spent." not in shown
    before = house.spent()
    with pytest.raises(RefusedAfterChargeError) as refusal:
        ada.ask(others[1], error=20, in_session=True)
    assert refusal.value.charged == pytest.approx(house.spent() - before, rel=1e-6)
    detail, problem = Agent(house.service, house.tokens[0]).refused(
        "ask", table="people", question=others[2], error=20, in_session=True
    )
    assert "was charged for that" in detail
    assert problem["charged"] > 0
    with postgres(house, error=20) as connection, pytest.raises(psycopg.Error, match="was charged for that"):
        connection.execute(others[3])


def postgres(house: House, error: float = 2) -> psycopg.Connection[Any]:
    port = house.service.addresses["postgres"].port
    dsn = f"host=127.0.0.1 port={port} user=ada password={house.tokens[0]} dbname=understudy sslmode=disable"
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute(f"SET understudy.error = {error}")
    connection.execute("SET understudy.in_session = on")
    return connection


def row_of(text: str, id: str) -> str:
    """The row of a page's table that links to a question."""
    return next(row for row in text.split("<tr>") if f"/asks/{id}" in row)


@pytest.mark.parametrize("terms", [{}, {"error": 30}, {"error": 30, "in_session": True}])
def test_nothing_is_charged_beyond_what_was_agreed_to(house: House, ada: Connection, terms: Any) -> None:
    question = "count age < 18 and sex = F"
    price, before = ada.quote(question, **terms).cost, house.spent()
    with pytest.raises(PriceRoseError) as refusal:
        ada.ask(question, most=0.9 * price.amount, request="mine", **terms)
    assert isinstance(refusal.value, RefusedError)
    assert refusal.value.agreed == pytest.approx(0.9 * price.amount)
    assert house.spent() == before
    answer = ada.ask(question, most=price.amount, request="mine", **terms)
    assert 0 < answer.cost.units <= price.units
    assert ada.ask(question, most=0, request="mine", **terms).cost == answer.cost  # it was given before


@pytest.mark.parametrize("terms", [{}, {"error": 20}, {"error": 20, "in_session": True}])
def test_what_was_agreed_to_binds_questions_that_wait_for_approval(tmp_path: Path, terms: Any) -> None:
    small = Fraction(1, 10**6)
    above = ApproveAbove(people=small, agents=small)
    configured = config(declared(tmp_path / "people"), approve_above=above)
    [secret], [keeper] = tokens(configured, "ada"), tokens(configured, "cus", role="custodian")
    question = "count age < 18 and sex = F"
    with serving(configured) as service:
        house, custodian = House(service, (secret,)), Client(service, keeper)
        (price,), before = house.price(question, **terms)["cost"].values(), house.spent()
        status, told = house.client.ask(question, most=0.9 * price, request="less", **terms)
        assert (status, told["code"]) == (422, "price-rose")
        assert custodian("GET", "/approvals?state=waiting", door="admin")[1]["approvals"] == []
        assert house.client.ask(question, most=price, request="enough", **terms)[0] == 202
        [kept] = service.gate.approvals.waiting()
        assert kept.most == price
        assert custodian("POST", f"/approvals/{kept.id}", {"decision": "approve"}, door="admin")[0] == 200
        for _ in range(200):
            status, told = house.client.ask(question, most=price, request="enough", **terms)
            if status != 202:
                break
            sleep(0.1)
        assert status == 200
        assert 0 < house.spent() - before <= price * (1 + 1e-9)


@pytest.mark.parametrize("terms", [{"error": 20}, {"error": 20, "in_session": True}])
def test_an_approved_question_that_rose_above_what_was_agreed_to_is_not_asked(
    house: House, terms: Any
) -> None:
    gate, question = house.service.gate, "count age < 18 and sex = F"
    (price,) = house.price(question, **terms)["cost"].values()
    inquiry = Inquiry(table="people", question=question, request="r", most=0.95 * price, **terms)
    caller = Caller(analyst="ada", role="analyst", agent=False, read_only=False, token_id="none")
    asked = AskedBy(gate.table("people"), caller, inquiry, "r")
    approved = Approval(
        id="a", table="people", analyst="ada", agent=False, token_id="none", request="r", question=question,
        terms={}, currency="rho", price=price, share=0.5, why="", at=0.0, expires=1.0, state="approved",
        decided_by="cus", decided=0.0, reason="", most=0.95 * price,
    )  # fmt: skip
    before = house.spent()
    with pytest.raises(PriceRoseError):
        (gate.answering.bought if inquiry.in_session else gate.answering.direct)(asked, approved)
    assert house.spent() == before


def test_several_questions_are_priced_together(house: House, ada: Connection) -> None:
    questions = ["count by age", "count by sex, age", "count by pay", "count by pay, sex"]
    quotes = ada.table().quote_all(questions)
    together = [quote.together.units for quote in quotes if quote.together is not None]
    assert len(together) == 4
    assert together == sorted(together)
    assert together[0] == quotes[0].cost.units
    direct = ada.table().quote_all(questions, error=100)
    assert direct[-1].together is not None
    assert direct[-1].together.amount == pytest.approx(sum(quote.cost.amount for quote in direct))
    told = house.client("POST", PRICE, {"questions": ["count", "count by colour"]})[1]["prices"]
    assert all("together" not in one for one in told)


def test_the_command_keeps_to_the_price_it_told(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_TOKEN", house.tokens[0])
    asked = ("ask", "--url", house.url)
    close = (*asked, PAY, "--error", "2", "--in-session")
    assert "each number ± 2 (pay)" in call(*close, "--dry-run", cwd=tmp_path).stdout
    assert json.loads(call(*close, "--json", cwd=tmp_path).stdout)["answers"][0]["source"] == "measured"
    assert "add --url" in call("ask", "count", "--in-session", cwd=tmp_path, status=2).stderr
    several = (*asked, "count by age", "count by sex, age")
    assert "All of them, in one command: at most" in call(*several, "--dry-run", cwd=tmp_path).stdout
    plain = json.loads(call(*several, "--dry-run", "--json", cwd=tmp_path).stdout)
    [most] = plain[-1]["together"].values()
    told = json.loads(call(*several, "--json", cwd=tmp_path).stdout)
    assert 0 < sum(cost for one in told["answers"] for cost in one["cost"].values()) <= most
    monkeypatch.setattr(
        "understudy.cli.ask_server._together",
        lambda quotes: [type(quotes[0].cost)(quotes[0].cost.units) for _ in quotes],
    )
    dearer = (*asked, "count by pay", "count by pay, sex", "--yes")
    said = call(*dearer, cwd=tmp_path, status=1)
    assert "question 2 of 2 costs rho" in said.stderr
    assert "not answered: count by pay, sex" in said.stderr
    rest = json.loads(call(*dearer, "--json", cwd=tmp_path, status=1).stdout)
    assert rest["unanswered"] == ["count by pay, sex"]
    assert [sum(one["cost"].values()) for one in rest["answers"]] == [0]
