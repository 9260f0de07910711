"""The tables of a durable ledger, their version, and the way from each version to the next."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    exists,
    insert,
    inspect,
    select,
    update,
)

from understudy.errors import LedgerError

VERSION = 4

READABLE = 2
"""The oldest version that can be verified and exported as it is: it only lacks snapshots and an index."""

METADATA = MetaData()

SCHEMA = Table("understudy_schema", METADATA, Column("version", Integer, nullable=False))

LEDGER = Table(
    "understudy_ledger",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("head", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""One row for each physical table: the number of its last entry and that entry's hash. Writers lock it."""

ENTRY = Table(
    "understudy_entry",
    METADATA,
    Column("ledger", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("request", Text),
    Column("question", Text),
    Column("analyst", Text),
    Column("event", Text),
    Column("cost", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("debit", BigInteger),
    Column("step", BigInteger),
    Column("answer", Text),
    Column("state", Text),
    Column("terms", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    sqlite_with_rowid=False,
)

KEPT = Table(
    "understudy_kept",
    METADATA,
    Column("ledger", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("answer", LargeBinary, nullable=False),
    Column("state", LargeBinary),
    Column("salt", LargeBinary),
    sqlite_with_rowid=False,
)
"""What entries only hash: the answer, and a handle's latest state with the salt of its commitment."""

SNAPSHOT = Table(
    "understudy_snapshot",
    METADATA,
    Column("ledger", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("books", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""The books at the newest snapshot of each ledger, compressed; entry `number` holds their hash."""

_NAMES = ((LEDGER, LEDGER.c.name), (ENTRY, ENTRY.c.ledger))

ONE_REQUEST = Index(
    "understudy_one_request",
    ENTRY.c.ledger,
    ENTRY.c.request,
    unique=True,
    sqlite_where=ENTRY.c.request.is_not(None),
    postgresql_where=ENTRY.c.request.is_not(None),
)

ONE_ANSWER = Index(
    "understudy_one_answer",
    ENTRY.c.ledger,
    ENTRY.c.debit,
    ENTRY.c.step,
    unique=True,
    sqlite_where=ENTRY.c.debit.is_not(None),
    postgresql_where=ENTRY.c.debit.is_not(None),
)


OF_ANALYST = Index(
    "understudy_of_analyst",
    ENTRY.c.ledger,
    ENTRY.c.analyst,
    ENTRY.c.number,
    sqlite_where=ENTRY.c.analyst.is_not(None),
    postgresql_where=ENTRY.c.analyst.is_not(None),
)


def _to_2(tx: Connection) -> None:
    """The store itself refuses a second answer to a step, and states that were superseded are erased."""
    ONE_ANSWER.create(tx)
    later = ENTRY.alias("later")
    stated = ENTRY.alias("stated")
    superseded = exists(
        select(stated.c.number)
        .join(later, (later.c.ledger == stated.c.ledger) & (later.c.debit == stated.c.debit))
        .where(
            stated.c.ledger == KEPT.c.ledger,
            stated.c.number == KEPT.c.number,
            later.c.step > stated.c.step,
        )
    )
    tx.execute(update(KEPT).where(superseded).values(state=None, salt=None))


def _to_3(tx: Connection) -> None:
    """Snapshots, of which there are none yet."""
    SNAPSHOT.create(tx)


def _to_4(tx: Connection) -> None:
    """The debits of one analyst are found without reading the others'."""
    OF_ANALYST.create(tx)


UPGRADES: dict[int, Callable[[Connection], None]] = {2: _to_2, 3: _to_3, 4: _to_4}
"""For each version, the step from the one before it."""


def version(tx: Connection) -> int:
    """The version of the tables in a database; 0 where there are none. Refused where they do not say one."""
    kept = inspect(tx)
    if not kept.has_table(SCHEMA.name):
        return 0
    if not kept.has_table(LEDGER.name) and not kept.has_table(ENTRY.name):
        # Made a moment ago in the same transaction, as the lock under which the others are made.
        return tx.execute(select(SCHEMA.c.version)).scalar_one_or_none() or 0
    found = tx.execute(select(SCHEMA.c.version)).scalars().all()
    if len(found) != 1:
        check(None)
    return found[0]


def holds(tx: Connection, name: str) -> bool:
    """Whether a database has anything of a ledger, its first line or any entry, whatever else is lost."""
    kept = inspect(tx)
    places = [(table, column) for table, column in _NAMES if kept.has_table(table.name)]
    return any(tx.execute(select(exists().where(column == name))).scalar_one() for _, column in places)


def check(found: object, *, oldest: int = VERSION) -> None:
    """Refuse tables that this program does not write, or older ones than `oldest` where they are only read."""
    if type(found) is not int:  # SQLite keeps any type in any column
        raise LedgerError(
            "the ledger does not say by which program it was written",
            remedy="Restore its newest copy; nothing was spent",
        )
    if found > VERSION:
        raise LedgerError(
            f"the ledger was written by a newer program (schema {found}; this one writes {VERSION})",
            remedy="Use that version of understudy; nothing was spent",
        )
    if found < oldest:
        raise LedgerError(
            f"the ledger has schema {found}; this program writes {VERSION}",
            remedy="Open the project once with `understudy ledger show`: it upgrades the ledger",
        )


def migrate(tx: Connection) -> None:
    """Make or upgrade the tables, inside the caller's transaction."""
    found = version(tx)
    if type(found) is not int or found < 0:
        check(None)
    if found == 0:
        METADATA.create_all(tx)
        tx.execute(insert(SCHEMA).values(version=VERSION))
        return
    if found < VERSION and tx.dialect.name == "postgresql":
        tx.exec_driver_sql(f"LOCK TABLE {LEDGER.name} IN EXCLUSIVE MODE")  # older programs finish first
    for step in range(found + 1, VERSION + 1):
        UPGRADES[step](tx)
    if found < VERSION:
        tx.execute(update(SCHEMA).values(version=VERSION))
    check(max(found, VERSION))
