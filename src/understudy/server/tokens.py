"""Who may enter, and by which door: opaque tokens of which only a hash is kept.

A token is 256 random bits, shown once. It names an analyst and a role, is bound to doors, expires, and can be
revoked at any time by any program that opens the store; a server notices within a second. A token makes no tokens:
only a custodian at a terminal, or on the admin port, does.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from understudy.errors import ParameterError
from understudy.privacy.limits import same_name
from understudy.server.audit_log import AuditLog
from understudy.server.scram import ScramVerifier, salt_of
from understudy.server.secret import fresh_secret, hash_of
from understudy.server.store import ServerStore, as_text

ROLES = ("analyst", "auditor", "custodian")
DOORS = ("http", "pg", "mcp")

CUSTODIAN = "custodian"
"""The name of a custodian who gave none."""

DAYS = 90
"""A token's life, unless told otherwise."""

MOST_DAYS = 3660

LINK_SECONDS = 900.0
"""Within which a one-time link must be used."""

REMEMBERED_SECONDS = 0.5
"""How long a token that was found is believed without another look: a revocation is noticed within a second."""

MOST_REMEMBERED = 4096
USES_APART = 60.0
"""Seconds between two notes of a token's last use."""

_NAME = re.compile(r"[^\W_][\w.@ -]{0,63}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as a token says it; nothing of this comes from a request.

    `agent` is a program that asks on its own, with a threshold for approvals of its own. A `read_only` token
    prices questions and gets free answers, and never pays.
    """

    analyst: str
    role: str
    agent: bool
    read_only: bool
    token_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret. Times are seconds since 1970; `revoked` and `last_use` are None where never."""

    id: str
    analyst: str
    role: str
    doors: frozenset[str]
    agent: bool
    read_only: bool
    made: float
    expires: float
    revoked: float | None
    last_use: float | None

    @property
    def caller(self) -> Caller:
        return Caller(self.analyst, self.role, self.agent, self.read_only, self.id)

    def state(self, now: float) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "valid" if now < self.expires else "expired"

    def as_dict(self, now: float) -> dict[str, Any]:
        return {
            "id": self.id,
            "analyst": self.analyst,
            "role": self.role,
            "doors": [door for door in DOORS if door in self.doors],
            "agent": self.agent,
            "read_only": self.read_only,
            "made": as_text(self.made),
            "expires": as_text(self.expires),
            "last_use": None if self.last_use is None else as_text(self.last_use),
            "state": self.state(now),
        }


class Tokens:
    """The tokens in a store. Who makes or revokes one (`by`) is written into the audit log with it."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self._log = AuditLog(store)
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[Token, float]] = {}
        self._entered: dict[str, tuple[Token, float]] = {}
        self._uses: dict[str, float] = {}
        self._unrevoked: dict[str, float] = {}

    def make(
        self,
        analyst: str,
        *,
        role: str = "analyst",
        doors: Iterable[str] = DOORS,
        days: float = DAYS,
        agent: bool = False,
        read_only: bool = False,
        by: str = CUSTODIAN,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is not kept and cannot be shown again.

        The name is kept in one Unicode form (NFC), in which limits are compared with it. Raises a ParameterError
        where the name, the role, a door or the number of days is none.
        """
        analyst, wanted = same_name(analyst), frozenset(doors)
        _check(analyst, role, wanted, agent=agent, read_only=read_only)
        if not 0 < days <= MOST_DAYS:
            raise ParameterError(f"a token lives for at most {MOST_DAYS} days and more than 0, not {days:g}")
        secret = fresh_secret()
        verifier = None
        if "pg" in wanted:
            salt = salt_of(analyst, key=self._store.secret("scram"))
            verifier = ScramVerifier.of(secret, salt).as_text()
        token = self._new(
            "token", analyst, role, wanted, secret, seconds=days * 86400.0, agent=agent, read_only=read_only,
            scram=verifier, by=by,
        )  # fmt: skip
        return token, secret

    def make_link(
        self,
        analyst: str = CUSTODIAN,
        *,
        role: str = "custodian",
        seconds: float = LINK_SECONDS,
        by: str = CUSTODIAN,
    ) -> tuple[Token, str]:
        """The secret of a one-time link for a browser; `Logins.open_by_link` takes it, once."""
        analyst = same_name(analyst)
        _check(analyst, role, frozenset({"http"}), agent=False, read_only=False)
        secret = fresh_secret()
        token = self._new("link", analyst, role, frozenset({"http"}), secret, seconds=seconds, by=by)
        return token, secret

    def find(self, secret: str, *, door: str) -> Caller | None:
        """Whose token this is, if it is valid at this door now; None for every other text.

        A text that is no token costs the same hash and the same look into the store as one that is. What is found
        is remembered for half a second.
        """
        token = self.found(secret, door=door)
        return None if token is None else token.caller

    def found(self, secret: str, *, door: str) -> Token | None:
        """As `find`, with the token itself."""
        hashed = hash_of(secret)
        with self._lock:
            kept = self._known.get(hashed)
        if kept is None or kept[1] <= time.monotonic():
            token = self._read(hashed)
            if token is None:
                return None
        else:
            token = kept[0]
        now = self._store.now()
        if door not in token.doors or token.state(now) != "valid":
            self._store.note_time(token.expires)
            return None
        self._note_use(token.id, now)
        return token

    def still(self, id: str, *, door: str) -> Caller | None:
        """Whose token an id is of, if it is valid at this door now: for connections that proved to have it.

        As `find`, what is found is believed for half a second, so that a revocation is noticed within a second.
        """
        with self._lock:
            kept = self._entered.get(id)
        if kept is None or kept[1] <= time.monotonic():
            token = self.get(id)
            with self._lock:
                if len(self._entered) >= MOST_REMEMBERED:
                    self._entered.clear()
                if token is not None:
                    self._entered[id] = token, time.monotonic() + REMEMBERED_SECONDS
        else:
            token = kept[0]
        now = self._store.now()
        if token is None or door not in token.doors or token.state(now) != "valid":
            return None
        self._note_use(id, now)
        return token.caller

    def get(self, id: str) -> Token | None:
        """The token of an id, whatever its state."""
        with self._store.reading() as tx:
            row = tx.execute("SELECT * FROM token WHERE id = ?", (id,)).fetchone()
        return None if row is None else _token(row)

    def is_unrevoked(self, id: str) -> bool:
        """Whether a token is there and was not revoked; what was found is believed for half a second."""
        now = time.monotonic()
        if now < self._unrevoked.get(id, 0.0):
            return True
        token = self.get(id)
        if token is None or token.revoked is not None:
            return False
        with self._lock:
            if len(self._unrevoked) >= MOST_REMEMBERED:
                self._unrevoked.clear()
            self._unrevoked[id] = now + REMEMBERED_SECONDS
        return True

    def all(self) -> list[Token]:
        """Every token, the newest last; links are among them only once they were used."""
        self._store.flush()
        with self._store.reading() as tx:
            rows = tx.execute(
                "SELECT * FROM token WHERE kind = 'token' OR used IS NOT NULL ORDER BY made, id"
            ).fetchall()
        return [_token(row) for row in rows]

    def revoke(self, id: str, *, by: str = CUSTODIAN) -> Token:
        """End a token, and the browser logins that were opened with it; one that was revoked before stays so."""
        with self._store.writing() as tx:
            ended = tx.execute(
                "UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL", (self._store.now(), id)
            )
            if ended.rowcount:
                self._log.write_in(tx, by, "revoke token", {"token": id})
            tx.execute("DELETE FROM login WHERE token = ?", (id,))
            row = tx.execute("SELECT * FROM token WHERE id = ?", (id,)).fetchone()
        with self._lock:
            self._known.clear()
            self._unrevoked.clear()
            self._entered.clear()
        if row is None:
            raise ParameterError(f"there is no token {id!r}: `understudy token list` shows the ids")
        return _token(row)

    def scram(self, analyst: str) -> tuple[bytes, list[tuple[Token, ScramVerifier]]]:
        """The salt of a name, and the verifiers of its tokens that are valid at the Postgres door now."""
        salt = salt_of(analyst, key=self._store.secret("scram"))
        with self._store.reading() as tx:
            rows = tx.execute(
                "SELECT * FROM token WHERE analyst = ? AND scram IS NOT NULL ORDER BY made DESC", (analyst,)
            ).fetchall()
        now = self._store.now()
        tokens = [(_token(row), ScramVerifier.from_text(row["scram"])) for row in rows]
        return salt, [pair for pair in tokens if pair[0].state(now) == "valid"]

    def _read(self, hashed: bytes) -> Token | None:
        row = self._store.row("SELECT * FROM token WHERE hash = ? AND kind = 'token'", (hashed,))
        with self._lock:
            if row is None:
                self._known.pop(hashed, None)
                return None
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            token = _token(row)
            self._known[hashed] = token, time.monotonic() + REMEMBERED_SECONDS
        return token

    def _note_use(self, id: str, now: float) -> None:
        if now >= self._uses.get(id, 0.0) + USES_APART:
            self._uses[id] = now
            self._store.later(
                "UPDATE token SET last_use = max(coalesce(last_use, 0), ?) WHERE id = ?", (now, id)
            )

    def _new(
        self, kind: str, analyst: str, role: str, doors: Collection[str], secret: str, *, seconds: float,
        by: str, agent: bool = False, read_only: bool = False, scram: str | None = None,
    ) -> Token:  # fmt: skip
        now = self._store.now()
        token = Token(
            id=secrets.token_hex(5), analyst=analyst, role=role, doors=frozenset(doors), agent=agent,
            read_only=read_only, made=now, expires=now + seconds, revoked=None, last_use=None,
        )  # fmt: skip
        written = ",".join(sorted(doors))
        with self._store.writing() as tx:
            tx.execute("DELETE FROM token WHERE kind = 'link' AND used IS NULL AND expires <= ?", (now,))
            tx.execute(
                "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
                (
                    token.id, kind, analyst, role, written, agent, read_only, hash_of(secret), scram,
                    token.made, token.expires,
                ),
            )  # fmt: skip
            facts: dict[str, str | bool] = {
                "token": token.id, "analyst": analyst, "role": role, "doors": written, "agent": agent,
                "read_only": read_only, "expires": as_text(token.expires),
            }  # fmt: skip
            self._log.write_in(tx, by, f"make {kind}", facts)
        return token


def _check(analyst: str, role: str, doors: Collection[str], *, agent: bool, read_only: bool) -> None:
    if not _NAME.fullmatch(analyst) or analyst != analyst.strip():
        raise ParameterError(
            f"{analyst!r} is no name for an analyst: write letters, digits, spaces and . @ - _ , at most 64"
        )
    if role not in ROLES:
        raise ParameterError(f"{role!r} is no role: take one of {', '.join(ROLES)}")
    unknown = sorted(set(doors) - set(DOORS))
    if unknown or not doors:
        raise ParameterError(f"{', '.join(unknown) or 'nothing'} is no door: take some of {', '.join(DOORS)}")
    if role != "analyst" and (agent or read_only):
        raise ParameterError(f"only an analyst's token can be an agent's or read-only, not one of a {role}")


def _token(row: sqlite3.Row) -> Token:
    return Token(
        id=row["id"], analyst=row["analyst"], role=row["role"], doors=frozenset(row["doors"].split(",")),
        agent=bool(row["agent"]), read_only=bool(row["read_only"]), made=row["made"], expires=row["expires"],
        revoked=row["revoked"], last_use=row["last_use"],
    )  # fmt: skip
