"""The names of the noises that counts can get, the same in Python, at the terminal and in a server's interfaces.

auto      the one that takes the least of the budget for the promise, or makes the smallest error of a price
laplace   discrete Laplace noise, of a pure epsilon
gaussian  discrete Gaussian noise, or rounded normal noise under a budget that is kept in GDP
bounded   noise that never exceeds the error (`privacy.bounded_noise`)
"""

from __future__ import annotations

from typing import Literal, get_args

from understudy.errors import ParameterError

Noise = Literal["auto", "laplace", "gaussian", "bounded"]

NOISES: tuple[Noise, ...] = get_args(Noise)

LISTED = f"{', '.join(NOISES[:-1])} or {NOISES[-1]}"
"""All names, in words."""


def check_noise_name(noise: str) -> None:
    """Refuse, with a `ParameterError`, a word that names no noise.

    >>> check_noise_name("bounded")
    """
    if noise not in NOISES:
        raise ParameterError(f"noise is {LISTED}, not {noise!r}")
