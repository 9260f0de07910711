"""The server's log: one JSON object a line on standard error. No answers, bodies, tokens or questions.

A failure that nobody foresaw is logged with its type and the places in the code where it happened, and not with
its message or the values of variables: those may hold what was asked or read. Errors of the ledger and the source
are the custodian's to mend, and are logged with their words.
"""

from __future__ import annotations

import json
import logging
import secrets
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from understudy.errors import DeclarationError, LedgerError, SourceError, StoreError

LOG = logging.getLogger("understudy.server")
REQUESTS = logging.getLogger("understudy.server.requests")

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""Names that every record has; all others are facts that a call gave."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, what happened, and the facts that were given."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        told |= {name: value for name, value in vars(record).items() if name not in _OWN}
        return json.dumps(told, ensure_ascii=False, default=str)


def start_logging(stream: TextIO | None = None, *, level: int = logging.INFO) -> logging.Handler:
    """Send the log of the server, and what uvicorn has to say, to a stream as JSON lines; returns the handler."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    for name, least in (
        ("understudy.server", level),
        ("uvicorn", logging.WARNING),
        ("asyncio", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True
    return handler


def log_request(door: str, method: str, route: str, status: int, seconds: float, analyst: str) -> None:
    """Log that a request was answered: by whom it was sent and how long it took, and nothing of what it said.

    Answers that went well are many, and are counted by the metrics; they are logged where the level is `debug`.
    """
    level = logging.DEBUG if 0 < status < 400 else logging.INFO
    if REQUESTS.isEnabledFor(level):
        told = {"door": door, "method": method, "route": route, "status": status, "analyst": analyst}
        REQUESTS.log(level, "request", extra=told | {"ms": round(1000 * seconds, 1)})


def log_failure(error: BaseException, where: str) -> str:
    """Log an error that a user is told nothing about; returns the reference under which it stands in the log."""
    reference = secrets.token_hex(4)
    cause = error.__cause__ if error.__cause__ is not None else error
    known = isinstance(cause, LedgerError | SourceError | StoreError | DeclarationError)
    places = [
        f"{frame.name}:{frame.lineno} {frame.filename}" for frame in traceback.extract_tb(cause.__traceback__)
    ]
    LOG.error(
        "failure",
        extra={
            "reference": reference,
            "where": where,
            "kind": type(cause).__name__,
            "words": str(cause) if known else "",
            "places": [] if known else places[-12:],
        },
    )
    return reference
