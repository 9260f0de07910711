"""Which mode a holdout speaks in: by name, or by the planner's widths. Public numbers decide, never the rows."""

from __future__ import annotations

from understudy.errors import ParameterError
from understudy.planner.mechanisms import MECHANISMS
from understudy.theory.planned import PlanInputs, Promise
from understudy.validity.auc import Auc
from understudy.validity.bounded import BOUNDED
from understudy.validity.certificate import VACUOUS
from understudy.validity.checking import CHECK, REALISED
from understudy.validity.ladder import FREE_LADDER, LADDER
from understudy.validity.modes import GAUSSIAN, HoldoutMode, ModeCard, ModeTerms
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


def automatic(
    rows: int,
    queries: int,
    beta: float,
    *,
    rejections: int | None = None,
    slack: float | None = None,
    earlier: bool = False,
) -> HoldoutMode:
    """The narrowest certificate of those that the planner knows and a holdout can run.

    Guesses that are checked, where the analyst brings them (`rejections` says how many may be wrong), or noise;
    the ladder is taken where both say nothing, and promises the running best only. With `earlier`, what was chosen
    before Theorem T: a holdout that was opened so goes on so.
    """
    wrong = min(rejections or 0, queries - 1)
    situation = PlanInputs(
        rows=rows, queries=queries, promise=Promise.VALIDITY, beta=beta,
        guesses=rejections is not None, failures=wrong,
    )  # fmt: skip
    theorem = EARLIER if earlier else THEOREM
    terms = ModeTerms(rows, queries, beta, rejections=wrong, theorem=theorem, slack=slack)
    candidates = {
        EARLIER if earlier and card is GAUSSIAN else card.planned: card.build(terms)
        for card in MODE_CARDS.values()
        if card.planned
        and (rejections is not None or not card.takes_guesses)
        and not (earlier and card is BOUNDED)
    }
    planned = {m.name: m.width(situation)[0] for m in MECHANISMS if m.name in candidates}
    # The planner takes the best slack for the certificate; the mode's own must let right guesses pass.
    widths = {name: max(width, candidates[name].certificate.width) for name, width in planned.items()}
    best = min(widths, key=lambda name: widths[name])
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
