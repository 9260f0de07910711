"""What /openapi.json promises, tried by a program that makes requests of it: no reply is a server's failure."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from served import Client, config, people, serving, tokens


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    configured = config(people(tmp_path_factory.mktemp("described"), rows=200))
    [ada] = tokens(configured, "ada")
    [keeper] = tokens(configured, "cus", role="custodian")
    with serving(configured) as service:
        yield service, {"analyst": ada, "custodian": keeper}


def called(house: Any, role: str, calls: int) -> list[int]:
    """The statuses of so many calls, made by schemathesis from the description and sent with a token of a role."""
    service, secrets = house
    client = Client(service, secrets[role])
    _, document, _ = client("GET", "/openapi.json")
    described = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in described.get_all_operations()]
    statuses: list[int] = []

    @seed(1)
    @settings(
        max_examples=max(1, calls // len(operations)),
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def send(data: st.DataObject) -> None:
        for operation in operations:
            case = data.draw(operation.as_strategy())
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
            path = sent["url"].removeprefix("http://127.0.0.1")
            body = sent.get("json")
            try:
                raw = json.dumps(body).encode() if "json" in sent else b""
                status, told, headers = client(
                    sent["method"], path, raw=raw, headers={"content-type": "application/json"}
                )
            except (ValueError, UnicodeError):  # what no HTTP client can put into a line
                continue
            statuses.append(status)
            assert status < 500 or told["code"] in ("paused",), (path, body, told)
            if status >= 400:
                assert headers["content-type"] == "application/problem+json", (path, told)

    send()
    return statuses


def test_calls_made_of_the_description_are_answered_or_refused(house):
    logging.disable(logging.CRITICAL)
    try:
        statuses = called(house, "analyst", 20)
    finally:
        logging.disable(logging.NOTSET)
    assert len(statuses) > 10
    assert {200, 422} & set(statuses)


@pytest.mark.slow("twenty thousand calls")
@pytest.mark.parametrize("role", ["analyst", "custodian"])
def test_twenty_thousand_calls(house, role):
    assert len(called(house, role, 10_000)) > 9_000


def test_the_description_is_whole(house):
    _, document, _ = Client(house[0])("GET", "/openapi.json")
    assert document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], (method, path)
            for status, reply in operation["responses"].items():
                if status.startswith(("4", "5")):
                    assert "application/problem+json" in reply["content"], (method, path, status)
