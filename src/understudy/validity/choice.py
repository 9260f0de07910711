"""Which mode a holdout speaks in: by name, or by the planner's widths. Public numbers decide, never the rows."""

from __future__ import annotations

from understudy.errors import ParameterError
from understudy.planner.inputs import PlanInputs, Promise
from understudy.planner.mechanisms import MECHANISMS
from understudy.validity.auc import Auc
from understudy.validity.certificate import VACUOUS
from understudy.validity.checking import Checking, Realised
from understudy.validity.ladder import FreeLadder, Ladder
from understudy.validity.modes import Gaussian, HoldoutMode, Thresholdout

MODES = ("auto", "gaussian", "check", "realised", "thresholdout", "ladder", "free-ladder", "auc")


def takes_guesses(mode: HoldoutMode) -> bool:
    """Whether a mode checks guesses: it then cannot do without one for each score."""
    return isinstance(mode, Checking | Realised | Thresholdout)


def automatic(
    rows: int, queries: int, beta: float, *, rejections: int | None = None, slack: float | None = None
) -> HoldoutMode:
    """The narrowest certificate of those that the planner knows and a holdout can run.

    Guesses that are checked, where the analyst brings them (`rejections` says how many may be wrong), or noise;
    the ladder is taken where both say nothing, and promises the running best only.
    """
    wrong = min(rejections or 0, queries - 1)
    situation = PlanInputs(
        rows=rows, queries=queries, promise=Promise.VALIDITY, beta=beta,
        guesses=rejections is not None, failures=wrong,
    )  # fmt: skip
    candidates: dict[str, HoldoutMode] = {"cvar": Gaussian(rows, queries, beta)}
    if rejections is not None:
        candidates["guess-and-check"] = Realised(rows, queries, beta, wrong, slack)
    planned = {m.name: m.width(situation)[0] for m in MECHANISMS if m.name in candidates}
    # The planner takes the best slack for the certificate; the mode's own must let right guesses pass.
    widths = {name: max(width, candidates[name].certificate.width) for name, width in planned.items()}
    best = min(widths, key=lambda name: widths[name])
    return candidates[best] if widths[best] < VACUOUS else Ladder(rows, queries, beta)


def mode_of(
    wanted: str,
    rows: int,
    queries: int,
    beta: float,
    *,
    rejections: int | None,
    theorem: str,
    slack: float | None = None,
) -> HoldoutMode:
    """A mode for scores that are means over rows, by its name."""
    if wanted == "auto":
        return automatic(rows, queries, beta, rejections=rejections, slack=slack)
    if wanted == "gaussian":
        return Gaussian(rows, queries, beta, theorem)
    if wanted == "check":
        return Checking(rows, queries, beta, 50 if rejections is None else rejections, slack)
    if wanted == "thresholdout":
        return Thresholdout(rows, queries, beta, 50 if rejections is None else rejections)
    if wanted == "realised":
        return Realised(rows, queries, beta, 20 if rejections is None else rejections, slack)
    if wanted in ("ladder", "free-ladder"):
        return (Ladder if wanted == "ladder" else FreeLadder)(rows, queries, beta)
    if wanted == "auc":
        raise ParameterError("the mode auc is for the metric auc alone")
    raise ParameterError(f"no mode {wanted!r}; there are: {', '.join(MODES)}")


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
    if wanted in ("check", "realised", "ladder"):
        rows = min(positive, negative)
        return mode_of(wanted, rows, queries, beta, rejections=rejections, theorem="", slack=slack)
    raise ParameterError(
        f"the area under the curve is no mean over rows, so {wanted} does not certify it: use the mode auc, "
        f"check, realised or ladder"
    )
