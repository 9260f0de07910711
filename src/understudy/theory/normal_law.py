"""The standard normal distribution function Φ and its inverse, computed by scipy.

scipy is imported with the first call and not with this module: it takes a quarter of a second to load, and most
programs that import a bound or a session never evaluate one.
"""

from __future__ import annotations

from typing import Any


def ndtr(x: Any) -> Any:
    """Φ(x), for a number or an array."""
    from scipy.special import ndtr

    return ndtr(x)


def ndtri(p: Any) -> Any:
    """Φ⁻¹(p), for a number or an array between 0 and 1."""
    from scipy.special import ndtri

    return ndtri(p)


def log_ndtr(x: Any) -> Any:
    """ln Φ(x), for a number or an array."""
    from scipy.special import log_ndtr

    return log_ndtr(x)
