"""How a question reaches an algorithm of the notes: in words or as a linear query, and no more than once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from understudy.answer.reader import CountQuestion, QuestionReader, ShareQuestion
from understudy.answer.statement_question import StatementQuestion
from understudy.curator.curator import Curator
from understudy.errors import QueryError
from understudy.query.linear import LinearQuery

Asked = str | LinearQuery
"""A question of one number: `"count age < 30"`, `"share smoker = true"`, or a linear query."""

MOST_ANSWERS = 1 << 14
"""Answers that are remembered; the one that was asked for longest ago is forgotten first."""

Told = TypeVar("Told")


class QueryReader:
    """Reads questions about one table into the linear queries that the notes speak of. Reads no data.

    A query is the function that a row meets a condition (or its weight): its mean over the rows is the rate that
    the notes write Q(D), and its sum the count. Whether an algorithm answers with the one or the other is its own
    matter, so that `count …` and `share …` name the same query.
    """

    def __init__(self, curator: Curator) -> None:
        self._reader = QuestionReader.of(curator.declaration, counts_everyone=False)

    def read(self, question: Asked) -> LinearQuery:
        """The linear query of a question.

        Raises a `QueryError` where it is not understood, is about another domain, or asks for several numbers, and
        for SQL.
        """
        read = self._reader.read(question)
        if isinstance(read, CountQuestion | ShareQuestion) and not read.marginal.by:
            return read.marginal.where
        if isinstance(read, StatementQuestion):
            raise QueryError(
                "the algorithms of the lecture notes read no SQL",
                remedy="write 'count age < 30' or 'share smoker = true', or ask the project or a session",
            )
        raise QueryError(
            "the algorithms of the lecture notes answer questions of one number, such as 'count age < 30' or "
            "'share smoker = true': ask for one cell of a breakdown at a time, or ask the project or a session"
        )


class RepeatMemory(Generic[Told]):
    """What was answered before: a question that is put again gets the same answer, for nothing.

    Privacy     The answer was released already: to say it again is post-processing.
    Accuracy    The promise is about answers, and this is the same one. It counts as no further query.
    """

    def __init__(self) -> None:
        self._told: OrderedDict[Hashable, Told] = OrderedDict()

    def find(self, key: Hashable) -> Told | None:
        """The answer that was given to this question, where it is remembered."""
        if key in self._told:
            self._told.move_to_end(key)
        return self._told.get(key)

    def keep(self, key: Hashable, answer: Told) -> Told:
        """Remember an answer, and give it back."""
        self._told[key] = answer
        while len(self._told) > MOST_ANSWERS:
            self._told.popitem(last=False)
        return answer
