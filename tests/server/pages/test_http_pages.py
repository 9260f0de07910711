"""The pages by plain HTTP: who sees what, which forms are believed, cookies and headers."""

from __future__ import annotations

import html
import ipaddress
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from page_visitor import PageVisitor
from served import Client, config, people, serving, tokens
from served_town import ServedTown, served_town, write_town
from understudy.output import csv_text
from understudy.server.config import Rates, ServerConfig
from understudy.server.pages.door import ADMIN_PAGES, PAGES

ALL, ASKS, READS = ("ada", "eve", "olga", "carl"), ("ada", "eve"), ("olga", "carl")

VISIBLE: dict[str, tuple[str, ...]] = {
    "/": ALL,
    "/tables/town": ALL,
    "/tables/town/ask": ASKS,
    "/history": ALL,
    "/history.csv": ALL,
    "/releases": ALL,
    "/releases/2026-spring": ALL,
    "/boards": ALL,
    "/boards/chronic": ALL,
    "/ledger": READS,
    "/audit": READS,
    "/api": ALL,
}
"""The pages of the analysts' port, and who sees each."""

ADMIN = ("/", "/admin/tokens", "/admin/tables", "/admin/releases", "/admin/health")

FORMS: dict[str, tuple[str, ...]] = {
    "/tables/town/ask": ASKS,
    "/tables/town/price": ASKS,
    "/boards/chronic/submissions": ASKS,
}
ADMIN_FORMS = (
    "/admin/approvals/x",
    "/admin/tokens",
    "/admin/tokens/x/revoke",
    "/admin/tables/town/pause",
    "/admin/releases",
)


def test_the_tables_of_this_file_name_every_page() -> None:
    def told(pages, method):
        return {re.sub(r"\{\w+\}", "*", page.path) for page in pages if page.method == method}

    def named(paths):
        return {re.sub(r"/(town|chronic|2026-spring|x)(?=/|$)", "/*", path) for path in paths}

    assert told(PAGES, "GET") == named(VISIBLE) | {"/asks/*", "/asks/*/answer.csv"}
    assert told(PAGES, "POST") == named(FORMS)
    assert told(ADMIN_PAGES, "GET") == set(ADMIN)
    assert told(ADMIN_PAGES, "POST") == named(ADMIN_FORMS)


@pytest.fixture(scope="module")
def visitors(town: ServedTown) -> dict[tuple[str, str], PageVisitor]:
    found = {("", door): PageVisitor(town, door=door) for door in ("http", "admin")}
    for name in ALL:
        for door in ("http", "admin"):
            found[name, door] = PageVisitor(town, name, door=door)
    return found


@pytest.mark.parametrize("path", VISIBLE)
def test_who_sees_a_page(path: str, visitors: dict[tuple[str, str], PageVisitor]) -> None:
    for (name, door), visitor in visitors.items():
        if door == "admin":
            continue
        reply = visitor.get(path)
        if not name:
            assert (reply.status, reply.headers["location"][:6]) == (303, "/login")
        elif name in VISIBLE[path]:
            assert reply.status in (200, 303), (name, reply.words)
        else:
            assert reply.status == 403, name
            assert "does not see this page" in reply.words


@pytest.mark.parametrize("path", ADMIN)
def test_the_admin_port_is_the_custodians(path: str, visitors: dict[tuple[str, str], PageVisitor]) -> None:
    for (name, door), visitor in visitors.items():
        if door == "admin":
            status = visitor.get(path).status
            assert status == (200 if name == "carl" else 303 if not name else 403), name


@pytest.mark.parametrize("path", [*FORMS, *ADMIN_FORMS])
def test_who_may_send_a_form(path: str, visitors: dict[tuple[str, str], PageVisitor]) -> None:
    door = "http" if path in FORMS else "admin"
    may = FORMS.get(path, ("carl",))
    for (name, at), visitor in visitors.items():
        if at != door:
            continue
        reply = visitor.post(path, {}, token=bool(name) and (door == "http" or name == "carl"))
        if not name:
            assert reply.status == 401
        elif name not in may:
            assert reply.status == 403, name
        else:
            assert reply.status in (200, 404, 422), (name, reply.words)


def test_forms_from_elsewhere_are_refused_and_nothing_is_spent(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    before = town.client("ada").get("/v1/tables/town/budget")[1]
    asked = {"question": "count by tenure, health", "error": "90"}
    for site in ("cross-site", "same-site", "none", None):
        reply = ada.post("/tables/town/ask", asked, site=site)
        assert reply.status == 403
        assert "did not come from a page of this server" in reply.words
    for token in (
        {},
        {"form_token": ""},
        {"form_token": "0" * 36},
        {"form_token": PageVisitor(town, "ben").form_token()},
    ):
        reply = ada.post("/tables/town/ask", asked | token, token=False)
        assert reply.status == 403
    assert ada.post("/logout", {}, token=False).status == 403
    assert town.client("ada").get("/v1/tables/town/budget")[1] == before
    assert ada.get("/history").status == 200


def test_a_form_that_is_no_form_is_refused(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    assert ada.post("/tables/town/price", {}, **{"content-type": "application/json"}).status == 415
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert ada.post("/boards/chronic/submissions", {}, **broken).status in (400, 403)
    many = [(f"field{n}", "") for n in range(100)]
    assert ada.post("/tables/town/price", many).status in (200, 400)


def test_what_a_price_is_refused_for_is_whole_sentences(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    words = " ".join(ada.post("/tables/town/price", {"question": "count ages < 30"}).words.split())
    assert re.search(r"\. (\S.*[^.]\. )?Try age\b", words), words
    assert "may cut numbers, dates and times anywhere" in ada.get("/tables/town").words


@pytest.mark.parametrize(("own", "whose"), [(False, "the shared"), (True, "your own")])
def test_the_page_says_whose_session_it_asks_in(tmp_path: Path, *, own: bool, whose: str) -> None:
    configured = replace(write_town(tmp_path, rows=300, release=False), own_sessions=own)
    made = {"ada": tokens(configured, "ada")[0]}
    with serving(configured) as service:
        words = PageVisitor(ServedTown(service, tmp_path, made), "ada").get("/tables/town/ask").words
        assert f"Empty: asked in {whose} session" in words
        assert f"Keep this error in {whose} session" in words
        assert ("what anybody bought is free for everybody" in words) is not own


def test_a_submission_that_cannot_be_read_is_refused_on_its_page(town: ServedTown) -> None:
    reply = PageVisitor(town, "ada").upload("/boards/chronic/submissions", b"id,pr\xe9d\n1,J\n")
    assert reply.status == 422
    assert "the submission is not written in UTF-8" in reply.words
    assert "Save it as CSV in UTF-8" in reply.words
    assert "The submission was not counted." in reply.words


# ---- cookies and headers


def test_the_cookie_on_loopback(town: ServedTown) -> None:
    nobody = PageVisitor(town)
    reply = nobody.post("/login", {"token": town.tokens["ada"]}, token=False)
    cookie = reply.headers["set-cookie"].lower()
    assert cookie.startswith("understudy=")
    assert {"httponly", "path=/", "samesite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert "domain" not in cookie
    assert "secure" not in cookie


def test_the_cookie_behind_a_proxy_is_bound_to_host_and_encryption(tmp_path: Path) -> None:
    with served_town(tmp_path, rows=200, release=False) as plain:
        folder, made = plain.folder, plain.tokens
        configured: ServerConfig = plain.service.gate.config
    encrypted = replace(configured, behind=(ipaddress.ip_network("127.0.0.1/32"),))
    with serving(encrypted) as service:
        visitor = PageVisitor(ServedTown(service, folder, made))
        reply = visitor.post("/login", {"token": made["ada"]}, token=False, **{"x-forwarded-proto": "https"})
        cookie = reply.headers["set-cookie"]
        assert cookie.startswith("__Host-understudy=")
        assert "; Secure" in cookie
        assert "strict-transport-security" in reply.headers
        assert visitor.get("/history").status == 200
        # Whoever can speak unencrypted in the server's name could set a cookie without the prefix.
        visitor.cookies = {"understudy": visitor.cookies["__Host-understudy"]}
        assert visitor.get("/history").status == 303


def test_two_ports_have_two_logins(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    carl = PageVisitor(town, "carl", door="admin")
    both = ada.cookies | carl.cookies
    assert len(both) == 2
    ada.cookies = carl.cookies = both
    assert "ada" in ada.get("/history").words
    assert carl.get("/").status == 200
    # Without a login of its own a port takes the other's: a custodian reads the ledger, an analyst cannot decide.
    ada.cookies = {name: value for name, value in both.items() if name.endswith("-admin")}
    assert ada.get("/ledger").status == 200
    carl.cookies = {name: value for name, value in both.items() if not name.endswith("-admin")}
    assert carl.get("/").status == 303


@pytest.mark.parametrize("path", [*VISIBLE, "/nothing", "/login", "/asks/nothing", "/tables/nothing"])
def test_what_every_page_carries(path: str, visitors: dict[tuple[str, str], PageVisitor]) -> None:
    reply = visitors["olga" if path in ("/ledger", "/audit") else "ada", "http"].get(path)
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in reply.headers
    assert not reply.foreign


def test_static_files_are_kept_until_they_change(town: ServedTown) -> None:
    nobody = PageVisitor(town)
    address = re.findall(r'href="(/static/page\.css\?\w+)"', nobody.get("/login").text)[0]
    reply = nobody.get(address)
    assert reply.status == 200
    assert "immutable" in reply.headers["cache-control"]
    assert "--ink" in reply.text
    assert nobody.get("/static/../door.py").status == 404
    assert nobody.get("/static/base.html").status == 404


def test_a_report_is_in_a_sandbox(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    page = ada.get("/releases/2026-spring")
    frame = re.findall(r'<iframe[^>]*src="([^"]*)" sandbox title', page.text)
    report = ada.get(frame[0])
    policy = report.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert report.headers["x-frame-options"] == "SAMEORIGIN"


# ---- logging in and out


def test_a_link_logs_in_once_and_looking_at_it_does_not_use_it(town: ServedTown) -> None:
    _, secret = town.service.gate.tokens.make_link()
    first = PageVisitor(town, door="admin")
    for _ in range(2):
        shown = first.get(f"/enter?link={secret}")
        assert "once" in shown.words
        assert "set-cookie" not in shown.headers
    assert first.post("/login", {"link": secret}, token=False).status == 303
    assert first.get("/").status == 200
    second = PageVisitor(town, door="admin")
    again = second.post("/login", {"link": secret}, token=False)
    assert again.status == 401
    assert "used already" in again.words
    assert not second.cookies


def test_wrong_tokens(town: ServedTown) -> None:
    nobody = PageVisitor(town)
    for wrong in ("", "nonsense", town.tokens["ada"][:-1], "us_" + "x" * 5000):
        reply = nobody.post("/login", {"token": wrong}, token=False)
        assert reply.status in (401, 429)
        assert not nobody.cookies


@pytest.mark.parametrize(
    ("wanted", "goes"),
    [
        ("/history?state=answered", "/history?state=answered"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/a\\..\\evil", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_after_the_login_nobody_is_sent_elsewhere(town: ServedTown, wanted: str, goes: str) -> None:
    nobody = PageVisitor(town)
    reply = nobody.post("/login", {"token": town.tokens["ada"], "next": wanted}, token=False)
    assert reply.headers["location"] == goes


def test_logging_out_ends_the_login_at_the_server(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    held = dict(ada.cookies)
    assert ada.post("/logout", {}).status == 303
    assert not ada.cookies
    ada.cookies = held
    assert ada.get("/history").status == 303


# ---- what is whose


def test_an_analyst_sees_nothing_of_another(town: ServedTown) -> None:
    ada, ben = PageVisitor(town, "ada"), PageVisitor(town, "ben")
    bens = town.client("ben").get("/v1/history")[1]["questions"]
    assert bens
    for one in bens:
        for path in (f"/asks/{one['id']}", f"/asks/{one['id']}/answer.csv"):
            assert ben.get(path).status in (
                (200,) if one["state"] == "answered" or "csv" not in path else (404,)
            )
            assert ada.get(path).status == 404
    assert "share smoker" not in ada.get("/history").text
    assert "share smoker" not in ada.get("/history.csv").text
    assert ada.get("/history?analyst=ben").status == 403
    assert "ageing report" not in ada.get("/history").text
    assert "share smoker" in PageVisitor(town, "olga").get("/history?analyst=ben").text


def test_prices_are_parts_of_the_budget_and_never_powers_of_ten(town: ServedTown) -> None:
    ada, olga, carl = (
        PageVisitor(town, "ada"),
        PageVisitor(town, "olga"),
        PageVisitor(town, "carl", door="admin"),
    )
    pages = [ada.get(path) for path in VISIBLE if "ada" in VISIBLE[path] and "csv" not in path]
    pages += [olga.get(path) for path in ("/ledger", "/audit", "/history")]
    pages += [carl.get(path) for path in ADMIN]
    for shown in pages:
        words = re.sub(r"\b[0-9a-f]{12,}\b", "a hash", shown.words)
        assert not re.search(r"\b\d(\.\d+)?e-?\d+\b", words), words
    asking = ada.get("/tables/town/ask").words
    assert re.search(r"[\d.]+% left ?: about [\d,]+ more counts within ± \d+ people", asking)


# ---- asking without a script


def test_asking_without_a_script(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    page = ada.get("/tables/town/ask")
    form = {"nonce": page.field("nonce"), "question": "count by commute"}
    price = ada.post("/tables/town/price", form)
    assert "of the budget" in price.words
    assert "count by commute" in price.text
    before = town.client("ada").get("/v1/tables/town/budget")[1]["left"]["amount"]
    first = ada.post("/tables/town/ask", form)
    assert first.status == 200
    assert "bicycle" in first.words
    assert "measured" in first.words
    paid = town.client("ada").get("/v1/tables/town/budget")[1]["left"]["amount"]
    assert paid < before
    # The same form again, as after loading the page again: the same numbers, and nothing more is paid.
    second = ada.post("/tables/town/ask", form)
    numbers = re.findall(r'<td class="number">([\d,]+)</td>', first.text)
    assert numbers
    assert re.findall(r'<td class="number">([\d,]+)</td>', second.text) == numbers
    assert town.client("ada").get("/v1/tables/town/budget")[1]["left"]["amount"] == paid
    # Another question in the same form, as after going back: no conflict of request ids.
    assert ada.post("/tables/town/ask", form | {"question": "count by sex"}).status == 200


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"question": ""}, 422, "empty"),
        ({"question": "count by colour"}, 422, "no attribute"),
        ({"question": "count", "error": "many"}, 422, "no number"),
        ({"question": "count", "error": "-1"}, 422, "positive"),
        ({"question": "x" * 10_001}, 413, "characters"),
        ({"question": "SELECT * FROM town"}, 422, ""),
    ],
)
def test_refusals_are_on_the_page_and_say_what_to_do(
    town: ServedTown, fields: dict[str, str], status: int, said: str
) -> None:
    reply = PageVisitor(town, "ada").post("/tables/town/ask", fields)
    assert reply.status == status
    assert said in reply.words
    assert "What to do:" in reply.words
    assert "Nothing was spent." in reply.words


def test_what_needs_an_approval_waits_and_its_decision_is_read(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    reply = ada.post(
        "/tables/town/ask", {"question": "count by age, income", "error": "20", "why": "<b>why</b>"}
    )
    assert reply.status == 202
    assert "A custodian has to approve" in reply.words
    address = re.findall(r'href="(/asks/\w+)"', reply.text)[0]
    carl = PageVisitor(town, "carl", door="admin")
    waiting = carl.get("/")
    assert "&lt;b&gt;why&lt;/b&gt;" in waiting.text
    id = re.findall(r'action="/admin/approvals/(\w+)"', waiting.text)[-1]
    refused = carl.post(f"/admin/approvals/{id}", {"decision": "deny", "reason": " "})
    assert refused.status == 422
    assert "reason" in refused.words
    assert carl.post(f"/admin/approvals/{id}", {"decision": "deny", "reason": "not <i>now</i>"}).status == 303
    shown = ada.get(address)
    assert "not <i>now</i>" in html.unescape(shown.text)
    assert "<i>now" not in shown.text
    assert "denied" in ada.get("/history").words
    assert carl.post(f"/admin/approvals/{id}", {"decision": "approve"}).status == 422


# ---- the custodian's pages


def test_a_token_is_shown_once_and_ends_when_it_is_revoked(town: ServedTown) -> None:
    carl = PageVisitor(town, "carl", door="admin")
    fields = [("analyst", "dora"), ("role", "analyst"), ("days", "5"), ("doors", "http")]
    made = carl.post("/admin/tokens", fields)
    secret = re.findall(r'aria-label="The token"><code>([^<]+)', made.text)[0]
    assert secret not in carl.get("/admin/tokens").text
    assert Client(town.service, secret).get("/v1/tables")[0] == 200
    id = re.findall(r"/admin/tokens/(\w+)/revoke\">.{0,400}?of dora", made.text, re.DOTALL)[-1]
    assert carl.post(f"/admin/tokens/{id}/revoke", {}).status == 303
    found = next(one for one in town.service.gate.tokens.all() if one.id == id)
    assert found.revoked is not None
    for wrong in (
        [("analyst", "<script>"), *fields[1:]],
        fields[:2],
        [*fields[:2], ("days", "x"), ("doors", "http")],
    ):
        refused = carl.post("/admin/tokens", wrong)
        assert refused.status == 422
        assert 'class="banner bad"' in refused.text


def test_a_table_is_paused_and_resumed(town: ServedTown) -> None:
    carl, ada = PageVisitor(town, "carl", door="admin"), PageVisitor(town, "ada")
    assert carl.post("/admin/tables/town/pause", {"act": "pause", "reason": "<i>audit</i>"}).status == 303
    try:
        assert "&lt;i&gt;audit" in ada.get("/tables/town").text
        refused = ada.post("/tables/town/ask", {"question": "count by hours"})
        assert refused.status == 503
        assert "paused" in refused.words
    finally:
        assert carl.post("/admin/tables/town/pause", {"act": "resume"}).status == 303
    assert carl.post("/admin/tables/town/pause", {"act": "reload"}).status == 303
    assert carl.post("/admin/tables/town/pause", {"act": "?"}).status == 422


@pytest.mark.parametrize("part", ["", "-1", "200", "nan", "x"])
def test_a_release_that_makes_no_sense_is_not_started(town: ServedTown, part: str) -> None:
    carl = PageVisitor(town, "carl", door="admin")
    fields = {"name": "odd", "table": "town", "part": part, "workload": "all-1-way", "method": "auto"}
    assert carl.post("/admin/releases", fields).status == 422
    assert carl.post("/admin/releases", fields | {"part": "1", "method": "; rm"}).status == 422
    assert carl.post("/admin/releases", fields | {"part": "1", "name": "../x"}).status == 422


# ---- files and failures


def test_every_cell_that_is_offered_is_a_question(town: ServedTown) -> None:
    text = PageVisitor(town, "ada").get("/tables/town").text
    offered = [html.unescape(words) for words in re.findall(r'data-insert="([^"]*)"', text)]
    questions = [words if words.startswith("count") else f"count {words}" for words in offered]
    assert len(questions) > 150
    for start in range(0, len(questions), 50):
        asked = {"questions": questions[start : start + 50]}
        prices = town.client("ada")("POST", "/v1/tables/town/price", asked)[1]["prices"]
        assert not [price for price in prices if "problem" in price]


def test_csv_files_hold_everything_and_no_formula(town: ServedTown) -> None:
    ada = PageVisitor(town, "ada")
    reply = ada.post("/tables/town/ask", {"question": "=1+1"})
    assert reply.status == 422
    answer = town.client("ada").ask("count by education", "town")[1]
    found = ada.get(f"/asks/{answer['id']}/answer.csv")
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    lines = found.text.split("\r\n")
    assert lines[0] == "education,people,people low,people high"
    values = [row["value"] for row in answer["answer"]["rows"]]
    assert [float(line.split(",")[1]) for line in lines[1:-1]] == values
    history = ada.get("/history.csv").text
    assert "count by education" in history
    assert csv_text("=cmd()") == "'=cmd()"


def test_a_failure_is_a_page_without_a_trace(town: ServedTown, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(town.service.gate, "describe", broken)
    reply = PageVisitor(town, "ada").get("/tables/town")
    assert reply.status == 500
    assert "The server failed" in reply.words
    assert "log" in reply.words
    assert "secret" not in reply.text
    assert "Traceback" not in reply.text


def test_empty_pages_say_what_to_do(tmp_path: Path) -> None:
    folder = people(tmp_path / "people", rows=50)
    configured = config(folder)
    ada, carl = tokens(configured, "ada")[0], tokens(configured, "carl", role="custodian")[0]
    with serving(configured) as service:
        empty = ServedTown(service, folder, {"ada": ada, "carl": carl})
        visitor, custodian = PageVisitor(empty, "ada"), PageVisitor(empty, "carl")
        admin = PageVisitor(empty, "carl", door="admin")
        for shown in (
            visitor.get("/tables/people/ask"), visitor.get("/history"), visitor.get("/releases"),
            visitor.get("/boards"), custodian.get("/ledger"), custodian.get("/ledger?verify=1"), admin.get("/"),
            admin.get("/admin/tables"), admin.get("/admin/releases"),
        ):  # fmt: skip
            assert 'class="empty"' in shown.text
            assert shown.status == 200


def test_a_program_gets_json_where_there_is_no_page(town: ServedTown) -> None:
    status, told, _ = town.client("ada")("GET", "/nothing")
    assert (status, told["code"]) == (404, "no-address")
    assert json.dumps(told)


def test_several_tables_are_chosen_on_the_page(tmp_path: Path) -> None:
    town = write_town(tmp_path, rows=500, release=False)
    other = people(tmp_path / "people", rows=500)
    configured = replace(town, tables={**town.tables, "people": other / "understudy.yml"})
    made = {"ada": tokens(configured, "ada")[0], "carl": tokens(configured, "carl", role="custodian")[0]}
    with serving(configured) as service:
        served = ServedTown(service, tmp_path, made)
        ada, carl = PageVisitor(served, "ada"), PageVisitor(served, "carl")
        assert ada.get("/").headers["location"] == "/tables/town/ask"
        for visitor, path, to in (
            (ada, "/tables/town/ask", "/tables/people/ask"),
            (ada, "/tables/people", "/tables/town"),
            (carl, "/ledger?table=people", "/ledger?table=town"),
        ):
            shown = visitor.get(path)
            assert shown.status == 200
            assert f'href="{to}"' in shown.text
        assert ada.post("/tables/people/ask", {"question": "count by sex"}).status in (200, 202)
        assert "count by sex" in ada.get("/history?table=people").text
        assert "count by sex" not in ada.get("/history?table=town").text
        assert ada.get("/history?table=nothing").status == 404


def test_a_page_is_one_request_however_much_it_reads(tmp_path: Path) -> None:
    folder = people(tmp_path / "people", rows=500)
    configured = config(folder, rates=Rates(requests=0.02, at_once=4, waiting=64))
    made = {"ada": tokens(configured, "ada")[0]}
    with serving(configured) as service:
        ada = PageVisitor(ServedTown(service, folder, made), "ada")
        assert ada.get("/tables/people/ask").status == 200
        refused = ada.get("/tables/people/ask")
        assert refused.status == 429
        assert "retry-after" in refused.headers
        assert "What to do" in refused.words
