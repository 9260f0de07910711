"""Draws per CPU second of the exact samplers beside numpy's inexact ones and OpenDP's exact ones, in one run.

Run: python bench/noise.py
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from understudy.noise import SystemNoise, choose, discrete_gaussian, discrete_laplace

SCALES = [
    Fraction(text)
    for text in ("1/3", "1/2", "1", "10/7", "5", "17/2", "32", "100/3", "1000/7", "1000", "100000", "1000000")
]
REPETITIONS = 7
OUR_DRAWS = 1_000_000
THEIR_DRAWS = 10_000
CANDIDATES = 1_000_000
NOISE = SystemNoise()


def seconds(jobs: dict[str, Callable[[], object]], repetitions: int = REPETITIONS) -> dict[str, float]:
    """Median CPU seconds of each job; the jobs take turns, so that a slow spell of the machine hits all."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repetitions):
        for name, job in jobs.items():
            start = process_time()
            job()
            times[name].append(process_time() - start)
    return {name: median(spent) for name, spent in times.items()}


def laplace_jobs(scale: Fraction) -> dict[str, Callable[[], object]]:
    inexact = np.random.default_rng()
    peer = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=float(scale))
    return {
        "ours": lambda: discrete_laplace(scale, OUR_DRAWS, noise=NOISE),
        "numpy": lambda: np.rint(inexact.laplace(0, float(scale), OUR_DRAWS)).astype(np.int64),
        "opendp": lambda: peer([0] * THEIR_DRAWS),
    }


def gaussian_jobs(std: Fraction) -> dict[str, Callable[[], object]]:
    inexact = np.random.default_rng()
    peer = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=float(std))
    return {
        "ours": lambda: discrete_gaussian(std**2, OUR_DRAWS, noise=NOISE),
        "numpy": lambda: np.rint(inexact.normal(0, float(std), OUR_DRAWS)).astype(np.int64),
        "opendp": lambda: peer([0] * THEIR_DRAWS),
    }


def print_draws(title: str, jobs: Callable[[Fraction], dict[str, Callable[[], object]]]) -> None:
    print(f"\n{title}: draws per CPU second")
    print(f"{'scale':>10} {'ours':>12} {'numpy':>13} {'OpenDP':>10} {'ours/numpy':>11} {'ours/OpenDP':>12}")
    for scale in SCALES:
        spent = seconds(jobs(scale))
        ours, inexact = OUR_DRAWS / spent["ours"], OUR_DRAWS / spent["numpy"]
        peer = THEIR_DRAWS / spent["opendp"]
        print(
            f"{scale!s:>10} {ours:>12,.0f} {inexact:>13,.0f} {peer:>10,.0f} "
            f"{ours / inexact:>11.2f} {ours / peer:>12.0f}"
        )


def print_scalars() -> None:
    print("\nOne value a call: CPU microseconds")
    print(f"{'sampler':>10} {'scale':>10} {'new scale':>10} {'same scale':>11}")
    for name, sampler in (("laplace", discrete_laplace), ("gaussian", discrete_gaussian)):
        for scale in (Fraction(5), Fraction(30), Fraction(1000), Fraction(10**6)):
            power = 1 if name == "laplace" else 2
            start = process_time()
            for i in range(1, 51):
                sampler((scale + Fraction(i, 997)) ** power, 1, noise=NOISE)
            fresh = (process_time() - start) / 50
            start = process_time()
            for _ in range(2000):
                sampler(scale**power, 1, noise=NOISE)
            same = (process_time() - start) / 2000
            print(f"{name:>10} {scale!s:>10} {1e6 * fresh:>10.0f} {1e6 * same:>11.1f}")


def score_shapes() -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    spike = np.full(CANDIDATES, 10_000)
    spike[CANDIDATES // 3] = 0
    return {
        "all equal": np.full(CANDIDATES, 7),
        "uniform": rng.integers(0, 10_000, CANDIDATES),
        "one spike, gap 10,000": spike,
        "half-normal": np.abs(rng.normal(0, 1000, CANDIDATES)).astype(np.int64),
    }


def print_choices() -> None:
    print(f"\nExponential selection over {CANDIDATES:,} lattice scores: CPU milliseconds")
    rate = Fraction(1, 20)

    def job(levels: NDArray[np.int64]) -> Callable[[], object]:
        return lambda: choose(levels, rate, noise=NOISE)

    spent = seconds({name: job(levels) for name, levels in score_shapes().items()}, repetitions=41)
    for name, cost in spent.items():
        print(f"{name:>24} {1e3 * cost:>8.2f}")
    print(f"{'largest / smallest':>24} {max(spent.values()) / min(spent.values()):>8.3f}")


def main() -> None:
    enable_features("contrib")
    print_draws("Discrete Laplace", laplace_jobs)
    print_draws("Discrete Gaussian (scale is the standard deviation)", gaussian_jobs)
    print_scalars()
    print_choices()


if __name__ == "__main__":
    main()
