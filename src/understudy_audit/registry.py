"""Every mechanism that can be audited, by name, and how many draws each gets at each effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import ParameterError
from understudy_audit.composites import composites
from understudy_audit.holdout import holdout_subjects
from understudy_audit.privacy import Subject
from understudy_audit.scalar import scalar_subjects
from understudy_audit.selection import single_subjects


@dataclass(frozen=True)
class Effort:
    """Draws a side and pairs of neighbours for one kind of subject; the pilot chooses among all pairs."""

    samples: int
    pairs: int
    pilot: int


EFFORTS = {
    "quick": {"vector": Effort(200_000, 4, 20_000), "run": Effort(2_000, 1, 40)},
    "usual": {"vector": Effort(1_000_000, 8, 50_000), "run": Effort(20_000, 2, 200)},
    "full": {"vector": Effort(4_000_000, 20, 0), "run": Effort(100_000, 10, 1_000)},
}
"""`full` is what `make audit` runs: hours, on one core."""

MOST_SUBJECTS = 50
"""A run that is recorded shares its error out among so many subjects, whichever of them it gets to."""


def subjects() -> dict[str, Subject]:
    """Everything that can be audited here, by name."""
    runs = (composite.subject() for composite in composites())
    found = [*scalar_subjects(), *single_subjects(), *runs, *holdout_subjects()]
    return {subject.name: subject for subject in found}


def named(names: Sequence[str]) -> list[Subject]:
    """The subjects of these names, or all of them; an unknown name is refused with those that there are."""
    known = subjects()
    for name in names:
        if name not in known:
            raise ParameterError(f"no mechanism {name!r} can be audited; there are: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())
