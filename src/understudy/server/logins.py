"""Browser logins: a cookie stands for a token for some hours, and never longer than the token is valid."""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time

from understudy.server.audit_log import AuditLog
from understudy.server.secret import hash_of
from understudy.server.store import ServerStore
from understudy.server.tokens import MOST_REMEMBERED, REMEMBERED_SECONDS, Caller, Tokens

LOGIN_SECONDS = 12 * 3600.0
"""A login's life."""

LINK_PATH = "/enter"
"""Where a one-time link leads, at either port of HTTP; its secret is the parameter `link`."""


def link_address(scheme: str, address: str, secret: str) -> str:
    """The one-time link that `Tokens.make_link` made a secret for."""
    return f"{scheme}://{address}{LINK_PATH}?link={secret}"


class Logins:
    """The browser logins in a store. Of a cookie only a hash is kept; revoking a token ends its logins.

    Logins are written into the audit log.
    """

    def __init__(self, store: ServerStore, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens
        self._log = AuditLog(store)
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[Caller, float, float]] = {}

    def open(self, secret: str, *, seconds: float = LOGIN_SECONDS) -> tuple[Caller, str] | None:
        """Who a token is of, and the value of a cookie that stands for it; None where the token is not valid."""
        token = self._tokens.found(secret, door="http")
        if token is None:
            return None
        now = self._store.now()
        with self._store.writing() as tx:
            cookie = self._begun(tx, token.caller, now, min(now + seconds, token.expires))
        return token.caller, cookie

    def open_by_link(self, secret: str, *, seconds: float = LOGIN_SECONDS) -> tuple[Caller, str] | None:
        """As `open` for the secret of a one-time link, which is used up in the same transaction."""
        now = self._store.now()
        with self._store.writing() as tx:
            row = tx.execute(
                "UPDATE token SET used = ?, last_use = ? WHERE hash = ? AND kind = 'link' AND used IS NULL "
                "AND revoked IS NULL AND expires > ? RETURNING *",
                (now, now, hash_of(secret), now),
            ).fetchone()
            if row is None:
                return None
            caller = _caller(row)
            # The token of a used link lives as long as the login, so that it is listed and can be revoked.
            tx.execute("UPDATE token SET expires = ? WHERE id = ?", (now + seconds, caller.token_id))
            cookie = self._begun(tx, caller, now, now + seconds)
        return caller, cookie

    def find(self, cookie: str) -> Caller | None:
        """Who is logged in with a cookie; None where nobody is. Remembered for half a second."""
        hashed = hash_of(cookie)
        with self._lock:
            kept = self._known.get(hashed)
        if kept is None or kept[2] <= time.monotonic():
            kept = self._read(hashed)
        if kept is None:
            return None
        if self._store.now() >= kept[1]:
            self._store.note_time(kept[1])
            return None
        return kept[0]

    def close(self, cookie: str) -> None:
        """Log out; nothing happens where nobody was logged in."""
        hashed = hash_of(cookie)
        with self._store.writing() as tx:
            tx.execute("DELETE FROM login WHERE hash = ?", (hashed,))
        with self._lock:
            self._known.pop(hashed, None)

    def _begun(self, tx: sqlite3.Connection, caller: Caller, now: float, expires: float) -> str:
        cookie = secrets.token_urlsafe(32)
        tx.execute("DELETE FROM login WHERE expires <= ?", (now,))
        tx.execute("INSERT INTO login VALUES (?, ?, ?, ?)", (hash_of(cookie), caller.token_id, now, expires))
        self._log.write_in(tx, caller.analyst, "log in", {"token": caller.token_id, "role": caller.role})
        return cookie

    def _read(self, hashed: bytes) -> tuple[Caller, float, float] | None:
        with self._store.reading() as tx:
            row = tx.execute(
                "SELECT token.*, min(login.expires, token.expires) AS until FROM login "
                "JOIN token ON token.id = login.token WHERE login.hash = ? AND revoked IS NULL",
                (hashed,),
            ).fetchone()
        with self._lock:
            if row is None or row["id"] is None:
                self._known.pop(hashed, None)
                return None
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            found = _caller(row), float(row["until"]), time.monotonic() + REMEMBERED_SECONDS
            self._known[hashed] = found
        return found


def _caller(row: sqlite3.Row) -> Caller:
    return Caller(row["analyst"], row["role"], bool(row["agent"]), bool(row["read_only"]), row["id"])
