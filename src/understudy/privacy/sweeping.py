"""Sweeps over all blocks of joint accounting, one after the other, before the blocks are put together again.

A sweep takes every block in turn (`message_passing`), and most blocks are small. So their numbers are laid out in
one row for each kind, swept as often as is wanted, and cut into blocks once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from understudy.privacy import message_passing, soft_message_passing
from understudy.privacy.clique_block import MAX_ATTRIBUTES, Attribute, Clique, CliqueBlock, Units

_NONE, _NOBODY = np.zeros(0, np.int64), np.zeros(0, np.bool_)


class Sweeping:
    """The blocks and beliefs of a state while they are swept; the state itself keeps its own.

    Promise     After any sweeps `blocks` and `beliefs` are those that sweeping each block in turn gives, to the
                unit. `raised` is what everybody pays more, since counts were divided anew.
    Why         All numbers are copied before they are changed, and those of a block lie side by side.
    Cost        O(numbers of the blocks) for each sweep, and to lay them out once. `fast` takes the compiled loop,
                which finds the same numbers; `soft` sweeps are those of `soft_message_passing`.
    """

    def __init__(
        self,
        blocks: Mapping[Clique, CliqueBlock],
        beliefs: Mapping[Attribute, Units],
        *,
        fast: bool,
        soft: bool = False,
    ) -> None:
        self._before = blocks
        self._fast, self._soft = fast, soft
        self._divided = False
        self.raised = 0
        self._places, start = dict[Attribute, tuple[int, int]](), 0
        for attribute, belief in beliefs.items():
            self._places[attribute], start = (start, len(belief)), start + len(belief)
        described, tables, labels, messages = list[Any](), list[Any](), list[Any](), list[Any]()
        prices, weights, members = [_NONE], [_NONE], [_NOBODY]
        for clique, block in blocks.items():
            shape, counts, some = block.table.shape, block.counts, len(block.counts.prices)
            missing = MAX_ATTRIBUTES - len(shape)
            none, one = (0,) * missing, (1,) * missing
            starts, widths = zip(*[self._places[attribute] for attribute in clique], strict=True)
            described.append((len(shape), *shape, *one, some, *widths, *none, *starts, *none))
            tables.append(block.table.reshape(-1))
            labels += block.labels
            messages += block.messages
            if some:
                prices.append(counts.prices)
                weights.append(counts.weights)
                members += [member.reshape(-1) for member in counts.members]
                members += [np.ones(some, np.bool_)] * missing
        cliques = np.array(described, np.int64)
        sizes, classes = cliques[:, 1:4].prod(axis=1), cliques[:, 1:4].sum(axis=1)
        room = int((2 * sizes + 4 * classes if soft else sizes + 2 * classes).max())
        self._cliques = cliques.reshape(-1)
        self._tables, self._labels, self._messages = (
            np.concatenate(one) for one in (tables, labels, messages)
        )
        self._beliefs = np.concatenate(list(beliefs.values()))
        self._prices, self._weights = np.concatenate(prices), np.concatenate(weights)
        self._members = np.concatenate(members)
        self._largest, self._memory = np.zeros(len(blocks), np.int64), np.zeros(room, np.int64)

    def sweep(self, *, divide: bool, shift: int = 0) -> None:
        """New messages for each block in turn, and new divisions of its counts before, if `divide` is set.

        `shift` is the size of a soft sweep's steps.
        """
        fixed = (self._cliques, self._labels, self._prices, self._members)
        changed = (self._tables, self._messages, self._beliefs, self._weights, self._largest)
        # The compiled loop works on the arrays themselves; without a compiler lists are quicker, and are put back.
        cliques, labels, prices, members = fixed if self._fast else [array.tolist() for array in fixed]
        written: Any = changed if self._fast else [array.tolist() for array in changed]
        tables, messages, beliefs, weights, largest = written
        memory = self._memory if self._fast else self._memory.tolist()
        counts = prices, weights, members
        given = (cliques, tables, labels, messages, beliefs, *counts, largest, memory, int(divide))
        if self._soft:
            self.raised += soft_message_passing.sweep_with(given, shift, fast=self._fast)
        else:
            loop: Any = message_passing.compiled() if self._fast else message_passing.sweep
            self.raised += int(loop(*given))
        if not self._fast:
            for array, numbers in zip(changed, written, strict=True):
                array[:] = numbers
        self._divided = self._divided or divide

    def blocks(self) -> dict[Clique, CliqueBlock]:
        """The blocks after the sweeps. What a sweep leaves as it is, is that of the block before."""
        found, table, count, cell = dict[Clique, CliqueBlock](), 0, 0, 0
        for (clique, block), largest in zip(self._before.items(), self._largest.tolist(), strict=True):
            messages = list[Units]()
            for attribute in clique:
                width = self._places[attribute][1]
                messages.append(self._messages[cell : cell + width])
                cell += width
            numbers, counts = block.table, block.counts
            if self._divided:
                some, size = len(counts.prices), numbers.size
                if some:
                    numbers = self._tables[table : table + size].reshape(numbers.shape)
                    counts = counts.divided(self._weights[count : count + some])
                table, count = table + size, count + some
            found[clique] = CliqueBlock(numbers, block.labels, tuple(messages), largest, counts)
        return found

    def beliefs(self) -> dict[Attribute, Units]:
        """The beliefs after the sweeps."""
        return {
            attribute: self._beliefs[start : start + width]
            for attribute, (start, width) in self._places.items()
        }


@lru_cache(maxsize=1)
def load() -> None:
    """Load the compiled loops, which takes half a second of CPU time, before anybody waits for a sweep."""
    none, nobody = _NONE.copy(), _NOBODY.copy()
    given = (_NONE, none, _NONE, none, none, _NONE, none, nobody, none, none, 0)
    message_passing.compiled()(*given)
    soft_message_passing.sweep_with(given, soft_message_passing.LEAST_SHIFT, fast=True)
