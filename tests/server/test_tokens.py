"""Tokens: hashed, bound to doors, expiring, revoked within a second by any program."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import subprocess
import sys
import time

import pytest

from server_clock import DAY
from understudy.errors import ParameterError
from understudy.server.audit_log import AuditLog
from understudy.server.scram import ITERATIONS, salt_of
from understudy.server.secret import holds_secret
from understudy.server.store import ServerStore
from understudy.server.tokens import DOORS, Caller, Tokens


@pytest.fixture
def tokens(store: ServerStore) -> Tokens:
    return Tokens(store)


def test_a_token_says_who_asks_and_nothing_of_its_secret_is_kept(tokens, store, state):
    token, secret = tokens.make("ada", agent=True, read_only=True)
    caller = Caller(analyst="ada", role="analyst", agent=True, read_only=True, token_id=token.id)
    assert tokens.find(secret, door="http") == caller
    assert holds_secret(f"Bearer {secret}!")
    assert len(secret) == 46
    store.close()
    raw = b"".join(path.read_bytes() for path in state.parent.glob("server.db*"))
    assert secret.encode() not in raw
    assert secret[3:].encode() not in raw
    assert hashlib.sha256(secret.encode()).digest() in raw


@pytest.mark.parametrize("wrong", ["", "us_", "us_" + "a" * 43, "ada", "\udc80", "x" * 100_000])
def test_other_texts_are_nobodys(tokens, wrong):
    tokens.make("ada")
    assert tokens.find(wrong, door="http") is None


def test_a_token_opens_its_doors_only(tokens):
    _, secret = tokens.make("ada", doors=["mcp"])
    assert [tokens.find(secret, door=door) is not None for door in DOORS] == [False, False, True]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"analyst": ""}, "no name"),
        ({"analyst": " ada"}, "no name"),
        ({"analyst": "a\nb"}, "no name"),
        ({"analyst": "x" * 65}, "no name"),
        ({"analyst": "<b>"}, "no name"),
        ({"role": "king"}, "analyst, auditor, custodian"),
        ({"doors": ["window"]}, "http, pg, mcp"),
        ({"doors": []}, "http, pg, mcp"),
        ({"days": 0}, "more than 0"),
        ({"days": float("nan")}, "more than 0"),
        ({"days": 1e9}, "at most"),
        ({"role": "auditor", "agent": True}, "only an analyst's"),
        ({"role": "custodian", "read_only": True}, "only an analyst's"),
    ],
)
def test_what_makes_no_token_is_refused(tokens, given, told):
    with pytest.raises(ParameterError, match=told):
        tokens.make(**({"analyst": "ada"} | given))
    assert tokens.all() == []


def test_an_expired_token_stays_expired_when_the_clock_is_set_back(state, clock):
    with ServerStore(state, clock=clock) as store:
        tokens = Tokens(store)
        _, secret = tokens.make("ada", days=30)
        clock.days(29.9)
        assert tokens.find(secret, door="http") is not None
        clock.days(0.2)
        assert tokens.find(secret, door="http") is None
        clock.days(-20)
        assert tokens.find(secret, door="http") is None
    with ServerStore(state, clock=clock) as store:  # another start, with the clock still behind
        assert Tokens(store).find(secret, door="http") is None
        _, fresh = Tokens(store).make("ada", days=1)
        assert Tokens(store).find(fresh, door="http") is not None


def test_an_expired_token_stays_expired_after_a_kill_at_that_moment(state, clock):
    store = ServerStore(state, clock=clock)
    tokens = Tokens(store)
    _, secret = tokens.make("ada", days=30)
    clock.days(29.9999)
    assert tokens.find(secret, door="http") is not None
    clock.seconds += 20
    assert tokens.find(secret, door="http") is None
    store._waiting.clear()  # what a kill forgets
    clock.days(-20)
    with ServerStore(state, clock=clock) as another:
        assert Tokens(another).find(secret, door="http") is None
    store.close()


def test_a_name_has_one_spelling(tokens):
    for written in ("Zo\u00eb", "Zoe\u0308"):
        token, secret = tokens.make(written)
        assert token.analyst == tokens.find(secret, door="http").analyst == "Zo\u00eb"
    assert tokens.make_link("Zoe\u0308")[0].analyst == "Zo\u00eb"
    with pytest.raises(ParameterError, match="no name"):
        tokens.make(" Zo\u00eb")


def test_links_that_nobody_used_are_forgotten(tokens, store, clock):
    tokens.make_link()
    clock.days(1)
    tokens.make_link()
    with store.reading() as tx:
        assert tx.execute("SELECT count(*) FROM token").fetchone()[0] == 1


def test_a_revocation_is_final_and_ends_at_once_here(tokens):
    token, secret = tokens.make("ada")
    assert tokens.find(secret, door="http") is not None
    revoked = tokens.revoke(token.id)
    assert tokens.find(secret, door="http") is None
    assert revoked.state(0) == "revoked"
    assert tokens.revoke(token.id).revoked == revoked.revoked
    with pytest.raises(ParameterError, match="understudy token list"):
        tokens.revoke("nobody")


def test_another_program_revokes_within_a_second(tokens, state):
    token, secret = tokens.make("ada")
    program = f"""
from pathlib import Path
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens
with ServerStore(Path({str(state)!r}), new=False) as store:
    Tokens(store).revoke({token.id!r})
"""
    started = subprocess.Popen([sys.executable, "-c", program])
    while started.poll() is None:
        tokens.find(secret, door="http")
    revoked = time.monotonic()
    assert started.returncode == 0
    while True:
        asked = time.monotonic()  # a busy machine may come back to this program late
        if tokens.find(secret, door="http") is None:
            break
        assert asked < revoked + 1
        time.sleep(0.01)


def test_a_connection_keeps_a_token_for_as_long_as_it_is_valid_at_its_door(tokens, clock, state):
    token, _ = tokens.make("ada", doors=["pg"], days=2)
    caller = tokens.still(token.id, door="pg")
    assert caller is not None
    assert caller.analyst == "ada"
    assert tokens.still(token.id, door="http") is None
    assert tokens.still("0000000000", door="pg") is None
    with ServerStore(
        state, new=False, clock=clock
    ) as other:  # another program, of which this one does not know
        Tokens(other).revoke(token.id)
    until = time.monotonic() + 1
    while True:
        asked = time.monotonic()
        if tokens.still(token.id, door="pg") is None:
            break
        assert asked < until
        time.sleep(0.01)
    expires, _ = tokens.make("ada", days=2)
    assert tokens.still(expires.id, door="pg") is not None
    clock.days(3)
    assert tokens.still(expires.id, door="pg") is None


def test_the_last_use_is_listed(tokens, clock):
    token, secret = tokens.make("ada")
    assert tokens.all()[0].last_use is None
    clock.days(1)
    tokens.find(secret, door="http")
    assert tokens.all()[0].last_use == clock()
    assert tokens.all()[0].as_dict(clock())["state"] == "valid"
    assert tokens.get(token.id) == tokens.all()[0]


def test_a_found_token_costs_no_look_into_the_store(tokens, store, monkeypatch):
    _, secret = tokens.make("ada")
    tokens.find(secret, door="http")
    looks = []
    row = store.row
    monkeypatch.setattr(store, "row", lambda *asked: looks.append(1) or row(*asked))
    for _ in range(100):
        tokens.find(secret, door="http")
    assert len(looks) <= 1  # the half second may end in between
    for _ in range(3):
        tokens.find("us_unknown", door="http")
    assert 3 <= len(looks) <= 4


def test_links_are_no_tokens_and_are_listed_only_once_used(tokens):
    _, secret = tokens.make_link()
    assert tokens.find(secret, door="http") is None
    assert tokens.all() == []


def test_the_postgres_door_can_check_a_proof_by_what_is_kept(tokens, store):
    token, secret = tokens.make("ada", doors=["pg"])
    tokens.make("ada", doors=["http"])
    expired, _ = tokens.make("ada", doors=["pg"])
    tokens.revoke(expired.id)
    salt, found = tokens.scram("ada")
    assert [of for of, _ in found] == [token]
    # What a client of RFC 5802 works out of the secret and the salt.
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, ITERATIONS)
    client_key, message = hmac.digest(salted, b"Client Key", "sha256"), b"n=,r=x"
    stored_key = hashlib.sha256(client_key).digest()
    signature = hmac.digest(stored_key, message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verifier = found[0][1]
    expected = hmac.digest(verifier.stored_key, message, "sha256")
    recovered = bytes(a ^ b for a, b in zip(proof, expected, strict=True))
    assert hashlib.sha256(recovered).digest() == verifier.stored_key
    assert verifier.server_key == hmac.digest(salted, b"Server Key", "sha256")
    stranger, nobody = tokens.scram("a stranger")
    assert nobody == []
    assert stranger == salt_of("a stranger", key=store.secret("scram")) != salt


def test_who_makes_and_revokes_is_logged_without_the_secret(tokens, store):
    token, secret = tokens.make("ada", by="cy")
    tokens.revoke(token.id, by="dora")
    tokens.revoke(token.id, by="eve")
    made, revoked = AuditLog(store).entries()
    assert (made.who, made.act, made.facts["analyst"]) == ("cy", "make token", "ada")
    assert (revoked.who, revoked.act, revoked.facts) == ("dora", "revoke token", {"token": token.id})
    assert secret not in str(made)


def test_tokens_are_kept_across_starts(state):
    with ServerStore(state) as store:
        token, secret = Tokens(store).make("ada", role="auditor", doors=["http"], days=2)
    with ServerStore(state) as store:
        assert Tokens(store).all() == [token]
        assert token.expires - token.made == 2 * DAY
        assert Tokens(store).find(secret, door="http") == token.caller
    with sqlite3.connect(state) as raw:
        assert raw.execute("SELECT scram FROM token").fetchall() == [(None,)]
    raw.close()
