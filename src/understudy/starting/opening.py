"""The file and the ledger of a start, and under which reading of the file it was paid for before.

Each purchase of a start stands in the ledger under a name with the `version`: how the file is read, and its stamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from understudy.declaration.declaration import Protect, SourceSpec, Undecodable, promise_to
from understudy.declaration.file import copy_place, record_place
from understudy.declaration.outline import name_from
from understudy.errors import SourceError
from understudy.ledger.interface import Ledger
from understudy.ledger.place import ledger_place, witness_place
from understudy.ledger.store import DurableLedger
from understudy.ledger.traces import check_not_lost
from understudy.ledger.witness import Witness
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.table.column_reader import MISSING_WORDS, ColumnReader
from understudy.table.source import open_source
from understudy.table.text_file import is_text, read_header
from understudy.table.writing import reads_as_value

PURCHASES = ("rows", "writings", "numbers", "numbers and seconds", "keys")
"""What a start may buy, in this order: `numbers and seconds` where a column holds times, and `numbers` else."""

DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class StartReading:
    """How the file of a start is read.

    `former` tells that this is the reading of a start that was paid for under an earlier version of the program:
    it has no words for missing values, and rows with bytes that are not in the encoding are left out. `unnamed`
    are the places of last columns that the header has no name for, which are not read.
    """

    spec: SourceSpec
    reader: ColumnReader
    former: bool = False
    unnamed: Sequence[int] = ()

    @property
    def version(self) -> str:
        """What tells purchases of another file, or of another reading of it, apart."""
        missing = self.reader.missing
        told = self.reader.source_name + (repr(missing) if missing else "")
        return sha256(told.encode()).hexdigest()[:12]

    def request(self, what: str) -> str:
        """The name of one of the `PURCHASES` in the ledger."""
        return f"start {what} {self.version}"

    def is_paid(self, ledger: Ledger) -> bool:
        """Whether something was bought under this reading."""
        return any(ledger.find(self.request(what)) is not None for what in PURCHASES)


@contextmanager
def ledger_of(
    data: Path, target: Path, budget: Budget, neighbours: Neighbours, environ: Mapping[str, str]
) -> Iterator[DurableLedger]:
    """The ledger of a start of a file, where the declaration `target` will look for it.

    Raises a LedgerError where there is none and traces tell that there was one (`ledger.traces`).
    """
    base = target.resolve().parent
    seen = witness_place("", base=base, environ=environ)
    ledger = DurableLedger(
        ledger_place("", base=base, environ=environ),
        table_name(data),
        budget,
        promise=promise_to(Protect.PRIVACY, neighbours),
        witness=None if seen is None else Witness(seen),
    )
    with closing(ledger):
        check_not_lost(ledger, base=base, file=target)
        yield ledger


def own_files(data: Path, target: Path, environ: Mapping[str, str]) -> list[Path]:
    """What a start lives on, there or not yet, beside the declaration `target`: no output may be one of them."""
    base = target.resolve().parent
    ledger = ledger_place("", base=base, environ=environ)
    found = [data, copy_place(target), record_place(target)]
    if ledger.get_backend_name() == "sqlite":
        found += [Path(f"{ledger.database}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
    witness = witness_place("", base=base, environ=environ)
    return found if witness is None else [*found, witness]


def table_name(data: Path) -> str:
    """The name of the table that a file holds."""
    return name_from(data.name.split(".")[0])


@contextmanager
def reading_for(spec: SourceSpec, ledger: Ledger, missing: Sequence[str] | None) -> Iterator[StartReading]:
    """How the file is read: as it was paid for, where no words for missing values are given; else as told now.

    What an earlier version bought is found again only by the reading that it was made with. All purchases of that
    start and its declaration then have that reading, so that no answer is taken for one about other rows.
    """
    words = MISSING_WORDS if missing is None else missing
    named, unnamed = _named_columns(spec)
    with closing(open_source(spec, base=Path(), columns=named, candid=True)) as source:
        now = StartReading(spec, ColumnReader(source, missing=words), unnamed=unnamed)
        if missing is None and not now.is_paid(ledger):
            before = replace(spec, undecodable=Undecodable.DROP)
            with closing(open_source(before, base=Path(), columns=named, candid=True)) as older:
                former = StartReading(before, ColumnReader(older), former=True, unnamed=unnamed)
                if former.is_paid(ledger) and former.version != now.version:
                    yield former
                    return
        yield now


def _named_columns(spec: SourceSpec) -> tuple[list[str] | None, Sequence[int]]:
    """The columns of a file of text without last ones that the header has no name for, and the places of these.

    There is one where each line ends with a delimiter. Whether values stand there is no matter: that is private.
    All columns are told as None.
    """
    path = Path(spec.location)
    header = read_header(path, spec.delimiter, spec.encoding) if is_text(path) else []
    named = header[: max((i for i, name in enumerate(header, 1) if name.strip()), default=0)]
    return (named, range(len(named) + 1, len(header) + 1)) if 0 < len(named) < len(header) else (None, ())


def spec_of(data: Path, *, table: str, encoding: str, delimiter: str | None) -> SourceSpec:
    """How the file is read; of a file of text, by its first line."""
    place = str(data.resolve())
    if not is_text(data):
        if encoding != "utf-8" or delimiter is not None:
            raise SourceError(f"{data.name} is no file of text: leave --encoding and --delimiter out")
        return SourceSpec(place, table)
    if table:
        raise SourceError(f"{data.name} holds one table: leave --table out")
    found = {mark: read_header(data, mark, encoding) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: len(found[mark])) if delimiter is None else delimiter
    if any(map(reads_as_value, found.get(best) or read_header(data, best, encoding))):
        raise SourceError(
            f"the first line of {data.name} has numbers or days where names of columns are expected: if it is "
            "a row, put a line with the names before it. What stands there becomes public; nothing was spent"
        )
    return SourceSpec(place, delimiter=best, encoding=encoding, undecodable=Undecodable.REPLACE)
