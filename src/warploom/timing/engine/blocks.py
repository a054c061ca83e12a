"""Says which SM gets which block: in order, where there is room. Clusters that the device holds all
at once are on SMs side by side, as `simt.placement` has them.

SMs run apart within a quantum, so each has blocks reserved for those of its own that end in it.
What is reserved and was not needed goes to whoever has room, once no other blocks are left."""

from __future__ import annotations

import numpy as np

from warploom.machine.launch import Launch
from warploom.timing import layout as w
from warploom.timing.engine.state import Setting, Words


class Dealer:
    """Deals the blocks of a launch, those from 0 to `blocks`, to its SMs."""

    def __init__(self, setting: Setting, sms: Words, blocks: int, launch: Launch) -> None:
        self._p, self._sms, self._blocks = setting.parameters, sms, blocks
        self._homes = self._placed(launch)
        self._next = 0
        self._done = np.zeros(len(sms), np.int64)

    def _placed(self, launch: Launch) -> Words | None:
        """Return the SM of each block, where the device holds all clusters at once; else None."""
        if launch.cluster_blocks == 1 or self._blocks > len(self._sms) * self._p[w.BLOCK_SLOTS]:
            return None
        homes = np.array([launch.sm_of(block) for block in range(self._blocks)], np.int64)
        counts = np.bincount(homes, minlength=len(self._sms))
        fits = len(counts) == len(self._sms) and counts.max() <= self._p[w.BLOCK_SLOTS]
        return homes if fits else None

    def state(self) -> Words:
        """Returns how far it is: the next block, and how many of each SM's had ended."""
        return np.array([self._next, *self._done], np.int64)

    def restore(self, state: Words) -> None:
        """Go on from there."""
        self._next, self._done = int(state[0]), state[1:].copy()

    def begun(self) -> set[int]:
        """Returns the blocks that have been launched: dealt, and not reserved any more."""
        at, ring = int(self._p[w.AT_RESERVED]), int(self._p[w.RESERVED])
        begun = set(range(self._next))
        for row in self._sms[self._sms[:, w.RESERVED_COUNT] > 0]:
            head, count = int(row[w.RESERVED_HEAD]), int(row[w.RESERVED_COUNT])
            begun -= {int(row[at + (head + index) % ring]) for index in range(count)}
        return begun

    def deal(self) -> None:
        """Before a quantum: reserve blocks for every SM."""
        sms = self._sms
        if self._next == self._blocks and not sms[:, w.RESERVED_COUNT].any():
            return
        free = self._p[w.BLOCK_SLOTS] - sms[:, w.LIVE_BLOCKS]
        ended = sms[:, w.BLOCKS_DONE] - self._done
        self._done = sms[:, w.BLOCKS_DONE].copy()
        if self._next == 0 and self._homes is not None:
            self._reserve(self._homes, np.arange(self._blocks))
            self._next = self._blocks
        elif self._next < self._blocks:
            wanted = free + np.maximum(1, ended) - sms[:, w.RESERVED_COUNT]
            order = _in_turn(np.clip(wanted, 0, self._p[w.BLOCK_SLOTS]))
            order = order[: self._blocks - self._next]
            self._reserve(order, np.arange(self._next, self._next + len(order)))
            self._next += len(order)
        elif (free > 0).any():
            left = np.sort(np.array(self._take_back(), np.int64))
            first = _in_turn(np.maximum(free, 0))
            every = np.concatenate([first, np.arange(len(left)) % len(sms)])
            self._reserve(every[: len(left)], left)

    def _reserve(self, order: Words, blocks: Words) -> None:
        """Append blocks to what is reserved: each to the SM that `order` has at its place."""
        at, ring = int(self._p[w.AT_RESERVED]), int(self._p[w.RESERVED])
        by_sm = np.argsort(order, kind="stable")
        counts = np.bincount(order, minlength=len(self._sms))
        ahead = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = order[by_sm]
        filled = self._sms[chosen, w.RESERVED_HEAD] + self._sms[chosen, w.RESERVED_COUNT]
        self._sms[chosen, at + (filled + ahead) % ring] = blocks[by_sm]
        self._sms[:, w.RESERVED_COUNT] += counts

    def _take_back(self) -> list[int]:
        """Take back all that is reserved."""
        at, ring = int(self._p[w.AT_RESERVED]), int(self._p[w.RESERVED])
        found: list[int] = []
        for row in self._sms[self._sms[:, w.RESERVED_COUNT] > 0]:
            head, count = int(row[w.RESERVED_HEAD]), int(row[w.RESERVED_COUNT])
            found += [int(row[at + (head + index) % ring]) for index in range(count)]
        self._sms[:, w.RESERVED_COUNT] = 0
        return found


def _in_turn(counts: Words) -> Words:
    """Numbers from 0 on, each as often as `counts` says, one round after the other."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    rounds = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers[np.lexsort((numbers, rounds))]
