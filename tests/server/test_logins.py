"""Browser logins: cookies that stand for a token, and links that are used once."""

from __future__ import annotations

import pytest

from understudy.server.audit_log import AuditLog
from understudy.server.logins import LOGIN_SECONDS, Logins
from understudy.server.store import ServerStore
from understudy.server.tokens import LINK_SECONDS, Tokens


@pytest.fixture
def tokens(store: ServerStore) -> Tokens:
    return Tokens(store)


@pytest.fixture
def logins(store: ServerStore, tokens: Tokens) -> Logins:
    return Logins(store, tokens)


def opened(logins: Logins, secret: str) -> str:
    found = logins.open(secret)
    assert found is not None
    return found[1]


def test_a_cookie_stands_for_its_token_until_logout(logins, tokens, store):
    token, secret = tokens.make("ada")
    cookie = opened(logins, secret)
    assert logins.find(cookie) == token.caller
    assert logins.find(cookie + "x") is None
    assert logins.open("us_none") is None
    with store.reading() as tx:
        assert cookie.encode() not in tx.execute("SELECT hash FROM login").fetchone()[0]
    other = opened(logins, secret)
    logins.close(cookie)
    assert logins.find(cookie) is None
    assert logins.find(other) == token.caller


def test_a_token_for_another_door_opens_no_browser(logins, tokens):
    _, secret = tokens.make("ada", doors=["pg", "mcp"])
    assert logins.open(secret) is None


def test_a_login_ends_by_itself_and_never_after_its_token(logins, tokens, clock):
    _, long = tokens.make("ada", days=90)
    _, short = tokens.make("bob", days=0.25)
    ada, bob = opened(logins, long), opened(logins, short)
    clock.seconds += 6 * 3600
    assert logins.find(bob) is None
    assert logins.find(ada) is not None
    clock.seconds += LOGIN_SECONDS
    assert logins.find(ada) is None
    clock.days(-2)
    assert logins.find(ada) is None


def test_revoking_a_token_ends_its_logins(logins, tokens, store):
    token, secret = tokens.make("ada")
    cookie = opened(logins, secret)
    tokens.revoke(token.id)
    assert Logins(store, tokens).find(cookie) is None


def test_a_link_is_used_once_and_in_time(logins, tokens, clock):
    link, secret = tokens.make_link()
    found = logins.open_by_link(secret)
    assert found is not None
    caller, cookie = found
    assert (caller.role, caller.token_id) == ("custodian", link.id)
    assert logins.open_by_link(secret) is None
    assert logins.find(cookie) == caller
    clock.seconds += LINK_SECONDS + 1  # the link's time is over, not the login's
    assert Logins(logins._store, tokens).find(cookie) == caller
    assert [token.id for token in tokens.all()] == [link.id]
    tokens.revoke(link.id)
    assert Logins(logins._store, tokens).find(cookie) is None
    _, late = tokens.make_link()
    clock.seconds += LINK_SECONDS + 1
    assert logins.open_by_link(late) is None


def test_a_token_is_no_link_and_a_link_no_token(logins, tokens):
    _, secret = tokens.make("cy", role="custodian")
    _, link = tokens.make_link()
    assert logins.open_by_link(secret) is None
    assert logins.open(link) is None
    assert logins.open_by_link(link) is not None
    last = AuditLog(logins._store).entries()[-1]
    assert (last.who, last.act) == ("custodian", "log in")
