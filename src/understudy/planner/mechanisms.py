"""Every mechanism that the planner knows: its name, its width in a situation, and the theorem that gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.planner import limits, widths
from understudy.planner.inputs import PlanInputs, Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """`width` gives the half-width, joint over all queries, and the parameters that reach it."""

    name: str
    promises: tuple[Promise, ...]
    theorem: str
    width: Callable[[PlanInputs], widths.Width]
    needs: tuple[str, ...] = ()
    note: str = ""
    limit: Callable[[PlanInputs, widths.Width], str] = limits.none
    """Why this program cannot run it in a situation, where it would have that width; empty if it can."""
    by_name: bool = False
    """Offered, ranked, but recommended to nobody who does not ask for it."""

    def lacks(self, situation: PlanInputs) -> str:
        """Why the mechanism does not apply; empty when it does."""
        if situation.promise not in self.promises:
            return f"promises {' or '.join(self.promises)} only"
        for need in self.needs:
            if not getattr(situation, need):
                return _LACKING[need]
        return ""


_LACKING = {
    "universe": "needs the size of the universe",
    "vc": "needs the VC dimension of the queries",
    "delta": "needs a delta",
    "guesses": "needs an analyst who brings guesses",
    "best_only": "is about the running best only",
}


_PRIVACY, _VALIDITY, _BOTH = (Promise.PRIVACY,), (Promise.VALIDITY,), (Promise.BOTH,)
_INVALID_ALONE = "gives validity only: it looks at exact values"

MECHANISMS = (
    Mechanism(
        name="laplace",
        promises=_PRIVACY,
        theorem="Lecture 4, Theorems 5 and 8, Claim 6",
        width=widths.laplace,
    ),
    Mechanism(
        name="gaussian",
        promises=_PRIVACY,
        theorem="Canonne, Kamath and Steinke 2020, Theorem 14; zCDP composition",
        width=widths.gaussian,
        needs=("delta",),
    ),
    Mechanism(
        name="histogram",
        promises=_PRIVACY,
        theorem="Lecture 4, Theorem 5, on every cell",
        width=widths.histogram,
        needs=("universe",),
        note="answers any number of queries",
    ),
    Mechanism(
        name="smalldb",
        promises=_PRIVACY,
        theorem="Lectures 9-10, Proposition 6 (corrected)",
        width=widths.smalldb,
        limit=limits.smalldb,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="smalldb-vc",
        promises=_PRIVACY,
        theorem="Lectures 9-10, Theorem 11 (explicit constants)",
        width=widths.smalldb_vc,
        limit=limits.smalldb,
        needs=("universe", "vc"),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="iterative-mw",
        promises=_PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), multiplicative weights",
        width=widths.iterative_mw,
        limit=limits.constructed,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="iterative-median",
        promises=_PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), median",
        width=widths.iterative_median,
        limit=limits.median_update,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="online-mw",
        promises=_PRIVACY,
        theorem="Lecture 7 with NumericSparse (Dwork and Roth 2014, Theorem 3.28)",
        width=widths.online,
        limit=limits.dense,
        needs=("universe",),
    ),
    Mechanism(
        name="split", promises=_VALIDITY, theorem="Hoeffding on fresh rows for each query", width=widths.split
    ),
    Mechanism(
        name="universe",
        promises=_VALIDITY,
        theorem="union over all subsets of a finite universe",
        width=widths.universe,
        needs=("universe",),
        note="exact answers, any number of queries",
    ),
    Mechanism(
        name="truncation",
        promises=_VALIDITY,
        theorem="transcript compression, exact tree",
        width=widths.truncation,
    ),
    Mechanism(
        name="guess-and-check",
        promises=_VALIDITY,
        theorem="GuessAndCheck, realised failures",
        width=widths.guess_and_check,
        needs=("guesses",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="mw-guess-and-check",
        promises=_VALIDITY,
        theorem="GuessAndCheck tree with multiplicative-weights guesses",
        width=widths.mw_guess_and_check,
        limit=limits.dense,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="median",
        promises=_VALIDITY,
        theorem="Lecture 4, Theorem 2 (exact form)",
        width=widths.median,
        limit=limits.median,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="ladder",
        promises=_VALIDITY,
        theorem="Ladder, exact tree",
        width=widths.ladder,
        needs=("best_only",),
        note="certifies the running best only",
    ),
    Mechanism(
        name="ladder-published",
        promises=_VALIDITY,
        theorem="Blum and Hardt 2015, Theorem 3.1",
        width=widths.ladder_published,
        needs=("best_only",),
        note="certifies the running best only",
    ),
    Mechanism(
        name="gaussian-lecture18",
        promises=_VALIDITY,
        theorem="Lecture 18, Theorem 0.2 (corrected)",
        width=widths.lecture18,
    ),
    Mechanism(
        name="gaussian-bnsssu16",
        promises=_VALIDITY,
        theorem="Bassily et al. 2016, constants of Rogers et al. 2020",
        width=widths.bassily,
    ),
    Mechanism(name="gaussian-jlnrss20", promises=_VALIDITY, theorem="Jung et al. 2020", width=widths.jung),
    Mechanism(
        name="gaussian-rogers20",
        promises=_VALIDITY,
        theorem="Rogers et al. 2020, Theorem 2.1",
        width=widths.rogers,
    ),
    Mechanism(name="cvar", promises=_VALIDITY, theorem="CVaR transfer, Gaussian noise", width=widths.cvar),
    Mechanism(
        name="drift",
        promises=_VALIDITY,
        theorem="posterior drift, Gaussian noise",
        width=widths.drift,
        note="own theorem, refereed, not peer reviewed; cvar is the conservative choice",
        by_name=True,
    ),
    Mechanism(
        name="cvar-discrete",
        promises=_VALIDITY,
        theorem="CVaR transfer, discrete Gaussian noise through zCDP",
        width=widths.cvar_discrete,
        note="private as well: the noise is the one that protects people",
    ),
    Mechanism(
        name="drift-sharp",
        promises=_VALIDITY,
        theorem="posterior drift, sharp form",
        width=widths.drift_sharp,
        note="own theorem, refereed, not peer reviewed; cvar is the conservative choice",
        by_name=True,
    ),
    Mechanism(
        name="private-laplace",
        promises=_BOTH,
        theorem="Lecture 4, Theorem 5 and tanh(epsilon/4) for pure privacy",
        width=widths.private_laplace,
    ),
    Mechanism(
        name="private-gaussian",
        promises=_BOTH,
        theorem="zCDP composition and CVaR transfer",
        width=widths.private_gaussian,
        needs=("delta",),
    ),
)
