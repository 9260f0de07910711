"""The word `noise` at every door: the same names, the same refusals, and answers whose error is certain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import understudy as us
from agents import Agent
from page_visitor import PageVisitor
from program import call
from served import WITH_POSTGRES, Client, config, people, serving, tokens
from served_town import ServedTown
from understudy.client.connect import Connection
from understudy.errors import DeclarationError, ParameterError, RefusedError
from understudy.privacy.noise_name import Noise
from understudy.server.check import check
from understudy.server.config import ServerConfig, SharedSession
from understudy.server.http.bodies import AskBody, PriceBody
from understudy.server.run import Service

RENYI = "{epsilon: 40, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
SURE: dict[str, Any] = {"error": 200, "noise": "bounded"}
QUESTION = "count by sex, area"


@dataclass(frozen=True)
class House:
    service: Service
    token: str

    @property
    def client(self) -> Client:
        return Client(self.service, self.token)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.service.addresses['http'].port}"

    @property
    def dsn(self) -> str:
        port = self.service.addresses["postgres"].port
        return f"host=127.0.0.1 port={port} user=ada password={self.token} dbname=understudy sslmode=disable"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    configured = config(people(tmp_path_factory.mktemp("noise"), budget=RENYI), listen=WITH_POSTGRES)
    token = tokens(configured, "ada")[0]
    with serving(configured) as service:
        yield House(service, token)


@pytest.fixture
def ada(house: House) -> Iterator[Connection]:
    with us.connect(house.url, token=house.token) as opened:
        yield opened


def test_http_answers_and_prices_with_bounded_noise(house: House) -> None:
    status, told = house.client.ask(QUESTION, **SURE)
    assert (status, told["answer"]["beta"]) == (200, 0)
    assert told["answer"]["noise"] == "bounded"
    assert {row["error"] for row in told["answer"]["rows"]} == {200}
    price = house.client("POST", "/v1/tables/people/price", {"question": QUESTION, **SURE})[1]
    assert (price["beta"], price["error"], price["noise"]) == (0, 200, "bounded")
    usual = house.client("POST", "/v1/tables/people/price", {"question": QUESTION, "error": 200})[1]
    assert usual["noise"] == "gaussian"


def test_a_request_is_another_one_with_another_noise_and_the_same_without_a_word(house: House) -> None:
    ask = house.client.ask
    first = ask("count sex = F", request="same", error=300)[1]
    assert ask("count sex = F", request="same", error=300, noise="auto")[1]["answer"] == first["answer"]
    assert ask("count sex = F", request="same", error=300, noise="bounded")[0] == 409


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"error": 100, "noise": "uniform"}, 422, "noise is auto, laplace, gaussian or bounded"),
        ({"noise": "bounded"}, 422, "price of its own"),
        ({"error": 100, "noise": 7}, 422, "'noise' must be a text"),
        ({"epsilon": 1, "noise": "bounded"}, 422, "no epsilon of its own"),
    ],
)
def test_http_refuses_what_has_no_meaning(house: House, given: dict[str, Any], code: int, words: str) -> None:
    status, told = house.client.ask(QUESTION, **given)
    assert status == code
    assert words in told["detail"]


def test_openapi_names_the_noises() -> None:
    for body in (AskBody, PriceBody):
        assert body.model_json_schema()["properties"]["noise"]["enum"] == [
            "auto",
            "laplace",
            "gaussian",
            "bounded",
        ]


def test_the_client_of_the_library_says_it_too(ada: Connection) -> None:
    answer, quote = ada.ask(QUESTION, **SURE), ada.quote(QUESTION, **SURE)
    assert (answer.beta, answer.noise, quote.beta, quote.noise) == (0, "bounded", 0, "bounded")
    assert [one.beta for one in ada.ask_all([QUESTION, "count by job"], **SURE)] == [0, 0]
    with pytest.raises(ParameterError, match="no epsilon of its own"):
        ada.ask(QUESTION, epsilon=1, noise="bounded")


def test_agents_say_it_too(house: House) -> None:
    agent = Agent(house.service, house.token)
    told = agent.call("ask", table="people", question=QUESTION, **SURE)
    assert (told["answer"]["beta"], told["answer"]["noise"]) == (0, "bounded")
    assert ", for sure" in told["reading"]
    price = agent.call("price", table="people", questions=[QUESTION], **SURE)["prices"][0]
    assert (price["noise"], price["beta"]) == ("bounded", 0)
    detail, _ = agent.refused("ask", table="people", question=QUESTION, error=100, noise="uniform")
    assert "auto, laplace, gaussian, bounded" in detail


def test_postgres_has_a_setting_for_it(house: House) -> None:
    statement = "SELECT sex, count(*) AS n FROM people GROUP BY sex"
    with psycopg.connect(house.dsn) as connection:
        assert connection.execute("SHOW understudy.noise").fetchall() == [("auto",)]
        connection.execute("SET understudy.error = '250'")
        connection.execute("SET understudy.noise = 'bounded'")
        told = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}").fetchall())
        assert "within ± 250 people, for sure (bounded noise)" in told
        assert "with error 250 and bounded noise" in told
        found = {row[0]: row[1] for row in connection.execute(statement).fetchall()}
        assert abs(found["F"] - 1000) <= 250  # for sure
        connection.commit()
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"understudy\.noise"):
            connection.execute("SET understudy.noise = 'uniform'")


def test_postgres_says_in_its_own_words_what_noise_by_name_needs(house: House) -> None:
    statement = "SELECT count(*) AS n FROM people"
    with psycopg.connect(house.dsn, autocommit=True) as connection:
        connection.execute("SET understudy.noise = 'bounded'")
        for text in (statement, f"EXPLAIN {statement}"):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="price of their own") as refused:
                connection.execute(text)
            hint = refused.value.diag.message_hint
            assert hint == "SET understudy.error = 100 (people), or RESET understudy.noise."
        connection.execute("SET understudy.error = 100")
        assert abs(connection.execute(statement).fetchall()[0][0] - 2000) <= 100  # for sure
        connection.execute("RESET understudy.error")
        connection.execute("RESET understudy.noise")
        connection.execute(f"EXPLAIN {statement}")


def test_the_page_has_a_box_for_it(house: House) -> None:
    visitor = PageVisitor(ServedTown(house.service, Path(), {"ada": house.token}), "ada")
    page = visitor.get("/tables/people/ask")
    assert "With this error for certain" in page.words
    form = {"question": QUESTION, "error": "200", "sure": "1"}
    priced = visitor.post("/tables/people/price", form)
    assert "within ± 200 people, for sure (bounded noise)" in priced.words
    told = visitor.post("/tables/people/ask", form)
    assert "for sure, since the noise is bounded" in told.words
    assert "noise=&#39;bounded&#39;" in told.text
    refused = visitor.post("/tables/people/ask", {"question": QUESTION, "sure": "1"})
    assert "price of its own" in refused.words


def test_the_command_says_it_to_a_server(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_TOKEN", house.token)
    terms = ["ask", QUESTION, "--url", house.url, "--error", "200", "--noise", "bounded"]
    assert "± 200 people for sure (bounded noise)" in call(*terms, "--dry-run", cwd=tmp_path).stdout
    assert "within the error for sure" in call(*terms, cwd=tmp_path).stdout


def test_a_server_names_the_noise_of_its_session(tmp_path: Path) -> None:
    people(tmp_path / "people", budget=RENYI)
    file = tmp_path / "server.yml"
    file.write_text("tables: [people]\nsession: {alpha: 0.1, noise: bounded}\n")
    assert ServerConfig.read(file).session.noise == "bounded"
    file.write_text(file.read_text().replace("noise: bounded", "noise: uniform"))
    with pytest.raises(DeclarationError, match="noise"):
        ServerConfig.read(file)


@pytest.mark.parametrize(("noise", "why"), [("bounded", "Rényi order"), ("laplace", "pure epsilon")])
@pytest.mark.parametrize("own", [False, True])
def test_a_server_does_not_start_with_noise_that_a_table_has_no_price_for(
    noise: Noise, why: str, tmp_path: Path, *, own: bool
) -> None:
    """Neither does its check pass; both name the table and the field of server.yml."""
    configured = config(people(tmp_path), session=SharedSession(noise=noise), own_sessions=own)
    told = rf"table people .*`session\.noise: {noise}`.*{why}"
    with pytest.raises(RefusedError, match=told), serving(configured):
        pass
    with pytest.raises(RefusedError, match=told):
        check(configured)
