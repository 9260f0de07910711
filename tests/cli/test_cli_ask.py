"""`ask`, `check` and `ledger` on the command line: what they refuse, what they write, and what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from program import call
from understudy.declaration.file import read
from understudy.errors import InsufficientBudgetError
from understudy.ledger.declared import project_files
from understudy.privacy.cost import Cost
from understudy.sessions.charge_limit import ChargeLimit
from understudy.sessions.several import SeveralQuestions

DECLARATION = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 1}
neighbours: replace
attributes:
  age: {type: integer, edges: [0, 18, 65, 120]}
  sex: {type: category, values: [F, M]}
"""

Ask = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"{age},{'FM'[age % 2]}" for age in range(100)] * 20
    (tmp_path / "people.csv").write_text("age,sex\n" + "\n".join(rows) + "\n")
    (tmp_path / "understudy.yml").write_text(DECLARATION)
    monkeypatch.chdir(tmp_path)
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run(folder) -> Ask:
    """The program in this process: all that it said, once it ended with the status."""

    def run(*arguments: str, status: int = 0) -> str:
        done = call(*arguments, cwd=folder, status=status)
        return done.stdout + done.stderr

    return run


def declare(folder: Path, old: str, new: str) -> None:
    path = folder / "understudy.yml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


# ---- what spends nothing


def test_dry_runs_checks_and_refusals_leave_no_ledger_and_the_budget_free(run, folder):
    before = sorted(path.name for path in folder.iterdir())
    run("check")
    run("ask", "--dry-run", "count by sex")
    run("ask", "--session", "a", "--alpha", "0.1", "--dry-run", "count by sex")
    run("ask", "--epsilon", "5", "count by sex", status=1)
    run("ask", "--session", "a", "--alpha", "0.1", "count by sexx", status=2)
    run("release", "--workload", "all-2-way", "--epsilon", "3", "-o", "out", status=1)
    shown = run("ledger", "show")
    assert "nothing was charged yet" in shown
    assert "1 left" in shown
    assert json.loads(run("ledger", "show", "--json"))["entries"] == 0
    assert sorted(path.name for path in folder.iterdir()) == before
    declare(folder, "{epsilon: 1}", "{epsilon: 2, delta: 1e-9}")
    run("check")
    run("ask", "count by sex")
    declare(folder, "epsilon: 2", "epsilon: 3")
    assert "opened with a budget of epsilon 2, delta 1e-09" in run("check", status=1)


@pytest.mark.parametrize("field", ["witness", "ledger"])
def test_check_finds_a_folder_that_cannot_be_written(field, run, folder):
    with (folder / "understudy.yml").open("a") as file:
        file.write(f"{field}: not/there/file\n")
    assert "the folder not/there is not there" in run("check", status=1).replace(f"{folder}/", "")
    if field == "witness":
        assert "nothing was spent" in run("ask", "count by sex", status=1)
    (folder / "not" / "there").mkdir(parents=True)
    if field == "witness":
        for command in (("check",), ("ask", "count by sex")):
            assert "`understudy ledger witness --new` makes it" in " ".join(run(*command, status=1).split())
        assert "has seen 0 entries of the ledger of" in run("ledger", "witness", "--new")
        assert "already" in run("ledger", "witness", "--new", status=1)
    run("check")
    run("ask", "count by sex")
    if field == "witness":
        assert "has seen 3 entries" in run("ledger", "witness")


def test_a_witness_must_be_declared_before_it_is_made(run):
    assert "no witness is declared" in run("ledger", "witness", "--new", status=1)
    assert "no witness is declared" in run("ledger", "witness", status=1)


# ---- sessions


def test_a_refused_question_takes_no_name(run):
    refused = run(
        "ask", "--session", "a", "--alpha", "0.05", "--queries", "9", "count", "count by sexx", status=2
    )
    assert "sexx" in refused
    run("ask", "--session", "a", "--alpha", "0.1", "--yes", "count by sex")
    taken = run("ask", "--session", "a", "--alpha", "0.2", "--analyst", "ada", "count by sex", status=1)
    assert "session 'a' has alpha 0.1, beta 0.05, queries 10000, no analyst; ask with the same terms" in taken
    run("ask", "--request", "mine", "count by sex")
    assert "'mine' belongs to a request" in run(
        "ask", "--session", "mine", "--alpha", "0.1", "count", status=1
    )


def test_a_session_of_another_version_of_the_table_is_told_as_such(run, folder):
    run("ask", "--session", "a", "--alpha", "0.1", "--yes", "count by sex")
    with (folder / "people.csv").open("a") as file:
        file.write("5,F\n")
    assert "another version of the table" in run("ask", "--session", "a", "--alpha", "0.1", "count", status=1)


@pytest.mark.parametrize(
    "given", [("--alpha", "0.05"), ("--queries", "5"), ("--buy", "ranges(age)"), ("--session", "")]
)
def test_terms_of_a_session_without_one_are_refused(given, run, folder):
    said = run("ask", "count by sex", *given, status=2)
    assert "--session NAME" in said
    assert not (folder / "understudy.ledger").exists()


def test_an_answer_of_a_session_is_in_its_file_and_not_repeated(run, folder):
    session = ("ask", "--session", "a", "--alpha", "0.1", "--yes", "count by sex")
    assert "Wrote told.csv: 3 rows." in run(*session, "-o", "told.csv")
    told = json.loads(run(*session, "-o", "again.json", "--json"))
    assert told["written"] == "again.json"
    assert "rows" not in told["answers"][0]
    assert len(json.loads((folder / "again.json").read_text())) == 3


def test_a_class_is_ordered_for_a_session(run, folder):
    session = ("ask", "--session", "a", "--alpha", "0.1")
    asked = (*session, "--buy", "ranges(age)")
    assert "every question of the class, for at most" in run(*asked, "--dry-run")
    [order] = json.loads(run(*asked, "--dry-run", "--json"))
    [question] = json.loads(run(*session, "count age < 18", "--dry-run", "--json"))
    assert order["buy"] == "conjunctions(age)"
    assert order["share"] > question["share"] > 0
    assert not (folder / "understudy.ledger").exists()
    told = json.loads(run(*asked, "--yes", "--json"))
    assert 0 < told["bought"][0]["share"] <= order["share"]
    assert json.loads(run(*session, "count age < 18", "--json"))["answers"][0]["source"] == "implied"
    assert "bought conjunctions(age), for" in run(*asked)
    assert json.loads(run(*asked, "--json"))["bought"][0]["share"] == 0


@pytest.mark.parametrize("extra", [("--dry-run",), ("--yes",)])
@pytest.mark.parametrize(
    ("beside", "remedy"),
    [
        (("--buy", "conjunctions(sex)"), "one command for each class"),
        (("count age < 18",), "then ask them in the same session"),
        (("--error", "5"), "leave it out"),
        (("-o", "rows.csv"), "leave it out"),
    ],
)
def test_an_order_is_the_only_thing_that_a_command_buys(beside, remedy, extra, run, folder):
    """The price of what comes after it is not known: it takes a part of what is left of beta."""
    asked = ("ask", "--session", "a", "--alpha", "0.1", "--buy", "ranges(age)")
    assert remedy in run(*asked, *beside, *extra, status=2)
    assert not (folder / "understudy.ledger").exists()


def test_prices_of_several_questions_in_a_session_are_told_together(run):
    asked = ("ask", "--session", "a", "--alpha", "0.1", "count age < 18")
    assert "asked next" not in run(*asked, "--dry-run")
    assert "asked next. All of them, in one command: at most" in run(*asked, "count sex = F", "--dry-run")
    told = json.loads(run(*asked, "count sex = F", "--dry-run", "--json"))
    [first], [both] = (one["together"].values() for one in told)
    assert 0 < first < both
    answers = json.loads(run(*asked, "count sex = F", "--json"))["answers"]
    assert 0 < sum(cost for answer in answers for cost in answer["cost"].values()) <= both


def test_a_command_ends_before_a_question_that_would_pass_its_price(run, folder, monkeypatch):
    """Somebody else buys between two questions, and leaves less of beta for the rest."""
    entered = ("ask", "--session", "a", "--alpha", "0.1", "--queries", "9")
    questions = ("count age < 18 and sex = F", "count by sex, age")
    asked = ChargeLimit.charged

    def dearer(limit: ChargeLimit, cost: Cost) -> None:
        asked(limit, cost)
        limit.left = type(cost)(cost.units // 100)

    with monkeypatch.context() as patch:
        patch.setattr(ChargeLimit, "charged", dearer)
        said = run(*entered, *questions, "--yes", status=1)
        assert "question 2 of 2 costs epsilon" in said
        assert "1 of 2 questions were answered, and stay known; nothing was bought for the rest" in said
        assert "Give the same command again" in said
        assert "not answered: count by sex, age" in said
        assert said.count("source: measured") == 1
        told = json.loads(
            run(*entered, "count sex = M and age < 65", *questions[1:], "--yes", "--json", status=1)
        )
    assert [answer["question"] for answer in told["answers"]] == ["count sex = M and age < 65"]
    assert told["unanswered"] == ["count by sex, age"]
    assert told["error"]["kind"] == "PriceRoseError"
    again = json.loads(run(*entered, *questions, "--yes", "--json"))["answers"]
    assert [sum(answer["cost"].values()) > 0 for answer in again] == [False, True]


def test_answers_before_a_refused_question_are_not_lost(run, folder, monkeypatch):
    """They were paid for: whoever reads JSON gets them beside the refusal, and whoever asks again pays nothing."""
    entered = ("ask", "--session", "a", "--alpha", "0.1", "--queries", "9")
    questions = ("count age < 18 and sex = F", "count by sex, age")
    answered = SeveralQuestions.ask_one

    def refused(self, place, limit, **terms):
        if place == 1:
            raise InsufficientBudgetError(requested=2.0, remaining=1.0, currency="epsilon")
        return answered(self, place, limit, **terms)

    with monkeypatch.context() as patch:
        patch.setattr(SeveralQuestions, "ask_one", refused)
        told = json.loads(run(*entered, *questions, "--yes", "--json", status=1))
        said = run(*entered, *questions, "--yes", status=1)
        alone = json.loads(run(*entered, *reversed(questions), "--yes", "--json", status=1))
    assert [answer["question"] for answer in told["answers"]] == [questions[0]]
    assert told["unanswered"] == [questions[1]]
    assert told["error"]["kind"] == "InsufficientBudgetError"
    assert "Nothing was spent" not in told["error"]["message"]
    assert "question 2 of 2 was not answered: this costs epsilon 2" in said
    assert [answer["question"] for answer in alone["answers"]] == [questions[1]]


def test_nothing_is_counted_for_an_error_whose_price_cannot_be_paid(run, folder):
    declare(folder, "120]", "120], resolution: 1")
    asked = ("ask", "--session", "a", "--alpha", "0.05", "SELECT sex, avg(age) FROM people GROUP BY sex")
    remedy = "ask without --error first"
    for yes in ((), ("--yes",)):
        assert remedy in run(*asked, "--error", "0.5", *yes, status=1)
        told = json.loads(run(*asked, "--error", "0.5", *yes, "--json", status=1))
        assert told["error"]["kind"] == "InsufficientBudgetError"
    told = json.loads(run(*asked, "--error", "0.5", "--dry-run", "--json", status=1))
    assert [one["payable"] for one in told] == [False]
    assert remedy in told[0]["refusal"]["message"]
    dry, asked_for = (run(*asked, "--error", "0.5", *more, status=1) for more in (("--dry-run",), ()))
    assert dry.splitlines()[-1] == asked_for.splitlines()[-1]
    assert json.loads(run("ledger", "show", "--json"))["entries"] == 0
    assert "Say --yes" in run(
        *asked, status=2
    )  # counting the rows has a price of its own, which is asked about


def test_a_refusal_after_a_charge_tells_what_was_charged_and_what_is_left(run, folder):
    declare(folder, "120]", "120], resolution: 1")
    asked = ("ask", "--session", "a", "--alpha", "0.1", "--error", "40")
    question = "SELECT avg(age) FROM people WHERE age >= 65 AND sex = 'F' AND age < 66"
    said = " ".join(run(*asked, question, "--yes", status=1).split())
    assert "the question was not answered: no precision is sure to keep an error of 40" in said
    assert re.search(
        r"epsilon \S+ was charged for that \(\S+ of the budget\), and what was bought stays known", said
    )
    assert re.search(r"\S+ of the budget left: epsilon \S+ of 1", said)
    assert "given again" not in said
    other = question.replace("'F'", "'M'")
    told = json.loads(run(*asked, other, "--yes", "--json", status=1))
    assert told["error"]["kind"] == "RefusedAfterChargeError"
    spent = json.loads(run("ledger", "show", "--json"))
    assert 0 < told["error"]["charged"]["epsilon"] == pytest.approx(told["error"]["share"])
    assert told["remaining"] == {"epsilon": pytest.approx(1 - spent["spent"])}
    assert (told["answers"], told["unanswered"]) == ([], [other])


def test_several_questions_that_cannot_all_be_paid_are_asked_about(run, folder):
    """Those that can be paid would be: a script that says nothing pays for none of them."""
    several = ("ask", "count by sex", "count by age", "count", "--epsilon", "0.7")
    assert "Say --yes" in run(*several, status=2)
    entered = ("ask", "--session", "a", "--alpha", "0.004", "--queries", "9")
    each = [f"count age {op} {age} and sex = {sex}" for op, age in (("<", 18), ("<", 65)) for sex in "FM"]
    assert "Say --yes" in run(*entered, *each, "count by age", "count by sex, age", status=2)
    assert not (folder / "understudy.ledger").exists()


def test_a_command_without_a_question_is_refused(run, folder):
    for given in (
        (),
        ("--session", "a", "--alpha", "0.1"),
        ("--release", "town"),
        ("--url", "http://localhost"),
    ):
        assert "name a question, such as" in run("ask", *given, status=2)
    assert not (folder / "understudy.ledger").exists()


@pytest.mark.parametrize("named", ["ages", "ranges()", "marginals(two)", "ranges(age,)"])
def test_a_class_that_is_none_is_refused(named, run, folder):
    said = run("ask", "--session", "a", "--alpha", "0.1", "--buy", named, status=2)
    assert "names no class: write ranges(age)" in said
    assert not (folder / "understudy.ledger").exists()


def test_an_uncertified_answer_claims_no_error(run):
    said = run("ask", "--session", "a", "--alpha", "0.001", "count by age")
    assert "error unknown" in said
    assert "∞" not in said
    assert "nobody vouches for it" in said
    assert "within the error" not in said
    assert "within the error" in run("ask", "--session", "b", "--alpha", "0.1", "--yes", "count by age")


# ---- words


def test_a_price_in_epsilon_under_a_delta_is_refused_in_epsilon(run, folder):
    declare(folder, "{epsilon: 1}", "{epsilon: 1, delta: 1e-9}")
    for question in ("count by sex", "SELECT sex, count(*) FROM people GROUP BY sex"):
        said = run("ask", "--epsilon", "5", question, status=1)
        assert "rho 0.311693 and 0.0149731 remains" in said
        fits = re.search(r"at most epsilon ([0-9.]+) fits", said)
        assert fits is not None
        more = f"{float(fits[1]) * 1.01:g}"
        assert f"epsilon {more}" in run("ask", "--epsilon", more, question, status=1)
        run("ask", "--dry-run", "--epsilon", fits[1], question)
    run("ask", "--epsilon", fits[1], "--yes", "count by sex")
    assert "fits" not in run("ask", "--rho", "1", "count by sex", status=1)


def test_questions_that_cannot_be_read_are_told_in_their_own_language(run):
    assert "age is named twice after by" in run("ask", "count by age, sex, age", status=2)
    assert "FROM is missing; write FROM people" in run("ask", "WITH x AS (SELECT 1) SELECT 1", status=2)
    assert "only SELECT is answered, not update" in run("ask", "update people set age = 1", status=2)
    assert "the function frob is not in the language" in run(
        "ask", "SELECT frob(age), count(*) FROM people", status=2
    )
    assert "did you mean count?" in run("ask", "SELECT cuont(*) FROM people", status=2)
    assert "starts with count, share or rate" in run("ask", "withers", status=2)


def test_a_select_around_selects_is_told_to_have_no_bounds(run):
    text = "SELECT sex, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM people GROUP BY sex"
    said = run("ask", text, "--epsilon", "0.1", "--yes")
    assert "made of released rows, without bounds" in said
    assert "released_0: SELECT sex" in said
    assert "what was released is within its bounds, all of it with probability 0.95" in said


def test_an_order_by_released_numbers_says_whether_it_is_sure(run):
    text = "SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY n DESC"
    assert "The order is not certified" in run("ask", text, "--epsilon", "0.0001", "--yes")
    assert "certified" not in run("ask", text.replace("n DESC", "age"), "--epsilon", "0.0001", "--yes")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("ask",), "ask"),
        (("ask", "--nosuch", "count"), "ask"),
        (("ledger", "show", "--nosuch"), "ledger show"),
        (("ledger", "nosuch"), "ledger"),
        (("init",), "init"),
        (("nosuch",), ""),
    ],
)
def test_a_usage_error_names_the_command_whose_help_helps(arguments, command, run):
    assert f"(try {f'understudy {command}'.strip()} --help)" in run(*arguments, status=2)


def test_the_newest_entries_have_heads_names_and_whole_words(run):
    run("ask", "--request", "monday", "--analyst", "ada", "count by age, sex")
    run("ask", "count by sex")
    run("ask", "--session", "mine", "--alpha", "0.1", "--yes", "count by age")
    head, *lines, totals = run("ledger", "show").splitlines()
    assert head.split() == ["entry", "time", "(UTC)", "of", "budget", "epsilon", "question"]
    assert re.search(r" 1% +0\.01  count by age, sex \(ada, monday\)$", lines[1])
    assert lines[2].endswith("  count by sex")  # a name that was drawn at random is left out
    assert any(line.endswith(" (mine#1)") for line in lines)
    assert len(lines) == 5  # the opening and four debits; answers and steps belong to them
    assert "10 entries" in totals
    verified = run("ledger", "verify", "--pld")
    assert "4 debits, 4 answers, 1 steps: sound" in verified
    assert re.search(r"by this ledger, at most [0-9.]+ by privacy-loss distributions: ", verified)


# ---- what may be written


def test_an_export_replaces_only_what_it_is_told_to(run, folder):
    run("ask", "count by sex")
    with (folder / "understudy.yml").open("a") as file:
        file.write("witness: seen.json\n")
    assert "ledger witness --new" in run("check", status=1)
    run("ledger", "witness", "--new")
    run("check")
    (folder / "link.csv").symlink_to("people.csv")
    (folder / "hard.csv").hardlink_to(folder / "people.csv")
    own = ["people.csv", "link.csv", "hard.csv", "understudy.yml", "seen.json", "seen.json.lock"]
    own += [f"understudy.ledger{ending}" for ending in ("", "-wal", "-shm")]
    kept = [(folder / name).read_bytes() for name in ("people.csv", "understudy.yml", "seen.json")]
    for name in [*own, f"{folder}/people.csv", "./people.csv"]:
        for more in ((), ("--overwrite",)):
            assert "belongs to the project" in run("ledger", "export", "-o", name, *more, status=2)
    assert [(folder / name).read_bytes() for name in ("people.csv", "understudy.yml", "seen.json")] == kept
    assert "sound" in run("ledger", "verify")
    run("ledger", "export", "-o", "out.py")
    first = (folder / "out.py").read_bytes()
    run("ask", "count by age")
    refused = run("ledger", "export", "-o", "out.py", status=2)
    assert "out.py exists already: name another file, or replace it with --overwrite" in refused
    assert (folder / "out.py").read_bytes() == first
    run("ledger", "export", "-o", "out.py", "--overwrite")
    assert (folder / "out.py").read_bytes() != first
    assert "folder that is there" in run("ledger", "export", "-o", "no/out.py", status=2)


def test_a_project_s_files_are_known_wherever_they_are(folder):
    file = folder / "understudy.yml"
    declare(folder, "source: people.csv", "source: sub/people.csv\nwitness: /elsewhere/w")
    found = project_files(read(file), file=file, environ={"UNDERSTUDY_LEDGER": "/var/books"})
    assert {folder / "sub" / "people.csv", file, Path("/elsewhere/w"), Path("/var/books-wal")} <= set(found)
    found = project_files(read(file), file=file, environ={"UNDERSTUDY_LEDGER": "postgresql://db/books"})
    assert folder / "understudy.ledger" not in found


def test_groups_that_the_condition_rules_out_are_not_shown(run):
    said = run("ask", "count age < 18 by age", "--epsilon", "0.1")
    assert "0-17" in said
    assert "18-64" not in said
    assert "certainly" not in said
