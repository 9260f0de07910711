"""How a store keeps an answer: as it was released, or compressed where it is long.

An entry holds the hash of the answer as it was released. What has that hash is the answer itself; else it must be
compressed, and unpack to what has it.
"""

from __future__ import annotations

import zlib
from typing import Any

from understudy.ledger.chain import answer_hash

LONG = 1 << 10
"""Answers of fewer bytes are kept as they are."""

PACKED = b"\0zlib\n"
"""What a compressed answer begins with; no released text does."""

MAX_BYTES = 1 << 31
"""No answer is longer; bytes that unpack to more are not read."""


def packed(answer: bytes) -> bytes:
    """The bytes to keep for an answer. Numbers written in digits take less than half of their length."""
    if len(answer) < LONG:
        return answer
    short = PACKED + min(_deflated(answer, strategy) for strategy in _STRATEGIES)[1]
    return short if len(short) < len(answer) else answer


_STRATEGIES = (zlib.Z_HUFFMAN_ONLY, zlib.Z_DEFAULT_STRATEGY)
"""The digits of noise repeat nothing, and are coded best one by one; other answers repeat much."""


def _deflated(answer: bytes, strategy: int) -> tuple[int, bytes]:
    """How long it is, and what it is."""
    writer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    found = writer.compress(answer) + writer.flush()
    return len(found), found


def released(kept: Any, wanted: str | None) -> bytes | None:
    """The answer whose hash is `wanted`, from what was kept for it; None where it is another one."""
    if not isinstance(kept, bytes):
        return None
    if answer_hash(kept) == wanted:
        return kept
    if not kept.startswith(PACKED):
        return None
    reader = zlib.decompressobj()
    try:
        answer = reader.decompress(kept[len(PACKED) :], MAX_BYTES)
    except (zlib.error, MemoryError):
        return None
    return answer if reader.eof and answer_hash(answer) == wanted else None
