"""GuessAndCheck(η, m): the analyst guesses a rate, and the sample says whether it is within η of its own.

This protects the conclusion, not the people: it compares with exact values, so it runs only in projects that
declare `protect: validity`. Its answers say so little that they generalise: a transcript is a path in a tree
that is known in advance, and the width is a union bound over the tree's queries (`theory.guess_and_check`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Protocol

from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.errors import HandleClosedError, ParameterError, QueryError
from understudy.lectures.asking import Asked, QueryReader, RepeatMemory
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.journal import Journal
from understudy.project import Project
from understudy.query.box import from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, positive, probability
from understudy.theory.guess_and_check import gnc_dev, gnc_failures_width

GUESSES = 10**12
"""Guesses are rounded to multiples of 1/`GUESSES`."""

RESOLUTION = 1 << 20
"""Weights other than 0 and 1 are rounded to this: the query that is checked is the rounded one."""


@dataclass(frozen=True)
class Checked:
    """A rate, how far it is at most from the sample's, and from the population's with the promised probability.

    Rates and errors are shares of all rows. `error` is the distance from the sample's rate, which always holds,
    and `population_error` that from the population's. `accepted` says that `value` is the guess, which was within
    η; else it is the sample's rate on a grid.
    """

    value: float
    error: float
    population_error: float
    accepted: bool

    @property
    def source(self) -> str:
        """Where the rate comes from: `checked` where it is the guess, else `measured`."""
        return "checked" if self.accepted else "measured"


class Guesser(Protocol):
    """Where guesses come from: the transcript, or data that are not the checking sample's."""

    def guess(self, query: LinearQuery) -> float:
        """The guess of the rate of a `query`: a share of rows."""
        ...

    def learn(self, query: LinearQuery, value: float) -> None:
        """Take note that the guess of a `query` was wrong: the sample answers near `value`, a share of rows."""
        ...


@dataclass(frozen=True, kw_only=True)
class CheckTerms:
    """What GuessAndCheck promises, fixed in advance.

    eta         the tolerance η: a guess is accepted where it is within η of the sample's rate
    queries     the number k of queries that may be asked
    beta        the probability that some answer is further from the population than its width
    rejections  the number m of wrong guesses that are answered, on a grid of ⌈2/η⌉ midpoints, within η/4; at the
                next one GuessAndCheck halts. Where it is None, GuessAndCheck never halts: wrong guesses are
                answered on ⌈1/(2η)⌉ midpoints, within η, and the width grows with their number

    Raises a `ParameterError` where one of these is out of range.
    """

    eta: Fraction
    queries: int
    beta: Fraction
    rejections: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", positive(self.eta, "eta", at_most=1))
        object.__setattr__(self, "beta", probability(self.beta))
        if self.queries < 1 or (self.rejections is not None and self.rejections < 0):
            raise ParameterError("give the number of queries, at least 1, and of rejections, at least 0")

    @property
    def grid(self) -> int:
        """How many steps of the grid that answers are rounded to lie between 0 and 1."""
        return ceil(2 / self.eta) if self.rejections is not None else ceil(1 / (2 * self.eta))

    def text(self) -> str:
        """The terms as one line, which names them wherever they are kept."""
        most = "any number of" if self.rejections is None else self.rejections
        return f"guess and check eta {self.eta} queries {self.queries} beta {self.beta} {most} rejections"

    def nearest(self, value: Fraction) -> Fraction:
        """The midpoint of the grid cell that a rate, `value`, lies in."""
        cell = min(floor(value * self.grid), self.grid - 1)
        return Fraction(2 * cell + 1, 2 * self.grid)

    def width(self, rows: int, failures: int, *, accepted: bool) -> float:
        """How far an answer can be from the population's rate, as a share, jointly over all k answers.

        `rows` is the number of rows of the sample, `failures` that of wrong guesses so far, and `accepted` says
        whether the answer is an accepted guess, which may be η from the sample, or a rate on the grid.
        """
        if self.rejections is None:
            return gnc_failures_width(rows, self.queries, failures, self.eta, self.beta)
        near = self.eta if accepted else Fraction(1, 2 * self.grid)
        return float(near) + gnc_dev(rows, self.queries, self.rejections, self.grid, self.beta)


class GuessAndCheck:
    """GuessAndCheck on the rows of a project that protects validity; its journal is kept in the ledger.

    `table` is the project, or its Curator, and `terms` what is promised. A question is text of one number,
    `"share smoker = true"`, or a query. Nothing is charged: exact values are compared, which protects nobody's
    privacy.

    Under the same `name` it goes on where it was, in any process; `analyst` is who is written down for it. Raises
    a `QueryError` where the table has no rows, and a `RefusedError` where their number is private. `asked` and
    `failures` are how many queries were asked and how many guesses were wrong so far.

    Accuracy    All answers before it halts are within η (accepted) or 1/(2G) (rejected) of the sample, always, and
                within `population_error` of the population with probability 1 - β, for every analyst whose coins
                are independent of the rows. The rows must be independent draws, and nothing else may look at them.
    """

    def __init__(
        self, table: Curator | Project, terms: CheckTerms, *, name: str = "", analyst: str = ""
    ) -> None:
        curator = curator_of(table)
        self.curator = curator
        self.terms = terms
        self.rows = curator.rows
        if self.rows < 1:
            raise QueryError("there are no rows to check a guess against")
        self.asked = 0
        self.failures = 0
        self._reader = QueryReader(curator)
        self._accepted: RepeatMemory[Checked] = RepeatMemory()  # by question and guess, or question
        self._values: RepeatMemory[Checked] = RepeatMemory()  # by question, as told after a wrong guess
        self._lock = AskingLock("mechanism")
        self._journal = curator.recorded(
            terms.text(), lambda text: Journal(curator.ledger, text, name=name, analyst=analyst)
        )
        self.past: list[dict[str, Any]] = []
        self._pupil: Guesser | None = None
        self._told = 0
        self._catch_up()

    @property
    def name(self) -> str:
        """The name under which its journal stands in the ledger, and under which it goes on."""
        return self._journal.name

    def check(self, question: Asked, guess: Number) -> Checked:
        """Whether a `guess` of the rate of a `question` is within η of the sample's; if not, the rate on a grid.

        The guess is a share of rows, from 0 to 1. Returns a `Checked`. The same guess for the same question is
        answered again without being counted, in any process, and so is any guess for a question whose value was
        told after a wrong one: that value is the answer. Raises a `ParameterError` where the guess is no rate, a
        `QueryError` where the question is not one of one number or is about another domain, a `ProtectionError`
        unless the project declares `protect: validity`, and a `HandleClosedError` where all queries were asked, or
        where it has halted after too many wrong guesses.
        """
        # On a fine grid: what is written down of a guess must not depend on whether it was right.
        guessed = Fraction(round(exact(guess, "guess") * GUESSES), GUESSES)
        if not 0 <= guessed <= 1:
            raise ParameterError("a guess is a rate, between 0 and 1", remedy="take the nearer of 0 and 1")
        marginal = Marginal.of(self._reader.read(question))
        with self._lock:
            while (told := self._told_of(marginal, guessed)) is None:
                if (found := self._try(marginal, guessed)) is not None:
                    return found
                self._catch_up()
            return told

    def ask(self, question: Asked, guesser: Guesser) -> Checked:
        """Check what a `guesser` says of a `question`, and tell it when it was wrong; repetitions are not counted.

        Returns a `Checked`: that of before, where the question was answered before in any process. A guesser that
        goes on is also told what was rejected elsewhere, in another process or by another one's guess, before it
        says anything: its guess is always that of the whole transcript. Raises as `check` does, and a
        `ParameterError` where the guesser is none.
        """
        if not hasattr(guesser, "guess"):
            raise ParameterError(
                "who guesses is a guesser, such as ConstantGuess(1/2)",
                remedy="a guess of your own is checked by `check(question, guess)`",
            )
        query = self._reader.read(question)
        marginal = Marginal.of(query)
        with self._lock:
            if (told := self._told_of(marginal)) is not None:
                return told
            self._catch_up()
            while (told := self._told_of(marginal)) is None:
                if self._pupil is not guesser:
                    self._pupil, self._told = guesser, len(self.past)
                self._tell(guesser)
                guess = min(max(guesser.guess(query), 0.0), 1.0)
                found = self._try(marginal, Fraction(round(exact(guess, "guess") * GUESSES), GUESSES))
                if found is not None:
                    if not found.accepted:
                        guesser.learn(query, found.value)
                    self._told = len(self.past)
                    return found
                self._catch_up()
            return told

    def _told_of(self, marginal: Marginal, guess: Fraction | None = None) -> Checked | None:
        """What was told of a question before: where a guess is given, of that guess, or after a wrong one."""
        told = self._accepted.find(marginal.key if guess is None else (marginal.key, guess))
        return self._values.find(marginal.key) if told is None else told

    def teach(self, guesser: Guesser) -> None:
        """Tell a new `guesser` every rejection so far, as one was told that saw them happen."""
        with self._lock:
            self._pupil, self._told = guesser, 0
            self._tell(guesser)

    def _tell(self, guesser: Guesser) -> None:
        for step in self.past[self._told :]:
            if not step["accepted"] and step["value"] is not None:
                query = from_plain(self.curator.domain, step["query"]).where
                guesser.learn(query, float(Fraction(step["value"])))
        self._told = len(self.past)

    def _try(self, marginal: Marginal, guess: Fraction) -> Checked | None:
        """Check it and write it down; None if something was written elsewhere that is not known here."""
        self._check_open()
        step = {"asked": marginal.key, **self._look(marginal, guess)}
        if not self._journal.add(f"{marginal.describe()}?{float(guess):g}", step):
            return None
        self._take(step)
        return self._checked(step)

    @property
    def rejections_left(self) -> int | None:
        """How many wrong guesses may still be answered; None where any number may."""
        return None if self.terms.rejections is None else self.terms.rejections - self.failures

    def _look(self, marginal: Marginal, guess: Fraction) -> dict[str, Any]:
        resolution = 1 if marginal.where.is_counting else RESOLUTION
        total = int(self.curator.exact(marginal, resolution=resolution))
        value = Fraction(total, self.rows * resolution)
        if abs(value - guess) <= self.terms.eta:
            return {"accepted": True, "value": str(guess)}
        if self.rejections_left == 0:  # it halts, and says nothing more
            return {"accepted": False, "value": None}
        return {
            "accepted": False,
            "value": str(self.terms.nearest(value)),
            "query": plain(marginal),
        }

    def _check_open(self) -> None:
        if self.asked >= self.terms.queries:
            raise HandleClosedError(
                f"all {self.terms.queries} queries were asked: the certificate counts no more. Another one on the "
                f"same rows would not hold; it takes new rows"
            )
        if self.rejections_left is not None and self.rejections_left < 0:
            raise HandleClosedError(
                f"more than {self.terms.rejections} guesses were wrong: it has halted, as the theorem demands"
            )

    def _take(self, step: dict[str, Any]) -> None:
        self.asked += 1
        self.failures += not step["accepted"]
        self.past.append(step)
        if step["value"] is None:
            return
        if not step["accepted"]:
            key = from_plain(self.curator.domain, step["query"]).key
            self._values.keep(key, self._checked(step))
        elif "asked" in step:  # in journals of version 0.1 it does not say what was asked
            key, told = step["asked"], self._checked(step)
            self._accepted.keep((key, Fraction(step["value"])), told)
            if self._accepted.find(key) is None:
                self._accepted.keep(key, told)

    def _checked(self, step: dict[str, Any]) -> Checked:
        """What is released; the rejection after the last one allowed halts and releases nothing."""
        if self.rejections_left is not None and self.rejections_left < 0:
            self._check_open()
        accepted, terms = step["accepted"], self.terms
        near = terms.eta if accepted else Fraction(1, 2 * terms.grid)
        width = terms.width(self.rows, self.failures, accepted=accepted)
        return Checked(float(Fraction(step["value"])), float(near), width, accepted)

    def _catch_up(self) -> None:
        for step in self._journal.later():
            self._take(step)
