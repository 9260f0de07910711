"""The names of release methods and what is said of them: all that a page, a form or a report needs to know.

It loads nothing, so that a server and a reader of published files have it at once. How the methods are made, and
when they fit, says `releases.methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Parameters = Mapping[str, Any]
"""Of a certificate: how the method was run."""


def _promised(parameters: Parameters) -> str:
    del parameters
    return ""


def _one_error(parameters: Parameters) -> str:
    del parameters
    return "draws one table, with one proved error for the workload"


def _single_cells(parameters: Parameters) -> str:
    del parameters
    return "buys answers to single cells of the workload, with one proved error for all of them"


def _chosen_in_rounds(parameters: Parameters) -> str:
    del parameters
    return "measures what its rounds choose"


def _picked(parameters: Parameters) -> str:
    """Where marginals were picked, the certificate has words about the small ones, else numbers or nothing."""
    picked = isinstance(parameters.get("small_marginals"), str)
    return "measured the marginals that were picked" if picked else ""


@dataclass(frozen=True, slots=True)
class MethodName:
    """A method by name, and what is said of it.

    `small_marginals` says, of the parameters in a certificate, what the method does where it promises nothing of
    single columns and pairs as such; empty where their error bars are no wider than those of direct questions.
    `python_only` methods need what no command line and no form can say.
    """

    name: str
    summary: str
    small_marginals: Callable[[Parameters], str]
    python_only: bool = False


METHOD_NAMES: Mapping[str, MethodName] = {
    known.name: known
    for known in (
        MethodName(
            "adaptive",
            "measure, let a private selection find what the stand-in gets wrong, measure that, refit",
            _promised,
        ),
        MethodName("residual", "optimal noise on every interaction below the workload", _promised),
        MethodName(
            "mwem", "multiplicative weights on marginals that are measured, all or the worst ones", _picked
        ),
        MethodName("smalldb", "one draw of the exponential mechanism among all small databases", _one_error),
        MethodName(
            "ic",
            "iterative construction: a distinguisher finds what the hypothesis gets wrong, and it is mended",
            _single_cells,
        ),
        MethodName("aim", "the published AIM, as a reference", _chosen_in_rounds),
        MethodName(
            "net",
            "one draw among databases that the caller brings (Python only)",
            _one_error,
            python_only=True,
        ),
    )
}

OFFERED: tuple[str, ...] = (
    "auto",
    *(name for name, known in METHOD_NAMES.items() if not known.python_only),
)
"""What a command line or a form can ask for: `auto`, and every method that needs nothing from Python."""
