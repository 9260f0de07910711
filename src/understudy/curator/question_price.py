"""What one question may cost, as whoever asks it says: a price, an error, or neither."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import ParameterError
from understudy.privacy.noise_name import Noise, check_noise_name
from understudy.rational import Number


@dataclass(frozen=True)
class QuestionPrice:
    """What one question may cost: an `epsilon`, a `rho`, an `error` in people, or nothing of these.

    `noise` says which noise is added; `beta` is the probability with which some count is outside its error, which
    with bounded noise none ever is. Raises ParameterError where several are given, or the noise has no such name.
    """

    epsilon: Number | None = None
    rho: Number | None = None
    error: Number | None = None
    beta: Number = 0.05
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        given = {"epsilon": self.epsilon, "rho": self.rho, "error": self.error}
        named = [key for key, value in given.items() if value is not None]
        if len(named) > 1:
            raise ParameterError(f"give one of epsilon, rho and error, not {' and '.join(named)}")
        check_noise_name(self.noise)
        if self.noise == "bounded" and self.epsilon is not None:
            raise ParameterError(
                "bounded noise has a price at one Rényi order, and no epsilon of its own",
                remedy="say how far off the counts may be, by `error`, or what they may cost, by `rho`",
            )
