"""A score, and how it is read from what a mode has said of its means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from understudy.noise.samplers import NoiseSource
from understudy.pages import notebook
from understudy.validity.metric import Area, Metric
from understudy.validity.modes import Heard, HoldoutMode, Said, SealedLook, between_0_and_1
from understudy.validity.propagated import Interval
from understudy.validity.scope import About


@dataclass(frozen=True, repr=False)
class Score:
    """A score in [0, 1], larger is better, within `width` of what it is about, jointly with all the others.

    value     the score that is told; ``float(score)`` is the same
    width     the half-width of its interval, on the scale of scores
    source    `measured` (told from the sealed rows, by the mode), `checked` (the guess, which the sealed rows
              agree with), or `repeat` (the running best of a ladder, which this model does not beat)
    left      how many more scores the certificate covers
    about     what the interval is about: the population, or new labels for these rows, by how this score and those
              before it were asked for
    interval  the ends of where the truth is, where they are not `value` ± `width`: those of a function of means
    scale     a score s of a loss stands for scale·(1 - s), in the unit of the target; None where the metric is no
              loss
    """

    value: float
    width: float
    source: str
    left: int
    about: About = About.THESE_ROWS
    interval: Interval | None = None
    scale: float | None = None

    @property
    def low(self) -> float:
        """The lower end of the interval that the truth is in, at least 0."""
        return between_0_and_1(self.value - self.width) if self.interval is None else self.interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval that the truth is in, at most 1."""
        return between_0_and_1(self.value + self.width) if self.interval is None else self.interval[1]

    @property
    def loss(self) -> float | None:
        """The loss in the unit of the target, smaller is better; None where the metric is no loss."""
        return None if self.scale is None else self.scale * (1 - self.value)

    @property
    def loss_interval(self) -> Interval | None:
        """The ends of where the true loss is, in the unit of the target; None where the metric is no loss."""
        return None if self.scale is None else (self.scale * (1 - self.high), self.scale * (1 - self.low))

    @property
    def repeats(self) -> bool:
        """Whether a ladder repeated its running best, which says of this submission only that it is no better."""
        return self.source == "repeat"

    def __float__(self) -> float:
        return self.value

    def as_dict(self) -> dict[str, Any]:
        """The score as plain values, which JSON can hold."""
        told = {"value": self.value, "width": self.width, "source": self.source, "left": self.left,
                "about": str(self.about), "low": self.low, "high": self.high}  # fmt: skip
        return told if self.scale is None else told | {"loss": self.loss, "loss_interval": self.loss_interval}

    def __repr__(self) -> str:
        return (
            f"Score({self.value:.4f} in [{self.low:.4f}, {self.high:.4f}], {self.source}, {self.left:,} left)"
        )

    def _repr_html_(self) -> str:
        rows: list[list[notebook.Cell]] = [_row("score", self.value, (self.low, self.high))]
        if self.loss is not None and self.loss_interval is not None:
            rows.append([*_row("loss", self.loss, self.loss_interval)[:-1], ""])
        found = notebook.table(["", "value", "between", ""], rows, numbers=("value", "between"))
        repeated = "It is the best so far: this submission was no better. " if self.repeats else ""
        note = f"{repeated}About {self.about}. Source: {self.source}; {self.left:,} scores left."
        return notebook.panel("Score", found, note=note)


def _row(name: str, value: float, ends: Interval) -> list[notebook.Cell]:
    between = f"{notebook.number(ends[0])} and {notebook.number(ends[1])}"
    return [name, notebook.number(value), between, notebook.ErrorBar(value, *ends)]


# ---- from what was said


@dataclass(frozen=True)
class JournaledScore:
    """What one step of a journal says of a score."""

    value: float
    width: float
    source: str
    interval: Interval | None = None


@dataclass
class Memory:
    """What has been said so far: to the mode, and of the means that are asked for once."""

    heard: Heard = field(default_factory=Heard)
    once: list[Said] = field(default_factory=list)

    def copy(self) -> Memory:
        """Another one that knows the same: what it is told stays with it."""
        return Memory(replace(self.heard, secret=dict(self.heard.secret)), list(self.once))


def say_all(
    mode: HoldoutMode,
    looks: Sequence[SealedLook],
    first: Sequence[SealedLook],
    memory: Memory,
    *,
    noise: NoiseSource,
) -> dict[str, Any]:
    """The step of a score of several means: what a mode says of each. `first` are those that are asked for once.

    A mode that halts says no more. `memory` is told all of it, so a copy is handed in.
    """
    said: dict[str, Any] = {"once": [], "parts": []}
    for name, several in (("once", () if memory.once else first), ("parts", looks)):
        for look in several:
            step = mode.say(look, memory.heard, noise=noise)
            said[name].append(step)
            if step.get("accepted") is False and step.get("value") is None:
                return said
            mode.read(step, memory.heard)
    return said


def read_all(
    mode: HoldoutMode, metric: Metric | Area, step: Mapping[str, Any], memory: Memory
) -> JournaledScore:
    """What a step says of a score: of one mean, or of several and of the intervals that follow from theirs.

    Raises a `HandleClosedError` where the mode halted at this step.
    """
    if "parts" not in step:
        said = mode.read(dict(step), memory.heard)
        if isinstance(metric, Area) or not metric.combines:
            return JournaledScore(said.value, said.width, said.source)
        return _combined(metric, [said])
    memory.once += [mode.read(part, memory.heard) for part in step["once"]]
    parts = [mode.read(part, memory.heard) for part in step["parts"]]
    assert isinstance(metric, Metric)
    return _combined(metric, [*parts, *memory.once])


def _combined(metric: Metric, said: Sequence[Said]) -> JournaledScore:
    ends = [(between_0_and_1(one.value - one.width), between_0_and_1(one.value + one.width)) for one in said]
    low, high = metric.interval(ends)
    value = min(max(metric.value([one.value for one in said]), low), high)
    sources = {one.source for one in said}
    source = sources.pop() if len(sources) == 1 else "measured"
    return JournaledScore(value, max(value - low, high - value), source, (low, high))
