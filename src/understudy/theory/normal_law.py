"""The standard normal distribution function Φ and its inverse, computed by scipy.

scipy is imported with the first call and not with this module: it takes a quarter of a second to load, and most
programs that import a bound or a session never evaluate one.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _scipy() -> Any:
    """The module, looked up once: an import inside a function takes longer than the distribution function does."""
    from scipy import special

    return special


def ndtr(x: Any) -> Any:
    """Φ(x), for a number or an array."""
    return _scipy().ndtr(x)


def ndtri(p: Any) -> Any:
    """Φ⁻¹(p), for a number or an array between 0 and 1."""
    return _scipy().ndtri(p)


def log_ndtr(x: Any) -> Any:
    """ln Φ(x), for a number or an array."""
    return _scipy().log_ndtr(x)
