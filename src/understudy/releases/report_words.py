"""What a release's report says in words: the parameters of its method, the steps that were paid for, the terms."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from understudy.releases.method_names import METHOD_NAMES

PARAMETERS: Mapping[str, tuple[str, str]] = {
    "shares": ("shares of the budget", "which part of the price each stage of the method got"),
    "rounds": ("rounds", "how many times the stand-in was compared with the table, privately, and mended"),
    "most_rounds": ("rounds at most", "the method would have stopped after so many"),
    "per_round": ("marginals in a round", "how many were measured each time"),
    "merged_below": (
        "people below which values were measured together",
        "a value that fewer people have is hidden by the noise: it was counted together with its neighbours",
    ),
    "small_marginals": (
        "columns and pairs beside the workload",
        "measured by themselves, or added up from what was measured, whichever has the shorter error bar",
    ),
    "measured": ("marginals measured", "counts of so many combinations of columns were bought, with noise"),
    "unmeasured": (
        "marginals not measured",
        "their answers come from the stand-in, with a bound that was bought",
    ),
    "outside_the_tree": (
        "marginals beside the model",
        "measured, too large for the model, and used to weigh the rows instead",
    ),
    "cells": ("numbers in the model", "how large the fitted model is"),
    "most_cells": ("numbers allowed in the model", "a limit on memory, set before anything was looked at"),
    "beta": (
        "chance that some error bar fails",
        "all error bars hold together, except with this probability",
    ),
    "rows_error": ("error of the number of people", "0 where that number is public"),
    "residuals": (
        "interactions measured",
        "effects of single columns and combinations, each with its own noise",
    ),
    "numbers": ("numbers measured", "how many noisy numbers the release is made of"),
    "rho": ("price in rho", "what the noise costs in the currency of normal noise"),
    "price": ("what the price counts", "the pair of neighbouring tables that it is worked out for"),
    "epsilon": ("epsilon", "the price of the one draw that was made"),
    "alpha": ("aimed-at error", "the error, as a share of the people, that the method was set to"),
    "alpha_by": ("how the error was proved", "the argument that gave the smallest proved error"),
    "error": ("proved error", "as a share of the people; no answer is further off"),
    "threshold": ("threshold", "an answer that looked further off than this was mended"),
    "lambda": ("allowance for noise", "part of the threshold"),
    "F": ("bound on the number of mends", "by theory, no more were needed"),
    "select": ("price of finding", "what a search for the worst answer costs"),
    "measure": ("price of measuring", "what one noisy answer costs"),
    "sequence": ("answers that were mended", "in the order in which they were found"),
    "ended": (
        "how it ended",
        "`stopped`: nothing more was found to be wrong; `exhausted`: the rounds were used up",
    ),
    "databases": ("candidate tables", "one of these was chosen at random, good ones with higher chance"),
    "candidates": ("candidate tables", "one of these was chosen at random, good ones with higher chance"),
    "chosen": ("the chosen one", "its number among the candidates"),
    "n": ("people", "rows of the table"),
    "m": ("rows of the drawn table", "a small table that answers like the large one"),
    "counting": ("how candidates were counted", "the way the draw was computed; it changes no probability"),
    "classes": ("classes of cells", "cells that no question tells apart are one class"),
    "queries": ("questions", "cells of the workload"),
    "distinct_queries": ("different questions", "equal ones count once"),
    "levels_per_unit": ("steps of the score's grid", "scores lie on a public grid"),
}
"""A parameter of a certificate: its name in words, and what it means."""

STEPS: Mapping[str, str] = {
    "first": "single columns, cheaply",
    "again": "single columns, for all the rest",
    "gaps": "where the stand-in is wrong",
    "measure": "counts of what was wrong",
    "guard": "a last sweep over many columns at once",
    "rows": "the number of people",
}
"""What a step of a method bought, by the last word of its name."""

BASES: Mapping[str, str] = {
    "measured": "by the noise added",
    "certified": "by a theorem",
    "bounded": "by a bound that was bought",
    "uncertified": "not certified",
}

GLOSSARY: Mapping[str, str] = {
    "cell": (
        "One value of a column, one range of numbers or dates, or a combination of such values of several "
        "columns."
    ),
    "marginal": "The counts of all cells of some columns: a table of counts, such as people by age and sex.",
    "stand-in": (
        "A model that was fitted to noisy counts. The synthetic rows are drawn from it; nobody's row is among "
        "them."
    ),
    "error bar": (
        "A range around a released count. The table's own count lies in it, for all error bars of the release "
        "at once, except with the small probability that is stated."
    ),
    "distance": (
        "The share of people who would have to be moved to another cell for the synthetic table to agree with "
        "the real one (total variation distance). The score is 100% less the distance."
    ),
    "expected": (
        "Worked out from the width of the error bars, which tells the spread of the noise. It is an estimate, "
        "usually on the safe side; only the column “certainly at most” is proved."
    ),
    "sampling error": (
        "How far a fresh sample of as many people would be from the population it is drawn from. Every table "
        "of people carries it, private or not, so a distance of this size is no loss for statements about "
        "the population."
    ),
    "mostly noise": (
        "More than half of the people are in cells whose error bar is at least as large as the count."
    ),
    "ε (epsilon)": (
        "How much the release can tell about one person: with or without that person's data the chance of "
        "anything changes by a factor of at most e to the ε. Smaller is stricter."
    ),
    "δ (delta)": "A tiny probability with which the promise about ε may not hold.",
    "rho (ρ)": "The price of normal noise; prices in rho add up, and the total is turned into ε and δ.",
    "ledger": (
        "The durable account of the table's privacy budget: every debit is written before the table is "
        "looked at."
    ),
}


def small_marginal_words(certificate: Mapping[str, Any]) -> str:
    """Of a release whose single columns and pairs may have wider bars than direct questions: that it is so."""
    method = certificate["method"]
    known = METHOD_NAMES.get(method)
    does = "" if known is None else known.small_marginals(certificate.get("parameters", {}))
    if not does:
        return ""
    return (
        f"The method {method} {does}: error bars of single columns and of pairs can be wider "
        "than those that direct questions would have had at the same price, and a single column or pair that the "
        "workload does not list may have none."
    )


def named(key: str) -> tuple[str, str]:
    """The name of a parameter in words, and what it means, where it is known."""
    return PARAMETERS.get(key, (key.replace("_", " "), ""))


def step_words(step: str) -> str:
    """What a step bought, in words, with its name."""
    last = step.rsplit(" ", 1)[-1]
    return f"{step}: {STEPS[last]}" if last in STEPS else step


def value_words(value: Any) -> str:
    """A plain value of a certificate in words, cut where it is long."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if isinstance(value, dict):
        text = ", ".join(f"{key.replace('_', ' ')} {value_words(part)}" for key, part in value.items())
    if isinstance(value, list):
        text = ", ".join(map(value_words, value))
    return text if len(text) <= 200 else f"{text[:200]} …"


def people(error: float | None) -> str:
    """An error bar in words."""
    return f"± {error:,.0f} people" if error is not None and isfinite(error) else "not certified"


def of_thousand(share: float | None) -> str:
    """A share as people of 1,000."""
    if share is None:
        return "–"
    shown = share * 1000
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:.1f}" if shown >= 0.05 or shown == 0 else "< 0.1"


def percent(share: float | None) -> str:
    """A share in percent; one below 1 is not rounded up to 100%."""
    return "–" if share is None else f"{min(share * 100, 99.9) if share < 1 else 100:.1f}%"
