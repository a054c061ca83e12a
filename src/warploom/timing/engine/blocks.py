"""Assigns thread blocks to the SMs of the timing model: in order, to SMs that have free slots. If
the device can hold all clusters at once, each is placed on neighboring SMs (`simt.placement`). If
the kernel has read `%smid`, its blocks stay on the SMs that it was shown.

SMs are simulated independently within a quantum, so each has blocks reserved for those of its own
that may end in it. Reserved blocks that were not needed go to any SM with a free slot once no
others are left.
"""

from __future__ import annotations

import numpy as np

from warploom.machine.launch import Launch
from warploom.timing.engine.state import EngineSetting, Words
from warploom.timing.records import SmState


class BlockDispatcher:
    """Reserves the first `blocks` blocks of a launch for its SMs, before each quantum (a number of
    cycles in which SMs run independently). An SM launches those reserved for it itself, as slots
    become free."""

    def __init__(
        self,
        setting: EngineSetting,
        sms: Words,
        blocks: int,
        launch: Launch,
        placement: Words | None,
    ) -> None:
        """Prepares to reserve blocks from block 0 on; reserves none yet. `setting`: the parameters
        of the engine; `sms`: the state of all SMs, one row each, in
        which reserved blocks are stored; `blocks`: how many blocks of `launch` are replayed, from
        the first; `placement`: the SM of each block, where the kernel has read it, else None. If
        all clusters fit on the device at once, their SMs are chosen here."""
        self._params, self._sms, self._blocks = setting.parameters, sms, blocks
        self._slots = self._slots_of_sms(launch)
        sms[:, SmState.block_slots] = self._slots
        self._sm_of_block = self._cluster_placement(launch)
        self._blocks_of_sm = self._known_blocks(placement)
        self._next = 0
        self._taken = np.zeros(len(sms), np.int64)
        self._done = np.zeros(len(sms), np.int64)

    def _slots_of_sms(self, launch: Launch) -> Words:
        """Returns how many slots for blocks of the launch each SM has: all that it holds, or those
        that other kernels leave."""
        count, most = len(self._sms), int(self._params.block_slots)
        if launch.placement is None:
            return np.full(count, most, np.int64)
        return np.minimum(most, np.bincount(launch.sms_of_slots(), minlength=count)[:count])

    def _cluster_placement(self, launch: Launch) -> Words | None:
        """Returns the SM of each replayed block (`Launch.sm_of`); None without clusters of several
        blocks, or if some SM would get more blocks than it has slots."""
        if launch.cluster_blocks == 1 or self._blocks > len(self._sms) * self._params.block_slots:
            return None
        sm_of_block = np.array([launch.sm_of(block) for block in range(self._blocks)], np.int64)
        counts = np.bincount(sm_of_block, minlength=len(self._sms))
        fits = len(counts) == len(self._sms) and counts.max() <= self._params.block_slots
        return sm_of_block if fits else None

    def _known_blocks(self, placement: Words | None) -> list[Words] | None:
        """Returns, for each SM, the numbers of its replayed blocks, in ascending order. `placement`
        has the SM of each block, by its number. Returns None if it is None, or if it has one of
        the first `blocks` blocks on an SM that is not modelled (from the number of SMs on)."""
        if placement is None or placement[: self._blocks].max(initial=0) >= len(self._sms):
            return None
        placed = placement[: self._blocks]
        return [np.flatnonzero(placed == sm) for sm in range(len(self._sms))]

    def state(self) -> Words:
        """Returns the state as words: the next block, and how many blocks of each SM had ended;
        if the SMs of blocks are known, how many of each have been reserved."""
        return np.array([self._next, *self._done, *self._taken], np.int64)

    def restore(self, state: Words) -> None:
        """Restores a state that `state` returned."""
        sms = len(self._sms)
        # They follow from the launch; states of older versions have no word for them.
        self._sms[:, SmState.block_slots] = self._slots
        self._next, self._done = int(state[0]), state[1 : 1 + sms].copy()
        taken = state[1 + sms :]  # states of older versions end before
        self._taken = taken.copy() if len(taken) else np.zeros(sms, np.int64)

    def launched_blocks(self) -> set[int]:
        """Returns the numbers of the blocks that have been launched on an SM, whether or not they
        have ended: all that were reserved for one so far, less those that still are."""
        base, ring = (int(self._params.at_reserved), int(self._params.reserved))
        launched = set(range(self._next))
        if self._blocks_of_sm is not None:
            taken = zip(self._blocks_of_sm, self._taken.tolist(), strict=True)
            launched = {int(block) for blocks, count in taken for block in blocks[:count]}
        for sm in self._sms[self._sms[:, SmState.reserved_count] > 0]:
            head, count = int(sm[SmState.reserved_head]), int(sm[SmState.reserved_count])
            launched -= {int(sm[base + (head + index) % ring]) for index in range(count)}
        return launched

    @property
    def has_reserved_all(self) -> bool:
        """Returns whether nothing is left to do: all blocks were reserved, and have begun."""
        return self._next == self._blocks and not self._sms[:, SmState.reserved_count].any()

    def reserve_blocks(self) -> None:
        """Reserves blocks for every SM, before a quantum. An SM gets as many as it has free slots,
        plus as many as ended on it in the last quantum (at least one), less those reserved already,
        and at most as many as it has slots. SMs get them in turn, in the order of the blocks'
        numbers. Blocks whose SMs are known wait for these. Clusters that fit all at once are placed
        as a whole before the first quantum instead. Once no other blocks are left, and an SM has
        free slots, all reserved blocks are distributed anew, to free slots first."""
        if self.has_reserved_all:
            return
        sms = self._sms
        slots = sms[:, SmState.block_slots]
        free = slots - sms[:, SmState.live_blocks]
        ended = sms[:, SmState.blocks_done] - self._done
        self._done = sms[:, SmState.blocks_done].copy()
        wanted = free + np.maximum(1, ended) - sms[:, SmState.reserved_count]
        wanted = np.clip(wanted, 0, slots)
        if self._blocks_of_sm is not None:
            self._reserve_known(self._blocks_of_sm, wanted)
        elif self._next == 0 and self._sm_of_block is not None:
            self._reserve(self._sm_of_block, np.arange(self._blocks))
            self._next = self._blocks
        elif self._next < self._blocks:
            order = _round_robin(wanted)
            order = order[: self._blocks - self._next]
            self._reserve(order, np.arange(self._next, self._next + len(order)))
            self._next += len(order)
        elif (free > 0).any():
            # No other blocks are left: those reserved for busy SMs go to SMs with free slots.
            reclaimed = np.sort(np.array(self._reclaim_reserved(), np.int64))
            targets_first = _round_robin(np.maximum(free, 0))
            targets = np.concatenate([targets_first, np.arange(len(reclaimed)) % len(sms)])
            self._reserve(targets[: len(reclaimed)], reclaimed)

    def _reserve_known(self, blocks_of_sm: list[Words], wanted: Words) -> None:
        """Reserves the next blocks of each SM, as many as `wanted` of it."""
        left = np.array([len(blocks) for blocks in blocks_of_sm]) - self._taken
        counts = np.minimum(wanted, left)
        chosen = [
            blocks[taken : taken + count]
            for blocks, taken, count in zip(blocks_of_sm, self._taken, counts, strict=True)
        ]
        self._reserve(np.repeat(np.arange(len(counts)), counts), np.concatenate(chosen))
        self._taken += counts
        self._next += int(counts.sum())

    def _reserve(self, target_sms: Words, blocks: Words) -> None:
        """Appends `blocks[i]` to the ring buffer of reserved blocks of SM `target_sms[i]`, for each
        i; blocks of one SM in the order given."""
        base, ring = (int(self._params.at_reserved), int(self._params.reserved))
        by_sm = np.argsort(target_sms, kind="stable")
        # Stable, so that the blocks of an SM keep their order.
        counts = np.bincount(target_sms, minlength=len(self._sms))
        # The position of each block among those of its SM.
        rank = np.arange(len(target_sms)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = target_sms[by_sm]
        ends = self._sms[chosen, SmState.reserved_head] + self._sms[chosen, SmState.reserved_count]
        self._sms[chosen, base + (ends + rank) % ring] = blocks[by_sm]
        self._sms[:, SmState.reserved_count] += counts

    def _reclaim_reserved(self) -> list[int]:
        """Removes the reserved blocks of all SMs and returns their numbers, SM by SM."""
        base, ring = (int(self._params.at_reserved), int(self._params.reserved))
        reclaimed: list[int] = []
        for sm in self._sms[self._sms[:, SmState.reserved_count] > 0]:
            head, count = int(sm[SmState.reserved_head]), int(sm[SmState.reserved_count])
            reclaimed += [int(sm[base + (head + index) % ring]) for index in range(count)]
        self._sms[:, SmState.reserved_count] = 0
        return reclaimed


def _round_robin(counts: Words) -> Words:
    """Returns the numbers from 0 on, each as often as `counts` has it, one turn after the other:
    [2, 1] gives 0, 1, 0."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    turns = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers[np.lexsort((numbers, turns))]
