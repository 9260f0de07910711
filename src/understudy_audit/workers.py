"""Several mechanisms under audit at once, each in a process of its own.

A worker gets what the record knows of its subject, and sends every line back before it goes on; the record is
written by the one process that opened it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_all_start_methods, get_context, parent_process
from signal import SIG_DFL, SIGINT, signal
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from understudy.errors import UnderstudyError
from understudy.noise.samplers import SystemNoise
from understudy_audit.privacy import Verdict
from understudy_audit.record import Record, ResumableAudit, SubjectRecord
from understudy_audit.registry import Effort, named

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.synchronize import Event as Happening


@dataclass(frozen=True)
class Mailbox:
    """Where workers send lines of the record and numbers of steps that are done, and see when to leave off."""

    post: SimpleQueue[Any]
    is_closed: Happening


@dataclass(frozen=True)
class Task:
    """The audit of one subject, as a worker is told of it."""

    subject: str
    effort: Effort
    known: SubjectRecord
    checkpoints: tuple[Fraction, ...]
    error: float
    end: float | None
    """On the clock of `monotonic`, which all processes share."""


def audit_side_by_side(
    audits: Sequence[ResumableAudit],
    record: Record,
    *,
    workers: int,
    end: float | None,
    done: Callable[[int], None],
) -> list[Verdict]:
    """All of these audits, `workers` at a time; `done` hears of steps as they are made.

    Whole runs, which take longest, are listed last and begun first.
    """
    context = _context()
    mailbox, failed = Mailbox(context.SimpleQueue(), context.Event()), list[Exception]()
    reader = Thread(target=_enter, args=(mailbox, record, done, failed), daemon=True)
    reader.start()
    try:
        with ProcessPoolExecutor(workers, context, initializer=_use, initargs=(mailbox,)) as pool:
            begun = [pool.submit(_audit, _task(audit, record, end)) for audit in reversed(audits)]
            try:
                verdicts = [future.result() for future in reversed(begun)]
            except BaseException:
                mailbox.is_closed.set()  # workers leave off after the step that they are at
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    # After a worker was killed nobody waits for the reader: half a message may be left, and the pen be gone.
    except KeyboardInterrupt:
        raise
    except BrokenProcessPool as error:
        raise UnderstudyError(
            "a worker ended in the middle of its work (was there enough memory?): with --resume, what was counted "
            "is kept, and the same command goes on from there"
        ) from error
    except BaseException:
        _finish(mailbox, reader)
        raise
    _finish(mailbox, reader)
    if failed:
        raise failed[0]
    return verdicts


def _context() -> Any:
    """How workers are started: copies of a process that imported everything once, where the system can do that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _finish(mailbox: Mailbox, reader: Thread) -> None:
    mailbox.post.put(None)
    reader.join()


def _task(audit: ResumableAudit, record: Record, end: float | None) -> Task:
    name = audit.subject.name
    return Task(name, audit.effort, record.subject(name), audit.checkpoints, audit.error, end)


def _enter(mailbox: Mailbox, record: Record, done: Callable[[int], None], failed: list[Exception]) -> None:
    """Write what workers send, until the end. After a failure nothing is written, and nobody waits to be read."""
    while (sent := mailbox.post.get()) is not None:
        try:
            if isinstance(sent, int):
                done(sent)
            elif not failed:
                record.enter(sent)
        except Exception as error:
            failed.append(error)
            mailbox.is_closed.set()


# ---- in a worker


_mailbox: list[Mailbox] = []
"""The one that this process sits at."""


def _use(mailbox: Mailbox) -> None:
    signal(SIGINT, SIG_DFL)  # Ctrl-C ends workers without a word
    _mailbox[:] = [mailbox]


class _SentRecord(Record):
    """What is known of one subject; every line goes to whoever writes the file."""

    def __init__(self, name: str, known: SubjectRecord) -> None:
        self._subjects = {name: known}

    def _write(self, line: dict[str, Any]) -> None:
        _mailbox[0].post.put(line)


def _audit(task: Task) -> Verdict:
    (subject,) = named([task.subject])
    record = _SentRecord(task.subject, task.known)
    audit = ResumableAudit(subject, task.effort, record, task.checkpoints, task.error)
    return audit.run(SystemNoise(), goes_on=lambda: _goes_on(task.end), done=_mailbox[0].post.put)


def _goes_on(end: float | None) -> bool:
    """Until the time is up, or nobody is there any more to write it down."""
    parent = parent_process()
    is_watched = not _mailbox[0].is_closed.is_set() and (parent is None or parent.is_alive())
    return is_watched and (end is None or monotonic() < end)
