"""What a server does beside answering, over HTTP: it scores submissions to a board, and has releases made."""

from __future__ import annotations

import time

import pytest

from served import Client, config, people, serving, tokens
from understudy.validity.board import create

ROWS = 400
LABELS = ["yes" if i * 7 % 10 < 4 else "no" for i in range(ROWS)]


def predictions(wrong: int) -> bytes:
    """A submission in which the first `wrong` predictions are not the labels."""
    told = ["no" if label == "yes" else "yes" for label in LABELS[:wrong]] + LABELS[wrong:]
    return b"id,prediction\n" + "".join(f"r{i},{value}\n" for i, value in enumerate(told)).encode()


def test_a_submission_is_scored_counted_and_shown_to_everybody(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"r{i},{label}\n" for i, label in enumerate(LABELS)))
    create(tmp_path / "credit.json", labels, id="id", label="label", queries=20)
    configured = config(people(tmp_path / "people"), boards=(tmp_path / "credit.json",))
    ada, bob = tokens(configured, "ada", "bob")
    place, csv = "/v1/boards/credit/submissions", {"content-type": "text/csv"}
    with serving(configured) as service:
        client = Client(service, ada)
        status, first, _ = client("POST", f"{place}?name=baseline", raw=predictions(100), headers=csv)
        assert (status, first["name"], first["left"]) == (201, "ada: baseline", 19)
        assert abs(first["value"] - 0.75) <= first["width"]
        edge = b"--edge\r\ncontent-disposition: form-data; name="
        form = b"".join(
            [
                edge + b'"name"\r\n\r\nforest\r\n',
                edge + b'"file"; filename="p.csv"\r\n\r\n' + predictions(0) + b"\r\n--edge--\r\n",
            ]
        )
        kind = {"content-type": "multipart/form-data; boundary=edge"}
        status, second, _ = Client(service, bob)("POST", place, raw=form, headers=kind)
        assert (status, second["name"], second["left"]) == (201, "bob: forest", 18)
        assert abs(second["value"] - 1) <= second["width"]
        for raw, headers, refused in (
            (b"id,prediction\nr0,yes\n", csv, 422),  # not all rows
            (b"\x00\xff", csv, 422),
            (predictions(0), {"content-type": "text/plain"}, 415),
        ):
            assert client("POST", place, raw=raw, headers=headers)[0] == refused
        named = b"id,pr\xe9diction\nr0,yes\n"
        status, told, _ = client("POST", place, raw=named, headers=csv)
        assert (status, told["code"]) == (422, "refused")
        assert "the submission is not written in UTF-8" in told["detail"]
        assert told["hint"] == "Save it as CSV in UTF-8, or as Parquet. Nothing was counted"
        status, told = client.get("/v1/boards/credit")
        assert (status, told["left"]) == (200, 18)  # what is malformed is not counted
        assert [line["name"] for line in told["standings"]] == ["ada: baseline", "bob: forest"]
        assert [board["name"] for board in client.get("/v1/boards")[1]["boards"]] == ["credit"]
    assert not list(configured.folder.glob(".upload-*"))


@pytest.mark.slow("a release in a process of its own, which compiles")
def test_a_release_is_made_by_a_child_process_paid_from_the_ledger_and_shown(tmp_path):
    configured = config(people(tmp_path, rows=300), releases=tmp_path / "releases")
    (ada,) = tokens(configured, "ada")
    (cy,) = tokens(configured, "cy", role="custodian")
    wanted = {
        "name": "first",
        "table": "people",
        "epsilon": 0.5,
        "workload": "all-1-way",
        "method": "residual",
    }
    with serving(configured) as service:
        custodian, analyst = Client(service, cy), Client(service, ada)
        left = analyst.get("/v1/tables/people/budget")[1]["left"]["amount"]
        status, begun, _ = custodian("POST", "/releases", wanted, door="admin")
        assert (status, begun["state"]) == (202, "running")
        assert custodian("POST", "/releases", wanted, door="admin")[0] == 409
        deadline = time.monotonic() + 120
        while (run := custodian.get("/releases", door="admin")[1]["runs"][0])["state"] == "running":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert run["state"] == "done", run
        assert analyst.get("/v1/tables/people/budget")[1]["left"]["amount"] < left
        (release,) = analyst.get("/v1/releases")[1]["releases"]
        assert (release["name"], release["method"]) == ("first", "residual")
        for file in release["files"]:
            assert analyst.get(f"/v1/releases/first/{file}")[0] == 200
        certificate = analyst.get("/v1/releases/first/certificate.json")[1]
        assert certificate["cost"] == release["cost"]
        acts = [entry.act for entry in service.gate.audit.entries(limit=50)]
        assert acts.count("start release") == 1


def test_a_release_that_is_refused_says_why_and_a_large_one_needs_a_yes(tmp_path):
    """One is too dear, one takes more than a quarter of the budget, and that one is made by who is sure."""
    configured = config(people(tmp_path, rows=300), releases=tmp_path / "releases")
    (cy,) = tokens(configured, "cy", role="custodian")
    given = {"table": "people", "workload": "1-way", "method": "residual", "rows": 0}
    with serving(configured) as service:
        custodian = Client(service, cy)
        whole = custodian.get("/v1/tables/people")[1]["budget"]["epsilon"]
        half = 0.5 * whole
        for name, more in (
            ("dear", {"epsilon": 10 * whole, "yes": True}),
            ("large", {"epsilon": half}),
            ("sure", {"epsilon": half, "yes": True, "method": "smalldb"}),
        ):
            assert custodian("POST", "/releases", {"name": name, **given, **more}, door="admin")[0] == 202
            deadline = time.monotonic() + 120
            while custodian.get("/releases", door="admin")[1]["runs"][-1]["state"] == "running":
                assert time.monotonic() < deadline
                time.sleep(0.1)
        runs = custodian.get("/releases", door="admin")[1]["runs"]
    assert [run["state"] for run in runs] == ["failed", "failed", "done"]
    said = {run["name"]: " ".join(run["said"].split()) for run in runs}
    assert "remains. Nothing was spent" in said["dear"]
    assert "Say --yes" in said["large"]
