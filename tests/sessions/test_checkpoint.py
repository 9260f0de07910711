"""Checkpoints of sessions: who goes on from one knows what is known without; one that was changed is not used."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, update
from sqlalchemy.engine import URL

from counted import curator_of
from session_table import DOMAIN, TABLE, conjunction, curator, random_question
from session_worker import ledger_at, opened
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.ledger.export import verify
from understudy.ledger.schema import KEPT
from understudy.noise.samplers import SeededNoise
from understudy.privacy.event import LaplaceNoise
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions import checkpoint
from understudy.sessions.buyer import Buyer
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import _least_refined
from understudy.sessions.state_codec import read, written
from understudy.sessions.terms import ranges
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DURING = 14
"""Questions before the session stops."""


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(checkpoint, "EACH", 3)
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


@pytest.fixture
def path(tmp_path):
    pq.write_table(TABLE, tmp_path / "table.parquet")
    return tmp_path / "ledger.db"


def asked(seed, count):
    generator = np.random.default_rng(seed)
    by = [Marginal(DOMAIN, (name,)) for name in ("sex", "town")]
    return [*by, *(random_question(generator) for _ in range(count - 2))]


def lived(path, *, seed=3, questions=DURING):
    """A session that was asked something, and its answers."""
    session = opened(ledger_at(str(path)), seed=seed)
    return session, [session.ask_marginal(question) for question in asked(seed, questions)]


def state_of(session):
    """All that a session knows, in bytes."""
    return written(session._buyer._state(), session._buyer._fixed_objects())


def resumed(path, *, copied=""):
    """The session as another process finds it, in a copy of the ledger where one is named."""
    if copied:
        with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(path.with_name(copied))) as other:
            one.backup(other)
        path = path.with_name(copied)
    return opened(ledger_at(str(path)), seed=1)


def plain(answer, *, source=True):
    told = [answer.value.tolist(), answer.error.tolist(), answer.cost.units]
    reach = None if answer.population_error is None else answer.population_error.tolist()
    return [*told, reach, answer.population_beta, *([answer.source] if source else [])]


def checkpointed(session):
    """Write a checkpoint now, whether or not one is due."""
    with session._buyer.plans.at_rest():
        session._buyer._checkpoint.keep(session._buyer._state())


@pytest.mark.parametrize("seed", [3, 4])
def test_who_goes_on_says_what_is_said_by_who_never_stopped(path, seed):
    session, _ = lived(path, seed=seed)
    checkpointed(session)
    again = resumed(path, copied="copy.db")
    assert again.purchases == session.purchases > 2 * checkpoint.EACH
    assert state_of(again) == state_of(session)
    session._buyer.memory.free.clear()  # what is deduced is deduced again: that is all that is forgotten
    for one in (session, again):
        one.curator._noise = SeededNoise(99)
    for question in asked(seed + 100, 10):
        assert again.price(question) == session.price(question)
        assert plain(again.ask_marginal(question)) == plain(session.ask_marginal(question))
    assert state_of(again) == state_of(session)


def test_purchases_after_the_checkpoint_are_read_and_those_before_are_not(path, monkeypatch):
    session, _ = lived(path)
    kept = session._buyer._checkpoint._at
    assert 0 < kept <= session.purchases
    made, carry_out = [], Buyer._carry_out

    def counted(buyer, purchase, *given):
        made.append(purchase)
        return carry_out(buyer, purchase, *given)

    monkeypatch.setattr(Buyer, "_carry_out", counted)
    again = resumed(path)
    assert again.purchases == session.purchases
    assert len(made) == session.purchases - kept


def test_who_goes_on_counts_no_question_again_that_cost_nothing(path):
    """Free answers are deduced again by who goes on: for the allowance they are the same questions."""
    cells, counted = np.arange(10), []
    questions = [conjunction(age=(cells >= low) & (cells < high)) for low, high in combinations(range(11), 2)]
    for day in range(3):
        session = resumed(path)
        sources = [session.ask_marginal(question).source for question in questions]
        session.ask_marginal(conjunction(town=np.arange(6) == day, age=cells < 2))
        checkpointed(session)
        allowed = session._buyer.policy._allowance
        while allowed._waiting:
            allowed._count_waiting(56 + day)
        counted.append(allowed._counted)
        assert sources.count("implied") > 20
    assert counted == [55, 56, 57]  # everybody is a question that is public


@pytest.mark.parametrize(("announced", "is_kept"), [(marginals(2), True), (ranges("age"), False)])
def test_a_class_of_marginals_is_followed_by_a_checkpoint_at_once(path, monkeypatch, announced, is_kept):
    """It takes as long to read as many counts; other classes do not."""
    monkeypatch.setattr(checkpoint, "EACH", 1000)

    def opened_again():
        one = curator(ledger=ledger_at(str(path)), seed=3)
        return session_of(one, alpha=0.02, beta=1e-9, queries=100, name="mine", classes=(announced,))

    session = opened_again()
    assert session._buyer._checkpoint._at == is_kept * session.purchases
    session.curator.ledger.close()
    again = opened_again()
    assert again._buyer._checkpoint._at == is_kept * session.purchases
    assert again.purchases == session.purchases >= 1
    assert again._buyer._checkpoint.is_due is False
    assert state_of(again) == state_of(session)


def test_a_class_that_was_read_and_not_checkpointed_is_due_with_the_next_purchase(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EACH", 1000)
    one = curator(ledger=ledger_at(str(path)), seed=3)
    given = {"alpha": 0.02, "beta": 1e-9, "queries": 100, "name": "mine"}
    with monkeypatch.context() as dying:
        dying.setattr(checkpoint.SessionCheckpoint, "keep", lambda self, state: None)
        session_of(one, **given, classes=(marginals(2),)).curator.ledger.close()
    again = session_of(curator(ledger=ledger_at(str(path)), seed=4), **given, classes=(marginals(2),))
    assert again._buyer._checkpoint.is_due
    before = again.purchases
    again.ask_marginal(conjunction(age=np.arange(10) < 4, sex=np.arange(3) < 1, town=np.arange(6) < 2))
    assert again._buyer._checkpoint._at == again.purchases > before


def test_without_a_checkpoint_the_same_is_known(path, monkeypatch):
    """Population errors too: those of what was bought are of the moment when it was bought."""
    session, answers = lived(path)
    monkeypatch.setattr(checkpoint.SessionCheckpoint, "load", lambda self: None)
    again = resumed(path)
    assert again._buyer.asked == max(step["asked"] for step in session._buyer.journal.all())
    paid = session._buyer.memory.paid
    assert len(paid) > 3
    assert any(answer.population_error is not None for answer in paid.values())
    assert list(paid) == list(again._buyer.memory.paid)
    for mine, theirs in zip(paid.values(), again._buyer.memory.paid.values(), strict=True):
        assert plain(mine) == plain(theirs)
    for question, answer in zip(asked(3, DURING), answers, strict=True):
        if session._buyer.memory.find(question) in paid.values():
            repeated = again.ask_marginal(question)
            assert repeated.source == "repeat"
            assert plain(repeated, source=False)[:2] == plain(answer, source=False)[:2]
            assert plain(repeated)[3:5] == plain(answer)[3:5]


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state[:-1] + bytes([state[-1] ^ 1]),
        lambda state: state[: len(state) // 2],
        lambda state: b"",
        lambda state: b"{}\n" + state.partition(b"\n")[2],
    ],
)
def test_a_checkpoint_that_was_changed_is_not_used(path, damage):
    session, _ = lived(path)
    checkpointed(session)
    session.curator.ledger.close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as tx:
        largest = max(tx.execute(KEPT.select()).all(), key=lambda row: len(row.state or b""))
        tx.execute(update(KEPT).where(KEPT.c.number == largest.number).values(state=damage(largest.state)))
    engine.dispose()
    again = resumed(path)
    assert again._buyer._checkpoint._at == 0
    assert list(again._buyer.memory.paid) == list(session._buyer.memory.paid)
    for question in asked(200, 7):  # another checkpoint takes its place
        again.ask_marginal(question)
    assert resumed(path)._buyer._checkpoint._at > 0


def test_a_checkpoint_of_other_code_is_not_used(path, monkeypatch):
    lived(path)[0].curator.ledger.close()
    assert resumed(path, copied="mine.db")._buyer._checkpoint._at > 0
    monkeypatch.setattr(checkpoint, "code_version", lambda: "another")
    assert resumed(path, copied="other.db")._buyer._checkpoint._at == 0


def test_a_checkpoint_of_other_declarations_is_not_used(path, monkeypatch):
    lived(path)[0].curator.ledger.close()
    monkeypatch.setattr(
        "understudy.sessions.deduction.SessionPromise.fixed", property(lambda self: (self.rows + 1,))
    )
    assert resumed(path)._buyer._checkpoint._at == 0


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_while_it_writes_a_checkpoint_loses_nothing(path, monkeypatch, after):
    session = opened(ledger_at(str(path)), seed=3)
    ledger = session.curator.ledger
    advance = ledger.advance

    def dying(*given, **named):
        if after:
            advance(*given, **named)
        raise Killed

    monkeypatch.setattr(ledger, "advance", dying)
    answers = []
    with pytest.raises(Killed):
        answers.extend(map(session.ask_marginal, asked(3, DURING)))
    spent = ledger.spent
    again = resumed(path)
    assert again.curator.ledger.spent == spent
    assert again.purchases == session._buyer.journal.length
    assert (again._buyer._checkpoint._at > 0) == after
    assert list(again._buyer.memory.paid) == list(session._buyer.memory.paid)
    again.ask_marginal(asked(3, DURING)[len(answers)])  # what the dead process had bought and not said
    assert again.curator.ledger.spent == spent


def test_prices_write_nothing_and_a_ledger_with_checkpoints_verifies(path):
    session, _ = lived(path)
    ledger = session.curator.ledger
    assert any("checkpoint" in entry.question for entry in ledger.entries(kind="step", limit=1000))
    again = resumed(path)
    before = again.curator.ledger.end
    again.dry_run(asked(77, 6))
    assert again.curator.ledger.end == before
    again.curator.ledger.close()
    verdict = verify(URL.create("sqlite", database=str(path)), "t")
    assert verdict["sound"], verdict["problems"]


# ---- every kind of knowledge

TOWN = Domain(
    (
        Bins.between("age", [0, 18, 40, 65, 105]),
        Bins(name="pay", starts=(0.0, 10.0), upper=100.0, resolution=Fraction(1, 2)),
        Bins(name="born", starts=(dt.date(1950, 1, 1), dt.date(1980, 1, 1)), upper=dt.date(2010, 1, 1)),
        Categories(name="sex", values=("F", "M")),
    )
)
ROWS = 4000
PEOPLE = pa.table(
    {
        "age": np.arange(ROWS) % 100,
        "pay": (np.arange(ROWS) % 97) / 2,
        "born": [dt.date(1950 + i % 60, 1, 2) for i in range(ROWS)],
        "sex": np.where(np.arange(ROWS) % 3, "F", "M"),
    }
)
ASKED = (
    "count age < 28 and sex = 'F'",
    "count born < 1970-05-01",
    "SELECT sex, sum(pay), avg(pay) FROM t GROUP BY sex",
    "count by age, sex",
    "share sex = 'M' and age >= 40",
)


@pytest.mark.parametrize(
    ("declared", "classes"),
    [
        ({}, ()),
        ({"delta": 0.0}, ()),
        ({"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}, ()),
        ({}, (ranges("age"), marginals(2))),
    ],
    ids=["questions", "pure", "private rows", "classes"],
)
def test_whatever_a_session_knows_is_written_and_read(declared, classes):
    """Cuts, dates, measures, first looks, histograms and classes of every kind: nothing is left out."""
    source = Truth(in_memory(PEOPLE), TOWN)
    one = curator_of(source, **{"epsilon": 500.0, "delta": 1e-6, "seed": 2, **declared})
    session = session_of(one, alpha=0.02, queries=50, classes=classes)
    for question in ASKED:
        session.ask(question)
    known = session._buyer._fixed_objects()
    whole = state_of(session)
    again = read(whole, known)
    assert written(again, known) == whole
    knowledge, mine = again["knowledge"], session._known.knowledge
    assert {field.name for field in fields(mine)} == set(vars(knowledge)) == set(vars(mine))
    assert bool(knowledge.cuts) == bool(mine.cuts)
    assert list(knowledge.first_looks) == list(mine.first_looks)
    promise = replace(session._known, knowledge=knowledge)
    for question in ASKED:
        for marginal in _least_refined(session.curator.domain, session._reader.read(question).marginals):
            ours, theirs = session._known.intervals(marginal), promise.intervals(marginal)
            assert (ours is None) == (theirs is None)
            assert ours is None or (ours.low.tolist(), ours.high.tolist()) == (
                theirs.low.tolist(),
                theirs.high.tolist(),
            )


# ---- beside other sessions and other debits


@pytest.mark.parametrize("is_followed", [False, True], ids=["sums", "other look"])
def test_a_checkpoint_of_one_session_leaves_what_another_said_of_the_population(path, is_followed):
    """The error of what was bought is of the moment when it was bought, whoever skips that debit later."""
    mine = opened(ledger_at(str(path)), seed=3)
    theirs = session_of(mine.curator, alpha=0.02, beta=1e-9, queries=100, name="theirs")
    question, *others = asked(5, 9)[::-1]
    first = theirs.ask_marginal(question)
    assert first.population_error is not None
    for other in others:
        mine.ask_marginal(other)
    assert mine._buyer._checkpoint._at > 0
    if is_followed:
        noise = LaplaceNoise(scale=Fraction(10), l1=Fraction(1))
        mine.curator.ledger.charge(noise, question="something else", request="x")
    mine.curator.ledger.close()
    again = resumed(path)
    assert again._buyer._checkpoint._at > 0
    theirs = session_of(again.curator, alpha=0.02, beta=1e-9, queries=100, name="theirs")
    assert plain(theirs.ask_marginal(question), source=False)[3:] == plain(first, source=False)[3:]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_debit_of_the_name_of_a_checkpoint_keeps_no_session_from_opening(path, when):
    ledger = ledger_at(str(path))
    session = opened(ledger, seed=3)
    noise = LaplaceNoise(scale=Fraction(10), l1=Fraction(1))
    if when == "before":
        opened(ledger, seed=3).ask_marginal(asked(3, 3)[0])
    ledger.charge(noise, question="something else", request="mine#checkpoint")
    if when == "before":
        session = opened(ledger, seed=3)
    answers = [session.ask_marginal(question) for question in asked(3, DURING)]
    assert session.purchases > 2 * checkpoint.EACH
    ledger.close()
    again = resumed(path)
    assert again._buyer._checkpoint._at == 0
    assert again.purchases == session.purchases
    assert again.ask_marginal(asked(3, DURING)[0]).value.tolist() == answers[0].value.tolist()
