"""The rows of a large file of text: how many there are, and some of them drawn at random, in bounded memory.

Both are the engine's rows, as every other look sees them. Where the text is plain, its records are found without
reading fields (`text_records`), and the engine reads those alone that were drawn, or that are damaged; elsewhere
it reads all of them. What was drawn is held in columns, packed, in a file without a name.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np

from understudy.errors import SourceError
from understudy.table.file_view import identifier, quoted
from understudy.table.nameless_file import NamelessFile
from understudy.table.text_reader import FORGIVING, UNPACKABLE, TextReader
from understudy.table.text_records import NotPlainError, PlainRecords, RecordBlock

MEMORY = 400
"""Megabytes that the engine may hold of a file that it reads through; it holds all of it, where it may."""

PIECEWISE = f"{FORGIVING}, buffer_size = {32 << 20}"
"""The same rows as every look sees, of a file that is read in smaller pieces than is usual."""

HELD_TOGETHER = 1 << 20
"""Values that are packed together: fewer take more space, more of them more memory while they are packed."""

LEAST_TOGETHER = 2048
"""Rows that the engine packs together at least."""


@dataclass(frozen=True)
class TextRows:
    """The rows of one file of text; `wanted` are the columns that are read, `opened` gives its bytes in UTF-8."""

    reader: TextReader
    wanted: Sequence[str]
    opened: Callable[[], IO[bytes]]
    engine: Any

    def number(self) -> int:
        """The number of rows, as the engine's `count(*)` has it."""
        with ExitStack() as kept:
            try:
                rows, odd = self._plain_number(kept)
            except NotPlainError:
                rows, odd = 0, self.reader
            return rows if odd is None else rows + self._by_engine(odd)

    def _plain_number(self, kept: ExitStack) -> tuple[int, TextReader | None]:
        """Rows of plain text, and a file of those records of which the engine has to say whether they are rows."""
        rows, odd = 0, None
        for block, first, head in self._blocks():
            if block.is_utf8:
                rows += int(np.count_nonzero(~block.blank[first:]))
                continue
            if odd is None:
                odd = NamelessFile()
                kept.callback(odd.close)
                odd.file.write(head)
            odd.file.write(block.text[int(block.starts[first]) :])
        if odd is None:
            return rows, None
        odd.file.flush()
        return rows, self.reader.at(odd.place)

    def _by_engine(self, reader: TextReader) -> int:
        return int(self._read(f"SELECT count(*) FROM {reader.rows(PIECEWISE)}")[0][0])

    def drawn(self, share: float) -> NamelessFile:
        """A Parquet file of rows, each of which is taken with the probability `share` by itself.

        The coins are the machine's own, and nothing rests on them: what is told of the rows has the noise of all.
        """
        with ExitStack() as kept:
            rows, chosen = self.reader.rows(PIECEWISE), ""
            if share < 1:
                try:
                    rows = self._plain_sample(share, kept).rows(PIECEWISE)
                except NotPlainError:
                    chosen = f" USING SAMPLE {100 * share:.9f} PERCENT (bernoulli)"
            columns = ", ".join(map(identifier, self.wanted))
            together = max(HELD_TOGETHER // len(self.wanted), LEAST_TOGETHER)
            packed = NamelessFile()
            self._read(
                f"COPY (SELECT {columns} FROM {rows}{chosen}) TO {quoted(packed.place)} "
                f"(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {together}, USE_TMP_FILE false)"
            )
            return packed

    def _plain_sample(self, share: float, kept: ExitStack) -> TextReader:
        """A file of text with the records that were drawn, and the header."""
        coins = np.random.default_rng()
        file = NamelessFile()
        kept.callback(file.close)
        for i, (block, first, head) in enumerate(self._blocks()):
            if i == 0:
                file.file.write(head)
            which = coins.random(block.blank.size) < share
            which[:first] = False
            file.file.write(block.taken(which))
        file.file.flush()
        return self.reader.at(file.place)

    def _blocks(self) -> Iterator[tuple[RecordBlock, int, bytes]]:
        """The records block by block, the first of each that is a row, and the header's text.

        Raises a NotPlainError where only the engine can tell them: also where there is one column, in which a
        blank line is a row.
        """
        if len(self.reader.names) < 2:
            raise NotPlainError
        first, head = int(self.reader.header), b""
        try:
            with self.opened() as file:
                for i, block in enumerate(PlainRecords(self.reader.delimiter).blocks(file)):
                    if i == 0 and self.reader.header:
                        head = bytes(block.text[: int(block.starts[1])])
                        if block.blank[0] or not head.endswith(b"\n"):
                            raise NotPlainError
                    yield block, first if i == 0 else 0, head
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise SourceError(UNPACKABLE) from None

    def _read(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement that reads the file through, in little memory unless it needs more of it.

        One thread reads: others would only wait, and burn their core while they do.
        """
        import duckdb

        usual = f"SET memory_limit = '{self._usual_memory}'"  # RESET would only say that it is as it was
        self.engine.execute(f"SET memory_limit = '{MEMORY}MB'")
        self.engine.execute("SET threads = 1")
        try:
            return self.engine.execute(statement).fetchall()
        except duckdb.OutOfMemoryException:
            self.engine.execute(usual)
            return self.engine.execute(statement).fetchall()
        finally:
            self.engine.execute("RESET threads")
            self.engine.execute(usual)

    @cached_property
    def _usual_memory(self) -> str:
        return str(self.engine.execute("SELECT current_setting('memory_limit')").fetchone()[0])
