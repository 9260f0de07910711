"""The tables of `server.db`, their version, and the way from each version to the next."""

from __future__ import annotations

import sqlite3

from understudy.errors import StoreError

APPLICATION = 0x75735F73
"""SQLite's application id of these files: `us_s`."""

VERSION = 3

_TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE token (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, analyst TEXT NOT NULL, role TEXT NOT NULL, doors TEXT NOT NULL,
    agent INTEGER NOT NULL, read_only INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE, scram TEXT,
    made REAL NOT NULL, expires REAL NOT NULL, revoked REAL, used REAL, last_use REAL
) WITHOUT ROWID;
CREATE INDEX token_of_analyst ON token (analyst);

CREATE TABLE login (
    hash BLOB PRIMARY KEY, token TEXT NOT NULL REFERENCES token (id), made REAL NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX login_of_token ON login (token);

CREATE TABLE asked (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, of_table TEXT NOT NULL,
    analyst TEXT NOT NULL, request TEXT NOT NULL, question TEXT NOT NULL, terms TEXT NOT NULL, at REAL NOT NULL,
    state TEXT NOT NULL, finished REAL, currency TEXT NOT NULL, price REAL, share REAL, source TEXT NOT NULL,
    ledger_request TEXT NOT NULL, answer TEXT, problem TEXT, UNIQUE (of_table, analyst, request)
);
CREATE INDEX asked_by ON asked (analyst, number);

CREATE TABLE approval (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, of_table TEXT NOT NULL,
    analyst TEXT NOT NULL, agent INTEGER NOT NULL, token TEXT NOT NULL, request TEXT NOT NULL,
    question TEXT NOT NULL, terms TEXT NOT NULL, currency TEXT NOT NULL, price REAL NOT NULL, share REAL NOT NULL,
    why TEXT NOT NULL, at REAL NOT NULL, expires REAL NOT NULL, state TEXT NOT NULL, decided_by TEXT NOT NULL,
    decided REAL, reason TEXT NOT NULL, claimed_by TEXT NOT NULL, UNIQUE (of_table, analyst, request)
);
CREATE INDEX approval_in_state ON approval (state, number);

CREATE TABLE pause (of_table TEXT PRIMARY KEY, by_whom TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL)
WITHOUT ROWID;

CREATE TABLE audit (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, act TEXT NOT NULL, facts TEXT NOT NULL,
    previous TEXT NOT NULL, hash TEXT NOT NULL
);
"""

_ENDED = """
UPDATE asked SET state = 'refused', finished = ended.at, problem = ended.problem FROM (
    SELECT of_table, analyst, request,
        CASE state WHEN 'denied' THEN coalesce(decided, expires) ELSE expires END AS at,
        json_object(
            'type', 'about:blank', 'title', 'Not permitted', 'status', 403, 'code', state,
            'detail', CASE state WHEN 'denied' THEN 'The custodian denied this question: ' || reason
                      ELSE 'Nobody decided about this question within seven days.' END,
            'hint', 'A new request id asks anew.', 'suggestions', json_array()
        ) AS problem
    FROM approval WHERE state IN ('denied', 'expired')
) AS ended
WHERE asked.state = 'waiting' AND asked.of_table = ended.of_table AND asked.analyst = ended.analyst
    AND asked.request = ended.request
"""
"""Questions that were denied or had expired stood there as waiting."""

UPGRADES: dict[int, str] = {1: _TABLES, 2: "ALTER TABLE approval ADD COLUMN most REAL", 3: _ENDED}
"""For each version, the statements that lead to it from the one before."""


def migrate(connection: sqlite3.Connection) -> None:
    """Make or upgrade the tables, inside the caller's transaction; refuse what another program wrote."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (application or tables):
        raise StoreError(
            "this file is a SQLite database of something else than a server's state",
            remedy="Name another folder, or move the file away",
        )
    if found > VERSION:
        raise StoreError(
            f"the server's state was written by a newer program (schema {found}; this one writes {VERSION})",
            remedy="Use that version of understudy",
        )
    for step in range(found + 1, VERSION + 1):
        for statement in UPGRADES[step].split(";"):
            if statement.strip():
                connection.execute(statement)
    if found < VERSION:
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={VERSION}")
