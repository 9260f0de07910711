"""Where the token comes from, and that nothing that is shown or raised holds it."""

from __future__ import annotations

import os
import pickle

import pytest

import understudy as us
from understudy.client.address import ServerAddress
from understudy.client.token_file import found_token, tokens_file
from understudy.client.transport import Transport
from understudy.errors import AccessError, ParameterError, UnderstudyError

TOKEN = "us_" + "s3cr3t" * 7
ADDRESS = ServerAddress.read("https://data.example.org")


def written(text: str, mode: int = 0o600):
    file = tokens_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_the_argument_comes_first_then_the_environment_then_the_file(monkeypatch):
    written(f"# mine\nhttps://elsewhere.example.org us_other\nhttps://data.example.org:443/ {TOKEN}\n")
    assert found_token(ADDRESS, None) == TOKEN
    monkeypatch.setenv("UNDERSTUDY_TOKEN", " us_environment\n")
    assert found_token(ADDRESS, None) == "us_environment"
    assert found_token(ADDRESS, "us_given") == "us_given"


def test_a_token_goes_to_its_own_server_alone():
    written(f"https://data.example.org {TOKEN}\n")
    for other in ("https://data.example.org:8700", "https://data.example.com", "http://localhost"):
        with pytest.raises(AccessError, match="there is no token for"):
            found_token(ServerAddress.read(other), None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622, 0o777])
def test_a_file_that_others_may_read_is_refused(mode):
    file = written(f"https://data.example.org {TOKEN}\n", mode)
    with pytest.raises(AccessError, match=f"chmod 600 {file}") as caught:
        found_token(ADDRESS, None)
    assert str(file) not in caught.value.problem + caught.value.remedy


def test_a_file_of_somebody_else_is_refused(monkeypatch):
    written(f"https://data.example.org {TOKEN}\n")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    real = os.fstat

    def foreign(handle):
        return os.stat_result([*real(handle)[:4], mine + 2, *real(handle)[5:10]])

    monkeypatch.setattr(os, "fstat", foreign)
    with pytest.raises(AccessError, match="belongs to somebody else"):
        found_token(ADDRESS, None)


def test_without_a_token_the_error_says_where_to_put_one():
    with pytest.raises(
        AccessError, match=r"UNDERSTUDY_TOKEN.* as a line: https://data.example.org TOKEN"
    ) as caught:
        us.connect("https://data.example.org")
    assert str(tokens_file()) in str(caught.value)


@pytest.mark.parametrize("bad", ["", "  ", "two words", "line\r\nX-Evil: 1", "ünïcode", "x" * 600])
def test_what_is_no_token_is_refused_without_being_shown(bad):
    with pytest.raises(ParameterError, match="is no token") as caught:
        found_token(ADDRESS, bad)
    with pytest.raises(ParameterError, match="is no token"):
        found_token(ADDRESS, 7)  # type: ignore[arg-type]
    assert not bad.strip() or bad not in str(caught.value)


def test_no_object_and_no_error_shows_the_token():
    transport = Transport(ADDRESS, TOKEN, timeout=1, patience=0, ca=None)
    assert TOKEN not in repr(transport) + str(transport)
    with pytest.raises(TypeError):
        pickle.dumps(transport)
    with pytest.raises(UnderstudyError) as caught:
        us.connect("http://127.0.0.1:9", TOKEN, patience=0)
    shown = [str(caught.value), repr(caught.value), repr(caught.value.__cause__), str(caught.value.__dict__)]
    assert not any(TOKEN in text for text in shown)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("data.example.org", "begins with https://"),
        ("ftp://data.example.org", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://host:port", "begins with https://"),
        (f"https://{TOKEN}@data.example.org", "no user, password"),
        (f"https://data.example.org/?token={TOKEN}", "no user, password"),
        ("http://data.example.org", "is not encrypted"),
        ("http://10.0.0.5:8700", "is not encrypted"),
        ("http://localhost.example.org", "is not encrypted"),
    ],
)
def test_addresses_that_would_lose_the_token_are_refused(url, words):
    with pytest.raises(ParameterError, match=words) as caught:
        us.connect(url, TOKEN)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:8700", "http://127.0.0.1:8700"),
        ("http://[::1]:8700/", "http://[::1]:8700"),
        ("http://localhost", "http://localhost"),
        ("https://Data.Example.org:443/under/study/", "https://data.example.org/under/study"),
    ],
)
def test_an_address_is_written_in_one_way(url, text):
    assert ServerAddress.read(url).text == text
    assert ServerAddress.read(text) == ServerAddress.read(url)
