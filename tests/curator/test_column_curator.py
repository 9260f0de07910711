"""The door to columns that nobody declared: charge, then look; noise on everything; keys of enough people only."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.curator.column_curator import ColumnCurator
from understudy.declaration.declaration import SourceSpec
from understudy.domain.intake import Intake
from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.key_selection import keys_moved
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import rho
from understudy.privacy.key_event import GaussianKeys
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.table.column_reader import WRITINGS, ColumnReader, NumberReading, ValueKind
from understudy.table.source import in_memory, open_source

ADD = Relation(Neighbours.ADD_REMOVE)
REPLACE = Relation(Neighbours.REPLACE)
BUDGET = Budget.of(10, 1e-6, key_delta=5e-7)
PRICE = Price("rho", Fraction(1, 10))


def people(rows: int = 4_000):
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "person": [f"p{i // 4}" for i in range(rows)],
            "town": [("Ulm", "Bonn", "Kiel")[min(int(rng.geometric(0.6)) - 1, 2)] for _ in range(rows)],
            "rare": [f"only {i}" if i % 2 else "common" for i in range(rows)],
            "age": rng.integers(20, 60, rows),
        }
    )


class Watched(ColumnReader):
    """A reader that says what the ledger held when it was asked to look."""

    def __init__(self, source, ledger) -> None:
        super().__init__(source)
        self.ledger, self.seen = ledger, []

    def keys(self, column, at_least):
        self.seen.append(self.ledger.spent.units)
        return super().keys(column, at_least)

    def numbers(self, readings, share):
        self.seen.append(self.ledger.spent.units)
        return super().numbers(readings, share)

    def writings(self, columns):
        self.seen.append(self.ledger.spent.units)
        return super().writings(columns)


@pytest.fixture
def door():
    ledger = MemoryLedger(BUDGET)
    reader = Watched(in_memory(people()), ledger)
    return ColumnCurator(reader, ledger, ADD, noise=SeededNoise(1)), reader


def test_keys_are_paid_for_before_the_table_is_looked_at_and_once(door):
    curator, reader = door
    asked = {"delta": 1e-7, "at_least": 10, "request": "keys"}
    found = curator.keys(["town", "rare"], PRICE, 1.0, **asked)
    assert found["town"].labels[0] == "Ulm"
    assert set(found["town"].labels) <= {"Ulm", "Bonn", "Kiel"}
    assert found["rare"].labels == ("common",)
    assert found["rare"].counts[0] == pytest.approx(2_000, abs=6 * found["rare"].error)
    assert found["rare"].texts == pytest.approx(4_000, rel=0.05)
    assert all(spent > 0 for spent in reader.seen)
    spent, own, looks = curator.ledger.spent, curator.ledger.delta_spent, len(reader.seen)
    assert rho(curator.ledger.find("keys").event) <= PRICE.amount
    assert 0 < own <= Fraction(1, 10**7)
    assert curator.keys(["town", "rare"], PRICE, 1.0, **asked) == found
    assert (curator.ledger.spent, curator.ledger.delta_spent, len(reader.seen)) == (spent, own, looks)


def test_no_key_is_told_below_the_threshold_nor_of_fewer_people(door):
    curator, _ = door
    found = curator.keys(["town", "rare"], PRICE, 1.0, delta=1e-7, at_least=900, request="keys")
    for keys in found.values():
        assert all(count >= keys.threshold >= 900 for count in keys.counts)
    assert "Kiel" not in found["town"].labels or people()["town"].to_pylist().count("Kiel") >= 900


def test_what_the_ledger_cannot_pay_is_not_looked_at():
    for budget, word in ((Budget.of(10), "pure epsilon"), (Budget.of(10, 1e-6), "turns rho")):
        ledger = MemoryLedger(budget)
        reader = Watched(in_memory(people()), ledger)
        curator = ColumnCurator(reader, ledger, ADD)
        price = PRICE if not budget.is_pure else Price("epsilon", Fraction(1))
        with pytest.raises(RefusedError, match=word):
            curator.keys(["town"], price, 1.0, delta=1e-7, request="keys")
        assert reader.seen == []
        assert ledger.spent.units == 0
    ledger = MemoryLedger(BUDGET)
    reader = Watched(in_memory(people()), ledger)
    with pytest.raises(InsufficientBudgetError):
        ColumnCurator(reader, ledger, ADD).profiles(
            {"age": NumberReading(ValueKind.WHOLE)}, Price("rho", Fraction(100)), 1.0, request="numbers"
        )
    assert reader.seen == []


def test_profiles_and_writings_are_paid_for_first_and_have_noise():
    told = []
    for seed in (1, 2):
        ledger = MemoryLedger(BUDGET)
        reader = Watched(in_memory(people()), ledger)
        curator = ColumnCurator(reader, ledger, REPLACE, noise=SeededNoise(seed))
        profile = curator.profiles({"age": NumberReading(ValueKind.WHOLE)}, PRICE, 1.0, request="n")["age"]
        writing = curator.writings(["town", "rare"], PRICE, 1.0, request="w")
        assert all(spent > 0 for spent in reader.seen)
        assert profile.low <= 21
        assert profile.high >= 58
        assert writing["town"][WRITINGS.index("text")] == pytest.approx(4_000, rel=0.05)
        told.append((profile, tuple(writing["town"]), tuple(writing["rare"])))
    assert told[0] != told[1]


def test_the_number_of_rows_is_public_or_bought(door):
    curator, _ = door
    with pytest.raises(RefusedError, match="private"):
        _ = curator.rows
    assert curator.about_rows(PRICE, request="rows") == pytest.approx(4_000, rel=0.02)
    assert ColumnCurator(ColumnReader(in_memory(people(7))), MemoryLedger(BUDGET), REPLACE).rows == 7


def test_a_person_of_several_rows_is_not_taken_for_one():
    reader, ledger = ColumnReader(in_memory(people())), MemoryLedger(BUDGET)
    with pytest.raises(ParameterError, match="each row is one person"):
        ColumnCurator(reader, ledger, Relation(Neighbours.ADD_REMOVE, 3))
    with pytest.raises(RefusedError, match="add-remove"):
        ColumnCurator(reader, ledger, REPLACE).keys_of_people(
            "town", PRICE, unit="person", keys_each=2, delta=1e-7, request="k"
        )


# ---------------------------------------------------------------------------------------- people of many keys


def test_keys_of_people_count_each_person_once_for_a_key(door):
    curator, _ = door
    found = curator.keys_of_people(
        "rare", PRICE, unit="person", keys_each=3, delta=1e-7, at_least=5, request="people"
    )
    assert found.labels == ("common",)
    # Each of the 1,000 people has `common` twice and two rare texts: three keys, of which all count.
    assert found.counts[0] == pytest.approx(1_000, abs=6 * found.error)
    event = curator.ledger.find("people").event
    assert isinstance(event, GaussianKeys)
    assert (event.keys, event.l2_squared) == (3, 3)


@pytest.mark.parametrize("unit", [["Jos\u00e9", "Jose\u0301"], [0.0, -0.0]], ids=["composed", "zero"])
def test_a_person_who_is_written_in_two_ways_counts_once(unit):
    reader = ColumnReader(in_memory(pa.table({"p": unit, "k": ["x", "x"]})))
    labels, counts = reader.keys_of_people("k", "p", 1, 1, key="salt")
    assert (labels, counts.tolist()) == (["x"], [1])
    reader.source.close()


rows_of_people = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("wxyz")), max_size=12)


@given(rows_of_people, rows_of_people, st.integers(1, 3))
@settings(max_examples=10)
def test_one_person_moves_the_people_of_few_keys_by_one(rows, more, keys_each):
    """The sensitivity that the noise is made for: who is added moves at most so many keys, by one each."""
    person = [("new", key) for _, key in more]

    def counted(table):
        frame = (
            pa.table({"p": [r[0] for r in table], "k": [r[1] for r in table]})
            if table
            else pa.table({"p": pa.array([], pa.string()), "k": pa.array([], pa.string())})
        )
        reader = ColumnReader(in_memory(frame))
        labels, counts = reader.keys_of_people("k", "p", keys_each, 1, key="salt")
        reader.source.close()
        return Counter(dict(zip(labels, counts.tolist(), strict=True)))

    before, after = counted(rows), counted(rows + person)
    step = {key: after[key] - before[key] for key in after.keys() | before.keys()}
    assert all(move in (0, 1) for move in step.values())
    assert sum(step.values()) <= keys_moved(ADD, keys_each)


# ---------------------------------------------------------------------------------------- reading text


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("", "missing"), ("  ", "missing"), ("12", "whole"), (" -7 ", "whole"), ("1.5", "real"), ("1e9", "real"),
        ("yes", "flag"), ("2024-02-29", "day"), ("2024-02-30", "text"), ("31/12/2024", "day/month"),
        ("12/31/2024", "month/day"), ("1/2/2024", "day or month"), ("31.12.2024", "day.month"),
        ("2024-02-29 12:30:00", "moment"), ("1,234.5", "thousands"), ("1.234,5", "comma"), ("3,5", "comma"),
        ("$1,200", "currency"), ("€ 3.50", "currency"), ("€ 3,50", "currency comma"), ("N/A", "text"),
        ("20%", "per cent"), ("-3 %", "per cent"), ("13.5%", "per cent point"), ("13,5 %", "per cent comma"),
        ("%", "text"), ("a%", "text"), ("007", "code"), ("01067", "code"), ("1" * 19, "code"), ("0", "whole"),
        ("1" * 18, "whole"), ("-07", "whole"), ("17.0", "whole point"), ("17.", "whole point"), ("007.5", "real"),
    ],
)  # fmt: skip
def test_each_text_is_written_in_one_way(text, writing, tmp_path: Path):
    (tmp_path / "t.csv").write_text(f'a,b\n"{text}",x\n')
    reader = ColumnReader(open_source(SourceSpec("t.csv"), base=tmp_path))
    counts, other = reader.writings(["a", "b"])
    assert counts.sum() == 1
    assert other[WRITINGS.index("text")] == other.sum() == 1
    assert WRITINGS[int(counts.argmax())] == writing


@pytest.mark.parametrize(
    ("texts", "reading", "numbers"),
    [
        (["1", "2.5", "x", ""], NumberReading(ValueKind.REAL), [1, 2.5]),
        (["1,234.5", "7", "1,2"], NumberReading(ValueKind.REAL, Intake(thousands=",")), [7, 1234.5]),
        (["€ 1.234,50", "3,5"], NumberReading(ValueKind.REAL, Intake(strip=("€",), decimal=",", thousands=".")),
         [3.5, 1234.5]),
        (["1970-01-03", "1969-12-31", "?"], NumberReading(ValueKind.DAY), [-1, 2]),
        (["1970-01-03 23:59:00", "1969-12-31T01:00:00"], NumberReading(ValueKind.MOMENT), [-82_800, 259_140]),
    ],
)  # fmt: skip
def test_numbers_are_read_as_the_declaration_will_read_them(texts, reading, numbers, tmp_path: Path):
    lines = "".join(f'"{text}",x\n' for text in texts)
    (tmp_path / "t.csv").write_text(f"a,b\n{lines}")
    reader = ColumnReader(open_source(SourceSpec("t.csv"), base=tmp_path))
    for held in (False, True):
        if held:
            reader.sample(1.0)
        ((name, chunks, missing),) = reader.numbers({"a": reading}, 1.0)
        assert name == "a"
        assert np.concatenate(chunks).tolist() == numbers
        assert missing == len(texts) - len(numbers)
    reader.forget()


def test_a_sample_has_about_its_share_of_the_rows():
    reader = ColumnReader(in_memory(people(40_000)))
    ((_, chunks, missing),) = reader.numbers({"age": NumberReading(ValueKind.WHOLE)}, 0.25)
    assert sum(chunk.size for chunk in chunks) + missing == pytest.approx(10_000, rel=0.1)
    assert reader.share(1e9, 300) < 0.001
    assert reader.share(1000, 300) == 1.0
