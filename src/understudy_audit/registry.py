"""Every mechanism that can be audited, by name, and how many draws each gets at each effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from understudy.errors import ParameterError
from understudy.mechanism.card import Audited, ChoiceSubject, KeySubject, NoiseSubject, ReportSubject
from understudy.mechanism.cards import cards
from understudy_audit.composites import composites
from understudy_audit.holdout import holdout_subjects
from understudy_audit.privacy import Pair, Subject
from understudy_audit.scalar import key_pairs, noise_pairs, report_pairs
from understudy_audit.selection import choice_pairs, sparse_pairs


@dataclass(frozen=True)
class Effort:
    """Draws a side and pairs of neighbours for one kind of subject; the pilot chooses among some or all pairs."""

    samples: int
    pairs: int
    pilot: int
    among: int | None = None
    """How many pairs the pilot looks at, spread evenly over all; None for all of them."""

    def considered(self, pairs: int) -> list[int]:
        """The places of the pairs that the pilot looks at, of so many."""
        if self.among is None or self.among >= pairs:
            return list(range(pairs))
        return [i * pairs // self.among for i in range(self.among)]


EFFORTS = {
    "quick": {
        "vector": Effort(200_000, 4, 20_000),
        "run": Effort(2_000, 1, 20),
        "slow": Effort(800, 1, 8, among=4),
    },
    "usual": {
        "vector": Effort(1_000_000, 8, 50_000),
        "run": Effort(20_000, 2, 200),
        "slow": Effort(20_000, 2, 200),
    },
    "full": {
        "vector": Effort(4_000_000, 20, 0),
        "run": Effort(100_000, 10, 1_000),
        "slow": Effort(100_000, 10, 1_000),
    },
}
"""`quick` takes two minutes of one core at most; `full` is what `make audit` runs: hours, on one core."""

MOST_SUBJECTS = 50
"""A run that is recorded shares its error out among so many subjects, whichever of them it gets to."""


def mechanism_subjects(price: Fraction = Fraction(1)) -> list[Subject]:
    """What the cards of the mechanisms name, each at ε = `price`."""
    named_on_cards = (audited for card in cards() for audited in card.audited)
    return [Subject(a.name, a.path, "vector", partial(_pairs, a, price)) for a in named_on_cards]


def _pairs(audited: Audited, price: Fraction) -> list[Pair]:
    """The neighbours on which a mechanism that does such a thing is likely to be at its worst."""
    if isinstance(audited, NoiseSubject):
        return noise_pairs(audited, price)
    if isinstance(audited, ReportSubject):
        return report_pairs(audited, price)
    if isinstance(audited, ChoiceSubject):
        return choice_pairs(audited, price)
    if isinstance(audited, KeySubject):
        return key_pairs(audited, price)
    return sparse_pairs(audited, price)


def subjects() -> dict[str, Subject]:
    """Everything that can be audited here, by name."""
    runs = (composite.subject() for composite in composites())
    found = [*mechanism_subjects(), *runs, *holdout_subjects()]
    return {subject.name: subject for subject in found}


def named(names: Sequence[str]) -> list[Subject]:
    """The subjects of these names, or all of them; an unknown name is refused with those that there are."""
    known = subjects()
    for name in names:
        if name not in known:
            raise ParameterError(f"no mechanism {name!r} can be audited; there are: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())
