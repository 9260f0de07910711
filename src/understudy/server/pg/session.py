"""The state of one connection: its transaction, its settings, its prepared statements and its portals.

A transaction changes nothing but this state: nothing is ever written, and what was bought stays bought.
"""

from __future__ import annotations

from understudy.server.pg.plans import StatementPlan
from understudy.server.pg.portals import MOST_HELD, MOST_PORTALS, Portal
from understudy.server.pg.settings import Settings
from understudy.server.pg.states import Refusal

IDLE, INSIDE, FAILED = b"I", b"T", b"E"

MOST_PREPARED = 1000
"""Prepared statements of one connection."""

MOST_SAVEPOINTS = 1000


class SqlSession:
    """What a connection remembers between messages."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = IDLE
        self.prepared: dict[str, StatementPlan] = {}
        self.portals: dict[str, Portal] = {}
        self._savepoints: list[str] = []

    # ---- transactions

    def begin(self) -> bool:
        """Begin a transaction; returns whether there was none."""
        if self.state != IDLE:
            return False
        self.state = INSIDE
        self.settings.begin()
        return True

    def end(self, *, commit: bool) -> bool:
        """End the transaction; returns whether there was one. Portals end with it, but cursors that hold."""
        was = self.state != IDLE
        self.settings.end(commit=commit and self.state != FAILED)
        self.state = IDLE
        self._savepoints.clear()
        self.end_portals()
        return was

    def end_portals(self) -> None:
        """Forget the portals of a transaction, or of statements outside of one."""
        if self.portals:
            self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}

    def fail(self) -> None:
        """A statement failed: what follows in its transaction is refused until that ends."""
        if self.state == INSIDE:
            self.state = FAILED

    def check_works(self, plan: StatementPlan) -> None:
        if self.state == FAILED and not plan.ends:
            raise Refusal(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
                hint="ROLLBACK ends it.",
            )

    def savepoint(self, name: str) -> None:
        self._check_inside("SAVEPOINT")
        if len(self._savepoints) >= MOST_SAVEPOINTS:
            raise Refusal("54000", f"a transaction has at most {MOST_SAVEPOINTS:,} savepoints")
        self._savepoints.append(name)

    def release(self, name: str) -> None:
        self._check_inside("RELEASE SAVEPOINT")
        del self._savepoints[self._found(name) :]

    def roll_back_to(self, name: str) -> None:
        self._check_inside("ROLLBACK TO SAVEPOINT")
        del self._savepoints[self._found(name) + 1 :]
        self.state = INSIDE

    def _found(self, name: str) -> int:
        for place in reversed(range(len(self._savepoints))):
            if self._savepoints[place] == name:
                return place
        raise Refusal("3B001", f'savepoint "{name[:60]}" does not exist')

    def _check_inside(self, what: str) -> None:
        if self.state == IDLE:
            raise Refusal("25P01", f"{what} can only be used in transaction blocks", hint="BEGIN one first.")

    # ---- prepared statements and portals

    def prepare(self, name: str, plan: StatementPlan) -> None:
        if name and name in self.prepared:
            raise Refusal("42P05", f'prepared statement "{name[:60]}" already exists')
        if len(self.prepared) >= MOST_PREPARED and name not in self.prepared:
            raise Refusal(
                "53400",
                f"a connection has at most {MOST_PREPARED:,} prepared statements",
                hint="DEALLOCATE some.",
            )
        self.prepared[name] = plan

    def statement(self, name: str) -> StatementPlan:
        found = self.prepared.get(name)
        if found is None:
            what = f'prepared statement "{name[:60]}"' if name else "unnamed prepared statement"
            raise Refusal("26000", f"{what} does not exist")
        return found

    def open(self, name: str, portal: Portal) -> None:
        if name and name in self.portals:
            raise Refusal("42P03", f'cursor "{name[:60]}" already exists')
        if len(self.portals) >= MOST_PORTALS and name not in self.portals:
            raise Refusal(
                "53400", f"a connection has at most {MOST_PORTALS} open portals", hint="CLOSE some."
            )
        self.portals[name] = portal
        portal.check_room = self._check_room

    def _check_room(self) -> None:
        """Refuse to execute another portal, before it asks anything, where those that are open hold too much."""
        held = sum(portal.size for portal in self.portals.values())
        if held > MOST_HELD:
            raise Refusal(
                "53400",
                f"the cursors and portals of this connection hold about {held:,} bytes of rows; "
                f"another is executed where they hold at most {MOST_HELD:,}",
                hint="CLOSE cursors that you do not use any more, or end the transaction.",
            )

    def portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise Refusal("34000", f'portal "{name[:60]}" does not exist')
        return found

    def cursor(self, name: str) -> Portal:
        found = self.portals.get(name) if name else None
        if found is None:
            raise Refusal("34000", f'cursor "{name[:60]}" does not exist')
        return found
