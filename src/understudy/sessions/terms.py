"""What a session promises, and the classes of questions that are announced when it is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import ParameterError, QueryError
from understudy.privacy.noise_name import check_noise_name
from understudy.query.marginal import Marginal
from understudy.query.workload import AllMarginals
from understudy.rational import Number, positive, probability

MAX_QUERIES = 10**12
"""The largest number of questions that may be announced."""

MECHANISMS = ("auto", "direct")
"""How questions may be bought: together where that is cheaper, or each by itself."""


@dataclass(frozen=True)
class Conjunctions:
    """The class of all conjunctions of a range of each ordered attribute and a set of cells of each other one.

    `names` are those of the attributes. `conjunctions`, `ranges` and `pool` make one.
    """

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"conjunctions({', '.join(self.names)})"


def ranges(*names: str) -> Conjunctions:
    """The class of all ranges of an ordered attribute, or of all rectangles of two, by their `names`.

    For `Session.buy` and the argument `classes` of `session`, which buy the class at once: every question of it is
    then answered for nothing; and for the argument `expected`. It is `conjunctions` of the same names. Nothing is
    charged or refused here: the session raises a `DomainError` for an unknown name, and a `QueryError` where the
    class is too large.

    >>> str(ranges("age"))
    'conjunctions(age)'
    """
    return Conjunctions(names)


def conjunctions(*names: str) -> Conjunctions:
    """The class of all conjunctions on the attributes `names`: a range of each ordered one, any cells of others.

    For `Session.buy` and the argument `classes` of `session`, which buy the class at once: every question of it is
    then answered for nothing; and for the argument `expected`. Nothing is charged or refused here: the session
    raises a `DomainError` for an unknown name, and a `QueryError` where the class is too large.

    >>> str(conjunctions("age", "sex"))
    'conjunctions(age, sex)'
    """
    return Conjunctions(names)


def pool(questions: Iterable[Marginal]) -> Conjunctions:
    """The class of all conjunctions on the attributes that any of the listed `questions` reads.

    For the argument `classes` of `session`, by somebody who knows the questions that will come. Raises a
    `QueryError` where the list is empty, and a `ParameterError` where it holds something else than marginals.
    """
    listed = list(questions)
    if not listed:
        raise QueryError("a pool needs at least one question")
    if not all(isinstance(one, Marginal) for one in listed):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError(
            "a pool is of `us.Marginal`s",
            remedy='for questions in words name their attributes: `us.conjunctions("age", "sex")`',
        )
    domain = listed[0].domain
    return Conjunctions(domain.clique({name for question in listed for name in question.clique}))


Announced = Conjunctions | AllMarginals


@dataclass(frozen=True)
class Terms:
    """What a session promises and expects, fixed when it is opened and written into the ledger.

    alpha      the error of every count, as a part of all rows
    beta       the probability that some answer of the session is further off
    queries    how many questions are expected
    classes    the classes that are bought when the session is opened
    mechanism  `auto` or `direct`
    noise      which noise counts get that are bought by themselves: `auto`, or one by name
    expected   the classes that questions are expected to be of: bought as soon as the allowance permits it

    Promise     A session goes on under the terms that it was opened with, or not at all.
    Why         `text` goes into the ledger with the session's name, where equal terms have equal texts and others
                another one, which the ledger refuses under that name; `read` is its inverse, or says that it
                cannot tell.
    Privacy     Terms are the caller's words: no data go into them.
    Cost        Nothing. `classes` are bought when the session is opened, `expected` ones only with a question.
    """

    alpha: Fraction
    beta: Fraction
    queries: int
    classes: tuple[Announced, ...] = ()
    mechanism: str = "auto"
    noise: str = "auto"
    expected: tuple[Announced, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        alpha: Number,
        beta: Number,
        queries: int,
        classes: Sequence[Announced] = (),
        mechanism: str = "auto",
        noise: str = "auto",
        expected: Sequence[Announced] = (),
    ) -> Terms:
        """Checked terms; raises a `ParameterError` that says what is wrong with them."""
        if mechanism not in MECHANISMS:
            raise ParameterError(
                f"a session's mechanism is one of {', '.join(MECHANISMS)}, not {mechanism!r}"
            )
        check_noise_name(noise)
        if mechanism == "direct" and (classes or expected):
            raise ParameterError("a direct session buys no classes; leave them out")
        if isinstance(queries, bool) or not isinstance(queries, int) or not 1 <= queries <= MAX_QUERIES:
            raise ParameterError(f"a session has 1 to {MAX_QUERIES:,} questions, not {queries}")
        for named, given in (("classes", classes), ("expected", expected)):
            if isinstance(given, Conjunctions | AllMarginals):
                raise ParameterError(f"`{named}` is a list", remedy=f'write `{named}=[us.ranges("age")]`')
            for announced in given:
                checked_class(announced)
        width = positive(alpha, "alpha", at_most=1)
        return cls(width, probability(beta), queries, tuple(classes), mechanism, noise, tuple(expected))

    def text(self) -> str:
        """The terms as the ledger keeps them."""
        classes = "".join(f" {class_text(announced)}" for announced in self.classes)
        kind = " direct" if self.is_direct else ""
        kind += "" if self.noise == "auto" else f" noise {self.noise}"
        ahead = "".join(f" {class_text(announced)}" for announced in self.expected)
        classes += f"{EXPECTS}{ahead}" if ahead else ""
        return f"session{kind} alpha {self.alpha} beta {self.beta} queries {self.queries}{classes}"

    @classmethod
    def read(cls, text: str, names: Iterable[str]) -> Terms | None:
        """The terms in what the ledger keeps of a session, the inverse of `text`; None where it is of none.

        `names` are those of all attributes, which tell where a name ends that holds a comma or a bracket.

        >>> kept = "session alpha 1/50 beta 1/20 queries 100 conjunctions(age, sex) marginals(2) @7f"
        >>> Terms.read(kept, ["age", "sex", "town"]).classes
        (Conjunctions(names=('age', 'sex')), AllMarginals(order=2))
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        bought, ahead = _parts(match["classes"], name)
        classes, expected = _classes(bought, name), _classes(ahead, name)
        if classes is None or expected is None:
            return None  # names that the text does not tell apart
        mechanism = "direct" if match["direct"] else "auto"
        alpha, beta = Fraction(match["alpha"]), Fraction(match["beta"])
        noise = match["noise"] or "auto"
        return cls(alpha, beta, int(match["queries"]), classes, mechanism, noise, expected)

    def ahead(self, asked: int) -> int:
        """How many questions are still expected after `asked`; a tenth of `queries` once those have come."""
        return max(self.queries - asked + 1, self.queries // 10, 1)

    @property
    def is_direct(self) -> bool:
        """Whether every new question is bought by itself, with noise of its own."""
        return self.mechanism == "direct"


_TEXT = re.compile(
    r"session(?P<direct> direct)?(?: noise (?P<noise>\w+))? "
    r"alpha (?P<alpha>\S+) beta (?P<beta>\S+) queries (?P<queries>\d+)"
    r"(?P<classes>(?: .*\))?)(?: @(?P<edition>\S+))?",
    re.DOTALL,
)


EXPECTS = " expects"
"""The word in a session's terms before the classes that it expects; versions before 0.2 knew none."""


def _class(name: str) -> str:
    """The pattern of a class in a session's terms, by that of an attribute's `name`."""
    return rf"conjunctions\((?:(?:{name})(?:, (?:{name}))*)?\)|marginals\(\d+\)"


def _parts(text: str, name: str) -> tuple[str, str]:
    """The classes that were bought at once and those that are expected, in a session's terms."""
    match = re.fullmatch(rf"((?: (?:{_class(name)}))*){EXPECTS}((?: (?:{_class(name)}))+)", text)
    return (match[1], match[2]) if match else (text, "")


def _classes(text: str, name: str) -> tuple[Announced, ...] | None:
    """The classes in a part of a session's terms; None where the text does not tell their names apart."""
    found: list[Announced] = []
    for named in re.findall(_class(name), text):
        kind, _, inside = named[:-1].partition("(")
        names = tuple(re.findall(name, inside) if inside else ())
        found.append(AllMarginals(int(inside)) if kind == "marginals" else Conjunctions(names))
    return tuple(found) if text.strip() == " ".join(map(class_text, found)) else None


def described(text: str, analyst: str) -> str | None:
    """The terms that the ledger keeps of a session, in words; None where the text is not of a session.

    >>> described("session alpha 1/20 beta 1/20 queries 10000 @7f", "ada")
    "alpha 0.05, beta 0.05, queries 10000, analyst 'ada'"
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    alpha, beta = (float(Fraction(match[name])) for name in ("alpha", "beta"))
    classes = f", classes{match['classes']}" if match["classes"] else ""
    direct = ", mechanism direct" if match["direct"] else ""
    direct += f", noise {match['noise']}" if match["noise"] else ""
    whose = f"analyst {analyst!r}" if analyst else "no analyst"
    return f"alpha {alpha:g}, beta {beta:g}, queries {match['queries']}{classes}{direct}, {whose}"


def checked_class(named: object) -> Announced:
    """The class of questions itself; raises a `ParameterError` for anything else."""
    if not isinstance(named, Conjunctions | AllMarginals):
        raise ParameterError(
            "classes are made by ranges, conjunctions, pool and marginals", remedy='write `us.ranges("age")`'
        )
    return named


_GIVEN = r"\s*(?:\"((?:[^\"]|\"\")+)\"\s*|([^,()\"]+))"
"""A name as it is given in a class: in double quotes, which are doubled inside, or as it is."""


def read_class(text: str) -> Announced:
    """A class in words; `ranges` stands for `conjunctions`, and an unusual name is in double quotes.

    Raises a `ParameterError` where it is not understood.

    >>> read_class('ranges(age, "income (€)")')
    Conjunctions(names=('age', 'income (€)'))
    """
    match = re.fullmatch(rf"\s*(ranges|conjunctions|marginals)\(({_GIVEN}(?:,{_GIVEN})*)\)\s*", text)
    given = re.findall(_GIVEN, match[2]) if match else []
    names = tuple(quoted.replace('""', '"') or plain.strip() for quoted, plain in given)
    if match is None or not all(names) or (match[1] == "marginals" and not match[2].strip().isdecimal()):
        raise ParameterError(
            f"{text!r} names no class: write ranges(age), conjunctions(sex, district) or marginals(2)"
        )
    return AllMarginals(int(match[2])) if match[1] == "marginals" else Conjunctions(names)


def class_text(announced: Announced) -> str:
    """A class as the ledger names it.

    >>> class_text(AllMarginals(2))
    'marginals(2)'
    """
    return f"marginals({announced.order})" if isinstance(announced, AllMarginals) else str(announced)
