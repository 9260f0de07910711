"""The binary form of Postgres' `numeric`: digits to the base 10,000, the first one's weight, sign and scale."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

_BASE = 10_000
_NEGATIVE, _NAN = 0x4000, 0xC000
MOST_DIGITS = 1000


def binary_numeric(value: Any) -> bytes:
    """A number in its binary form; one that is not finite is sent as no number."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if number.is_nan() or number.is_infinite():
        return struct.pack("!hhHh", 0, 0, _NAN, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    whole = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole = whole.zfill(scale + 1)
    before, after = whole[: len(whole) - scale], whole[len(whole) - scale :]
    before = before.zfill(-(-len(before) // 4) * 4)
    after = after.ljust(-(-len(after) // 4) * 4, "0")
    groups = [int((before + after)[i : i + 4]) for i in range(0, len(before + after), 4)]
    weight = len(before) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight = 0
    return struct.pack(
        f"!hhHh{len(groups)}h", len(groups), weight, _NEGATIVE if sign and groups else 0, scale, *groups
    )


def read_numeric(raw: bytes) -> Decimal:
    """A number from its binary form; a `ValueError` where it is none."""
    try:
        count, weight, sign, scale = struct.unpack_from("!hhHh", raw)
        if not 0 <= count <= MOST_DIGITS or abs(weight) > MOST_DIGITS or len(raw) != 8 + 2 * count:
            raise ValueError("this is no numeric")
        groups = struct.unpack_from(f"!{count}h", raw, 8)
    except struct.error:
        raise ValueError("this is no numeric") from None
    if sign not in (0, _NEGATIVE) or any(not 0 <= group < _BASE for group in groups):
        raise ValueError("this number is not finite, or no numeric")
    total = Decimal(0)
    for place, group in enumerate(groups):
        total += Decimal(group).scaleb(4 * (weight - place))
    number = total.quantize(Decimal(1).scaleb(-scale)) if 0 <= scale <= 20 else total
    return -number if sign else number
