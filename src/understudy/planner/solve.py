"""What known quantities buy: each mechanism that applies is solved for the one left out, and ranked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from understudy.errors import ParameterError
from understudy.layout import table
from understudy.pages import notebook
from understudy.planner.mechanisms import MECHANISMS
from understudy.query.workload import Workload
from understudy.rational import MAX_EPSILON, exact
from understudy.theory.planned import PlanInputs, Planned, Promise, Width

VACUOUS = 0.5
"""Answering 1/2 to everything is never further off than this: such a width says nothing."""

SAYS_NOTHING = "says nothing: the error would be wider than the whole range from 0 to 1"
NOTHING_HELPS = "more rows, a larger epsilon or fewer queries would help"

MAX_ROWS = 10**15
MAX_QUERIES = 10**15


@dataclass(frozen=True, slots=True)
class Option:
    """What one mechanism can promise, and by which theorem.

    mechanism    its name in the planner
    width        the error of every answer as a part of all rows, at most 1
    theorem      the statement that promises it
    parameters   those of the mechanism that reach it
    solved       the quantity that was left out; None where no value of it reaches the wanted width
    note         what else a reader should know; empty where there is nothing
    by_name      whether it has to be asked for by name, as no automatic choice takes it
    theory_only  why the program cannot run it at this size; empty if it can
    """

    mechanism: str
    width: float
    theorem: str
    parameters: dict[str, float | int]
    solved: float | int | None
    note: str = ""
    by_name: bool = False
    theory_only: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether the width says nothing: it is 1/2 or more, and answering 1/2 always would do as well."""
        return self.width >= VACUOUS

    def as_dict(self) -> dict[str, Any]:
        """The option as plain values, which JSON can hold."""
        return {
            "mechanism": self.mechanism,
            "width": self.width,
            "theorem": self.theorem,
            "parameters": self.parameters,
            "vacuous": self.vacuous,
            "note": self.note,
            "theory_only": self.theory_only,
        }


@dataclass(frozen=True, repr=False)
class Plan:
    """What `plan` found: the mechanisms that could do the task, best first.

    `situation` is what was given, `unknown` the quantity that was solved for (`alpha`, the width, unless another
    one was left open), `options` the mechanisms with what each needs or reaches, and `left_out` says of each other
    one why it does not apply.
    """

    situation: PlanInputs
    unknown: str
    options: tuple[Option, ...]
    left_out: dict[str, str]

    @property
    def recommended(self) -> Option | None:
        """The best option that can be run and promises an error below 1/2; None where there is none."""
        useful = (
            o for o in self.options if not (o.vacuous or o.by_name or o.theory_only or o.solved is None)
        )
        return next(useful, None)

    def as_dict(self) -> dict[str, Any]:
        """The plan in plain values, as JSON has them."""
        known = {name: getattr(self.situation, name) for name in self.situation.__slots__}
        if self.unknown in known:
            known[self.unknown] = None
        return {
            "known": known,
            "solved_for": self.unknown,
            "mechanisms": [
                option.as_dict() | ({} if self.unknown == "alpha" else {self.unknown: option.solved})
                for option in self.options
            ],
            "recommended": None if self.recommended is None else self.recommended.mechanism,
            "left_out": self.left_out,
        }

    def __repr__(self) -> str:
        best = self.recommended
        told = "nothing recommended" if best is None else f"{best.mechanism} recommended"
        return f"Plan(solved for {self.unknown}, {len(self.options)} mechanisms, {told})"

    def _repr_html_(self) -> str:
        heads = ["mechanism", self._heading, "", "theorem", "parameters"]
        rows = [
            [
                option.mechanism,
                self._shown(option),
                notebook.ErrorBar(None if option.solved is None or option.vacuous else float(option.solved)),
                _cited(option),
                ", ".join(f"{name} = {value:.6g}" for name, value in option.parameters.items()),
            ]
            for option in self.options
        ]
        best = self.recommended
        note = "" if best is None else f"Recommended: {best.mechanism}."
        found = notebook.table(heads, rows, numbers=(self._heading,), total=len(rows))
        return notebook.panel("What the known quantities buy", found, note=note)

    @property
    def _heading(self) -> str:
        return "± width" if self.unknown == "alpha" else self.unknown

    def _shown(self, option: Option) -> str:
        if option.solved is None:
            return "out of reach"
        if self.unknown == "alpha":
            return "says nothing" if option.vacuous else f"{option.width:.4f}"
        return f"{option.solved:,}" if isinstance(option.solved, int) else f"{option.solved:.4g}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def without(self, names: Collection[str]) -> Plan:
        """The plan without the mechanisms called `names`, of which more is known elsewhere."""
        return replace(self, options=tuple(o for o in self.options if o.mechanism not in names))

    def lines(self, columns: int | None = None) -> list[str]:
        """The plan as lines of text: a table with its recommendation, no wider than `columns` characters.

        Without `columns` lines are as long as they need to be.
        """
        explained = [SAYS_NOTHING] if self.unknown == "alpha" and any(o.vacuous for o in self.options) else []
        return [*self.table_lines(columns), *explained, self.verdict]

    def table_lines(self, columns: int | None = None) -> list[str]:
        """The mechanisms as lines of a table, no wider than `columns` characters; without it, of any width."""
        heads, rows = self.cells()
        return table([heads, *rows], columns, left={0, 2})

    def cells(self) -> tuple[tuple[str, str, str], list[tuple[str, str, str]]]:
        """The heads of the table of mechanisms, and its rows, as words."""
        rows = [(o.mechanism, self._shown(o), _cited(o)) for o in self.options]
        return ("mechanism", self._heading, "theorem"), rows

    @property
    def verdict(self) -> str:
        """What is recommended, or that nothing is."""
        if self.recommended is not None:
            return f"recommended: {self.recommended.mechanism}"
        if any(o.theory_only and not o.vacuous for o in self.options):
            return f"nothing that can be run here says anything: {NOTHING_HELPS}"
        return f"nothing here says anything: {NOTHING_HELPS}"


def _cited(option: Option) -> str:
    """The theorem; and a mark where nothing but the theorem is to be had."""
    marked = option.theory_only and not option.vacuous
    return f"{option.theorem} (theory only: {option.theory_only})" if marked else option.theorem


def plan(
    *,
    rows: int | float | None = None,
    queries: int | float | None = None,
    alpha: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    beta: float = 0.05,
    universe: int | float | None = None,
    workload: Workload | None = None,
    vc: int | None = None,
    promise: str = "privacy",
    guesses: bool = False,
    failures: int = 0,
    best_only: bool = False,
) -> Plan:
    """What the known quantities buy: solves for the one of alpha, rows, queries and epsilon that is left out.

    rows       the number of rows of the table, or of the sample
    queries    the number of questions, each of which may be chosen after the answers before it
    alpha      the error of every answer, as a part of all rows: a number between 0 and 1
    epsilon    with `delta`, the privacy budget of all answers together; none for a promise of validity alone
    beta       the probability that some answer is further off than alpha
    universe   the number of cells of the domain, where it is known: some mechanisms need it
    workload   in place of `queries` and `universe`: the number of its queries, and the size of its domain
    vc         the VC dimension of the queries, where it is known
    promise    `privacy`: answers are near the table's, and the people in it are protected. `validity`: answers are
               near the population's. `both`
    guesses    whether the analyst brings a guess with each question, from other data; `failures` is how many of
               the guesses may turn out wrong
    best_only  whether only the best score so far matters, as on a leaderboard

    Returns a `Plan`. It reads no data: everything follows from theorems, which it names. Raises a `ParameterError`
    unless exactly one of the four is left out (of the three without epsilon, for validity), or where the
    quantities contradict each other.

    >>> best = plan(rows=100_000, queries=10_000, promise="validity").recommended
    >>> best.mechanism, round(best.width, 3)
    ('bounded', 0.08)
    """
    wanted = Promise(_choice(promise))
    if workload is not None:
        if queries is not None or universe is not None:
            raise ParameterError("a workload says how many queries there are, and over which universe")
        queries, universe = workload.queries, workload.domain.size()
    unknown = _unknown(rows=rows, queries=queries, alpha=alpha, epsilon=epsilon, promise=wanted)
    if alpha is not None and not 0 < exact(alpha, "alpha") < 1:
        raise ParameterError(f"alpha must lie strictly between 0 and 1, not {alpha}")
    situation = PlanInputs(
        rows=1 if rows is None else rows,  # type: ignore[arg-type]  # made whole by PlanInputs
        queries=failures + 1 if queries is None else queries,  # type: ignore[arg-type]
        promise=wanted,
        beta=beta,
        universe=universe,  # type: ignore[arg-type]
        vc=vc,
        epsilon=MAX_EPSILON if epsilon is None and wanted is not Promise.VALIDITY else epsilon,
        delta=delta,
        guesses=guesses,
        failures=failures,
        best_only=best_only,
    )
    options, left_out = [], {}
    for mechanism in MECHANISMS:
        why_not = mechanism.lacks(situation)
        if why_not:
            left_out[mechanism.name] = why_not
        else:
            options.append(_option(mechanism, situation, unknown, alpha))
    better = {"alpha": 1, "rows": 1, "epsilon": 1, "queries": -1}[unknown]
    options.sort(key=lambda o: (o.solved is None, better * o.solved if o.solved is not None else 0, o.width))
    return Plan(situation, unknown, tuple(options), left_out)


def _choice(promise: str) -> str:
    if promise not in tuple(Promise):
        raise ParameterError(f"promise must be one of {', '.join(Promise)}, not {promise!r}")
    return promise


def _unknown(*, promise: Promise, **given: float | None) -> str:
    if promise is Promise.VALIDITY and given.pop("epsilon") is not None:
        raise ParameterError("a promise of validity alone has no epsilon; ask for privacy or both")
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        names = ", ".join(given)
        listed = ", ".join(missing) or "none of them"
        raise ParameterError(f"leave out exactly one of {names}, to be solved for; left out: {listed}")
    return missing[0]


def _option(mechanism: Planned, situation: PlanInputs, unknown: str, alpha: float | None) -> Option:
    if unknown == "alpha":
        found = width_of(mechanism, situation)
        return _of(mechanism, found, found[0], mechanism.limit(situation, found))
    assert alpha is not None

    def reaches(value: float) -> bool:
        return width_of(mechanism, replace(situation, **{unknown: value}))[0] <= alpha

    solved = _SOLVERS[unknown](reaches, situation)
    if solved is None:
        return _of(mechanism, (1.0, {}), None)
    there = replace(situation, **{unknown: solved})
    found = width_of(mechanism, there)
    return _of(mechanism, found, solved, mechanism.limit(there, found))


def _of(mechanism: Planned, found: Width, solved: float | int | None, theory_only: str = "") -> Option:
    return Option(
        mechanism.name, found[0], mechanism.theorem, found[1], solved, mechanism.note, mechanism.by_name,
        theory_only,
    )  # fmt: skip


def width_of(mechanism: Planned, situation: PlanInputs) -> Width:
    """The width, at most 1; outside a theorem's conditions nothing is promised, which is a width of 1."""
    try:
        width, parameters = mechanism.width(situation)
    except ParameterError:
        return 1.0, {}
    return (width, parameters) if width < 1 else (1.0, parameters)


def _fewest_rows(reaches: Callable[[float], bool], situation: PlanInputs) -> int | None:
    return _first(reaches, 1, MAX_ROWS)


def _most_queries(reaches: Callable[[float], bool], situation: PlanInputs) -> int | None:
    least = situation.failures + 1
    failing = _first(lambda k: not reaches(k), least, MAX_QUERIES)
    if failing == least:
        return None
    return MAX_QUERIES if failing is None else failing - 1


def _first(holds: Callable[[int], bool], low: int, limit: int) -> int | None:
    """The first whole number from `low` to `limit` at which a condition holds that stays true."""
    step, fails, success = 1, low - 1, low
    while not holds(success):
        if success == limit:
            return None
        fails, success, step = success, min(success + step, limit), 2 * step
    while success - fails > 1:
        middle = (fails + success) // 2
        fails, success = (fails, middle) if holds(middle) else (middle, success)
    return success


def _least_epsilon(reaches: Callable[[float], bool], situation: PlanInputs) -> float | None:
    low, high = 1e-9, float(MAX_EPSILON)
    if not reaches(high):
        return None
    if reaches(low):
        return low
    while high / low > 1 + 1e-6:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return min(high, inf)


_SOLVERS: dict[str, Callable[[Callable[[float], bool], PlanInputs], float | int | None]] = {
    "rows": _fewest_rows,
    "queries": _most_queries,
    "epsilon": _least_epsilon,
}
