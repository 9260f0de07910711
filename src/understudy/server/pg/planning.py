"""From a statement to its plan: SELECTs by the router, and everything that is about the connection itself here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from understudy.server.inquiry import check_question
from understudy.server.pg import commands, wire
from understudy.server.pg.asking import Asker
from understudy.server.pg.commands import CommandWords, syntax
from understudy.server.pg.lexer import StatementText
from understudy.server.pg.parameters import decoded
from understudy.server.pg.plans import Row, Select, StatementPlan, Values, result_column
from understudy.server.pg.portals import Portal
from understudy.server.pg.session import FAILED, IDLE, SqlSession
from understudy.server.pg.states import Refusal, read_only
from understudy.server.pg.values import JSON, TEXT

_ASKS = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "FROM"))
_SILENT = frozenset(("UNLISTEN", "CHECKPOINT"))

Run = Callable[[Values], Awaitable[Sequence[Row]]]


class StatementPlanner:
    """Plans statements for one connection. `tell` is given notices."""

    def __init__(self, session: SqlSession, asker: Asker, tell: Callable[[bytes, str], None]) -> None:
        self._session = session
        self._asker = asker
        self._tell = tell
        self._readers: dict[str, Callable[[StatementText, Sequence[int]], Awaitable[StatementPlan]]] = {
            "BEGIN": self._begin, "START": self._begin, "COMMIT": self._commit, "END": self._commit,
            "ROLLBACK": self._rollback, "ABORT": self._rollback, "SAVEPOINT": self._savepoint,
            "RELEASE": self._release, "SET": self._set, "SHOW": self._show, "RESET": self._reset,
            "DISCARD": self._discard, "DEALLOCATE": self._deallocate, "PREPARE": self._prepare,
            "EXECUTE": self._execute, "DECLARE": self._declare, "FETCH": self._fetch, "MOVE": self._fetch,
            "CLOSE": self._close, "COPY": self._copy, "EXPLAIN": self._explain,
        }  # fmt: skip

    async def plan(self, statement: StatementText, oids: Sequence[int] = ()) -> StatementPlan:
        """The plan of a statement, of which nothing is executed. Raises a `Refusal` or a `Problem`."""
        if not statement.tokens:
            return StatementPlan("", _nothing)
        first = statement.tokens[0]
        read = self._readers.get(first.upper)
        if read is not None:
            check_question(statement.text)
            return await read(statement, oids)
        if first.upper in _ASKS or first.text == "(":
            return self._of_select(await self._asker.read(statement, oids))
        if first.upper in _SILENT:
            return StatementPlan(first.upper, _nothing)
        if first.kind != "word":
            raise syntax(first)
        raise read_only(first.upper[:40]) if first.upper in _WRITES else _not_sql(first.text)

    def _of_select(self, select: Select) -> StatementPlan:
        async def run(values: Values) -> Sequence[Row]:
            return await self._asker.rows(select, values)

        return StatementPlan("SELECT", run, select.columns, select.parameters, counts=True)

    # ---- transactions

    async def _begin(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        async def run(_: Values) -> Sequence[Row]:
            if not self._session.begin():
                self._warn("25001", "there is already a transaction in progress")
            return ()

        return StatementPlan("START TRANSACTION" if statement.tokens[0].upper == "START" else "BEGIN", run)

    async def _commit(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        def tag() -> str:
            return "ROLLBACK" if self._session.state == FAILED else "COMMIT"

        return StatementPlan(tag, self._ended(commit=True), ends=True)

    async def _rollback(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        words.one_of("WORK", "TRANSACTION")
        if not words.has("TO"):
            return StatementPlan("ROLLBACK", self._ended(commit=False), ends=True)
        words.has("SAVEPOINT")
        name = words.name()
        return StatementPlan("ROLLBACK", _doing(lambda: self._session.roll_back_to(name)), ends=True)

    def _ended(self, *, commit: bool) -> Run:
        async def run(_: Values) -> Sequence[Row]:
            if not self._session.end(commit=commit):
                self._warn("25P01", "there is no transaction in progress")
            return ()

        return run

    async def _savepoint(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        name = CommandWords(statement).name()
        return StatementPlan("SAVEPOINT", _doing(lambda: self._session.savepoint(name)))

    async def _release(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        words.has("SAVEPOINT")
        name = words.name()
        return StatementPlan("RELEASE", _doing(lambda: self._session.release(name)))

    # ---- settings

    async def _set(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        found = commands.read_set(statement)
        if found is None:
            return StatementPlan("SET", _nothing)
        settings = self._session.settings
        return StatementPlan("SET", _doing(lambda: settings.set(found.name, found.value, local=found.local)))

    async def _show(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        settings, words = self._session.settings, CommandWords(statement)
        if words.has("ALL"):
            columns = tuple(result_column(name, TEXT) for name in ("name", "setting", "description"))

            async def every(_: Values) -> Sequence[Row]:
                return [[name, value, ""] for name, value in sorted(settings.as_dict().items())]

            return StatementPlan("SHOW", every, columns)
        name = commands.setting_name(words)
        words.end()
        settings.show(name)

        async def run(_: Values) -> Sequence[Row]:
            return [[settings.show(name)]]

        return StatementPlan("SHOW", run, (result_column(name, TEXT),))

    async def _reset(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        settings, words = self._session.settings, CommandWords(statement)
        if words.has("ALL"):
            return StatementPlan("RESET", _doing(settings.reset_all))
        name = commands.setting_name(words)
        return StatementPlan("RESET", _doing(lambda: settings.set(name, None)))

    async def _discard(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        what = words.one_of("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY")
        if not what:
            raise syntax(words.next)

        def discard() -> None:
            if what == "ALL":
                if self._session.state != IDLE:
                    raise Refusal("25001", "DISCARD ALL cannot run inside a transaction block")
                self._session.settings.reset_all()
                self._session.prepared.clear()
                self._session.portals.clear()

        return StatementPlan(f"DISCARD {what}", _doing(discard))

    # ---- prepared statements

    async def _deallocate(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        words.has("PREPARE")
        if words.has("ALL"):
            return StatementPlan("DEALLOCATE ALL", _doing(self._session.prepared.clear))
        name = words.name()

        def forget() -> None:
            self._session.statement(name)
            del self._session.prepared[name]

        return StatementPlan("DEALLOCATE", _doing(forget))

    async def _prepare(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        name = words.name()
        if words.has("("):
            while not words.has(")"):
                if words.next is None:
                    raise syntax(None)
                words.place += 1  # types are found by the places of parameters
        if not words.has("AS"):
            raise syntax(words.next)
        inner = await self.plan(words.rest())
        return StatementPlan("PREPARE", _doing(lambda: self._session.prepare(name, inner)))

    async def _execute(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        inner = self._session.statement(words.name())
        given: list[bytes | None] = []
        if words.has("("):
            while not words.has(")"):
                sign = "-" if words.has("-") else ""
                token = words.next
                if token is None or token.kind not in ("string", "escaped", "number", "word", "dollar"):
                    raise syntax(token)
                given.append(None if token.upper == "NULL" else (sign + token.value).encode())
                words.place += 1
                words.has(",")
        words.end()
        if len(given) != len(inner.parameters):
            raise Refusal(
                "42601", f"{len(inner.parameters)} parameters are needed, and {len(given)} were given"
            )
        values = tuple(decoded(raw, oid, 0) for raw, oid in zip(given, inner.parameters, strict=True))
        return replace(inner, run=lambda _: inner.run(values), parameters=())

    # ---- cursors

    async def _declare(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        found = commands.read_declare(statement)
        inner = await self.plan(found.query, oids)
        if inner.columns is None or inner.copy is not None:
            raise Refusal("42P11", "a cursor is declared for a SELECT")

        async def run(values: Values) -> Sequence[Row]:
            if self._session.state == IDLE and not found.hold:
                raise Refusal(
                    "25P01", "DECLARE CURSOR can only be used in transaction blocks", hint="BEGIN one first."
                )
            formats = (1,) if found.binary else ()
            self._session.open(found.name, Portal(inner, values, formats, hold=found.hold, scrolls=True))
            return ()

        return StatementPlan("DECLARE CURSOR", run, parameters=inner.parameters)

    async def _fetch(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        moves = statement.tokens[0].upper == "MOVE"
        found = commands.read_fetch(statement, moves=moves)
        cursor = self._session.cursor(found.cursor)

        async def run(_: Values) -> Sequence[Row]:
            return await self._session.cursor(found.cursor).fetched(found)

        if moves:
            return StatementPlan("MOVE", run, counts=True)
        return StatementPlan("FETCH", run, cursor.plan.columns, counts=True, formats=cursor.formats)

    async def _close(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        words = CommandWords(statement)
        if words.has("ALL"):
            return StatementPlan("CLOSE CURSOR ALL", _doing(self._session.portals.clear))
        name = words.name()

        def close() -> None:
            self._session.cursor(name)
            del self._session.portals[name]

        return StatementPlan("CLOSE CURSOR", _doing(close))

    # ---- COPY and EXPLAIN

    async def _copy(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        query, options = commands.read_copy(statement)
        inner = await self.plan(query, oids)
        if inner.columns is None or inner.copy is not None:
            raise Refusal("0A000", "COPY sends the rows of a SELECT")
        return replace(inner, tag="COPY", copy=options)

    async def _explain(self, statement: StatementText, oids: Sequence[int]) -> StatementPlan:
        found = commands.read_explain(statement)
        first = found.query.tokens[0] if found.query.tokens else None
        if first is None or (first.upper not in _ASKS and first.text != "("):
            raise Refusal(
                "0A000", "EXPLAIN tells the price of a SELECT", hint="EXPLAIN SELECT count(*) FROM town"
            )
        select = await self._asker.read(found.query, oids)

        async def run(values: Values) -> Sequence[Row]:
            if found.analyze:
                self._tell(
                    wire.notice("EXPLAIN never looks: ANALYZE is ignored, nothing was asked"), "notice"
                )
            return await self._asker.explained(select, values, found.format)

        columns = (result_column("QUERY PLAN", JSON if found.format == "json" else TEXT),)
        return StatementPlan("EXPLAIN", run, columns, select.parameters)

    def _warn(self, state: str, words: str) -> None:
        self._tell(wire.notice(words, severity="WARNING", state=state), "warning")


def _doing(work: Callable[[], Any]) -> Run:
    """A plan's work that returns no rows."""

    async def run(_: Values) -> Sequence[Row]:
        work()
        return ()

    return run


async def _nothing(_: Values) -> Sequence[Row]:
    return ()


_WRITES = frozenset(
    (
        "ALTER", "ANALYZE", "ANALYSE", "ATTACH", "CALL", "CLUSTER", "COMMENT", "CREATE", "DELETE", "DO", "DROP",
        "GRANT", "IMPORT", "INSERT", "INSTALL", "LISTEN", "LOAD", "LOCK", "MERGE", "NOTIFY", "PRAGMA", "REASSIGN",
        "REFRESH", "REINDEX", "REVOKE", "SECURITY", "TRUNCATE", "UPDATE", "VACUUM",
    )
)  # fmt: skip


def _not_sql(word: str) -> Refusal:
    return Refusal(
        "42601",
        f'syntax error at or near "{word[:60]}"',
        hint="At this door questions are SQL: SELECT district, count(*) FROM town GROUP BY district",
        position=1,
    )
