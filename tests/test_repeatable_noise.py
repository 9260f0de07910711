"""The noise of a test follows from its name; that of another process, and where it is asked for, does not."""

from __future__ import annotations

import multiprocessing

import pytest

import repeatable_noise
from understudy.noise.samplers import SystemNoise


def drawn(count: int = 4) -> list[int]:
    return SystemNoise().words(count).tolist()


def _send(pipe: object) -> None:
    pipe.send(drawn())  # type: ignore[attr-defined]


def test_the_noise_of_a_test_follows_from_its_name(request: pytest.FixtureRequest) -> None:
    again = repeatable_noise._Stream(request.node.nodeid)
    assert drawn() == again.words(4).tolist()
    assert drawn() == again.words(4).tolist()
    assert drawn() != repeatable_noise._Stream("another test").words(4).tolist()


def test_another_seed_is_another_stream(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = drawn()
    monkeypatch.setenv("UNDERSTUDY_TEST_SEED", "another")
    assert repeatable_noise._Stream(request.node.nodeid).words(4).tolist() != here


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks among threads
def test_a_fork_draws_noise_of_its_own() -> None:
    method = multiprocessing.get_context("fork")
    heard = []
    for _ in range(2):
        mine, theirs = method.Pipe()
        child = method.Process(target=_send, args=(theirs,))
        child.start()
        heard.append(mine.recv())
        child.join()
    assert heard[0] != heard[1]
    assert drawn() not in heard


@pytest.mark.system_noise
def test_a_test_of_the_systems_noise_has_it(request: pytest.FixtureRequest) -> None:
    assert drawn() != repeatable_noise._Stream(request.node.nodeid).words(4).tolist()


@pytest.fixture(scope="module")
def shared() -> list[int]:
    return drawn()


def test_what_tests_share_does_not_depend_on_the_first_of_them(shared: list[int]) -> None:
    assert shared == repeatable_noise._Stream("tests/test_repeatable_noise.py shared ''").words(4).tolist()
