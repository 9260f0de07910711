"""The model of most entropy near all noisy marginals at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt

import numpy as np

from understudy.errors import ParameterError
from understudy.standin.graphical.belief import Propagator
from understudy.standin.graphical.descent import StepMemory, dot
from understudy.standin.graphical.program import TableRegion
from understudy.standin.graphical.residual import Reconciled
from understudy.standin.graphical.smoothness import Smoothness
from understudy.standin.graphical.strength import SeenStrength, slack_times
from understudy.standin.graphical.tree import Values

SMOOTHER = 2.0
"""For a fit that tells how many people cells hold: it should follow the noise in them as little as it can."""

SMOOTHER_SHARE = 2.0
"""Times the share of the noise up to which other fits are accurate: how many people a cell holds need not be known
as well as what is told."""

SMOOTHER_PASSES = 40
"""At most, of such a fit: more of them change no answer by as much as the noise of its last digits does."""

LEAST_HELD = 1e-9
"""People in a cell, at least, so that its slack is finite."""

WINDOW = 8
"""Steps between two looks at how far the answers still move."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How closely to follow the measurements, and when to stop.

    A cell measured with standard deviation σ may be missed by about `slack_share`·σ counts (at least
    `least_slack`) for each unit of log potential: less slack follows the noise, more prefers entropy. With a
    `sparse_slack` above 1, interactions may be missed by up to so many times as much in cells that hold few people
    for their noise (`FitProblem.with_sparse_slack`): a second fit follows the first, which tells these cells. It
    also tells which dependences are strong: with `by_strength`, these have less slack, and weak ones more. With
    `smooth`, neighbouring cells along an attribute are taken to be alike as far as the measurements show it.
    A fit stops when no measured marginal is expected to move any more by `accuracy` (total variation) or by
    `noise_share` of what the noise leaves uncertain anyway, or when the duality gap certifies that, or after
    `most_passes`. It ends at the point of least gap, whichever was the last.
    """

    slack_share: float = 0.4
    least_slack: float = 0.2
    sparse_slack: float = 1.0
    by_strength: bool = False
    smooth: bool = False
    accuracy: float = 1e-5
    noise_share: float = 0.02
    most_passes: int = 500
    memory: int = 12

    def __post_init__(self) -> None:
        numbers = (self.slack_share, self.least_slack, self.accuracy, self.noise_share)
        if not all(0 <= number < inf for number in numbers) or self.least_slack == 0:
            raise ParameterError(
                f"slacks and accuracies are finite and not negative, the least slack positive: {self}"
            )
        if not 1 <= self.sparse_slack < inf:
            raise ParameterError(f"the slack of sparse cells is at least that of others: {self}")
        if self.most_passes < 1 or self.memory < 1:
            raise ParameterError(f"a fit needs at least one pass and one remembered step: {self}")


@dataclass(frozen=True)
class FitReport:
    """How a fit ended.

    No rate of any query, on whatever clique, differs between the model and the optimum by more than
    `certified_error`; `expected_error` is what the last steps let expect of the measured marginals.
    """

    passes: int
    gap: float
    certified_error: float
    expected_error: float
    converged: bool


@dataclass(frozen=True)
class Point:
    """Log potentials, their parts, the measured marginals they give, and F with its gradient and gap."""

    theta: Values
    effects: Values
    rates: Values
    value: float
    gradient: Values
    gap: float


@dataclass(frozen=True)
class FitProblem:
    """Minimise F(θ) = N A(θ) - Σ_i φ_i·z_i + ½ Σ_i κ_i |φ_i|², the dual of a regularised maximum of entropy.

    A is the log partition function, φ_i the parts of θ, z_i the reconciled parts of the counts, κ_i the slack. The
    primal problem is to maximise N H(p) - ½ Σ_i |N p_i - z_i|² / κ_i over distributions p with parts p_i. With
    g_i = N p_i(θ) - z_i + κ_i φ_i the two differ at θ by gap = ½ Σ_i |g_i|² / κ_i, which is at least
    N (KL(p* ‖ p(θ)) + KL(p(θ) ‖ p*)); by Pinsker's inequality on both terms, every query is within ½ √(gap / N) of
    its value at the optimum p*.

    Where the slack of parts is `uneven`, κ_i is a number for each cell, and P_i κ_i P_i takes its place, with P_i
    the projection on the part's own space: what an interaction misses is an interaction, and no smaller marginal
    is missed for it. Where neighbours are alike, with correlations C (`smoothness`), √κ C⁻¹ √κ takes the place of
    κ there: rough functions have more slack, smooth ones less. As g·(P K P)⁺g ≤ g·K⁻¹g for every g in that space
    and K = √κ C⁻¹ √κ, the gap is at least what it should be, and still closes at the optimum.
    """

    propagator: Propagator
    reconciled: Reconciled
    total: float
    slack: Values
    allowed: tuple[Values, ...] = ()
    uneven: bool = False
    smoothness: Smoothness | None = None

    @classmethod
    def of(
        cls,
        propagator: Propagator,
        reconciled: Reconciled,
        *,
        total: float,
        settings: FitSettings,
        allowed: tuple[Values, ...] = (),
    ) -> FitProblem:
        slack: dict[tuple[int, ...], float] = {}
        for s, variance in reconciled.variance.items():
            noise = reconciled.noise[s]
            slack[s] = (
                variance / noise**2 * max(settings.slack_share * noise, settings.least_slack) if s else 0.0
            )
        return cls(propagator, reconciled, total, reconciled.space.spread(slack), allowed)

    def smoother(self) -> FitProblem:
        """The same problem with `SMOOTHER` times the slack for each attribute of a part beyond the first."""
        space = self.reconciled.space
        times = {s: SMOOTHER ** (len(s) - 1) if s else 1.0 for s in space.sets}
        return replace(self, slack=self.slack * space.spread(times))

    def with_sparse_slack(self, point: Point, most: float) -> FitProblem:
        """The same problem with more slack, up to `most` times, where a `smoother` fit left few people.

        In a cell that holds m people a small log potential t moves m·t of them. If t is normal with variance 1,
        and the cell was measured with noise of variance v, its most likely value leaves v/m people for each unit
        of t: that is the slack, where it is more than the even one. Where a cell holds few people for its noise,
        even slack makes a factor of up to 10 of one standard deviation: little in a marginal, much for whoever
        compares two such cells, as every model does that predicts an attribute. 1-way parts keep their slack.
        """
        space, slack = self.reconciled.space, self.slack.copy()
        for part in space.parts:
            if len(part.attributes) > 1:
                held = np.maximum(self.held(part, point), LEAST_HELD)
                even = slack[part.start]
                likely = self.reconciled.variance[part.attributes] / held
                slack[part.start : part.stop] = np.clip(likely, even, most * even)
        return replace(self, slack=slack, uneven=True)

    def with_slack_by_strength(self, point: Point) -> FitProblem:
        """The same problem with slack by how strong each dependence is at a `smoother` fit (`strength`)."""
        space, variance = self.reconciled.space, self.reconciled.variance
        seen = {
            part.attributes: SeenStrength.of(
                point.effects[part.start : part.stop],
                self.held(part, point),
                sqrt(variance[part.attributes]),
            )
            for part in space.parts
            if len(part.attributes) > 1
        }
        times, single = slack_times(seen)
        return replace(self, slack=self.slack * space.spread({s: times.get(s, single) for s in space.sets}))

    def with_smoothness(self) -> FitProblem:
        """The same problem with neighbours as alike as the measurements show; itself where they show nothing."""
        shown = Smoothness.shown(self.reconciled, self.total)
        return replace(self, smoothness=shown) if shown else self

    def held(self, part: TableRegion, point: Point) -> Values:
        """The people in each cell of a part's attributes, read off the smallest table that holds them."""
        space, own = self.reconciled.space, set(part.attributes)
        hosts = (table for table in space.tables if own.issubset(table.attributes))
        host = min(hosts, key=lambda table: table.size)
        gone = tuple(i for i, a in enumerate(host.attributes) if a not in own)
        rates = point.rates[host.start : host.stop].reshape(space.layout.shape(host.attributes))
        return self.total * rates.sum(axis=gone).ravel()

    def evaluate(self, theta: Values, effects: Values) -> Point:
        space = self.reconciled.space
        logs = [theta[table.start : table.stop] for table in space.tables]
        beliefs = self.propagator.propagate(logs, self.allowed)
        rates = beliefs.marginals()
        pull = self._pull(effects)
        residual = self.total * space.residuals(rates) - self.reconciled.estimate + pull
        residual[0] = 0.0  # the total is given, not fitted
        value = self.total * (beliefs.log_mass - effects[0])
        value += dot(effects[1:], 0.5 * pull[1:] - self.reconciled.estimate[1:])
        return Point(theta, effects, rates, value, space.expand(residual), self._gap(residual))

    def _pull(self, effects: Values) -> Values:
        """What the slack lets parts miss of the counts, at these log potentials."""
        if self.smoothness is None:
            pull = self.slack * effects
            return self.reconciled.space.projected(pull) if self.uneven else pull
        rough = self.smoothness.times_precision(self._root * effects)
        return self.reconciled.space.projected(self._root * rough)

    def _gap(self, residual: Values) -> float:
        if self.smoothness is None:
            return 0.5 * dot(residual[1:], residual[1:] / self.slack[1:])
        scaled = residual.copy()
        scaled[1:] /= self._root[1:]
        return 0.5 * dot(scaled, self.smoothness.times_correlations(scaled))

    @cached_property
    def _root(self) -> Values:
        return np.sqrt(self.slack)

    def certified(self, gap: float) -> float:
        return min(1.0, 0.5 * sqrt(max(gap, 0.0) / self.total))

    def own_slack(self) -> Values:
        """The slack of each clique's own part, over its cells."""
        space = self.reconciled.space
        parts = [space.place[table.attributes] for table in space.tables]
        slack = self.slack if self.smoothness is None else self.slack * self.smoothness.diagonal
        return np.concatenate([slack[part.start : part.stop] for part in parts])

    def noise_error(self, rates: Values) -> float:
        """What the noise leaves uncertain: the mean total variation over the measured marginals."""
        space = self.reconciled.space
        errors = [
            np.minimum(
                0.4 * sqrt(self.reconciled.variance[t.attributes]), self.total * rates[t.start : t.stop]
            ).sum()
            for t in space.tables
        ]
        return float(np.mean(errors)) / self.total

    def moved(self, before: Values, after: Values) -> float:
        """The largest total variation between two sets of marginals."""
        starts = [t.start for t in self.reconciled.space.tables]
        return float(0.5 * np.add.reduceat(np.abs(after - before), starts).max())


def solved(problem: FitProblem, start: Values, settings: FitSettings) -> tuple[Point, FitReport]:
    """The optimum; with a `sparse_slack`, or `by_strength`, that of the slack which a first, smoother fit calls
    for.
    """
    if settings.smooth:
        problem = problem.with_smoothness()
    if settings.sparse_slack == 1 and not settings.by_strength:
        return minimise(problem, start, settings)
    rough = replace(
        settings,
        noise_share=SMOOTHER_SHARE * settings.noise_share,
        most_passes=min(settings.most_passes, SMOOTHER_PASSES),
    )
    point, first = minimise(problem.smoother(), start, rough)
    if settings.by_strength:
        problem = problem.with_slack_by_strength(point)
    if settings.sparse_slack > 1:
        problem = problem.with_sparse_slack(point, settings.sparse_slack)
    point, second = minimise(problem, point.theta, settings)
    return point, replace(second, passes=first.passes + second.passes)


def minimise(problem: FitProblem, start: Values, settings: FitSettings) -> tuple[Point, FitReport]:
    """L-BFGS, first guess from the diagonal of the Hessian, until the answers stand still or the gap is closed.

    F falls at every step, the gap does not: a step may lower F and still leave some answers farther off than they
    were. Of all points the one with the least gap is told. Where passes run out the last one would be no more than
    a matter of rounding: on adult at epsilon 1, changes of 10⁻¹² at the start moved the mean error of the answers
    by up to 1.4%, and now by 0.1% at most.
    """
    space = problem.reconciled.space
    point = best = problem.evaluate(start, space.effects(start))
    search = StepMemory(settings.memory, start.size)
    own, watch, passes = problem.own_slack(), _Watch(settings), 1
    while not (done := watch.sees_enough(problem, point)) and passes < settings.most_passes:
        direction = search.direction(point.gradient, point.rates, own, problem.total)
        new, used = _step(problem, point, direction)
        passes += used
        if new is None:
            break
        search.learn(new.theta, point.theta, new.gradient, point.gradient)
        point = new
        if point.gap < best.gap:
            best = point
    return best, FitReport(passes, best.gap, problem.certified(best.gap), watch.expected, done)


MOST_TRIALS = 12
"""Points tried along one direction; after that, rounding is all that is left to gain."""

LONGEST_STEP = 8.0
"""In log potential: a longer step from far away would leave the range in which the model says anything."""


def _step(problem: FitProblem, point: Point, direction: Values) -> tuple[Point | None, int]:
    """The first point along the direction that is low enough, and the passes it took; None where there is none."""
    slope = dot(point.gradient, direction)
    along = problem.reconciled.space.effects(direction)
    step = min(1.0, LONGEST_STEP / max(float(np.abs(direction).max(initial=0.0)), LONGEST_STEP))
    rounding = 1e-13 * abs(point.value)
    for trial in range(1, MOST_TRIALS + 1):
        new = problem.evaluate(point.theta + step * direction, point.effects + step * along)
        if slope < 0 and new.value <= point.value + 1e-4 * step * slope + rounding:
            return new, trial
        step *= 0.35
    return None, MOST_TRIALS


class _Watch:
    """How far the answers will still move, if each window of steps shortens the way as the last one did."""

    def __init__(self, settings: FitSettings) -> None:
        self.expected = inf
        self._settings = settings
        self._wanted = settings.accuracy
        self._steps = 0
        self._rates: Values | None = None
        self._last = inf

    def sees_enough(self, problem: FitProblem, point: Point) -> bool:
        if self._steps % WINDOW == 0:
            self._look(problem, point.rates)
        self._steps += 1
        return min(problem.certified(point.gap), self.expected) <= self._wanted

    def _look(self, problem: FitProblem, rates: Values) -> None:
        noise = self._settings.noise_share * problem.noise_error(rates)
        self._wanted = max(self._settings.accuracy, noise)
        if self._rates is not None:
            moved = problem.moved(self._rates, rates)
            ratio = max(moved / self._last, _BEST_RATIO) if self._last > 0 else _BEST_RATIO
            settled = self._last < inf and ratio < 1
            self.expected = moved * ratio / (1 - ratio) if settled else inf
            self._last = moved
        self._rates = rates


_BEST_RATIO = 0.3
"""A window that shortens the way by more than this is taken for luck."""
