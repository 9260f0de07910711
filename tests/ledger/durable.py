"""Durable ledgers as tests open, charge and verify them, and children that they are given to."""

from __future__ import annotations

import gc
import json
import os
from fractions import Fraction
from pathlib import Path

from sqlalchemy.engine import URL

from understudy.ledger import export
from understudy.ledger.chain import START
from understudy.ledger.interface import fresh_request
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))
TINY = Selection(epsilon=Fraction(1, 10**6))


def opened(url: URL, **settings) -> DurableLedger:
    return DurableLedger(url, "t", ONE, **settings)


def charge(ledger, event=TENTH, request=None):
    return ledger.charge(event, question="q", request=request or fresh_request())


def witnessed(path: Path) -> Witness:
    """A new witness, of the ledger of `t` before its first entry."""
    witness = Witness(path)
    witness.make("t", 0, START)
    return witness


def in_child(work) -> object:
    """Run `work` in a forked child and return what it says, so that limits and users stay there."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        gc.disable()  # other tests' engines are in memory, and their threads are not here to be ended
        try:
            said = json.dumps(work())
        except BaseException as error:  # the parent's asserts see it
            said = json.dumps({"error": type(error).__name__, "words": str(error)})
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)


def sound(url: URL) -> dict:
    verdict = export.verify(url, "t")
    assert verdict["sound"], verdict["problems"]
    return verdict
