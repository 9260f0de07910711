"""A certificate: how far answers can be from the population, by which theorem, and if what holds.

It is a promise about all answers at once, against every analyst, made before the first question. Which theorem to
use is part of that: it is chosen in advance (`transfer`), or a union over candidates shares β among them
(`narrowest`). Taking the best-looking of several certificates at full β is peeking, and no promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy.errors import ParameterError
from understudy.pages import notebook
from understudy.rational import Number, probability

VACUOUS = 0.5
"""A half-width of this much or more says nothing: answering 1/2 always does as well."""

INDEPENDENT = "the rows are independent draws from the population (rows of one person are grouped)"
SEALED = "nothing but this mechanism looks at them"
ADVANCE = "the number of queries and the failure probability were fixed before the first answer"
BOUNDED = "every query is the mean of one number in [0, 1] for each row"
ROUNDED = "the noise is normal, and what is told is rounded to a public grid"
CAP = "noise and privacy count at their caps, not at what was spent"
FILTER = (
    "the noise of a score may depend on earlier ones; what all of it adds up to stays under a cap that was fixed "
    "in advance, and the width of each score counts what was added up to then"
)
ELSEWHERE = "guesses come from earlier answers or from other rows"
BEST = "only the running best is promised, not each submission"
BOUNDED_NOISE = (
    "the noise has the density cos² and never exceeds its half-width, which is fixed before it is drawn; what is "
    "told is rounded to a public grid"
)
UNREVIEWED = "the theorem is our own, refereed but not peer reviewed"
TWICE_READ = "the theorem is our own, not peer reviewed; derived and re-derived by two readers"


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """All answers are within `width` of the population's, jointly, except with probability `beta`.

    width        the half-width of every answer, on the scale from 0 to 1 that answers are on
    beta         the probability with which some answer is further off
    theorem      the statement that proves it
    assumptions  what it rests on, in words: a sentence for each
    check        the same answers by an argument that shares nothing with the theorem: wider, and shown beside it;
                 None where there is none
    """

    width: float
    beta: float
    theorem: str
    assumptions: tuple[str, ...]
    check: Certificate | None = None

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: the width is 1/2 or more, and answering 1/2 always would do as well."""
        return self.width >= VACUOUS

    def as_dict(self) -> dict[str, Any]:
        """The certificate as plain values, which JSON can hold."""
        told: dict[str, Any] = {
            "width": self.width,
            "beta": self.beta,
            "theorem": self.theorem,
            "vacuous": self.vacuous,
            "assumptions": list(self.assumptions),
        }
        if self.check is not None:
            told["independent_check"] = {"width": self.check.width, "theorem": self.check.theorem}
        return told

    def __repr__(self) -> str:
        return f"Certificate(±{self.width:.4f} with probability {1 - self.beta:g}, {self.theorem})"

    def _repr_html_(self) -> str:
        known = {
            "half-width": f"± {self.width:.4f}" + (": this says nothing" if self.vacuous else ""),
            "probability": notebook.certainty(self.beta),
            "theorem": self.theorem,
        }
        title = "Certificate for all answers at once"
        head = notebook.warning("It holds if:")
        return notebook.panel(title, notebook.facts(known), head, notebook.listed(self.assumptions))

    def __str__(self) -> str:
        head = f"±{self.width:.4f} for all answers at once with probability {1 - self.beta:g}"
        lines = [f"{head}, by {self.theorem}; if", *(f"  - {line}" for line in self.assumptions)]
        if self.check is not None:
            lines.append(f"independent check: ±{self.check.width:.4f} by {self.check.theorem}")
        return "\n".join(lines)


Candidate = Callable[[float], Certificate]
"""A certificate as a function of its failure probability."""


def narrowest(candidates: Sequence[Candidate], beta: Number) -> Certificate:
    """The narrowest of several certificates of one mechanism, by a union: each may fail with β/c.

    Every candidate holds with its own share, so all hold together except with β, and the least of them may be
    taken after the fact.
    """
    if not candidates:
        raise ParameterError("a union needs at least one certificate")
    failure = float(probability(beta))
    found = [candidate(failure / len(candidates)) for candidate in candidates]
    best = min(found, key=lambda certificate: certificate.width)
    if len(found) == 1:
        return best
    names = ", ".join(certificate.theorem for certificate in found)
    every = tuple(dict.fromkeys(line for certificate in found for line in certificate.assumptions))
    return replace(best, beta=failure, theorem=f"{best.theorem}, in a union over {names}", assumptions=every)
