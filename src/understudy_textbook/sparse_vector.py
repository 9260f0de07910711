"""Sparse vector: how far from the threshold an answer must be to be right. Statistical queries, Δ = 1/n.

k queries, of which at most c are above the threshold less α; failure probability β of all answers together. The
mechanism itself is `understudy.mechanism.sparse_vector`. What the planner relies on lives in
`understudy.theory.sparse_vector` and is imported here.
"""

from __future__ import annotations

from understudy.rational import Number
from understudy.theory.arguments import Whole, above_zero, whole
from understudy.theory.sparse_vector import (
    NumericSplit,
    numeric_sparse_alpha,
    numeric_sparse_split,
    sparse_alpha,
    sparse_eps0,
)

__all__ = [
    "NumericSplit",
    "above_threshold_alpha",
    "numeric_sparse_alpha",
    "numeric_sparse_split",
    "sparse_alpha",
    "sparse_eps0",
    "sparse_rho",
]


def above_threshold_alpha(n: Whole, k: Whole, eps: Number, beta: Number) -> float:
    """8(ln k + ln(2/β))/(εn): one run, which stops at the first answer above. [DworkRoth14, Theorem 3.24]"""
    return sparse_alpha(n, k, 1, eps, beta)


def sparse_rho(c: Whole, eps0: Number) -> float:
    """cε₀²/2, the zCDP price of c runs of ε₀ each: less than either composition above once c is large."""
    return whole(c, "c") * above_zero(eps0, "eps0") ** 2 / 2
