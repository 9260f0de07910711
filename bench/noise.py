"""Draws per CPU second of the exact samplers beside numpy's inexact ones and OpenDP's exact ones, in one run.

Run: python -m bench.noise [--scales 5 1000] [--draws 1000000] [--repeats 7]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance, l1_distance, l2_distance
from opendp.mod import enable_features

from bench.clock import medians, rate
from bench.verdict import Verdict, ended
from understudy.noise.bounded import MAX_REACH, bounded
from understudy.noise.normal import rounded_normal
from understudy.noise.samplers import SystemNoise, discrete_gaussian, discrete_laplace
from understudy.noise.selection import choose

SCALES = [
    Fraction(text)
    for text in ("1/3", "1/2", "1", "10/7", "5", "17/2", "32", "100/3", "1000/7", "1000", "100000", "1000000")
]
SCALAR_SCALES = [Fraction(5), Fraction(30), Fraction(1000), Fraction(10**6)]
NEW_SCALES = 50
REPETITIONS = 7
DRAWS = 1_000_000
THEIR_SHARE = 100
"""OpenDP draws so many times fewer; its time for each does not depend on their number."""
NOISE = SystemNoise()


Jobs = dict[str, Callable[[], object]]


def laplace_jobs(scale: Fraction, draws: int) -> Jobs:
    inexact = np.random.default_rng()
    peer = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=float(scale))
    return {
        "ours": lambda: discrete_laplace(scale, draws, noise=NOISE),
        "numpy": lambda: np.rint(inexact.laplace(0, float(scale), draws)).astype(np.int64),
        "opendp": lambda: peer([0] * (draws // THEIR_SHARE)),
    }


def gaussian_jobs(std: Fraction, draws: int) -> Jobs:
    inexact = np.random.default_rng()
    peer = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=float(std))
    return {
        "ours": lambda: discrete_gaussian(std**2, draws, noise=NOISE),
        "numpy": lambda: np.rint(inexact.normal(0, float(std), draws)).astype(np.int64),
        "opendp": lambda: peer([0] * (draws // THEIR_SHARE)),
    }


def print_draws(title: str, jobs: Callable[[Fraction, int], Jobs], asked: argparse.Namespace) -> None:
    print(f"\n{title}: draws per CPU second")
    print(f"{'scale':>10} {'ours':>12} {'numpy':>13} {'OpenDP':>10} {'ours/numpy':>11} {'ours/OpenDP':>12}")
    for scale in asked.scales:
        spent = medians(jobs(scale, asked.draws), asked.repeats)
        ours, inexact = asked.draws / spent["ours"], asked.draws / spent["numpy"]
        peer = asked.draws // THEIR_SHARE / spent["opendp"]
        print(
            f"{scale!s:>10} {ours:>12,.0f} {inexact:>13,.0f} {peer:>10,.0f} "
            f"{ours / inexact:>11.2f} {ours / peer:>12.0f}",
            flush=True,
        )


def print_normals(asked: argparse.Namespace) -> None:
    """The rounded normal of each scale, and bounded noise that reaches 3.48 of it, beside the discrete law."""
    print("\nRounded normal and bounded noise beside the discrete Gaussian: draws per CPU second")
    print(f"{'scale':>10} {'discrete':>12} {'rounded':>12} {'bounded':>12} {'rounded/discrete':>17}")
    for scale in asked.scales:
        reach = max(1, min(MAX_REACH, int(Fraction(348, 100) * scale)))
        jobs: Jobs = {
            "discrete": lambda scale=scale: discrete_gaussian(scale**2, asked.draws, noise=NOISE),
            "rounded": lambda scale=scale: rounded_normal(scale, asked.draws, noise=NOISE),
            "bounded": lambda reach=reach: bounded(reach, asked.draws, noise=NOISE),
        }
        discrete, rounded, within = (asked.draws / each for each in medians(jobs, asked.repeats).values())
        print(
            f"{scale!s:>10} {discrete:>12,.0f} {rounded:>12,.0f} {within:>12,.0f} {rounded / discrete:>17.2f}",
            flush=True,
        )


def scalar_peer(name: str, scale: Fraction) -> Any:
    """OpenDP's mechanism for one integer."""
    if name == "laplace":
        return make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=float(scale))
    return make_gaussian(atom_domain(T="i64"), absolute_distance(T="f64"), scale=float(scale))


def scalar_times(name: str, scale: Fraction, times: int) -> list[float]:
    """CPU seconds of a value with a new scale, ours and theirs, and with one seen before, ours and theirs.

    A new scale is one that was never drawn with: ours prepares its tables, OpenDP makes a mechanism.
    """
    new, peer = [scale + Fraction(i, 997) for i in range(1, NEW_SCALES + 1)], scalar_peer(name, scale)

    def ours(at: Fraction) -> object:
        if name == "laplace":
            return discrete_laplace(at, 1, noise=NOISE)
        return discrete_gaussian(at**2, 1, noise=NOISE)

    fresh = [rate(ours, new), rate(lambda at: scalar_peer(name, at)(0), new)]
    same = [rate(ours, [scale] * times), rate(peer, [0] * times)]
    return [1 / each for each in (*fresh, *same)]


def print_scalars(times: int) -> None:
    print("\nOne value a call: CPU microseconds, and how many times as long OpenDP's call takes")
    print(f"{'sampler':>10} {'scale':>10} {'new scale':>10} {'OpenDP':>8} {'same scale':>11} {'OpenDP':>8}")
    for name in ("laplace", "gaussian"):
        for scale in SCALAR_SCALES:
            fresh, their_fresh, same, their_same = scalar_times(name, scale, times)
            print(
                f"{name:>10} {scale!s:>10} {1e6 * fresh:>10.0f} {their_fresh / fresh:>7.2f}x "
                f"{1e6 * same:>11.1f} {their_same / same:>7.1f}x",
                flush=True,
            )


def score_shapes(candidates: int) -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    spike = np.full(candidates, 10_000)
    spike[candidates // 3] = 0
    return {
        "all equal": np.full(candidates, 7),
        "uniform": rng.integers(0, 10_000, candidates),
        "one spike, gap 10,000": spike,
        "half-normal": np.abs(rng.normal(0, 1000, candidates)).astype(np.int64),
    }


def print_choices(candidates: int, repeats: int) -> None:
    """Beside the largest of scores with Gumbel noise in numpy: the same law, in inexact numbers."""
    print(f"\nExponential selection over {candidates:,} lattice scores: CPU milliseconds")
    price, draw = Fraction(1, 20), np.random.default_rng()
    shapes = score_shapes(candidates)

    def ours(levels: NDArray[np.int64]) -> Callable[[], object]:
        return lambda: choose(levels, price, noise=NOISE)

    def gumbel(levels: NDArray[np.int64]) -> Callable[[], object]:
        return lambda: (draw.gumbel(size=levels.size) - float(price) * levels).argmax()

    spent = medians({name: ours(levels) for name, levels in shapes.items()}, 6 * repeats - 1)
    peer = medians({name: gumbel(levels) for name, levels in shapes.items()}, repeats)
    print(f"{'':>24} {'ours':>8} {'numpy':>8} {'numpy/ours':>11}")
    for name, cost in spent.items():
        print(f"{name:>24} {1e3 * cost:>8.2f} {1e3 * peer[name]:>8.2f} {peer[name] / cost:>11.2f}")
    print(f"{'largest / smallest':>24} {max(spent.values()) / min(spent.values()):>8.3f}")


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scales", nargs="+", type=Fraction, default=SCALES)
    parser.add_argument(
        "--draws", type=int, default=DRAWS, help="draws at once, and candidates of a selection"
    )
    parser.add_argument("--repeats", type=int, default=REPETITIONS)
    asked = parser.parse_args(arguments)
    enable_features("contrib")
    print_draws("Discrete Laplace", laplace_jobs, asked)
    print_draws("Discrete Gaussian (scale is the standard deviation)", gaussian_jobs, asked)
    print_normals(asked)
    print_scalars(300 * asked.repeats)
    print_choices(asked.draws, asked.repeats)
    return []


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
