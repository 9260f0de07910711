"""The desk's process: it reads requests, one line of JSON each, and answers each with one line.

It is started by `worker` as a fresh interpreter, imports DuckDB and this package's three files for it, gives up
what it can give up, and knows nothing but what it is sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

from duckdb import OutOfMemoryException

from understudy.desk.engine import DeskEngine, StatementFailedError

MOST_BYTES = 64 * 2**20
"""Bytes of one reply."""
_NOBODY = 65534
_ENGINES_AT_MOST = 4


def main() -> None:
    """Answer until the input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but replies is written there
    hello = json.loads(sys.stdin.buffer.readline())
    _import_all()
    _give_up(int(hello["megabytes"]))
    replies.write(b'{"ready": true}\n')
    replies.flush()
    engines: dict[str, DeskEngine] = {}
    for line in sys.stdin.buffer:
        reply = _reply(json.loads(line), engines, int(hello["megabytes"]))
        replies.write(reply + b"\n")
        replies.flush()


def _import_all() -> None:
    """Have DuckDB import what it imports late, while the files of the interpreter can still be read."""
    table = {"schema": "", "name": "t", "names": ["a"], "types": ["VARCHAR"], "values": ['["1"]']}
    engine = DeskEngine(megabytes=64, tables=[table])
    engine.fill(table)
    engine.finish([])
    for sql in (
        "SELECT a, now(), 1.5, [1], {'a': 1}, DATE '2000-01-01', 'a' LIKE 'b' FROM t",
        "SELECT nothing",
    ):
        with contextlib.suppress(StatementFailedError):
            engine.run(sql, [], seconds=60.0, rows=10, columns_only=False)


def _give_up(megabytes: int) -> None:
    """Give up files, memory beyond the limit, core dumps, and root's rights where the process has them."""
    try:
        import resource
    except ImportError:  # not a Unix system: DuckDB's own limits remain
        return
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_DATA, megabytes * 2**20),
    ):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    if os.geteuid() == 0:
        try:
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
        except OSError:  # a container that may not
            pass


def _reply(request: dict[str, Any], engines: dict[str, DeskEngine], megabytes: int) -> bytes:
    try:
        return _done(request, engines, megabytes)
    except StatementFailedError as error:
        return _encoded({"reason": error.reason, "name": error.name})
    except (MemoryError, OutOfMemoryException):
        return b'{"reason": "size", "name": ""}'


def _done(request: dict[str, Any], engines: dict[str, DeskEngine], megabytes: int) -> bytes:
    key = request["key"]
    if request["do"] == "make":
        while len(engines) >= _ENGINES_AT_MOST:
            del engines[next(iter(engines))]
        engines[key] = DeskEngine(megabytes=megabytes // 2, tables=request["tables"])
        return b'{"done": true}'
    engine = engines.pop(key, None)
    if engine is None:  # another took its place
        return b'{"missing": true}'
    engines[key] = engine  # the one that was used last is given up last
    if request["do"] == "fill":
        for table in request["tables"]:
            engine.fill(table)
        return b'{"done": true}'
    if request["do"] == "finish":
        engine.finish(request["statements"])
        return b'{"done": true}'
    return _statement(engine, request)


def _statement(engine: DeskEngine, request: dict[str, Any]) -> bytes:
    seconds, rows = float(request["seconds"]), int(request["rows"])
    _end_after(5 * seconds + 2)
    try:
        columns, found = engine.run(
            request["sql"],
            request["tables"],
            seconds=seconds,
            rows=rows,
            columns_only=request["do"] == "describe",
        )
        if len(found) > rows:
            raise StatementFailedError("rows")
        reply = _encoded({"columns": columns, "rows": found})
        if len(reply) > MOST_BYTES:
            raise StatementFailedError("size")
        return reply
    finally:
        _end_after(0)


def _end_after(seconds: float) -> None:
    """End this process after so many seconds, should its parent be gone by then; 0 takes that back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _encoded(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply, default=str, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
