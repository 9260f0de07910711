"""Which mode a holdout speaks in: by name, or by a forecast. Public numbers decide, never the rows.

The forecast (`automatic`) is of two things, both in units of scores and both from n, k and β alone.

The certificate's width when all k scores have been told; where wrong guesses widen it, after `usual_rejections` of
them, or as many as `rejections` says.

What a search loses that takes the candidate with the largest score: scores that are noisy, or guesses from few
rows, put a worse one first. Of 100 to 500 candidates whose true scores are spread evenly, with told scores of
standard deviation s around them, it loses about s/3 (`SEARCH_LOSS`; simulated: 0.26 s to 0.42 s, of fewer
candidates less, and of many with bounded noise, whose tails end, less too). s is that of the noise and of the
sample together, or of a guess from as many rows as are sealed: the modes' `deviation`.

Taken is the mode with the least width + `LOSS_WEIGHT`·loss among those whose certificate says something. A loss
weighs ten times as much as a width, because every search pays it, and the width is a bound that hardly any search
comes near. The weight was set on scikit-learn's digits, where all weights between 3 and 12 make the same choices
for 20 to 500 trials (checked guesses before noise, bounded before normal noise), and tried on adult (``python -m
bench model_search``).

The ladder is taken where all else says nothing. Its certificate is often narrower than that of noise, but a search
finds no more with it, and it tells and certifies the running best alone: one candidate from another only if it
comes later and is better by more than a step.
"""

from __future__ import annotations

from math import ceil
from typing import cast

from understudy.errors import ParameterError
from understudy.planner.mechanisms import MECHANISMS
from understudy.theory.planned import PlanInputs, Promise
from understudy.validity.auc import Auc
from understudy.validity.bounded import BOUNDED
from understudy.validity.certificate import VACUOUS
from understudy.validity.checking import CHECK, REALISED
from understudy.validity.ladder import FREE_LADDER, LADDER
from understudy.validity.modes import GAUSSIAN, HoldoutMode, ModeCard, ModeTerms, SearchedMode
from understudy.validity.thresholdout import THRESHOLDOUT

MODE_CARDS: dict[str, ModeCard] = {
    card.name: card for card in (BOUNDED, GAUSSIAN, CHECK, REALISED, THRESHOLDOUT, LADDER, FREE_LADDER)
}
"""The modes for scores that are means over rows, by name."""

MODES = ("auto", *MODE_CARDS, "auc")


def takes_guesses(mode: HoldoutMode) -> bool:
    """Whether a mode checks guesses: it then cannot do without one for each score."""
    return mode.name in MODE_CARDS and MODE_CARDS[mode.name].takes_guesses


THEOREM = "tilting"
"""What certifies normal noise where nothing else is asked for."""

EARLIER = "cvar"
"""What did so before Theorem T was known here; `auto` then knew normal noise by it, and no bounded noise."""


MOST_REJECTIONS, REJECTED_PART = 20, 25


def usual_rejections(queries: int) -> int:
    """How many wrong guesses are forecast where nobody says: one in 25, and 20 at most.

    By chance, guesses from an eighth of as many rows as are sealed are wrong so often.
    """
    return min(MOST_REJECTIONS, ceil(queries / REJECTED_PART))


SEARCH_LOSS = 1 / 3
"""What a search loses, over the standard deviation of the scores that it goes by."""

LOSS_WEIGHT = 10
"""How much width a unit of a search's loss is worth."""


def search_loss(mode: SearchedMode) -> float:
    """How much worse, as a score, the candidate is that a search takes than the best one: a forecast."""
    return SEARCH_LOSS * mode.deviation


def automatic(
    rows: int,
    queries: int,
    beta: float,
    *,
    rejections: int | None = None,
    slack: float | None = None,
    earlier: bool = False,
) -> HoldoutMode:
    """The mode with the least width + `LOSS_WEIGHT`·loss of those that a holdout can run, both as forecast.

    Guesses that are checked, where the analyst brings them (`rejections` says how many may be wrong), or noise;
    the ladder is taken where both say nothing, and promises the running best only. With `earlier`, what was chosen
    before Theorem T, by the width alone: a holdout that was opened so goes on so.
    """
    wrong = min(rejections or 0, queries - 1)
    situation = PlanInputs(
        rows=rows, queries=queries, promise=Promise.VALIDITY, beta=beta,
        guesses=rejections is not None, failures=wrong,
    )  # fmt: skip
    theorem = EARLIER if earlier else THEOREM
    terms = ModeTerms(rows, queries, beta, rejections=wrong, theorem=theorem, slack=slack)
    candidates = {
        EARLIER if earlier and card is GAUSSIAN else card.planned: cast("SearchedMode", card.build(terms))
        for card in MODE_CARDS.values()
        if card.planned
        and (rejections is not None or not card.takes_guesses)
        and not (earlier and card is BOUNDED)
    }
    widths = {name: mode.certificate.width for name, mode in candidates.items()}
    worth = {name: width + LOSS_WEIGHT * search_loss(candidates[name]) for name, width in widths.items()}
    if earlier:
        planned = {m.name: m.width(situation)[0] for m in MECHANISMS if m.name in candidates}
        worth = widths = {name: max(width, widths[name]) for name, width in planned.items()}
    useful = [name for name in widths if widths[name] < VACUOUS] or list(widths)
    best = min(useful, key=lambda name: worth[name])
    return candidates[best] if widths[best] < VACUOUS else LADDER.build(terms)


def mode_of(
    wanted: str,
    rows: int,
    queries: int,
    beta: float,
    *,
    rejections: int | None,
    theorem: str | None = None,
    slack: float | None = None,
    earlier: bool = False,
) -> HoldoutMode:
    """A mode for scores that are means over rows, by its name; with `earlier`, as before Theorem T."""
    if wanted == "auto":
        return automatic(rows, queries, beta, rejections=rejections, slack=slack, earlier=earlier)
    if wanted == "auc":
        raise ParameterError("the mode auc is for the metric auc alone")
    if wanted not in MODE_CARDS:
        raise ParameterError(f"no mode {wanted!r}; there are: {', '.join(MODES)}")
    named = theorem or (EARLIER if earlier else THEOREM)
    return MODE_CARDS[wanted].build(ModeTerms(rows, queries, beta, rejections, named, slack))


def auc_mode_of(
    wanted: str,
    positive: int,
    negative: int,
    queries: int,
    beta: float,
    *,
    rejections: int | None,
    slack: float | None = None,
) -> HoldoutMode:
    """A mode for the area under the curve: with noise, or as a mean of min(p, q) rows where a tree is counted."""
    if wanted in ("auto", "auc"):
        return Auc(positive, negative, queries, beta)
    if wanted in MODE_CARDS and MODE_CARDS[wanted].for_pairs:
        rows = min(positive, negative)
        return mode_of(wanted, rows, queries, beta, rejections=rejections, slack=slack)
    *most, last = (card.name for card in MODE_CARDS.values() if card.for_pairs)
    raise ParameterError(
        f"the area under the curve is no mean over rows, so {wanted} does not certify it: use the mode auc, "
        f"{', '.join(most)} or {last}"
    )
