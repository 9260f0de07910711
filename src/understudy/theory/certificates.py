"""The list of certificates: each stands in the file of its theorem, and is enrolled here and nowhere else.

The planner ranks all of them; a holdout with normal noise offers those of `NOISE_CERTIFICATES` by name.
"""

from __future__ import annotations

from understudy.theory.baseline import SPLIT
from understudy.theory.compression import TRUNCATION
from understudy.theory.cosine_noise import BOUNDED_NOISE
from understudy.theory.cvar import CVAR, CVAR_DISCRETE
from understudy.theory.drift import DRIFT, DRIFT_SHARP
from understudy.theory.guess_and_check import GUESS_AND_CHECK
from understudy.theory.ladder import LADDER, LADDER_PUBLISHED
from understudy.theory.normal_noise import NoiseCertificate
from understudy.theory.planned import Planned
from understudy.theory.rogers20 import ROGERS20
from understudy.theory.tilting import TILTING, TILTING_DISCRETE
from understudy.theory.transfer import BNSSSU16, JLNRSS20, LECTURE18
from understudy.theory.universe import UNIVERSE

NOISE_CERTIFICATES: dict[str, NoiseCertificate] = {
    certificate.name: certificate
    for certificate in (TILTING, CVAR, DRIFT, DRIFT_SHARP, LECTURE18, BNSSSU16, JLNRSS20, ROGERS20)
}
"""Certificates for means with normal noise, by name."""

PLANNED_CERTIFICATES: tuple[Planned, ...] = (
    SPLIT,
    UNIVERSE,
    TRUNCATION,
    GUESS_AND_CHECK,
    LADDER,
    LADDER_PUBLISHED,
    BOUNDED_NOISE,
    *(certificate.planned for certificate in NOISE_CERTIFICATES.values()),
    CVAR_DISCRETE,
    TILTING_DISCRETE,
)
"""Everything that promises validity by a theorem alone, whatever a mechanism holds in memory."""
