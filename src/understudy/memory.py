"""How much memory a piece of work may take: a public number, read off the machine or said by the user.

Work is compared with it before the first debit, by sizes that are public. Nothing here looks at how much
memory is free at the moment: that depends on what else runs, and a run that was stopped must go on as it
began.
"""

from __future__ import annotations

import os
from functools import cache

try:
    import resource
except ImportError:  # not on Windows
    resource = None

SHARE = 2
"""Of the physical memory, one part in so many is the limit where nothing is said."""

UNKNOWN = 4 << 30
"""Bytes of a machine that does not tell how many it has."""


@cache
def physical() -> int:
    """Bytes of memory that this machine has, or that a control group or a limit leaves to this process."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = UNKNOWN
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                whole = min(whole, int(file.read()))
        except (OSError, ValueError):  # no such group, or one without a limit
            continue
    return min([whole, *_limits()])


def _limits() -> list[int]:
    """What the user's limits (``ulimit -v``, ``-d``) leave to this process, where they are set."""
    if resource is None:
        return []
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    soft = [resource.getrlimit(kind)[0] for kind in kinds]
    return [limit for limit in soft if limit != resource.RLIM_INFINITY]


def default_limit() -> int:
    """Bytes that one piece of work may take where nothing is said: half of what there is."""
    return physical() // SHARE


_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB"))


def as_text(amount: int) -> str:
    """An amount of memory for people.

    >>> as_text(2_500_000_000), as_text(640_000), as_text(12), as_text(1)
    ('2.5 GB', '640 KB', '12 bytes', '1 byte')
    """
    for size, unit in _SIZES:
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount} byte{'' if amount == 1 else 's'}"


def rounded_down(amount: int) -> int:
    """A number with two digits: the next one that is not larger.

    >>> rounded_down(12_601_234_944), rounded_down(107), rounded_down(8)
    (12000000000, 100, 8)
    """
    return amount - amount % 10 ** max(len(str(amount)) - 2, 0)


def rounded_up(amount: int) -> int:
    """An amount of memory with two digits, or three that begin with a one: the next one that is not smaller.

    >>> rounded_up(107_844_001), rounded_up(999_000), rounded_up(52_100)
    (108000000, 1000000, 53000)
    """
    digits = len(str(amount)) - (3 if str(amount).startswith("1") else 2)
    step = 10 ** max(digits, 0)
    return -(-amount // step) * step
