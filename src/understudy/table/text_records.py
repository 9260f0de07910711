"""Where the records of a file of text begin and end, found without reading their fields.

To count the rows of a large file, or to draw some of them at random, its fields need not be told apart: that is
what takes an engine's reader most of its time. A record ends with a line that ends outside quotation marks, and
every reader agrees on where that is as long as quotation marks are written as RFC 4180 says: around a whole
field, and doubled within it. Text that is written otherwise is not `plain`: `PlainRecords` says so, and what its
records are is then left to the engine. The records of plain text are the engine's (`tests/table` compares the
two on many small files); what is in one, damaged or not, is always the engine's to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
"""Bytes that are looked at together: as many as stay in a processor's own memory."""

LONGEST = 4 << 20
"""Bytes of a record; the engine drops longer ones than 16 MiB, and those near to that are left to it."""

LINE_FEED, RETURN, QUOTE = 10, 13, 34

Places = NDArray[np.int64]
Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


class NotPlainError(Exception):
    """The text is such that only the engine can tell where its records end. It never leaves this package."""


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Whole records that stand one after the other: record i is from `starts[i]` up to `starts[i + 1]` of `text`.

    The ends of lines belong to the records; `blank` says which of them have nothing else. The text is there until
    the next block is asked for.
    """

    text: memoryview
    starts: Places
    blank: Mask

    @property
    def is_utf8(self) -> bool:
        """Whether all of it is UTF-8."""
        if int(np.frombuffer(self.text, np.uint8).max()) < 128:
            return True
        import pyarrow as pa

        ends = pa.py_buffer(np.array([0, len(self.text)], np.int64))
        try:
            pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(self.text)).validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    def taken(self, which: Mask) -> bytes:
        """The text of some of the records."""
        starts, ends = self.starts[:-1][which].tolist(), self.starts[1:][which].tolist()
        return b"".join([self.text[start:end] for start, end in zip(starts, ends, strict=True)])


@dataclass(frozen=True, slots=True)
class PlainRecords:
    """The records of a file of plain text in UTF-8 whose fields stand between single ASCII characters."""

    delimiter: str

    def blocks(self, file: IO[bytes]) -> Iterator[RecordBlock]:
        """All records, about a megabyte at a time; raises a NotPlainError as soon as they cannot be told."""
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise NotPlainError
        held = memoryview(bytearray(LONGEST + BLOCK + 1))
        rest = 0
        while read := file.readinto(held[rest : rest + BLOCK]):  # type: ignore[attr-defined]  # files of bytes do
            block = self._block(held[: rest + read])
            if block.blank.size:
                yield block
            kept = held[len(block.text) : rest + read]
            rest = len(kept)
            if rest > LONGEST:
                raise NotPlainError
            held[:rest] = bytes(kept)
        if rest:  # a last line that does not end
            held[rest] = LINE_FEED
            block = self._block(held[: rest + 1])
            if len(block.text) <= rest or held[rest - 1] == RETURN:
                raise NotPlainError
            block.starts[-1] = rest
            yield RecordBlock(block.text[:rest], block.starts, block.blank)

    def _block(self, text: memoryview) -> RecordBlock:
        """The records that end in a text which begins with one."""
        codes = np.frombuffer(text, np.uint8)
        feeds, marks, returns = codes == LINE_FEED, codes == QUOTE, codes == RETURN
        if marks.any():
            feeds, faults = self._quoted(codes, feeds, marks, returns)
        else:
            faults = returns[:-1] & ~feeds[1:] if returns.any() else returns[:0]
        starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(feeds) + 1])
        size = int(starts[-1])
        lengths = np.diff(starts)
        if faults[:size].any() or (lengths.size and int(lengths.max()) > LONGEST):
            raise NotPlainError
        first = codes[starts[:-1]]
        blank = ((lengths == 1) & (first == LINE_FEED)) | ((lengths == 2) & (first == RETURN))
        return RecordBlock(text[:size], starts, blank)

    def _quoted(self, codes: Codes, feeds: Mask, marks: Mask, returns: Mask) -> tuple[Mask, Mask]:
        """Which ends of lines stand outside quotation marks, and which marks, or returns, are not as they should.

        The text begins outside, so that marks open and close in turn; a doubled one closes and opens again. One
        that opens stands at the beginning of a field or behind another mark, one that closes at the end of a field
        or before another mark. Sixty-four places are looked at together, as the bits of a word.
        """
        quote, feed = _bits(marks), _bits(feeds)
        inside = quote.copy()  # an odd number of marks up to here
        for shift in (1, 2, 4, 8, 16, 32):
            inside ^= inside << np.uint64(shift)
        carried = np.bitwise_xor.accumulate(inside >> np.uint64(63))
        inside[1:] ^= np.uint64(0) - carried[:-1]
        between = _bits(codes == ord(self.delimiter)) | feed | quote
        faults = quote & inside & ~_behind(between)
        back = _bits(returns)
        faults |= quote & ~inside & ~_before(between | back)
        faults |= back & ~_before(feed)
        return _places(feed & ~inside, codes.size), _places(faults, codes.size)


def _bits(places: Mask) -> Words:
    """A truth for each place as bits of words, the first place being the lowest bit of the first word."""
    packed = np.packbits(places, bitorder="little")
    return np.concatenate([packed, np.zeros(-packed.size % 8, np.uint8)]).view("<u8")


def _places(words: Words, size: int) -> Mask:
    return np.unpackbits(words.view(np.uint8), count=size, bitorder="little").view(np.bool_)


def _behind(words: Words) -> Words:
    """What holds of the place before, for each place; before the first one is the beginning of a record."""
    moved = words << np.uint64(1)
    moved[0] |= np.uint64(1)
    moved[1:] |= words[:-1] >> np.uint64(63)
    return moved


def _before(words: Words) -> Words:
    """What holds of the next place, for each place."""
    moved = words >> np.uint64(1)
    moved[:-1] |= words[1:] << np.uint64(63)
    return moved
