"""Runs of whole methods over a mechanism that adds too little noise, which the audit of the run is to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from audit.mutants.mutant import ERROR, Mutant
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.matrix.many_marginals import PartsNoise
from understudy.mechanism.sparse_vector import AboveThreshold
from understudy.noise.samplers import SeededNoise
from understudy_audit.composites import composites
from understudy_audit.privacy import audit_pair

Fault = Callable[[], AbstractContextManager[Any]]


def seen(subject: str, fault: Fault, *, pair: int, samples: int) -> bool:
    """Whether the runs of a subject certify more than their price on one pair of tables."""
    (composite,) = [found for found in composites() if found.name == subject]
    with fault():
        chosen = composite.pair(pair)
        found = audit_pair(chosen, samples=samples, error=ERROR, noise=SeededNoise(2))
    return any(finding.excess for finding in found)


def laplace_at_a_third() -> AbstractContextManager[Any]:
    release = LaplaceMechanism.release

    def sharp(self: LaplaceMechanism, *rest: Any, **options: Any) -> Any:
        return release(replace(self, epsilon=3 * self.epsilon), *rest, **options)

    return patch.object(LaplaceMechanism, "release", sharp)


def gaussian_at_a_fifth() -> AbstractContextManager[Any]:
    release = GaussianMechanism.release

    def sharp(self: GaussianMechanism, *rest: Any, **options: Any) -> Any:
        return release(replace(self, rho=25 * self.rho), *rest, **options)

    return patch.object(GaussianMechanism, "release", sharp)


def sweep_at_a_fifth() -> AbstractContextManager[Any]:
    draw_many = PartsNoise.draw_many

    def sharp(self: PartsNoise, *rest: Any, **options: Any) -> Any:
        precisions = tuple(25 * precision for precision in self.precisions)
        return draw_many(replace(self, precisions=precisions), *rest, **options)

    return patch.object(PartsNoise, "draw_many", sharp)


@contextmanager
def round_at_a_fifth() -> Iterator[None]:
    """Gaps are told with noise of their own, and residuals with noise in parts."""
    with gaussian_at_a_fifth(), sweep_at_a_fifth():
        yield


def comparisons_at_an_eighth() -> AbstractContextManager[Any]:
    ask, begin = AboveThreshold.ask_many, AboveThreshold.open_many

    def sharp_ask(self: AboveThreshold, *rest: Any, **options: Any) -> Any:
        return ask(replace(self, epsilon=8 * self.epsilon), *rest, **options)

    def sharp_open(self: AboveThreshold, *rest: Any, **options: Any) -> Any:
        return begin(replace(self, epsilon=8 * self.epsilon), *rest, **options)

    return patch.multiple(AboveThreshold, ask_many=sharp_ask, open_many=sharp_open)


FAULTS = [
    ("mwem with a third of its noise", "mwem-begun", laplace_at_a_third, 1, 12_000),
    ("mwem with a fifth of its Gaussian noise", "mwem-gaussian", gaussian_at_a_fifth, 1, 12_000),
    ("an adaptive release with a fifth of its noise", "adaptive-begun", round_at_a_fifth, 1, 12_000),
    ("a sweep with a fifth of its noise", "adaptive-workload", sweep_at_a_fifth, 1, 12_000),
    ("a session with a third of its noise", "session", laplace_at_a_third, 0, 12_000),
    ("an online construction with an eighth of its noise", "online", comparisons_at_an_eighth, 8, 12_000),
    ("a median mechanism with an eighth of its noise", "median", comparisons_at_an_eighth, 8, 12_000),
]


def _mutant(name: str, subject: str, fault: Fault, pair: int, samples: int) -> Mutant:
    return Mutant(name, "runs", lambda: seen(subject, fault, pair=pair, samples=samples))


RUNS = [_mutant(*fault) for fault in FAULTS]
RUNS_HONEST = [
    _mutant(f"{subject} on the pair of its mutant", subject, nullcontext, pair, samples // 2)
    for _, subject, _, pair, samples in FAULTS
]
"""The same without a fault; with noise as wide as it should be few runs go on as one, so that a run costs more."""
