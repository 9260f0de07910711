"""The two faces of errors: what an analyst may read, and what is for whoever runs the program."""

from __future__ import annotations

import ast
import pickle
import re
import shutil
import socket
import sqlite3
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from sqlalchemy.engine import URL

import understudy as us
from understudy import errors
from understudy.declaration.file import parse
from understudy.errors import (
    DomainError,
    InsufficientBudgetError,
    LedgerError,
    QueryError,
    SourceChangedError,
    SourceError,
    UnderstudyError,
)
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise

TEXT = """\
understudy: 1
name: town
source: {source}
budget: {{epsilon: 10}}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"age": [10, 30, 70, 40] * 10, "sex": ["F", "M", "F", "F"] * 10})
CODE = Path(us.__file__).parent


def tree(of: type[UnderstudyError] = UnderstudyError) -> list[type[UnderstudyError]]:
    """The classes of `errors.py`, which are the public ones."""
    below = [found for kind in of.__subclasses__() for found in tree(kind)]
    return [kind for kind in (of, *below) if kind.__module__ == errors.__name__ and kind.__name__[0] != "_"]


def opened(tmp_path: Path, source: str) -> us.Project:
    file = tmp_path / "understudy.yml"
    file.write_text(TEXT.format(source=source))
    return us.open(file)


def project() -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT.format(source="t.csv")))


def check_public(error: UnderstudyError, *secrets: object) -> None:
    """What an analyst reads is whole, and holds none of these."""
    shown = " ".join([error.problem, error.remedy, *error.suggestions])
    assert re.fullmatch("[a-z]+(-[a-z]+)*", error.code)
    assert error.problem
    assert not error.problem.endswith(".")
    for secret in secrets:
        assert str(secret) not in shown
    for word in (
        "/",
        "\\",
        "SQLITE",
        "sqlite",
        "postgres",
        "duckdb",
        "SELECT ",
        "psycopg",
        ".csv",
        ".ledger",
    ):
        assert word not in shown, shown


def test_every_class_has_a_code_of_its_own_and_stands_in_the_tree():
    codes = [kind.code for kind in tree()]
    assert len(set(codes)) == len(codes) > 15
    for kind in tree():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", kind.code)
        assert "code" in vars(kind)
        assert kind.__name__ in (errors.__doc__ or "")


def test_codes_do_not_change():
    """Doors and clients go by them."""
    assert {kind.__name__: kind.code for kind in tree()} == {
        "UnderstudyError": "error",
        "ParameterError": "parameter",
        "DomainError": "domain",
        "DeclarationError": "declaration",
        "QueryError": "question",
        "TooLargeError": "too-large",
        "TooLongError": "too-long",
        "StatementError": "statement",
        "SourceError": "source",
        "SourceChangedError": "source-changed",
        "LedgerError": "ledger",
        "StoreError": "store",
        "ServerError": "server",
        "RefusedError": "refused",
        "InsufficientBudgetError": "budget",
        "PriceRoseError": "price-rose",
        "RefusedAfterChargeError": "refused-after-charge",
        "RequestConflictError": "request-conflict",
        "OvertakenError": "overtaken",
        "HandleClosedError": "handle-closed",
        "UnreadableError": "unreadable",
        "ClosedError": "closed",
        "ProtectionError": "protection",
        "AccessError": "access",
        "ApprovalNeededError": "approval",
    }


PLACES = {"path", "file", "folder", "location", "url", "strerror", "database", "place", "submission", "cause"}
"""Names of variables that hold a place on the custodian's machine, or a driver's words."""

LOCAL = ("cli", "output.py", "planner/frontier.py", "answer/writing.py")
"""Rooms and files whose errors are about files of whoever runs the program; no door calls them."""


def public_parts(call: ast.Call, kind: str) -> list[ast.expr]:
    """The arguments of an error that an analyst may read."""
    named = {word.arg: word.value for word in call.keywords}
    if kind in ("LedgerError", "StoreError"):
        return []
    first = [] if issubclass(getattr(errors, kind), SourceError) else call.args
    return [*first, *(named[word] for word in ("problem", "remedy", "suggestions", "text") if word in named)]


def test_no_raise_site_puts_a_place_into_what_an_analyst_reads():
    kinds = {kind.__name__ for kind in tree()}
    sites = 0
    for file in CODE.rglob("*.py"):
        if str(file.relative_to(CODE)).startswith(LOCAL):
            continue
        for call in ast.walk(ast.parse(file.read_text())):
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Name)
                or call.func.id not in kinds
            ):
                continue
            sites += 1
            for part in public_parts(call, call.func.id):
                words = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
                words |= {n.attr for n in ast.walk(part) if isinstance(n, ast.Attribute)}
                allowed: set[str] = {"place"} if file.name == "date_format.py" else set()
                allowed |= {"path"} if file.name == "board.py" else set()  # the name of one to be created
                assert not words & (PLACES - allowed), f"{file}:{call.lineno}"
    assert sites > 400


def test_an_error_survives_a_process():
    for made in (QueryError("a", remedy="b", suggestions=("c",)), SourceError("/secret", problem="p")):
        found = pickle.loads(pickle.dumps(made))
        assert (str(found), found.__dict__) == (str(made), made.__dict__)


# ---- questions: what to write instead


@pytest.mark.parametrize(
    ("question", "suggestions"),
    [
        ("count agee < 18", ("age",)),
        ("count age < 17.5", ()),
        ("count sex = f", ("F",)),
        ("SELECT count(*) FROM town WHERE agee < 18", ("age",)),
        ("SELECT count(*) FROM twon", ("town",)),
        ("SELECT max(age) FROM town", ("quantile_disc(age, 0.99)",)),
        ("SELECT count(*) FROM town WHERE flor(age) < 18", ("floor",)),
        ("SELECT stddev(age) FROM town", ()),
    ],
)
def test_a_refused_question_says_what_could_be_written(question, suggestions):
    with pytest.raises(QueryError) as refused:
        project().ask(question)
    assert refused.value.code == "question"
    assert refused.value.suggestions == suggestions
    assert refused.value.remedy
    assert str(refused.value) in (
        f"{refused.value.problem}; {refused.value.remedy}",
        f"{refused.value.problem}. {refused.value.remedy}",
    )


def test_an_unknown_attribute_of_a_domain_is_told_the_close_ones():
    with pytest.raises(DomainError, match="there is no attribute 'ag'; the domain has: age, sex") as refused:
        _ = project().domain["ag"]
    assert refused.value.suggestions == ("age",)


def test_budgets_tell_their_numbers_apart_from_the_remedy():
    with pytest.raises(InsufficientBudgetError) as refused:
        project().ask("count sex = F", epsilon=11)
    check_public(refused.value)
    assert refused.value.problem == "this costs epsilon 11 and 10 remains"
    assert refused.value.remedy == "Ask with a smaller price, or for a wider error"
    assert "Nothing was spent" in str(refused.value)


# ---- tables and ledgers that fail: the custodian reads why, an analyst does not


def test_a_missing_file(tmp_path):
    with pytest.raises(SourceError) as failed:
        opened(tmp_path, "town.csv")
    check_public(failed.value, tmp_path, "No such file")
    assert str(tmp_path / "town.csv") in str(failed.value)


def test_a_broken_parquet_file(tmp_path):
    (tmp_path / "town.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(SourceError) as failed:
        opened(tmp_path, "town.parquet").ask("count")
    check_public(failed.value, tmp_path, "Parquet", "town.parquet")


def test_a_table_that_went_away_or_changed(tmp_path):
    FRAME.to_csv(tmp_path / "town.csv", index=False)
    asked = opened(tmp_path, "town.csv")
    pd.concat([FRAME, FRAME]).to_csv(tmp_path / "town.csv", index=False)
    with pytest.raises(SourceChangedError) as failed:
        asked.ask("count sex = F")
    check_public(failed.value, tmp_path)
    assert failed.value.code == "source-changed"
    (tmp_path / "town.csv").unlink()
    with pytest.raises(SourceError) as failed:
        asked.ask("count sex = M")
    check_public(failed.value, tmp_path)
    asked.ledger.close()  # type: ignore[attr-defined]


def test_an_engine_that_fails(tmp_path):
    with duckdb.connect(str(tmp_path / "town.duckdb")) as made:
        made.execute("CREATE VIEW town AS SELECT error('Ada Lovelace is ill') AS age, 'F' AS sex")
    file = tmp_path / "understudy.yml"
    file.write_text(TEXT.format(source="town.duckdb\ntable: town"))
    with pytest.raises(SourceError) as failed:
        us.open(file).ask("count age < 18")
    check_public(failed.value, "Ada", tmp_path)
    assert "Ada" not in str(failed.value)


def test_a_postgres_server_that_is_down(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    file = tmp_path / "understudy.yml"
    file.write_text(TEXT.format(source=f"postgresql://ada@127.0.0.1:{port}/town\ntable: town"))
    with pytest.raises(SourceError) as failed:
        us.open(file)
    check_public(failed.value, port, "ada", "127.0.0.1")
    url = URL.create("postgresql+psycopg", host="127.0.0.1", port=port, username="ada", database="books")
    with pytest.raises(LedgerError) as lost:
        DurableLedger(url, "town", Budget(Fraction(1)))
    check_public(lost.value, port, "ada", "books")


def test_a_locked_sqlite_ledger(tmp_path):
    place = tmp_path / "understudy.ledger"
    ledger = DurableLedger(
        URL.create("sqlite", database=str(place)), "town", Budget(Fraction(1)), timeout=0.05
    )
    event = LaplaceNoise(l1=Fraction(1), scale=Fraction(10))
    ledger.charge(event, question="q", request="one")
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LedgerError) as failed:
            ledger.charge(event, question="q", request="two")
    finally:
        other.close()
        ledger.close()
    check_public(failed.value, tmp_path, place.name)
    assert str(place) in str(failed.value)


def test_a_damaged_ledger(tmp_path):
    place = tmp_path / "understudy.ledger"
    url = URL.create("sqlite", database=str(place))
    ledger = DurableLedger(url, "town", Budget(Fraction(1)))
    ledger.charge(LaplaceNoise(l1=Fraction(1), scale=Fraction(10)), question="q", request="one")
    ledger.close()
    with open(place, "r+b") as file:
        file.write(b"nothing that SQLite can read")
    with pytest.raises(LedgerError) as failed:
        DurableLedger(url, "town", Budget(Fraction(1)))
    check_public(failed.value, tmp_path)
    shutil.rmtree(tmp_path)
