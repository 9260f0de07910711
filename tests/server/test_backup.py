"""Backups of a server that runs, and restores that forget nothing that was spent."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from people import write_project
from understudy.errors import LedgerError, StoreError
from understudy.project import open_project
from understudy.server.audit_log import AuditLog
from understudy.server.backup import backup
from understudy.server.config import ServerConfig
from understudy.server.logins import Logins
from understudy.server.one_server import only_server
from understudy.server.restore import restore
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens


def ask(folder: Path, times: int = 1) -> None:
    project = open_project(folder)
    for _ in range(times):
        project.ask("count sex=F", epsilon=0.01)
    project.ledger.close()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerConfig:
    folder = tmp_path / "server"
    folder.mkdir()
    write_project(folder, rows=50, more="witness: witness.json\n")
    from understudy.declaration.file import read
    from understudy.ledger.declared import new_witness

    new_witness(read(folder / "understudy.yml"), base=folder)
    ask(folder, 2)
    found = ServerConfig.single(folder)
    with ServerStore(found.state) as store:
        Tokens(store).make("ada")
    return found


def states(told) -> dict[str, str]:
    return {found.what: found.state for found in told}


def entries(folder: Path) -> int:
    ledger = open_project(folder).ledger
    try:
        return ledger.end[0]
    finally:
        ledger.close()


def lose(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def damage(config) -> None:
    """The ledger says that nothing cost anything, and the server's state is no database."""
    with sqlite3.connect(config.folder / "understudy.ledger") as raw:
        raw.execute("UPDATE understudy_entry SET cost = 0")
    raw.close()
    lose(config.state)
    config.state.write_bytes(b"not a database" * 100)


def test_everything_comes_back_on_another_machine(config, tmp_path):
    listed = backup(config, tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (tmp_path / "copy").iterdir())
    assert listed["tables"]["people"]["entries"] == listed["tables"]["people"]["witness"]["entries"] == 5
    lose(config.folder / "understudy.ledger")
    lose(config.state)
    (config.folder / "witness.json").unlink()
    told = states(restore(config, tmp_path / "copy"))
    assert told == {"ledger of people": "restored", "witness of people": "restored", "server.db": "restored"}
    assert entries(config.folder) == 5
    ask(config.folder)
    with ServerStore(config.state) as store:
        assert [token.analyst for token in Tokens(store).all()] == ["ada"]
        assert AuditLog(store).verify() == []
        assert AuditLog(store).entries()[-1].act == "restore server.db"
    assert [path for path in config.folder.iterdir() if path.name.startswith(".restoring")] == []


def test_a_ledger_behind_its_witness_is_refused_and_nothing_is_touched(config, tmp_path):
    backup(config, tmp_path / "copy")
    ask(config.folder)
    lose(config.folder / "understudy.ledger")
    lose(config.state)
    with pytest.raises(LedgerError, match="has 5 entries, and its witness has seen 7"):
        restore(config, tmp_path / "copy")
    assert not (config.folder / "understudy.ledger").exists()
    assert not config.state.exists()


def test_a_backup_is_never_behind_its_own_witness_while_people_ask(config, tmp_path):
    asking = threading.Thread(target=ask, args=(config.folder, 25))
    asking.start()
    for i in range(4):
        table = backup(config, tmp_path / f"copy {i}")["tables"]["people"]
        assert table["witness"]["entries"] <= table["entries"]
    asking.join()


def test_what_is_sound_and_as_new_is_kept(config, tmp_path):
    backup(config, tmp_path / "copy")
    ask(config.folder)
    with ServerStore(config.state) as store:
        (token,) = Tokens(store).all()
        Tokens(store).revoke(token.id)
    told = states(restore(config, tmp_path / "copy"))
    assert told == {"ledger of people": "kept", "witness of people": "kept", "server.db": "kept"}
    assert entries(config.folder) == 7
    with ServerStore(config.state) as store:
        assert Tokens(store).get(token.id).revoked is not None


def test_an_older_ledger_is_replaced_and_kept_aside(config, tmp_path):
    ledger = config.folder / "understudy.ledger"
    shutil.copy(ledger, tmp_path / "old")
    ask(config.folder)
    backup(config, tmp_path / "copy")
    lose(ledger)
    shutil.copy(tmp_path / "old", ledger)
    restore(config, tmp_path / "copy")
    assert entries(config.folder) == 7
    assert (
        ledger.with_name("understudy.ledger.before-restore").read_bytes() == (tmp_path / "old").read_bytes()
    )


def test_a_damaged_ledger_and_a_damaged_state_are_replaced(config, tmp_path):
    backup(config, tmp_path / "copy")
    damage(config)
    assert set(states(restore(config, tmp_path / "copy")).values()) == {"restored", "kept"}
    assert entries(config.folder) == 5


@pytest.mark.parametrize("step", range(6))
def test_a_restore_that_was_stopped_is_finished_by_the_next(config, tmp_path, monkeypatch, step):
    backup(config, tmp_path / "copy")
    damage(config)
    (config.folder / "witness.json").unlink()
    left = [step]

    def stopping(rename):
        def renamed(*paths):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return rename(*paths)

        return renamed

    with monkeypatch.context() as patched:
        patched.setattr("os.rename", stopping(os.rename))
        with contextlib.suppress(KeyboardInterrupt):
            restore(config, tmp_path / "copy")
    restore(config, tmp_path / "copy")
    assert entries(config.folder) == 5
    ask(config.folder)
    with ServerStore(config.state) as store:
        assert [token.analyst for token in Tokens(store).all()] == ["ada"]
        assert AuditLog(store).verify() == []


def test_a_ledger_that_went_another_way_is_refused(config, tmp_path):
    backup(config, tmp_path / "copy")
    lose(config.folder / "understudy.ledger")
    (config.folder / "witness.json").unlink()
    write_project(config.folder, rows=50)
    ask(config.folder, 3)
    with pytest.raises(LedgerError, match="went another way"):
        restore(config, tmp_path / "copy")


def test_logins_do_not_come_back(config, tmp_path):
    with ServerStore(config.state) as store:
        tokens = Tokens(store)
        _, secret = tokens.make("bob")
        opened = Logins(store, tokens).open(secret)
        assert opened is not None
    backup(config, tmp_path / "copy")
    lose(config.state)
    restore(config, tmp_path / "copy")
    with ServerStore(config.state) as store:
        assert Logins(store, Tokens(store)).find(opened[1]) is None
        assert Tokens(store).find(secret, door="http") is not None


@pytest.mark.parametrize("name", ["ledger-1.db", "server.db", "backup.json"])
def test_a_backup_that_is_not_whole_is_refused(config, tmp_path, name):
    backup(config, tmp_path / "copy")
    lose(config.state)
    path = tmp_path / "copy" / name
    if name == "backup.json":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match=r"not whole|no backup"):
        restore(config, tmp_path / "copy")
    assert not config.state.exists()


def test_names_in_a_list_cannot_lead_elsewhere(config, tmp_path):
    backup(config, tmp_path / "copy")
    (tmp_path / "outside").write_text("x")
    listed = json.loads((tmp_path / "copy/backup.json").read_text())
    listed["files"]["../outside"] = "0"
    (tmp_path / "copy/backup.json").write_text(json.dumps(listed))
    with pytest.raises(StoreError, match="not whole"):
        restore(config, tmp_path / "copy")


def test_a_running_server_is_not_restored_into_and_folders_are_not_mixed(config, tmp_path):
    backup(config, tmp_path / "copy")
    with pytest.raises(StoreError, match="not empty"):
        backup(config, tmp_path / "copy")
    with only_server(config.state), pytest.raises(StoreError, match="serves this state folder"):
        restore(config, tmp_path / "copy")


def test_a_ledger_that_does_not_verify_is_no_backup(config, tmp_path):
    with sqlite3.connect(config.folder / "understudy.ledger") as raw:
        raw.execute("UPDATE understudy_entry SET question = 'another' WHERE number = 2")
    raw.close()
    with pytest.raises(LedgerError, match="does not verify"):
        backup(config, tmp_path / "copy")
    with pytest.raises(StoreError, match="no backup"):
        restore(config, tmp_path / "copy")


def test_one_file_of_two_tables_is_replaced_only_if_neither_is_newer(tmp_path):
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        write_project(folder, rows=50, more="ledger: ../both.ledger\n")
        text = (folder / "understudy.yml").read_text().replace("name: people", f"name: {name}")
        (folder / "understudy.yml").write_text(text)
        ask(folder)
    (tmp_path / "server.yml").write_text("tables: [a, b]\n")
    config = ServerConfig.read(tmp_path)
    listed = backup(config, tmp_path / "copy")
    assert [table["ledger"] for table in listed["tables"].values()] == ["ledger-1.db"] * 2
    ask(tmp_path / "a")
    with sqlite3.connect(tmp_path / "both.ledger") as raw:
        raw.execute("UPDATE understudy_entry SET cost = 0 WHERE ledger = 'b'")
    raw.close()
    with pytest.raises(LedgerError, match="that of 'a' is newer"):
        restore(config, tmp_path / "copy")


def test_what_was_never_asked_has_a_backup_too(tmp_path):
    write_project(tmp_path, rows=50)
    config = ServerConfig.single(tmp_path)
    listed = backup(config, tmp_path / "copy")
    assert listed["state"] is None
    assert listed["tables"]["people"]["entries"] == 0
    assert states(restore(config, tmp_path / "copy")) == {"ledger of people": "kept", "server.db": "absent"}


def test_a_ledger_on_postgres_is_left_to_postgres(tmp_path, monkeypatch):
    write_project(tmp_path, rows=50, more="ledger: postgresql://nowhere/books\n")
    config = ServerConfig.single(tmp_path)
    assert config.sqlite_ledgers == []
    assert backup(config, tmp_path / "copy")["tables"]["people"]["postgres"] is True
    (told, _) = restore(config, tmp_path / "copy")
    assert "Postgres" in told.why
