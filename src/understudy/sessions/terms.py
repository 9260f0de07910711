"""What a session promises, and the classes of questions that are announced when it is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import ParameterError, QueryError
from understudy.query.marginal import Marginal
from understudy.query.workload import AllMarginals
from understudy.rational import Number, positive, probability

MAX_QUERIES = 10**12
MECHANISMS = ("auto", "direct")


@dataclass(frozen=True)
class Conjunctions:
    """Every product of conditions on these attributes: ranges of ordered ones, any subsets of the others."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"conjunctions({', '.join(self.names)})"


def ranges(*names: str) -> Conjunctions:
    """All ranges of an ordered attribute, or all rectangles of two."""
    return Conjunctions(names)


def conjunctions(*names: str) -> Conjunctions:
    """All conjunctions of conditions on a few attributes."""
    return Conjunctions(names)


def pool(questions: Iterable[Marginal]) -> Conjunctions:
    """The conjunctions on all attributes that a list of questions touches."""
    listed = list(questions)
    if not listed:
        raise QueryError("a pool needs at least one question")
    domain = listed[0].domain
    return Conjunctions(domain.clique({name for question in listed for name in question.clique}))


Announced = Conjunctions | AllMarginals


@dataclass(frozen=True)
class Terms:
    """Fixed when a session is opened, and written into the ledger."""

    alpha: Fraction
    beta: Fraction
    queries: int
    classes: tuple[Announced, ...] = ()
    mechanism: str = "auto"

    @classmethod
    def of(
        cls,
        *,
        alpha: Number,
        beta: Number,
        queries: int,
        classes: Sequence[Announced] = (),
        mechanism: str = "auto",
    ) -> Terms:
        if mechanism not in MECHANISMS:
            raise ParameterError(
                f"a session's mechanism is one of {', '.join(MECHANISMS)}, not {mechanism!r}"
            )
        if mechanism == "direct" and classes:
            raise ParameterError("a direct session buys no classes; leave them out")
        if isinstance(queries, bool) or not isinstance(queries, int) or not 1 <= queries <= MAX_QUERIES:
            raise ParameterError(f"a session has 1 to {MAX_QUERIES:,} questions, not {queries}")
        for announced in classes:
            if not isinstance(announced, Conjunctions | AllMarginals):
                raise ParameterError("classes are made by ranges, conjunctions, pool and marginals")
        return cls(positive(alpha, "alpha", at_most=1), probability(beta), queries, tuple(classes), mechanism)

    def text(self) -> str:
        classes = "".join(f" {_named(announced)}" for announced in self.classes)
        kind = " direct" if self.is_direct else ""
        return f"session{kind} alpha {self.alpha} beta {self.beta} queries {self.queries}{classes}"

    @property
    def is_direct(self) -> bool:
        """Fresh noise for every new question, and nothing else."""
        return self.mechanism == "direct"


_TEXT = re.compile(
    r"session(?P<direct> direct)? alpha (?P<alpha>\S+) beta (?P<beta>\S+) queries (?P<queries>\d+)"
    r"(?P<classes>[^@]*)(?: @(?P<edition>\S+))?"
)


def described(text: str, analyst: str) -> str | None:
    """The terms of a recorded session, in words; None where the text is none of a session's.

    >>> described("session alpha 1/20 beta 1/20 queries 10000 @7f", "ada")
    "alpha 0.05, beta 0.05, queries 10000, analyst 'ada'"
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    alpha, beta = (float(Fraction(found[name])) for name in ("alpha", "beta"))
    classes = f", classes{found['classes']}" if found["classes"] else ""
    direct = ", mechanism direct" if found["direct"] else ""
    whose = f"analyst {analyst!r}" if analyst else "no analyst"
    return f"alpha {alpha:g}, beta {beta:g}, queries {found['queries']}{classes}{direct}, {whose}"


def _named(announced: Announced) -> str:
    return f"marginals({announced.order})" if isinstance(announced, AllMarginals) else str(announced)
