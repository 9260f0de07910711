"""The commands of a custodian: tokens, approvals, backups, and the start of a server."""

from __future__ import annotations

import json
import socket
import sys
import types
from pathlib import Path

import pytest

from people import write_project
from program import call
from understudy.cli import serve as serve_command
from understudy.privacy.cost import ZCDP
from understudy.project import open_project
from understudy.server.approvals import Approvals
from understudy.server.asked import Asked
from understudy.server.audit_log import AuditLog
from understudy.server.config import ServerConfig
from understudy.server.logins import Logins
from understudy.server.one_server import only_server
from understudy.server.store import ServerStore
from understudy.server.tokens import Caller, Tokens

ADA = Caller(analyst="ada", role="analyst", agent=True, read_only=False, token_id="t1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path, rows=50)


def test_a_token_is_printed_once_listed_and_revoked(folder):
    made = call("token", "new", "ada", "--doors", "http, mcp", "--agent", cwd=folder)
    secret = made.stdout.strip()
    assert secret.startswith("us_")
    assert "shown once" in made.stderr
    listed = call("token", "list", cwd=folder).stdout
    assert secret not in listed
    assert "http,mcp" in listed
    assert "agent" in listed
    (told,) = json.loads(call("token", "list", "--json", cwd=folder).stdout)["tokens"]
    with ServerStore(folder / "server.db") as store:
        assert Tokens(store).find(secret, door="mcp").agent
        assert Tokens(store).find(secret, door="pg") is None
    assert "revoked" in call("token", "revoke", told["id"], cwd=folder).stdout
    with ServerStore(folder / "server.db") as store:
        assert Tokens(store).find(secret, door="mcp") is None
        assert [entry.who.endswith(" (terminal)") for entry in AuditLog(store).entries()] == [True, True]
    for_machines = json.loads(call("token", "new", "bob", "--json", cwd=folder).stdout)
    assert for_machines["token"].startswith("us_")
    assert for_machines["state"] == "valid"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("token", "new", "ada", "--role", "king"), 2, "analyst, auditor, custodian"),
        (("token", "new", "ada", "--doors", "window"), 2, "http, pg, mcp"),
        (("token", "new", "ada", "--days", "-1"), 2, "more than 0"),
        (("token", "list"), 1, "understudy token new"),
        (("token", "revoke", "x"), 1, "--server"),
        (("approvals", "list"), 1, "--server"),
        (("approve", "x", "--server", "absent"), 1, "there is no"),
        (("deny", "x"), 2, "--reason"),
        (("server", "restore", "absent"), 1, "is no backup"),
        (("serve", "absent.yml"), 2, "no such file"),
        (("serve", "server.yml", "--project", "."), 2, "not both"),
        (("serve", "--project", "absent"), 2, "understudy demo"),
    ],
)
def test_mistakes_are_told_with_what_to_do(folder, arguments, status, told):
    assert told in call(*arguments, cwd=folder, status=status).stderr


def test_approvals_are_decided_at_a_terminal(folder):
    call("token", "new", "ada", cwd=folder)
    assert "Nothing waits" in call("approvals", "list", cwd=folder).stdout
    with ServerStore(folder / "server.db") as store:
        kept = Approvals(store)
        first, second = (
            kept.ask(ADA, "people", f"count {i}", f"r{i}", {}, ZCDP(10**13), 0.02 / (1 + 999 * i), "a paper")
            for i in range(2)
        )
    listed = call("approvals", "list", cwd=folder).stdout
    assert "ada (agent)" in listed
    assert " 2% " in listed
    assert "20 millionths" in listed
    assert "a paper" in listed
    assert "approved" in call("approve", first, cwd=folder).stdout
    assert "denied" in call("deny", second, "--reason", "too fine", cwd=folder).stdout
    assert "already" in call("approve", second, cwd=folder, status=2).stderr
    assert json.loads(call("approvals", "list", "--json", cwd=folder).stdout) == {"approvals": []}
    everything = json.loads(call("approvals", "list", "--all", "--json", cwd=folder).stdout)["approvals"]
    assert [(one["state"], one["reason"]) for one in everything] == [("approved", ""), ("denied", "too fine")]


def test_a_token_is_revoked_while_the_configuration_is_broken(folder):
    made = json.loads(call("token", "new", "ada", "--json", cwd=folder).stdout)
    (folder / "server.yml").write_text("tables: [")
    (folder / "understudy.yml").write_text("broken")
    call("token", "revoke", made["id"], cwd=folder)


def test_backup_and_restore_from_another_folder(folder, tmp_path):
    open_project(folder).ask("count", epsilon=0.1)
    call("token", "new", "ada", cwd=folder)
    told = call("server", "backup", "copy", cwd=folder).stdout
    assert "3 entries; it verifies" in told
    (folder / "understudy.ledger").unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    back = call("server", "restore", "../copy", "--server", str(folder), cwd=elsewhere).stdout
    assert "ledger of people: restored (3 entries" in back
    assert "server.db: kept" in back


def test_the_clock_can_be_accepted_again(folder, monkeypatch):
    call("token", "new", "ada", cwd=folder)
    with ServerStore(folder / "server.db", clock=lambda: 4e9) as store:
        store.now()
    assert "hours behind" in call("token", "list", cwd=folder).stderr
    assert json.loads(call("server", "clock", "--json", cwd=folder).stdout)["behind_s"] > 1e8
    assert "believed from now on" in call("server", "clock", "--accept", cwd=folder).stdout
    assert call("token", "list", cwd=folder).stderr == ""


def test_a_check_says_what_is_left_of_a_budget_that_rounds_to_zero_and_just_below_all(tmp_path):
    check = ("serve", "--check", "--port", str(_free_port()))
    write_project(tmp_path, rows=50, budget="{epsilon: 1.0e-8, delta: 1.0e-9}")
    assert "people: 2 attributes; 0% of the budget is left." in call(*check, cwd=tmp_path).stdout
    write_project(tmp_path, rows=50, budget="{epsilon: 1}")
    open_project(tmp_path).ask("count age < 18", epsilon=0.0004)
    assert "people: 2 attributes; 99.96% of the budget is left." in call(*check, cwd=tmp_path).stdout


def test_a_check_looks_at_everything_and_makes_nothing(folder):
    check = ("serve", "--check", "--port", str(_free_port()))
    told = call(*check, cwd=folder).stdout
    assert "people: 2 attributes; 100% of the budget is left." in told
    assert "never read through" in told
    assert told.endswith("The server can be started.\n")
    assert not (folder / "server.db").exists()
    call("token", "new", "ada", cwd=folder)
    with only_server(folder / "server.db"):
        assert "A server is running" in call(*check, cwd=folder).stdout
    with ServerStore(folder / "server.db") as store, store.writing() as tx:
        tx.execute("UPDATE audit SET who = 'nobody'")
    assert "tampered with" in call(*check, cwd=folder, status=1).stderr


def test_the_postgres_door_is_opened_by_the_file_or_an_option(folder, started):
    port = _free_port()
    (folder / "server.yml").write_text(f"tables: [.]\nlisten: {{postgres: 127.0.0.1:{port}}}\n")
    http = ("serve", "--port", str(_free_port()))
    call(*http, cwd=folder)
    (folder / "server.yml").unlink()
    call(*http, "--postgres", str(port), cwd=folder)
    assert [str(config.listen.postgres) for config in started] == [f"127.0.0.1:{port}"] * 2
    check = (*http, "--check", "--postgres", str(port))
    assert f"postgres 127.0.0.1:{port}" in call(*check, cwd=folder).stdout
    with socket.create_server(("127.0.0.1", port)):
        assert f"127.0.0.1:{port} cannot be listened on" in call(*check, cwd=folder, status=1).stderr


def test_certificates_that_do_not_fit_are_found_by_the_check(folder):
    (folder / "server.yml").write_text("tables: [.]\ntls: {certificate: a.pem, key: b.pem}\n")
    for name in ("a.pem", "b.pem"):
        (folder / name).write_text("-----BEGIN CERTIFICATE-----\n")
    assert "cannot be used together" in call("serve", "--check", cwd=folder, status=2).stderr


def test_missing_packages_are_named_with_the_command_that_installs_them(folder, monkeypatch):
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None if name == "fastapi" else object())
    told = call("serve", cwd=folder, status=2).stderr
    assert "(fastapi): pip install 'understudy[server]'" in told


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ServerConfig]:
    """The configurations that a server was started with; it announces itself and stops at once."""
    configs: list[ServerConfig] = []
    run = types.ModuleType("understudy.server.run")

    def serve(config: ServerConfig, *, announce) -> None:
        configs.append(config)
        announce("Serving people")
        announce("and nothing else")

    run.serve = serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "understudy.server.run", run)
    return configs


def test_one_project_is_served_with_links_that_open_once(folder, started):
    port = _free_port()
    told = call("serve", "--port", str(port), cwd=folder).stdout
    assert told.startswith("Serving people\n")
    assert told.count("/enter?link=us_") == 2
    assert str(started[0].listen.http) == f"127.0.0.1:{port}"
    assert f"http://127.0.0.1:{port + 1}/enter?link=" in told
    links = [line.split("link=")[1] for line in told.splitlines() if "link=" in line]
    with ServerStore(folder / "server.db") as store:
        logins = Logins(store, Tokens(store))
        callers = [logins.open_by_link(secret) for secret in links]
        assert [found and found[0].role for found in callers] == ["analyst", "custodian"]
        assert logins.open_by_link(links[0]) is None


def test_a_first_start_with_a_file_has_a_link_and_a_later_one_none(folder, started):
    port = _free_port()
    listen = f"{{http: 127.0.0.1:{port}, admin: 127.0.0.1:{port + 1}}}"
    (folder / "server.yml").write_text(f"tables: [.]\nlisten: {listen}\n")
    assert call("serve", cwd=folder).stdout.count("link=") == 1
    call("token", "new", "cy", "--role", "custodian", cwd=folder)
    assert call("serve", "server.yml", cwd=folder).stdout.count("link=") == 0
    assert [config.file for config in started] == [folder / "server.yml"] * 2


def test_a_taken_address_and_a_second_server_are_told_before_anything_opens(folder, started):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = str(other.getsockname()[1])
        call("serve", "--check", "--port", port, cwd=folder, status=1)
        told = call("serve", "--port", port, cwd=folder, status=1).stderr
        assert "cannot be listened on (Address already in use)" in told
        assert "--port" in told
    with only_server(folder / "server.db"):
        told = call("serve", "--port", str(_free_port()), cwd=folder, status=1).stderr
        assert "serves this state folder already" in told
    assert started == []


def _free_port() -> int:
    """A port that is free, and whose successor is."""
    for _ in range(100):
        with socket.socket() as trial, socket.socket() as second:
            trial.bind(("127.0.0.1", 0))
            port = trial.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
    raise AssertionError("no two free ports")


def test_old_questions_are_pruned_at_a_terminal(folder):
    call("token", "new", "ada", cwd=folder)
    with ServerStore(folder / "server.db") as store:
        Asked(store).begin("people", "ada", "count", "r", {})
        with store.writing() as tx:
            tx.execute("UPDATE asked SET at = 1.0")
    assert "at least 8 days" in call("server", "prune", "--older-than", "7", cwd=folder, status=2).stderr
    told = json.loads(call("server", "prune", "--older-than", "30", "--json", cwd=folder).stdout)
    assert (told["questions"], told["approvals"], told["logins"]) == (1, 0, 0)
    assert "Removed 0 questions" in call("server", "prune", "--older-than", "30", cwd=folder).stdout
