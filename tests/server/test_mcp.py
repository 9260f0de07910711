"""Agents at the gate: the tools over the protocol, with its own client and with plain messages."""

from __future__ import annotations

import ast
import asyncio
import json
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client as ProtocolClient
from mcp.client.streamable_http import streamable_http_client

import understudy.server.mcp
from agents import Agent
from served import Client, config, people, serving, tokens
from served_town import ServedTown, served_town
from understudy.percent import percent_of
from understudy.server.config import ApproveAbove, Rates
from understudy.server.mcp import tools
from understudy.server.mcp.arguments import checked
from understudy.server.mcp.tools import Toolbox
from understudy.server.problems import Problem


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A server where agents need approval for everything that costs more than a millionth of the budget."""
    configured = config(
        people(tmp_path_factory.mktemp("agents")),
        approve_above=ApproveAbove(people=Fraction(1), agents=Fraction(1, 10**6)),
    )
    secrets = {name: tokens(configured, name)[0] for name in ("ada", "ben")}
    secrets["bot"] = tokens(configured, "bot", agent=True, doors=("mcp",))[0]
    secrets["eve"] = tokens(configured, "eve", read_only=True)[0]
    secrets["carl"] = tokens(configured, "carl", role="custodian")[0]
    with serving(configured) as service:
        yield service, secrets


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with served_town(tmp_path_factory.mktemp("town"), rows=3000, alpha=Fraction(1, 10)) as served:
        yield served


@pytest.fixture
def ada(house):
    return Agent(house[0], house[1]["ada"])


# ---- with the protocol's own client


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")], ids=["new", "old"]
)
def test_the_protocols_own_client_uses_every_tool(town: ServedTown, mode, version):
    """The client checks every structured result against the schema that the tool declares."""
    calls = {
        "list_tables": {},
        "describe": {"table": "town"},
        "price": {"questions": ["count by sex", "count by colour"]},
        "ask": {"question": "count by sex"},
        "session_status": {},
        "history": {"limit": 3},
        "list_releases": {},
        "read_release": {"release": "2026-spring", "part": "answers", "marginal": "sex"},
        "ask_release": {"release": "2026-spring", "question": "count by sex"},
    }

    async def use() -> dict:
        headers = {"Authorization": f"Bearer {town.tokens['ben']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            ProtocolClient(
                streamable_http_client(f"{town.address()}/mcp", http_client=http), mode=mode
            ) as agent,
        ):
            assert agent.protocol_version == version
            assert "budget" in (agent.instructions or "")
            listed = (await agent.list_tools()).tools
            assert {tool.name for tool in listed} == set(calls)
            for tool in listed:
                spends = tool.name == "ask"
                assert tool.annotations is not None
                assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (
                    not spends,
                    True,
                )
                assert tool.output_schema is not None
            given = {name: await agent.call_tool(name, arguments) for name, arguments in calls.items()}
            assert not any(result.is_error for result in given.values())
            template = (await agent.list_resource_templates()).resource_templates[0].uri_template
            assert template == "understudy://{table}/declaration"
            uri = (await agent.list_resources()).resources[0].uri
            declared = json.loads((await agent.read_resource(uri)).contents[0].text)
            assert [one["name"] for one in declared["attributes"]][:2] == ["age", "sex"]
            prompt = (await agent.list_prompts()).prompts[0]
            page = (await agent.get_prompt(prompt.name, {"table": "town"})).messages[0].content.text
            assert "count by district" in page
            assert "smoker: false, true" in page
            return {name: result.structured_content for name, result in given.items()}

    told = asyncio.run(use())
    assert told["ask"]["state"] == "answered"
    answer = told["ask"]["answer"]
    assert [row["cell"] for row in answer["rows"]] == [["F"], ["M"], ["other"]]
    assert all(0 < row["error"] <= 300 for row in answer["rows"])
    assert answer["source"] in ("measured", "repeat")
    assert "within its error of the value" in told["ask"]["reading"]
    assert told["price"]["prices"][1]["problem"]["code"] == "question"
    assert told["list_releases"]["releases"][0]["name"] == "2026-spring"
    assert {row["marginal"] for row in told["read_release"]["rows"]} == {"sex"}
    assert [row["cell"] for row in told["ask_release"]["answer"]["rows"]] == [["F"], ["M"], ["other"]]
    assert "It was free." in told["ask_release"]["reading"]
    assert told["session_status"]["caller"] == {
        "analyst": "ben", "agent": False, "read_only": False, "approval_above": 0.02,
    }  # fmt: skip


# ---- questions


def test_an_answer_has_errors_a_source_and_its_price_as_a_part_of_the_budget(ada):
    first = ada.call("ask", question="count by area")
    share = first["answer"]["share"]
    assert (first["answer"]["source"], first["state"]) == ("measured", "answered")
    assert 0 < share < 1
    assert f"It cost {percent_of(share)} of the budget" in first["reading"]
    again = ada.call("ask", question="count by area")["answer"]
    assert (again["source"], again["share"]) == ("repeat", 0)
    price = ada.call("price", question="count by area")["prices"][0]
    assert price["free"]
    implied = ada.call("ask", question="count area = n")
    assert implied["answer"]["source"] == "implied"
    assert "It was free." in implied["reading"]
    table = ada.call("ask", question="SELECT area, count(*) AS n FROM people GROUP BY area")
    assert "between its low and its high" in table["reading"]
    assert table["answer"]["rows"][0][1].keys() == {"value", "low", "high", "discretisation"}


def test_an_answer_with_very_many_rows_is_cut_and_narrower_ones_are_free(ada, monkeypatch):
    monkeypatch.setattr(tools, "MOST_ROWS", 3)
    told = ada.call("ask", question="count by area, job")
    answer = told["answer"]
    assert (len(answer["rows"]), answer["left_out"]) == (3, 7)
    assert "Only 3 of 10 rows are listed" in told["reading"]
    (one,) = ada.call("history", id=told["id"])["questions"]
    assert (len(one["answer"]["rows"]), one["answer"]["left_out"]) == (3, 7)
    assert ada.call("ask", question="count area = w and job = true")["answer"]["share"] == 0
    rows = ada.call("ask", question="SELECT area, count(*) FROM people GROUP BY area")["answer"]
    assert (len(rows["rows"]), rows["left_out"]) == (3, 2)


def test_a_request_gets_the_same_answer_at_every_door_and_pays_once(house, ada):
    service, secrets = house
    given = ada.call("ask", question="count age < 18 by sex", request="twice")
    assert given["answer"]["source"] == "measured"
    assert ada.call("ask", question="count age < 18 by sex", request="twice") == given
    status, over_http = Client(service, secrets["ada"]).ask("count age < 18 by sex", request="twice")
    assert status == 200
    assert {name: value for name, value in given.items() if name != "reading"} == over_http
    words, problem = ada.refused("ask", question="count age < 65", request="twice")
    assert (problem["status"], "another question" in words) == (409, True)


def test_a_refusal_says_what_to_write_instead(ada):
    words, problem = ada.refused("ask", question="count sex = f")
    assert "'f' is not a declared value of sex" in words
    assert "Suggestions: F" in words
    assert problem["suggestions"][0] == "F"
    words, problem = ada.refused("price", question="count by colour")
    assert (problem["code"], "no attribute 'colour'" in words) == ("question", True)
    words, _ = ada.refused("ask", question="count", table="peoples")
    assert words == "There is no such table here. Tables are: people. Suggestions: people."
    words, _ = ada.refused("history", id="0" * 12)
    assert words == "There is no such question of yours. Your history lists them."
    assert ada.refused("ask", question="count", epsilon=1.0, rho=1.0)[1]["code"] == "parameter"


def test_money_that_is_not_there_is_told_in_numbers(house, ada):
    words, problem = ada.refused("ask", question="count by age, sex, area", epsilon=100.0)
    assert problem["status"] == 402
    assert problem["requested"] > problem["remaining"]
    assert "Nothing was spent" in words or "remain" in words


def test_a_read_only_token_gets_prices_and_free_answers(house, ada):
    ada.call("ask", question="count by area")
    eve = Agent(house[0], house[1]["eve"])
    assert eve.call("ask", question="count by area")["answer"]["share"] == 0
    assert not eve.call("price", question="count by age, area")["prices"][0]["free"]
    words, problem = eve.refused("ask", question="count by age, area")
    assert (problem["code"], "never pays" in words) == ("read-only", True)


def test_an_agents_dear_question_returns_an_id_and_never_waits(house):
    service, secrets = house
    bot = Agent(service, secrets["bot"])
    question = {"question": "count by age, sex", "error": 40.0, "why": "a pyramid"}
    assert bot.call("price", question=question["question"], error=40.0)["prices"][0]["needs_approval"]
    waiting = bot.call("ask", **question)
    assert (waiting["state"], "answer" in waiting) == ("waiting", False)
    assert waiting["id"] in waiting["reading"]
    assert bot.call("ask", **question)["id"] == waiting["id"], "the custodian is not asked twice"
    assert bot.call("history", id=waiting["id"])["questions"][0]["approval"]["state"] == "waiting"
    assert waiting["id"] in {one["id"] for one in bot.call("history", state="waiting")["questions"]}

    carl = Client(service, secrets["carl"])
    listed = carl.get("/approvals?state=waiting", door="admin")[1]["approvals"]
    mine = [one for one in listed if one["analyst"] == "bot"]
    assert [(one["agent"], one["why"]) for one in mine] == [(True, "a pyramid")]
    carl("POST", f"/approvals/{mine[0]['id']}", {"decision": "approve"}, door="admin")
    deadline = time.monotonic() + 20
    while (one := bot.call("history", id=waiting["id"])["questions"][0])["state"] == "waiting":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(one["answer"]["rows"]) == 9
    assert one["share"] > 1e-6


def test_a_denial_is_read_by_the_agent(house):
    service, secrets = house
    bot = Agent(service, secrets["bot"])
    question = {"question": "count by age, area", "error": 40.0, "request": "denied"}
    id = bot.call("ask", **question)["approval"]["id"]
    denied = {"decision": "deny", "reason": "ask by age alone"}
    Client(service, secrets["carl"])("POST", f"/approvals/{id}", denied, door="admin")
    assert "ask by age alone" in bot.refused("ask", **question)[0]


def test_analysts_see_their_own_history(house, ada):
    mine = ada.call("ask", question="count by area")
    words, problem = Agent(house[0], house[1]["ben"]).refused("history", id=mine["id"])
    assert (problem["status"], "no such question of yours" in words) == (404, True)
    page = ada.call("history", limit=1)
    assert len(page["questions"]) == 1
    assert ada.call("history", limit=1, after=page["next"])["questions"] != page["questions"]


@pytest.mark.parametrize(("own", "whose"), [(False, "anybody"), (True, "you")])
def test_instructions_say_whose_questions_are_free(tmp_path, own, whose):
    configured = config(people(tmp_path), own_sessions=own)
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        told = Agent(service, token).send(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )["result"]
        assert f"What {whose} asked before, and what follows from it, is free." in told["instructions"]


def test_one_call_is_one_request(tmp_path):
    """`session_status` reads three things of the gate, and the handshake counts as well."""
    configured = replace(config(people(tmp_path)), rates=Rates(requests=2, at_once=4, waiting=8))
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        agent = Agent(service, token)
        now = time.monotonic()
        service.gate.rates._clock = lambda: now
        agent.call("session_status")
        assert "result" in agent.send("tools/list")
        words, problem = agent.refused("session_status")
        assert (problem["status"], "Try again after 1 s." in words) == (429, True)
        error = agent.send("ping")["error"]
        assert (error["data"]["code"], "faster than 2 requests" in error["message"]) == ("rate", True)


def test_a_failure_tells_a_reference_and_the_log_no_question(house, ada, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("secret words")

    monkeypatch.setattr(house[0].gate, "describe", fail)
    words, problem = ada.refused("describe")
    assert "secret" not in words
    (record,) = [record for record in caplog.records if record.getMessage() == "failure"]
    assert problem["reference"] == record.reference
    assert "secret" not in str(vars(record))


def test_the_metrics_name_the_tool(house, ada):
    ada.call("list_tables")
    page = Client(house[0], house[1]["carl"])("GET", "/metrics", door="admin")[1].decode()
    assert 'route="/mcp list_tables"' in page


# ---- tables and releases


def test_long_attributes_are_cut_unless_they_are_asked_for(tmp_path):
    labels = [f"w{i:03}" for i in range(120)]
    more = f"  ward: {{type: category, values: {json.dumps(labels)}}}\n"
    folder = people(tmp_path, rows=50)
    (folder / "understudy.yml").write_text((folder / "understudy.yml").read_text() + more)
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text(
        "\n".join([lines[0] + ",ward", *(line + ",w001" for line in lines[1:])])
    )
    configured = config(folder)
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        agent = Agent(service, token)
        (ward,) = [one for one in agent.call("describe")["attributes"] if one["name"] == "ward"]
        assert (len(ward["values"]), len(ward["labels"]), ward["left_out"]) == (40, 40, ward["cells"] - 40)
        (whole,) = agent.call("describe", attribute="ward")["attributes"]
        assert whole["values"] == labels
        words, problem = agent.refused("describe", attribute="wards")
        assert (problem["suggestions"], "Attributes are: ward" in words) == (["ward"], True)


def test_a_release_is_read_in_parts_and_pages(town: ServedTown):
    agent = Agent(town.service, town.tokens["ada"])
    name = agent.call("list_releases")["releases"][0]["name"]
    certificate = agent.call("read_release", release=name)
    assert certificate["certificate"]["privacy"]["epsilon"] == 1
    assert certificate["left_out"] == []
    found, after = [], 0
    while after is not None:
        page = agent.call("read_release", release=name, part="answers", after=after, limit=50)
        found += page["rows"]
        after = page["next"]
    assert len(found) == page["total"] == certificate["certificate"]["workload"]["queries"]
    ages = agent.call("read_release", release=name, part="answers", marginal="age", limit=500)["rows"]
    assert ages == [row for row in found if row["marginal"] == "age"]
    total = agent.call("read_release", release=name, part="synthetic", limit=1)["total"]
    row = agent.call("read_release", release=name, part="synthetic", after=total - 1, limit=500)
    assert (len(row["rows"]), row["next"]) == (1, None)
    assert agent.refused("read_release", release=name, part="answers", marginal="nose")[1]["status"] == 404
    assert agent.refused("read_release", release="../town")[1]["status"] == 404
    assert agent.refused("read_release", release=name, part="synthetic", marginal="age")[1]["status"] == 422


def test_completion_knows_the_tables(ada):
    wanted = {"ref": {"type": "ref/prompt", "name": "how_to_ask"}}
    for typed, found in (("pe", ["people"]), ("x", [])):
        told = ada.send("completion/complete", **wanted, argument={"name": "table", "value": typed})
        assert told["result"]["completion"]["values"] == found


# ---- schemas


def test_schemas_are_schemas_and_inputs_use_only_what_is_checked(house):
    known = {
        "type", "description", "examples", "maxLength", "minLength", "enum", "minimum", "maximum",
        "exclusiveMinimum",
        "items", "minItems", "maxItems",
    }  # fmt: skip
    for tool in Toolbox(house[0].gate, house[0].services.releases).tools.values():
        Draft202012Validator.check_schema(tool.takes)
        Draft202012Validator.check_schema(tool.gives)
        for one in tool.takes["properties"].values():
            assert set(one) | set(one.get("items", {})) <= known
        bad: list = ["x" * 10_001, -1, 10**400, float("nan"), [], [1], {}, ["a"] * 51, True, "\ud800", 1.5]
        for name, one in tool.takes["properties"].items():
            needed = dict.fromkeys(tool.takes["required"], "x")
            for value in bad:
                given = needed | {name: value}
                if _fits(one, value):
                    assert checked(tool.name, tool.takes, given)[name] == value
                    continue
                with pytest.raises(Problem) as refused:
                    checked(tool.name, tool.takes, given)
                assert refused.value.status == 422
                json.dumps(refused.value.as_plain(), ensure_ascii=False).encode()


def _fits(schema, value) -> bool:
    """As JSON Schema has it, and more strictly: no half characters, no number without an end."""
    if value == "\ud800" or value != value or (schema["type"] == "number" and value == 10**400):
        return False
    return Draft202012Validator(schema).is_valid(value)


# ---- what is loaded, and when


def test_one_file_imports_the_protocol():
    """The package takes most of a second to load: a server that no agent calls does not load it."""
    server = Path(understudy.server.mcp.__file__).parent.parent
    slow = ("mcp", "mcp_types", "anyio", "httpx2")
    importing, at_start = set(), set()
    for path in server.rglob("*.py"):
        text = path.read_text()
        if not any(name in text for name in slow):
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            )
            if any(name.split(".")[0] in slow for name in names):
                importing.add(path.relative_to(server).as_posix())
            if "understudy.server.mcp.protocol" in names and node in tree.body:
                at_start.add(path.name)
    assert (importing, at_start) == ({"mcp/protocol.py"}, set())


def test_the_door_loads_the_protocol_for_a_token_only(tmp_path):
    configured = config(people(tmp_path, rows=50))
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        assert service.agents is not None
        assert Agent(service, "us_wrong").post({})[0] == 401
        assert Agent(service, token).post(raw=b"{")[0] == 400
        assert not service.agents.is_loaded
        Agent(service, token).call("list_tables")
        assert service.agents.is_loaded
