"""An audit that was stopped goes on where it was, and what it says of a part holds for that part."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from program import Runner
from statistical import assert_at_most
from understudy.cli.app import app
from understudy.cli.audit import Sitting
from understudy.errors import ParameterError
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise, SystemNoise
from understudy_audit.claim import PureClaim
from understudy_audit.confidence import certified_epsilon, estimated_epsilon
from understudy_audit.privacy import FAMILY_ERROR, Pair, Subject
from understudy_audit.record import CHECKPOINTS, SUBJECT_ERROR, Record, ResumableAudit
from understudy_audit.registry import MOST_SUBJECTS, Effort
from understudy_audit.scalar import repeated

PLAN = {"understudy": "1", "effort": "full", "samples": None}


def laplace(price=1):
    mechanism = LaplaceMechanism(epsilon=Fraction(price), l1=1)
    pairs = [
        Pair(f"{shift}", repeated(mechanism, (0,)), repeated(mechanism, (shift,)), PureClaim(Fraction(1)))
        for shift in (1, 0, -1)
    ]
    return Subject("laplace", "here", "vector", lambda: pairs)


def recorded(record, subject=None):
    return ResumableAudit(subject or laplace(), Effort(8_000, 2, 800), record)


class Steps:
    """Goes on for so many steps."""

    def __init__(self, left):
        self.left = left
        self.heard = []

    def goes_on(self):
        self.left -= 1
        return self.left >= 0


def run(audit, steps=10**6, seed=1):
    limit = Steps(steps)
    with closing(audit.record):
        verdict = audit.run(SeededNoise(seed), goes_on=limit.goes_on, done=limit.heard.append)
    return verdict, sum(limit.heard)


def test_a_whole_run_counts_every_planned_draw(tmp_path):
    audit = recorded(Record(PLAN, tmp_path / "r"))
    verdict, heard = run(audit)
    assert verdict.is_complete
    assert (verdict.tested, verdict.planned, verdict.candidates) == (2, 2, 3)
    assert {finding.pair for finding in verdict.findings} == {"1", "-1"}  # the pilot passed over "0"
    assert {finding.trials for finding in verdict.findings} == {(4_000, 4_000)}
    assert heard == audit.steps == 8
    assert verdict.sound
    assert all(finding.certified > 0.6 for finding in verdict.findings)


@pytest.mark.parametrize("first", range(10))
def test_a_run_that_was_stopped_goes_on(tmp_path, first):
    """Whatever was done is not done again, and its bounds stay as they were."""
    path = tmp_path / "r"
    before, _ = run(recorded(Record(PLAN, path)), steps=first)
    lines = path.read_text().splitlines()
    done = sum(0.125 if f.trials[0] == 500 else 0.5 if f.trials[0] == 2_000 else 1 for f in before.findings)
    assert before.is_complete == (first >= 9)
    after, heard = run(recorded(Record(PLAN, path)), seed=2)
    assert path.read_text().splitlines()[: len(lines)] == lines
    assert after.is_complete
    assert heard == 8
    assert (done == 4) == before.is_complete
    if before.is_complete:
        assert after.findings == before.findings


def test_without_a_file_it_is_kept_in_memory():
    record = Record(PLAN)
    assert not run(recorded(record), steps=4)[0].is_complete
    assert run(recorded(record), seed=2)[0].is_complete


def test_a_line_that_was_cut_off_is_drawn_anew(tmp_path):
    path = tmp_path / "r"
    run(recorded(Record(PLAN, path)), steps=4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    verdict, _ = run(recorded(Record(PLAN, path)), seed=3)
    assert verdict.is_complete
    for line in path.read_text().splitlines():
        json.loads(line)


def test_another_plan_and_other_files_are_refused(tmp_path):
    path = tmp_path / "r"
    run(recorded(Record(PLAN, path)), steps=2)
    kept = path.read_bytes()
    refused(path, "another plan", PLAN | {"samples": 5})
    for lines, words in (
        (kept * 2, "twice"),
        (kept + kept.splitlines(keepends=True)[-1], "twice"),
        (b"a table\nof something\n", "not the record"),
        (b"no line at all", "does not begin"),
        (b"SQLite format 3\x00\xff\n\x00", "not the record"),
        (b"[1]\n", "not the record"),
        (b"3\n", "not the record"),
    ):
        other = tmp_path / "other"
        other.write_bytes(lines)
        refused(other, words)
    refused(tmp_path, "no record can be kept")
    refused(tmp_path / "nowhere" / "r", "no record can be kept")


def refused(path, words, plan=PLAN):
    """With these words, and without a change of the file, whether it is to be added to or only read."""
    before = path.read_bytes() if path.is_file() else None
    for grows in (True, False) if path.is_file() else (True,):
        with pytest.raises(ParameterError, match=words):
            Record(plan, path, may_grow=grows)
        assert (path.read_bytes() if path.is_file() else None) == before


def test_counts_that_are_told_twice_are_refused(tmp_path):
    """A stage has its place: two sittings on one file would else add up as one."""
    path = tmp_path / "r"
    run(recorded(Record(PLAN, path)))
    for line in path.read_bytes().splitlines(keepends=True)[1:]:
        other = tmp_path / "other"
        other.write_bytes(path.read_bytes() + line)
        refused(other, "twice")


def test_one_sitting_at_a_time(tmp_path):
    """Who only reports does not wait, and changes nothing, be a line half written."""
    path = tmp_path / "r"
    run(recorded(Record(PLAN, path)), steps=4)
    with closing(Record(PLAN, path)):
        with pytest.raises(ParameterError, match="another audit is writing"):
            Record(PLAN, path)
        with path.open("ab") as file:
            file.write(b'{"half')
        before = path.read_bytes()
        assert recorded(Record(PLAN, path, may_grow=False)).verdict().findings
        assert path.read_bytes() == before
    assert run(recorded(Record(PLAN, path)))[0].is_complete


def test_files_about_different_subjects_may_be_put_together(tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    other = Subject("other", "here", "vector", laplace().pairs)
    whole = run(recorded(Record(PLAN, one)))[0]
    run(recorded(Record(PLAN, two), other))
    both = tmp_path / "both"
    both.write_text(one.read_text() + two.read_text())
    again = Record(PLAN, both, may_grow=False)
    assert recorded(again).verdict().findings == whole.findings
    assert recorded(again, other).verdict().is_complete


def test_a_broken_promise_is_seen_at_the_first_checkpoint_that_shows_it():
    verdict, _ = run(recorded(Record(PLAN), laplace(2)), steps=3)
    assert not verdict.is_complete
    assert not verdict.sound


def test_events_are_kept_before_the_draws_that_they_are_counted_on(tmp_path):
    path = tmp_path / "r"
    run(recorded(Record(PLAN, path)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [next(k for k in ("chosen", "events", "hits", "effort") if k in line) for line in lines]
    assert kinds == ["effort", "chosen", *["events", "hits", "hits", "hits"] * 2]


def test_the_error_is_shared_out_among_subjects_tests_and_checkpoints():
    assert pytest.approx(FAMILY_ERROR) == SUBJECT_ERROR * MOST_SUBJECTS
    verdict, _ = run(recorded(Record(PLAN)))
    assert {f.error for f in verdict.findings} == {SUBJECT_ERROR / 4 / len(CHECKPOINTS)}


def test_stopping_when_it_looks_worst_is_paid_for():
    """Whoever stops at the checkpoint that certifies most is wrong no more often than was said."""
    rng, error, trials = np.random.default_rng(7), 0.3, 1_000
    share = np.exp(1) / (1 + np.exp(1))
    stages = np.diff([0, *(int(800 * part) for part in CHECKPOINTS)])
    wrong = naive = 0
    for _ in range(trials):
        hits = np.cumsum([[rng.binomial(n, share), rng.binomial(n, 1 - share)] for n in stages], axis=0)
        totals = np.cumsum(stages).tolist()
        counted = [((a, b), (n, n)) for (a, b), n in zip(hits.tolist(), totals, strict=True)]
        each = error / len(CHECKPOINTS)
        wrong += max(certified_epsilon(h, n, delta=0, error=each) for h, n in counted) > 1
        naive += max(estimated_epsilon(h, n, delta=0) for h, n in counted) > 1
    assert_at_most(wrong, trials, error)
    # The power: without the allowance for luck it would be wrong most of the time.
    assert stats.binom.sf(naive - 1, trials, error) < 1e-9


def test_a_record_that_lost_its_plan_is_refused(tmp_path):
    """Else counts of one plan would be read as those of another."""
    path = tmp_path / "audit.jsonl"
    path.write_text("")
    with closing(Record({"samples": 4000}, path)) as record:
        record.choose("laplace", [0])
    refused(path, "another plan", {"samples": 4_000_000})
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    refused(path, "does not begin with the plan", {"samples": 4000})


def test_the_plan_names_the_code(tmp_path, monkeypatch):
    """Counts of other code are no evidence about this one."""
    path = tmp_path / "audit.jsonl"
    sitting = Sitting("quick", 64, path)
    sitting.examine(["laplace"], noise=SeededNoise(1), coins="a test")
    monkeypatch.setattr("understudy_audit.record.code_digest", lambda: "another")
    with pytest.raises(ParameterError, match="another plan"):
        sitting.examine(["laplace"], noise=SeededNoise(1), coins="a test")


def test_too_few_draws_for_a_first_stage_say_nothing(tmp_path):
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        report = Sitting("quick", 8, path).examine(["laplace"], noise=SeededNoise(1), coins="a test")
        assert report.sound


def test_several_workers_leave_one_record(tmp_path):
    """All that two processes count is in the file, once; what one sitting began another goes on with."""
    path = tmp_path / "audit.jsonl"
    names = ["laplace", "randomized-response", "net"]
    sitting = Sitting("quick", 400, path, workers=2)
    found = sitting.examine(names, noise=SystemNoise(), coins="a test")
    assert [verdict.subject for verdict in found.verdicts] == names
    assert found.unfinished == []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["subject"] for line in lines if "chosen" in line) == sorted(names)
    again = Sitting("quick", 400, path, 0.0).examine(names, noise=SystemNoise(), coins="a test")
    assert again.verdicts == found.verdicts
    stopped = Sitting("quick", 400, tmp_path / "other", 0.0, workers=2)
    assert stopped.examine(names, noise=SystemNoise(), coins="a test").unfinished == names


def test_a_record_that_cannot_be_written_stops_the_workers(tmp_path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    monkeypatch.setattr(Record, "enter", full)
    sitting = Sitting("quick", 400, path, workers=2)
    with pytest.raises(OSError, match="no space"):
        sitting.examine(["laplace", "net"], noise=SystemNoise(), coins="a test")


def full(self, line):
    raise OSError("no space left")


def test_a_seed_is_not_for_several_workers():
    found = Runner().invoke(app, ["audit", "privacy", "--seed", "1", "--workers", "2"])
    assert isinstance(found.exception, ParameterError)
