"""A release on disk: complete or not there, and the same when it is read back."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest

import tiny_release
from understudy.domain.domain import Domain
from understudy.domain.plain import domain_as_plain, domain_digest, domain_from_plain
from understudy.errors import ParameterError, RefusedError, SourceError
from understudy.releases import folder as files
from understudy.releases import stored
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer
from understudy.standin.graphical.model import Constraint, GraphicalStandIn, LogFactor
from understudy.standin.table import SmallTable

NAMES = {
    "README.md",
    "answers.parquet",
    "certificate.json",
    "report.html",
    "standin.npz",
    "synthetic.parquet",
}


@pytest.fixture(scope="module")
def made() -> Release:
    return release(tiny_release.project(), "2-way", epsilon=1, method=tiny_release.tiny)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_saved_is_loaded(made, tmp_path):
    made.save(tmp_path / "out", rows=100)
    assert set(contents(tmp_path / "out")) == NAMES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    loaded = Release.load(tmp_path / "out")
    assert loaded.domain == made.domain
    assert loaded.rows == made.rows
    assert loaded.certificate == made.certificate
    for mine, its in zip(made.answers, loaded.answers, strict=True):
        assert (mine.clique, mine.basis) == (its.clique, its.basis)
        assert np.array_equal(mine.counts, its.counts)
        assert np.array_equal(mine.error, its.error)
    for question in ("count by age", "count age < 18 by sex", "share sex = F"):
        assert loaded.answer(question).as_dict() == made.answer(question).as_dict()
    rare = "count age < 18 and smoker = true by sex"  # of the stand-in: summed in another order
    assert np.allclose(loaded.answer(rare).value, made.answer(rare).value, rtol=1e-12)
    assert loaded.sample(40, backend="arrow").equals(made.sample(40, backend="arrow"))
    loaded.save(tmp_path / "again", rows=100)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_the_files_say_what_the_release_says(made, tmp_path):
    made.save(tmp_path / "out", rows=70)
    synthetic = parquet.read_table(tmp_path / "out" / "synthetic.parquet")
    assert synthetic.equals(made.sample(70, backend="arrow"))
    answers = parquet.read_table(tmp_path / "out" / "answers.parquet").to_pylist()
    assert len(answers) == sum(a.counts.size for a in made.answers)
    young = next(a for a in answers if a["marginal"] == "age" and a["labels"] == ["0-17"])
    assert young["value"] == float(made.answer("count age < 18").noisy)
    assert young["basis"] == "measured"
    pair = [a for a in answers if a["marginal"] == "age, sex"]
    assert [a["labels"] for a in pair][:2] == [["0-17", "F"], ["0-17", "M"]]
    assert all(np.isinf(a["error"]) for a in pair)
    told = json.loads((tmp_path / "out" / "certificate.json").read_text())
    for key in ("mechanism", "theorem", "parameters", "cost", "requests", "beta", "privacy", "program"):
        assert key in told
    assert told["domain"]["digest"] == domain_digest(made.domain)


def test_an_existing_folder_is_refused_unless_forced(made, tmp_path):
    made.save(tmp_path / "out", rows=10)
    before = contents(tmp_path / "out")
    with pytest.raises(RefusedError, match="force=True"):
        made.save(tmp_path / "out", rows=20)
    assert contents(tmp_path / "out") == before
    made.save(tmp_path / "out", rows=20, force=True)
    assert parquet.read_metadata(tmp_path / "out" / "synthetic.parquet").num_rows == 20
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("x")
    with pytest.raises(RefusedError, match="not the folder of a release"):
        made.save(tmp_path / "thesis", force=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RefusedError, match="not the folder of a release"):
        made.save(tmp_path / "file", force=True)


def test_files_that_no_release_wrote_are_never_deleted(made, tmp_path):
    out = tmp_path / "out"
    made.save(out, rows=10)
    (out / "notes.txt").write_text("mine")
    before = contents(out)
    with pytest.raises(RefusedError, match=r"no part of a release \(notes.txt\)"):
        made.save(out, rows=20, force=True)
    assert contents(out) == before
    (tmp_path / "thesis").mkdir()
    for name in ("certificate.json", "report.html"):  # names that are not ours alone
        (tmp_path / "thesis" / name).write_text('{"of": "attendance"}')
    with pytest.raises(RefusedError, match="not the folder of a release"):
        made.save(tmp_path / "thesis", force=True)
    assert len(contents(tmp_path / "thesis")) == 2
    (out / "notes.txt").unlink()
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(RefusedError, match="not the folder of a release"):
        made.save(tmp_path / "link", force=True)
    assert (out / "synthetic.parquet").exists()


def test_what_appears_in_a_folder_while_it_is_replaced_is_kept(made, tmp_path, monkeypatch):
    out = tmp_path / "out"
    made.save(out, rows=10)
    move = os.replace

    def meddled(source, target):
        if target == files.beside(out, "old"):
            (out / "notes.txt").write_text("mine")
        move(source, target)

    monkeypatch.setattr(os, "replace", meddled)
    with pytest.raises(RefusedError, match="move it elsewhere"):
        made.save(out, rows=20, force=True)
    assert (files.beside(out, "old") / "notes.txt").read_text() == "mine"
    assert parquet.read_metadata(out / "synthetic.parquet").num_rows == 20


def test_a_failure_leaves_nothing_behind(made, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="space"):
        made.save(tmp_path / "out", rows=5)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_cleared(made, tmp_path):
    left = files.beside(tmp_path / "out", "partial")
    left.mkdir()
    (left / "junk").write_text("x")
    made.save(tmp_path / "out", rows=5)
    assert set(contents(tmp_path / "out")) == NAMES
    assert not left.exists()


def test_a_large_stand_in_is_stored_as_rows(made, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "DENSE_CELLS", 1)
    made.save(tmp_path / "out", rows=5)
    loaded = Release.load(tmp_path / "out")
    assert isinstance(loaded.standin, SmallTable)
    assert loaded.standin.rows == tiny_release.ROWS
    assert loaded.answer("count by age").as_dict() == made.answer("count by age").as_dict()
    near = loaded.standin.project(("age", "sex")) - made.standin.project(("age", "sex"))
    assert np.abs(near).max() < 0.05
    assert loaded.sample(1500, backend="arrow").num_rows == 1500
    loaded.save(tmp_path / "again", rows=5)
    again = Release.load(tmp_path / "again").standin
    assert isinstance(again, SmallTable)
    assert np.array_equal(again.codes, loaded.standin.codes)
    assert np.array_equal(again.counts, loaded.standin.counts)


def test_stand_ins_are_stored_as_they_are(made):
    domain = made.domain
    rng = np.random.default_rng(1)

    def again(standin):
        arrays = stored.as_arrays(standin, lambda: pytest.fail("no rows are needed"))
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        file.seek(0)
        with np.load(file, allow_pickle=False) as read:
            return stored.from_arrays(domain, read)

    small = SmallTable(domain, np.array([[0] * 5, [1] * 5]), np.array([3, 4]))
    assert again(small).counts.tolist() == [3, 4]
    cliques = (("age", "sex"), ("sex", "income"), ("smoker",))
    factors = tuple(LogFactor(c, rng.normal(size=domain.shape(c))) for c in cliques)
    never = Constraint(("age", "smoker"), rng.random(domain.shape(("age", "smoker"))) < 0.8)
    for model in (
        GraphicalStandIn(domain, 600.0, factors, (never,)),
        GraphicalStandIn(domain, 600.0, factors * 5),  # more than ten: their order is kept
        GraphicalStandIn(domain, 600.0),
    ):
        loaded = again(model)
        assert loaded.total == 600
        assert [f.clique for f in loaded.factors] == [f.clique for f in model.factors]
        assert np.array_equal(loaded.project(domain.names), model.project(domain.names))
    with pytest.raises(SourceError, match="another domain"):
        stored.from_arrays(domain, {"rates": np.ones(3)})


def test_a_damaged_folder_is_an_error_in_one_sentence(made, tmp_path):
    with pytest.raises(SourceError, match="not the folder of a release"):
        Release.load(tmp_path / "nowhere")
    whole = tmp_path / "whole"
    made.save(whole, rows=3)
    damages = {
        "certificate.json": ("{", "null", '{"format": 2}', '{"format": 1}'),
        "answers.parquet": ("PAR1",),
        "standin.npz": ("",),
    }
    for i, (name, texts) in enumerate(damages.items()):
        for j, text in enumerate(texts):
            out = shutil.copytree(whole, tmp_path / f"out{i}{j}")
            (out / name).write_text(text)
            with pytest.raises(SourceError):
                Release.load(out)
    out = whole
    text = (out / "certificate.json").read_text()
    (out / "certificate.json").write_text(text.replace('"F"', '"W"'))
    with pytest.raises(SourceError, match="digest"):
        Release.load(out)
    (out / "certificate.json").write_text(text.replace('"basis": "measured",', "", 1))
    with pytest.raises(SourceError):
        Release.load(out)
    listed = json.loads(text)
    listed["answers"].pop()
    (out / "certificate.json").write_text(json.dumps(listed))
    with pytest.raises(SourceError, match="does not have the cells"):
        Release.load(out)


def test_domains_survive(made):
    domain = made.domain
    again = domain_from_plain(json.loads(json.dumps(domain_as_plain(domain))))
    assert again == domain
    assert domain_digest(again) == domain_digest(domain)
    other = Domain(domain.attributes[:-1])
    assert domain_digest(other) != domain_digest(domain)


def test_both_ends_of_an_interval_are_kept(made, tmp_path):
    one, *others = made.answers
    uneven = MarginalAnswer(one.clique, one.counts, one.counts - 1.0, one.counts + 20.0, "measured")
    replace(made, answers=(uneven, *others)).save(tmp_path / "out", rows=0)
    (again, *_) = Release.load(tmp_path / "out").answers
    assert np.array_equal(again.low, uneven.low)
    assert np.array_equal(again.high, uneven.high)
    assert np.array_equal(again.error, np.full(one.counts.shape, 20.0))


def test_the_count_of_everybody_is_an_answer_too(made):
    everybody = MarginalAnswer.around((), np.array(600.0), np.array(0.0), "certified")
    table = files.answers_table(made.domain, [everybody, *made.answers[:1]])
    assert table.to_pylist()[0] == {
        "marginal": "",
        "labels": [],
        "value": 600,
        "error": 0,
        "low": 600,
        "high": 600,
        "basis": "certified",
    }
    listed = [{"by": [], "basis": "certified"}, {"by": ["age"], "basis": "measured"}]
    again = files.answers_from_table(made.domain, table, listed)
    assert again[0].counts.shape == ()
    assert np.array_equal(again[1].counts, made.answers[0].counts)
    before = files.answers_from_table(made.domain, table.drop_columns(["low", "high"]), listed)
    for mine, its in zip(again, before, strict=True):  # of a version that told no ends
        assert np.allclose((its.low, its.high), (mine.low, mine.high))
    assert files.answers_table(made.domain, []).num_rows == 0


def test_no_rows_at_all(made, tmp_path):
    made.save(tmp_path / "out", rows=0)
    assert parquet.read_metadata(tmp_path / "out" / "synthetic.parquet").num_rows == 0
    with pytest.raises(ParameterError):
        made.save(tmp_path / "more", rows=-1)
