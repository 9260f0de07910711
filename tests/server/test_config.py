"""server.yml: what it means, and what is said about every way to get it wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from people import declaration, write_project
from understudy.errors import DeclarationError
from understudy.server.config import Address, ServerConfig
from understudy.server.place import state_of

WHOLE = """\
tables: [people/understudy.yml, visits]
listen: {http: 0.0.0.0:8700, postgres: "[::1]:5433", admin: localhost:8701}
tls: {certificate: cert.pem, key: key.pem}
session: {alpha: 0.02, beta: 0.05, queries: 100_000}
approve_above: {people: 0.01, agents: 0.001}
rates: {requests: 30/min, at_once: 4, waiting: 64}
response_grid_ms: 25
releases: releases/
boards: [boards/credit.json]
own_sessions: true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("people", "visits", "releases", "boards"):
        (tmp_path / name).mkdir()
    write_project(tmp_path / "people")
    other = declaration().replace("name: people", "name: visits")
    (tmp_path / "visits" / "understudy.yml").write_text(other)
    for name in ("cert.pem", "key.pem", "boards/credit.json"):
        (tmp_path / name).write_text("")
    return tmp_path


def read(folder: Path, text: str) -> ServerConfig:
    (folder / "server.yml").write_text(text)
    return ServerConfig.read(folder / "server.yml")


def test_a_whole_file(folder):
    found = read(folder, WHOLE)
    assert found.tables == {
        "people": folder / "people/understudy.yml",
        "visits": folder / "visits/understudy.yml",
    }
    assert found.listen.http == Address("0.0.0.0", 8700)
    assert str(found.listen.postgres) == "[::1]:5433"
    assert found.listen.admin.is_loopback
    assert not found.listen.http.is_loopback
    assert found.tls.key == folder / "key.pem"
    assert found.session.alpha == Fraction(2, 100)
    assert found.session.queries == 100_000
    assert found.approve_above.agents == Fraction(1, 1000)
    assert found.rates.requests == 0.5
    assert found.releases == folder / "releases"
    assert found.boards == (folder / "boards/credit.json",)
    assert found.own_sessions
    assert found.state == folder / "server.db"
    assert found.sqlite_ledgers == [folder / "people/understudy.ledger", folder / "visits/understudy.ledger"]
    assert ServerConfig.read(folder) == found  # a folder means its server.yml


def test_defaults_are_those_of_the_documentation(folder):
    found = read(folder, "tables: [people]\n")
    assert str(found.listen.http) == "127.0.0.1:8700"
    assert str(found.listen.admin) == "127.0.0.1:8701"
    assert found.listen.postgres is None
    assert list(found.listen.all) == ["http", "admin"]
    assert (found.tls, found.behind, found.own_sessions, found.boards, found.releases) == (
        None,
        (),
        False,
        (),
        None,
    )
    assert found.response_grid_ms == 25
    shown = (Path(__file__).parents[2] / "docs/server.md").read_text()
    text = shown.split("```yaml")[1].split("```")[0]
    text = text.replace("town/understudy.yml", "people/understudy.yml").replace(
        "visits/understudy.yml", "visits"
    )
    documented = read(folder, text)
    assert (documented.session, documented.rates) == (found.session, found.rates)
    assert documented.approve_above == found.approve_above
    assert documented.listen.http == found.listen.http
    assert documented.response_grid_ms == found.response_grid_ms


def test_behind_a_proxy_an_address_may_be_public(folder):
    found = read(folder, "tables: [people]\nlisten: {http: 0.0.0.0:80}\nbehind: [10.0.0.5, 'fd00::/64']\n")
    assert [found.is_proxy(host) for host in ("10.0.0.5", "10.0.0.6", "fd00::1", "proxy", "")] == [
        True, False, True, False, False,
    ]  # fmt: skip


BAD = [
    ("", None, "the file is empty", "tables"),
    ("tables: [people\n", 2, "not YAML", "brackets"),
    ("- people\n", 1, "key: value", "mapping"),
    ("listen: {}\n", 1, "'tables' is missing", "tables: [town/understudy.yml]"),
    ("tables: []\n", 1, "no table", "tables"),
    ("tables: people\n", 1, "expected a list", "[a, b, c]"),
    ("tables: [people, absent]\n", 1, "no such declaration", "as it is seen from this file"),
    ("tables: [people, people]\n", 1, "two tables have the name 'people'", "Change `name:`"),
    ("tables: [people]\ntabels: []\n", 2, "'tabels' is not understood", "'tables'"),
    ("tables: [people]\nport: 80\n", 2, "'port' is not understood", "Known here: tables, listen"),
    ("tables: [people]\ntables: [visits]\n", 2, "stands here twice", "Keep one"),
    ("tables: [people]\nlisten: {htpp: 127.0.0.1:80}\n", 2, "'htpp'", "'http'"),
    ("tables: [people]\nlisten: {http: 8700}\n", 2, "no address", "127.0.0.1:8700"),
    ("tables: [people]\nlisten: {http: example.org:8700}\n", 2, "no address", "IP address"),
    ("tables: [people]\nlisten: {http: 127.0.0.1:99999}\n", 2, "no address", "port"),
    ("tables: [people]\nlisten: {http: '::1:8700'}\n", 2, "no address", "[::1]:8700"),
    (
        "tables: [people]\nlisten: {http: 127.0.0.1:8701}\n",
        2,
        "http and admin have the same",
        "a port of its own",
    ),
    ("tables: [people]\nlisten:\n  http: 0.0.0.0:8700\n", 3, "reached from outside", "`tls: {"),
    ("tables: [people]\nlisten: {admin: 192.168.0.7:8701}\n", 2, "reached from outside", "`behind: ["),
    ("tables: [people]\nlisten: {postgres: '[::]:5433'}\n", 2, "reached from outside", "127.0.0.1"),
    ("tables: [people]\ntls: {certificate: cert.pem}\n", 2, "'key' is missing", "key: key.pem"),
    ("tables: [people]\ntls: {certificate: cert.pem, key: absent.pem}\n", 2, "no such file", "PEM"),
    ("tables: [people]\nbehind: [proxy]\n", 2, "no address", "10.0.0.5"),
    ("tables: [people]\nbehind: []\n", 2, "no proxy", "10.0.0.5"),
    ("tables: [people]\nbehind: [0.0.0.0/0]\n", 2, "every address", "own address"),
    ("tables: [people]\nbehind: [10.0.0.1]\ntls: {certificate: cert.pem, key: key.pem}\n", 2, "both", "Keep"),
    ("tables: [people]\nsession: {alpha: 0}\n", 2, "not a part", "between 0 and 1"),
    ("tables: [people]\nsession: {beta: 1}\n", 2, "not a part", "between 0 and 1"),
    ("tables: [people]\nsession: {queries: 0}\n", 2, "out of range", "from 1 to"),
    ("tables: [people]\nsession: {epsilon: 1}\n", 2, "'epsilon' is not understood", "alpha, beta, queries"),
    ("tables: [people]\napprove_above: {people: 2}\n", 2, "not a part", "between 0 and 1"),
    ("tables: [people]\napprove_above: {people: much}\n", 2, "not a finite number", "0.5"),
    ("tables: [people]\nrates: {requests: 20}\n", 2, "no rate", "20/s"),
    ("tables: [people]\nrates: {requests: 0/s}\n", 2, "no rate", "20/s"),
    ("tables: [people]\nrates: {at_once: -1}\n", 2, "out of range", "from 1 to"),
    ("tables: [people]\nrates: {waiting: many}\n", 2, "not a whole number", "digits"),
    ("tables: [people]\nresponse_grid_ms: 0\n", 2, "out of range", "from 1 to"),
    ("tables: [people]\nown_sessions: maybe\n", 2, "not one of the choices", "true, false"),
    ("tables: [people]\nreleases: absent/\n", 2, "no such folder", "mkdir -p absent/"),
    ("tables: [people]\nboards: [absent.json]\n", 2, "no such file", "holdout create"),
]


@pytest.mark.parametrize(("text", "line", "problem", "remedy"), BAD)
def test_what_is_wrong_is_told_with_line_and_remedy(folder, text, line, problem, remedy):
    with pytest.raises(DeclarationError) as told:
        read(folder, text)
    assert told.value.line == line
    assert told.value.file == "server.yml"
    assert problem in told.value.problem
    assert remedy in told.value.remedy


def test_a_broken_declaration_is_told_as_its_own(folder):
    (folder / "people/understudy.yml").write_text("understudy: 1\nname: people\n")
    with pytest.raises(DeclarationError, match=r"understudy\.yml.*'source' is missing"):
        read(folder, "tables: [people]\n")


def test_without_a_file_the_project_of_the_folder_is_served_on_loopback(folder):
    found = ServerConfig.single(folder / "people")
    assert found == ServerConfig.single(folder / "people/understudy.yml")
    assert found.tables == {"people": folder / "people/understudy.yml"}
    assert all(address.is_loopback for address in found.listen.all.values())
    assert found.file is None
    assert (found.approve_above.people, found.releases) == (Fraction(1, 20), folder / "people")
    with pytest.raises(DeclarationError, match="understudy demo"):
        ServerConfig.single(folder / "boards")
    with pytest.raises(DeclarationError, match="no such file"):
        ServerConfig.read(folder / "absent.yml")


def test_the_state_is_found_without_reading_the_configuration(folder):
    (folder / "server.yml").write_text("tables: [")
    assert state_of(folder) == state_of(folder / "server.yml") == folder / "server.db"
