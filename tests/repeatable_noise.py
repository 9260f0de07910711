"""The product's own noise, repeatable in tests: what passed once passes again, what failed fails again.

A test that lets the product draw its noise would otherwise meet other noise in every run, and a promise of 95%
would break one run in twenty. Here `SystemNoise` follows from the test's name and from the environment variable
UNDERSTUDY_TEST_SEED (0 where it is not set): `UNDERSTUDY_TEST_SEED=7 make test` is another day's luck.

Not repeatable: what other processes draw (a fork included, so that two of them never share a stream), the
order in which threads draw, and tests marked `system_noise`, which are about the operating system's generator.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from understudy.noise.samplers import SystemNoise

_from_the_system = SystemNoise.words


class _Stream:
    """Words that follow from a name, in the process that named it alone."""

    def __init__(self, name: str) -> None:
        seed = f"{os.environ.get('UNDERSTUDY_TEST_SEED', '0')} {name}"
        self._generator = np.random.Philox(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16]))
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        return os.getpid() == self._process

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


_stream: _Stream | None = None


def _words(self: SystemNoise, count: int) -> NDArray[np.uint64]:
    return _stream.words(count) if _stream and _stream.is_here else _from_the_system(self, count)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "system_noise: the noise of this test is the operating system's own")
    SystemNoise.words = _words


def pytest_unconfigure() -> None:
    SystemNoise.words = _from_the_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global _stream
    _stream = None if item.get_closest_marker("system_noise") else _Stream(item.nodeid)
    try:
        return (yield)
    finally:
        _stream = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """What several tests share does not depend on which of them came first."""
    global _stream
    if fixturedef.scope == "function" or _stream is None:
        return (yield)
    before = _stream
    _stream = _Stream(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')!r}")
    try:
        return (yield)
    finally:
        _stream = before
