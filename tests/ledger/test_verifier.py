"""Nobody changes, drops, adds or reorders anything in a ledger, or in an export, unseen by the verifier."""

from __future__ import annotations

import ast
import copy
import json
import sqlite3
import subprocess
import sys
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import URL

from ledger.forging import resealed
from understudy.errors import LedgerError, ParameterError
from understudy.ledger import export, pld, verifier
from understudy.ledger.chain import canonical
from understudy.ledger.store import DurableLedger
from understudy.privacy.accounting_rule import RULE_1, RULE_2, RULE_3, RULE_4, RULE_5
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, concentrated, pure
from understudy.privacy.event import (
    GaussianNoise,
    LaplaceNoise,
    Located,
    RandomizedReport,
    Selection,
    Span,
    SparseVector,
    SpentBefore,
    Together,
)
from understudy.privacy.joint import Joint
from understudy.privacy.recording import as_plain, from_plain

LAPLACE = LaplaceNoise(l1=Fraction(2), scale=Fraction(30))
GAUSS = GaussianNoise(l2_squared=Fraction(2), variance=Fraction(400))


def written(url: URL, budget: Budget, *, opening=Fraction(1, 8)) -> None:
    """A ledger with every kind of entry."""
    ledger = DurableLedger(url, "people", budget, opening=opening)
    noise = LAPLACE if budget.is_pure else GAUSS
    for i, event in enumerate((LAPLACE, Together((noise, Selection(epsilon=Fraction(1, 7)))), noise)):
        debit = ledger.charge(event, question=f"count {i}", request=f"r{i}", analyst="ada")
        if i != 1:  # one look was lost in a crash
            ledger.settle(debit, json.dumps([i, 40 + i]).encode())
    handle = ledger.charge(SparseVector(epsilon=Fraction(1, 50)), question="sparse", request="h")
    ledger.settle(handle, b"opened", hidden=b"the hidden threshold 1")
    for step in range(2):
        ledger.advance(
            handle,
            step=step,
            question=f"above {step}",
            answer=b"false",
            state=b"the hidden threshold %d" % (step + 2),
        )
    ledger.close()


@pytest.fixture(scope="module", params=["pure", "rho"])
def ledger(request, tmp_path_factory) -> tuple[URL, dict]:
    url = URL.create("sqlite", database=str(tmp_path_factory.mktemp(request.param) / "understudy.ledger"))
    written(url, Budget.of(1) if request.param == "pure" else Budget.of(1, 1e-6))
    return url, export.document(url, "people")


def problems(document: dict) -> list[str]:
    return verifier.verify(document)["problems"]


def others(value):
    """Values that differ from `value`, of its own type and of another."""
    if isinstance(value, int):
        return [value + 1, value - 1, str(value), None]
    if isinstance(value, str):
        flipped = value[:-1] + ("0" if value[-1:] != "0" else "1")
        return [flipped, "", value + " ", None]
    return [0, 1, "", "x"]


def test_a_ledger_is_sound_as_written(ledger):
    url, document = ledger
    assert problems(document) == []
    verdict = export.verify(url, "people")
    assert verdict["sound"]
    assert (verdict["debits"], verdict["answers_checked"], verdict["entries"]) == (4, 5, 10)
    assert verdict["spent_units"] == document["entries"][-1]["total"]


def test_every_change_of_every_field_is_seen(ledger):
    _, document = ledger
    for place, entry in enumerate(document["entries"]):
        for name, value in entry.items():
            for other in others(value):
                if other == value:
                    continue
                forged = copy.deepcopy(document)
                forged["entries"][place][name] = other
                assert problems(forged), (place, name, other)
        for forged_entry in ({**entry, "more": 1}, {k: v for k, v in entry.items() if k != "at"}, None, 7):
            forged = copy.deepcopy(document)
            forged["entries"][place] = forged_entry
            assert problems(forged), (place, forged_entry)


def test_removing_repeating_reordering_and_truncating_is_seen(ledger):
    _, document = ledger
    entries = document["entries"]
    for i in range(len(entries)):
        for changed in (
            entries[:i] + entries[i + 1 :],
            entries[:i],
            entries[: i + 1] + entries[i:],
            entries[:i] + entries[i + 1 : i + 2] + entries[i : i + 1] + entries[i + 2 :],
        ):
            if changed != entries:
                assert problems({**document, "entries": changed}), i


def test_every_change_of_answers_head_and_name_is_seen(ledger):
    _, document = ledger
    for number, kept in document["answers"].items():
        for other in (None, "", kept[:-2] + "==", "AAAA", "?"):
            answers = {**document["answers"], number: other}
            if other is None:
                del answers[number]
            if answers != document["answers"]:
                assert problems({**document, "answers": answers}), (number, other)
    for number in ("99", "1", "2", "x"):
        assert problems({**document, "answers": {**document["answers"], number: "AAAA"}})
    assert problems({**document, "head": {**document["head"], "entries": 3}})
    assert problems({**document, "head": {}})
    assert problems({**document, "table": "other"})


def lowered(entries) -> None:
    entries[1]["cost"] -= 10**12
    for entry in entries[1:]:
        entry["total"] -= 10**12


def repriced(entries) -> None:
    entries[1]["event"] = canonical(as_plain(Selection(epsilon=Fraction(1, 10**6))))


def overspent(entries) -> None:
    epsilon = Fraction(1000)
    entries[0]["event"] = canonical(as_plain(SpentBefore(epsilon=epsilon)))
    more = ceil(
        (epsilon if "epsilon" in json.loads(entries[0]["terms"])["currency"] else epsilon**2 / 2) * UNITS
    )
    more -= entries[0]["cost"]
    for entry in entries:
        entry["total"] += more
    entries[0]["cost"] += more


def raised_cap(entries) -> None:
    terms = json.loads(entries[0]["terms"])
    terms["cap"] = terms["cap"] * 102 // 100
    entries[0]["terms"] = canonical(terms)


def second_answer(entries) -> None:
    entries.append(copy.deepcopy(next(e for e in entries if e["kind"] == "answer")))
    entries[-1].update(at=entries[-2]["at"], total=entries[-2]["total"])


def repeated_request(entries) -> None:
    debits = [entry for entry in entries if entry["kind"] == "debit"]
    debits[1]["request"] = debits[0]["request"]


def skipped_step(entries) -> None:
    entries[-1]["step"] += 1


def backwards(entries) -> None:
    entries[-1]["at"] = "2000-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    "change",
    [lowered, repriced, overspent, raised_cap, second_answer, repeated_request, skipped_step, backwards],
)
def test_a_forger_who_recomputes_the_hashes_still_cannot_make_it_add_up(ledger, change):
    _, document = ledger
    assert problems(resealed(document, lambda entries: None)) == []
    assert problems(resealed(document, change))


def test_a_forged_ledger_that_adds_up_has_another_last_hash(ledger):
    _, document = ledger

    def renamed(entries) -> None:
        entries[1]["analyst"] = "bob"

    forged = resealed(document, renamed)
    assert problems(forged) == []  # consistent in itself: only a hash kept elsewhere can tell
    assert verifier.report(forged, document["head"]["hash"])[1] == 1
    assert verifier.report(document, document["head"]["hash"])[1] == 0


def test_every_change_in_the_store_is_seen(tmp_path):
    url = URL.create("sqlite", database=str(tmp_path / "understudy.ledger"))
    written(url, Budget.of(1))
    whole = Path(url.database).read_bytes()
    raw = sqlite3.connect(url.database)
    changes = []
    for table, key in (
        ("understudy_entry", "number"),
        ("understudy_kept", "number"),
        ("understudy_ledger", "name"),
    ):
        rows = raw.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in rows.description]
        for row in rows.fetchall():
            found = dict(zip(names, row, strict=True))
            changes.append((f"DELETE FROM {table} WHERE {key} = ?", [found[key]]))
            for name, value in found.items():
                fresh = b"other" if isinstance(value, bytes) else others(value)[0]
                changes.append((f"UPDATE {table} SET {name} = ? WHERE {key} = ?", [fresh, found[key]]))
    raw.close()
    assert len(changes) > 150
    for statement, values in changes:
        Path(url.database).write_bytes(whole)
        raw = sqlite3.connect(url.database)
        try:
            raw.execute(statement, values)
            raw.commit()
        except sqlite3.IntegrityError:
            continue  # the store itself refuses
        finally:
            raw.close()
        assert not export.verify(url, "people")["sound"], (statement, values)


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(path), *arguments], capture_output=True, text=True, check=False
    )


def test_the_exported_file_verifies_itself_with_nothing_but_python(ledger, tmp_path):
    url, document = ledger
    text = export.self_contained(document)
    path = tmp_path / "exported.py"
    path.write_text(text, encoding="utf-8")
    done = run(path, document["head"]["hash"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SOUND" in done.stdout
    assert run(path, "0" * 64).returncode == 1
    for secret in ("hidden threshold", "hidden%20", "salt"):
        assert secret not in text.replace("a salted hash", "")
    raw = sqlite3.connect(url.database)
    for (salt,) in raw.execute("SELECT salt FROM understudy_kept WHERE salt IS NOT NULL"):
        assert salt.hex() not in text
    raw.close()
    short = export.self_contained({**document, "answers": None})
    (tmp_path / "short.py").write_text(short, encoding="utf-8")
    assert "answers checked against their hashes: 0" in run(tmp_path / "short.py").stdout


def test_every_change_in_the_exported_file_is_seen(ledger, tmp_path):
    _, document = ledger
    text = export.self_contained(document)
    lines = text.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith("ENTRIES = ["))
    last = next(i for i, line in enumerate(lines) if i > first and line.startswith("]"))

    def status(changed: str) -> int:
        space = {"__name__": "exported"}
        exec(compile(changed, "exported.py", "exec"), space)
        return space["report"](space["DOCUMENT"])[1]

    assert status(text) == 0
    for i in range(first + 1, last):
        assert status("".join(lines[:i] + lines[i + 1 :])) == 1
        assert status("".join(lines[:i] + lines[last:])) == 1
        position = lines[i].index('"cost": ') + len('"cost": ')
        assert (
            status("".join([*lines[:i], lines[i][:position] + "9" + lines[i][position:], *lines[i + 1 :]]))
            == 1
        )
    forged = tmp_path / "forged.py"
    forged.write_text(text.replace("count 1", "count 2"), encoding="utf-8")
    done = run(forged)
    assert done.returncode == 1
    assert "NOT SOUND" in done.stdout


def test_the_verifier_uses_the_standard_library_only():
    tree = ast.parse(Path(verifier.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.module in sys.stdlib_module_names
            assert node.level == 0


NUMBERS = st.fractions(0, 50, max_denominator=10**6)
POSITIVE = st.fractions(Fraction(1, 1000), 10**6, max_denominator=10**6)
ONE_EVENT = st.one_of(
    st.builds(LaplaceNoise, l1=NUMBERS, scale=POSITIVE),
    st.builds(GaussianNoise, l2_squared=NUMBERS, variance=POSITIVE),
    *(st.builds(kind, epsilon=NUMBERS) for kind in (Selection, SparseVector, RandomizedReport, SpentBefore)),
    st.builds(
        SparseVector,
        epsilon=NUMBERS,
        hits=st.integers(1, 5000),
        told=st.fractions(0, 1, max_denominator=20),
    ),
)
ANY_EVENT = st.recursive(
    ONE_EVENT, lambda e: st.builds(Together, st.lists(e, max_size=4).map(tuple)), max_leaves=6
)


@pytest.mark.parametrize(
    "numbers",
    [
        {"hits": "0"},
        {"hits": "3/2"},
        {"told": "2"},
        {"runs": "2"},
        {"hits": "1e9"},
        {"hits": 3},
        {"hits": "-2"},
    ],
    ids=str,
)
def test_a_sparse_vector_that_cannot_be_is_not_priced(numbers):
    event = {"event": "SparseVector", "epsilon": "1"} | numbers
    with pytest.raises(verifier.Wrong):
        verifier.price(event, "rho")
    with pytest.raises(ParameterError):
        from_plain(event)


def test_the_verifier_prices_sparse_vectors_by_their_runs():
    of = {"event": "SparseVector", "epsilon": "1"}
    assert verifier.price(of, "rho") == Fraction(1, 2)  # as every ledger of version 0.1 recorded it
    assert verifier.price(of | {"hits": "10"}, "rho") == Fraction(1, 20)
    assert verifier.price(of | {"hits": "10", "told": "1/9"}, "rho") == Fraction(65, 1620)
    assert verifier.price(of | {"hits": "10", "told": "1/9"}, "epsilon") == 1


@given(ANY_EVENT)
def test_the_verifier_s_own_formulas_agree_with_the_product_s(event):
    plain = json.loads(canonical(as_plain(event)))
    assert ceil(verifier.price(plain, "rho") * UNITS) == concentrated(event).units
    try:
        expected = pure(event).units
    except Exception:  # Gaussian noise
        with pytest.raises(verifier.Wrong):
            verifier.price(plain, "epsilon")
    else:
        assert ceil(verifier.price(plain, "epsilon") * UNITS) == expected


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4, 20, 300])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-40])
def test_the_verifier_s_own_cap_agrees_with_the_product_s(epsilon, delta):
    budget = Budget.of(epsilon, delta)
    terms = {
        "epsilon": str(budget.epsilon), "delta": str(budget.delta), "currency": "rho", "cap": budget.cap.units
    }  # fmt: skip
    verifier.check_cap(terms)
    for factor in (Fraction(101, 100), Fraction(95, 100)):
        with pytest.raises(verifier.Wrong):
            verifier.check_cap({**terms, "cap": int(budget.cap.units * factor)})


def test_a_second_accountant_agrees(ledger):
    _, document = ledger
    found = pld.compare(document)
    assert found["agrees"]
    assert 0 < found["pld_epsilon"] <= found["ledger_epsilon"] * 1.001
    cheap = copy.deepcopy(document)
    cheap["entries"][-1]["total"] //= 4
    found = pld.compare(cheap)
    assert not found["agrees"]
    assert "TOO LITTLE" in found["words"]


def test_thousands_of_small_events_stay_under_the_ledger_s_total():
    plain = [as_plain(Selection(epsilon=Fraction(1, 100)))] * 1000
    plain += [as_plain(LaplaceNoise(l1=Fraction(1), scale=Fraction(100)))] * 1000
    plain += [as_plain(GaussianNoise(l2_squared=Fraction(1), variance=Fraction(10_000)))] * 1000
    total = sum(Fraction(1, 10_000) * share for share in (125, 500, 500))
    first = {
        "terms": json.dumps({"epsilon": "100", "delta": "1/1000000", "currency": "rho"}),
        "event": None,
        "total": 0,
    }
    rows = [{"event": json.dumps(event), "total": 0} for event in plain]
    rows[-1]["total"] = int(total * UNITS)
    found = pld.compare({"entries": [first, *rows]})
    assert 2.1 < found["pld_epsilon"] < found["ledger_epsilon"] < 2.3


@pytest.mark.parametrize("told", ["0", "1/9"])
def test_the_second_accountant_prices_the_runs_of_sparse_vectors(told):
    event = as_plain(SparseVector(epsilon=Fraction(1, 5), hits=10, told=Fraction(told)))
    first = {
        "terms": json.dumps({"epsilon": "100", "delta": "1/1000000", "currency": "rho"}),
        "event": None,
        "total": 0,
    }
    rows = [{"event": json.dumps(event), "total": 0} for _ in range(50)]
    rows[-1]["total"] = ceil(50 * verifier.price(event, "rho") * UNITS)
    found = pld.compare({"entries": [first, *rows]})
    assert found["agrees"]
    assert 0.8 * found["ledger_epsilon"] < found["pld_epsilon"] <= found["ledger_epsilon"]
    rows[-1]["total"] //= 2
    assert not pld.compare({"entries": [first, *rows]})["agrees"]


def test_a_missing_ledger_is_said_to_be_missing(tmp_path):
    url = URL.create("sqlite", database=str(tmp_path / "none.ledger"))
    with pytest.raises(LedgerError, match="no ledger of 'people'"):
        export.document(url, "people")
    assert not Path(url.database).exists()
    DurableLedger(url, "other", Budget.of(1)).close()
    with pytest.raises(LedgerError, match="no ledger of 'people'"):
        export.verify(url, "people")


# ---- joint prices


SPANS = {"a": 3, "b": 4, "c": 2, "d": 40}


ATTRIBUTES = st.sets(st.sampled_from(sorted(SPANS)), min_size=1, max_size=4)
MASKS = {name: st.integers(1, 2**size - 1) for name, size in SPANS.items()}
KINDS = st.sampled_from([GaussianNoise, GaussianNoise, LaplaceNoise])
REACHES, WIDTHS, SPLIT = st.integers(1, 2), st.fractions(1, 40, max_denominator=50), st.booleans()
RELATIONS = st.sampled_from(["replace", "replace", "replace", "add-remove 2"])


@st.composite
def located_events(draw):
    region = tuple(Span(name, SPANS[name], draw(MASKS[name])) for name in sorted(draw(ATTRIBUTES)))
    kind = draw(KINDS)
    size = Fraction(draw(REACHES))
    width = draw(WIDTHS)
    noise = (
        kind(l2_squared=size, variance=width) if kind is GaussianNoise else kind(l1=size, scale=10 * width)
    )
    return Located(noise=noise, region=region, relation=draw(RELATIONS), split=draw(SPLIT))


@given(
    st.lists(
        located_events()
        | st.builds(Selection, epsilon=st.fractions(Fraction(1, 9), 1, max_denominator=9))
        | st.lists(located_events(), min_size=2, max_size=3).map(lambda events: Together(tuple(events))),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([1, 20, 900]),
    st.sampled_from([RULE_1, RULE_2, RULE_3, RULE_4, RULE_5]),
)
@settings(max_examples=60)
def test_the_verifier_finds_the_joint_price_on_its_own(events, epsilon, rule):
    """Two programs, one in arrays and one in plain Python, agree to the last unit, also where the cap is near."""
    accountant = Joint(Budget.of(epsilon, 1e-6), rule)
    purse = verifier.Purse("rho", accountant.budget.cap.units, rule.number)
    state = accountant.start()
    for event in events:
        before = accountant.cost(state).units
        state = accountant.after(state, event)
        assert purse.pay(json.loads(json.dumps(as_plain(event)))) == accountant.cost(state).units - before
    assert purse.shown <= purse.flat
