"""The mode of a holdout: made for its rows, its metric, and the number of means that its scores will ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from understudy.errors import ParameterError
from understudy.validity.checking import Realised
from understudy.validity.choice import auc_mode_of, mode_of, usual_rejections
from understudy.validity.first_score import FirstScoreDecides
from understudy.validity.metric import Area, Metric
from understudy.validity.modes import HoldoutMode, ModeTerms
from understudy.validity.sealed import SealedRows


def chosen_mode(
    sealed: SealedRows,
    metric: Metric | Area,
    wanted: str | HoldoutMode,
    terms: ModeTerms,
    *,
    earlier: bool = False,
    deciding: bool = True,
) -> HoldoutMode:
    """The wanted mode, by its name or as it is, for `terms.queries` scores by this metric.

    "auto" leaves it to the first score whether guesses are checked, where estimators can be scored and nothing
    (`rejections`) says that guesses will come. With `earlier`, what a name stood for before Theorem T, and without
    `deciding`, what "auto" did before first scores decided: a file that was opened so goes on so.

    A score of several means is so many queries, and all of them are certified together. Raises a `ParameterError`
    for a mode that was made for something else, or that cannot tell scores by this metric.
    """
    each, besides = metric.asked
    meant = replace(terms, queries=terms.queries * each + besides)
    if isinstance(metric, Area) and isinstance(wanted, str):
        return _for_pairs(sealed, wanted, meant)
    if isinstance(wanted, str):
        mode = _by_name(wanted, meant, earlier=earlier)
        if wanted == "auto" and mode.about_best and each + besides > 1:
            # the ladder is taken where all else is vacuous: then that is said
            mode = _by_name("gaussian", meant, earlier=earlier)
        undecided = deciding and not earlier and sealed.features is not None and terms.rejections is None
        if wanted == "auto" and undecided:
            guessed = _by_name(wanted, replace(meant, rejections=usual_rejections(meant.queries)))
            if isinstance(guessed, Realised):
                return FirstScoreDecides(guessed, mode)
    else:
        mode = wanted
        if (mode.queries, mode.beta, mode.rows <= meant.rows) != (meant.queries, meant.beta, True):
            raise ParameterError(
                f"the mode is made for {mode.queries} queries on {mode.rows} rows at beta {mode.beta}, "
                f"the holdout for {meant.queries} on {meant.rows} at {meant.beta}"
            )
    if mode.about_best and each + besides > 1:
        raise ParameterError(
            f"{metric.name} is made of {each + besides} means, and the mode {mode.name} tells the running best of "
            f"one: use the mode gaussian, check, realised or thresholdout, or another metric"
        )
    return mode


def _by_name(name: str, terms: ModeTerms, *, earlier: bool = False) -> HoldoutMode:
    return mode_of(
        name, terms.rows, terms.queries, terms.beta,
        rejections=terms.rejections, slack=terms.slack, theorem=terms.theorem, earlier=earlier,
    )  # fmt: skip


def _for_pairs(sealed: SealedRows, name: str, terms: ModeTerms) -> HoldoutMode:
    if sealed.people is not None:
        raise ParameterError("the area under the curve counts pairs of rows: it knows no groups")
    positive = int((sealed.labels == np.unique(sealed.labels)[-1]).sum())
    return auc_mode_of(
        name, positive, len(sealed) - positive, terms.queries, terms.beta,
        rejections=terms.rejections, slack=terms.slack,
    )  # fmt: skip
