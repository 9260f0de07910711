"""What scores are about: the population, or new labels for the very rows that were sealed.

The theorems need that nothing but the mechanism reads the sample. How a score was asked for says what that
sample is.

    frozen        the estimator ran in a process of its own (`frozen`) and knows nothing of the sealed rows: their
                  features and labels are the sample, and the certificate is about the population
    predictions   whoever hands in predictions for the rows knows their features. Given these, the labels are still
                  independent and sealed, and a score is a mean of one number in [0, 1] for each label: the
                  certificate holds for new labels of the same rows (fixed design). It says nothing about new rows
    in process    an estimator of this process is shown the features and can keep them. If it keeps nothing, the
                  certificate is about the population; if it does, about new labels of the same rows

What is known of the features stays known: scores that were asked for before count as well. The area under the
curve has no fixed design, since its theorem takes the labels as given and the features as the sample.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Way(StrEnum):
    """How a score was asked for."""

    FROZEN = "frozen"
    PREDICTIONS = "predictions"
    IN_PROCESS = "in process"


class About(StrEnum):
    """What a score is about."""

    POPULATION = "the population"
    THESE_ROWS = "new labels for these rows"
    ASSUMED = "the population, if estimators keep nothing"
    OPEN = "open"


SENTENCES = {
    About.POPULATION: "about the population: every estimator was frozen first and ran in a process of its own",
    About.THESE_ROWS: "about new labels for these very rows (fixed design), not about new rows: whoever hands "
    "in predictions knows the features",
    About.ASSUMED: "about the population if the assumption on estimators holds; if not, about new labels for "
    "these very rows (fixed design)",
    About.OPEN: "about the population as long as every estimator is frozen first (score_frozen); else about "
    "new labels for these very rows (fixed design)",
}

AREA = {
    About.THESE_ROWS: "about the population if the assumption on predictions holds; if not, about nothing: the "
    "area under the curve has no fixed design",
    About.ASSUMED: "about the population if the assumption on estimators holds; if not, about nothing: the "
    "area under the curve has no fixed design",
    About.OPEN: "about the population as long as every estimator is frozen first (score_frozen)",
}
"""The same for the area under the curve, where it is another sentence."""

NOTHING_KEPT = "estimators that were scored in this process keep nothing of the sealed rows for later"
NOT_FITTED = "predictions are those of rules that were fixed without a look at the sealed rows"


def about(ways: Collection[str], *, has_features: bool) -> About:
    """What a score is about, after all that was asked so far and by which ways."""
    if Way.PREDICTIONS in ways or not has_features:
        return About.THESE_ROWS
    if Way.IN_PROCESS in ways:
        return About.ASSUMED
    return About.POPULATION if ways else About.OPEN


def sentence(found: About, *, area: bool) -> str:
    """The same in words."""
    return AREA.get(found, SENTENCES[found]) if area else SENTENCES[found]


def assumptions(
    found: About, ways: Collection[str], unprevented: Collection[str], *, area: bool
) -> list[str]:
    """What has to be assumed besides, because nothing here enforces it."""
    assumed = []
    if area and found is About.THESE_ROWS:
        assumed.append(NOT_FITTED)
    if Way.IN_PROCESS in ways and (area or found is About.ASSUMED):
        assumed.append(NOTHING_KEPT)
    if unprevented and found is not About.THESE_ROWS:
        assumed.append(
            f"frozen estimators passed nothing on by what this system does not prevent: "
            f"{', '.join(sorted(unprevented))}"
        )
    return assumed
