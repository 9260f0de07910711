"""What only a server does: connections that die, settings that lose commits, passwords in messages."""

from __future__ import annotations

import time

import psycopg
import pytest

from ledger.durable import charge, opened
from understudy.errors import LedgerError
from understudy.ledger.database import Database


def test_an_idle_connection_that_died_is_replaced(postgres):
    ledger = opened(postgres)
    charge(ledger)
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    charge(ledger)
    assert ledger.spent.amount == 0.2
    ledger.close()


def reloaded(server: psycopg.Connection, fsync: str) -> None:
    server.execute("SELECT pg_reload_conf()")
    for _ in range(500):
        if server.execute("SHOW fsync").fetchone() == (fsync,):
            return
        time.sleep(0.02)
    raise AssertionError("the server did not reload its settings")


def test_a_server_that_forgets_is_refused(postgres):
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as server:
        assert server.execute("SHOW fsync").fetchone() == ("on",)
        server.execute("ALTER SYSTEM SET fsync = off")
        try:
            reloaded(server, "off")
            with pytest.raises(LedgerError, match="fsync off"):
                opened(postgres)
        finally:
            server.execute("ALTER SYSTEM RESET fsync")
            reloaded(server, "on")


def test_commits_are_synchronous_whatever_the_server_s_default(postgres):
    hasty = postgres.update_query_dict({"options": postgres.query["options"] + " -csynchronous_commit=off"})
    database = Database(hasty)
    with database.reading() as tx:
        assert tx.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
    database.close()


def test_no_message_holds_a_password(postgres_server):
    closed = postgres_server.set(port=1, password="hunter2")
    with pytest.raises(LedgerError) as refused:
        opened(closed)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_an_advisory_lock_of_anybody_hinders_nobody(postgres):
    """Any role may take any advisory lock: a ledger that waited for one could be stopped by all."""
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (0x756E646572737464,))
        ledger = opened(postgres, timeout=1.0)
        charge(ledger)
        ledger.close()
        opened(postgres, timeout=1.0).close()


def test_a_lock_on_the_tables_ends_in_words(postgres):
    ledger = opened(postgres)
    charge(ledger)
    ledger.close()
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as other:
        other.execute("LOCK TABLE understudy_schema IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match=r"locked for too long by another session .*pg_locks"):
            opened(postgres, timeout=0.3)
    opened(postgres).close()


def test_a_role_that_may_only_read_cannot_stop_a_ledger(postgres):
    ledger = opened(postgres, timeout=1.0)
    charge(ledger)
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as other:
        schema = other.execute("SELECT current_schema()").fetchone()[0]
        role = f"reader_of_{schema}"
        other.execute(f"CREATE ROLE {role}")
        other.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        other.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        other.commit()
        other.execute(f"SET ROLE {role}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("LOCK TABLE understudy_schema IN SHARE ROW EXCLUSIVE MODE")
        other.rollback()
        other.execute(f"SET ROLE {role}")
        other.execute("LOCK TABLE understudy_schema IN ACCESS SHARE MODE")
        charge(ledger)
        opened(postgres, timeout=1.0).close()
    ledger.close()
