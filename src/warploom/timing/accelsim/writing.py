"""Makes the trace of a launch from its record as one of machine code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.ptx.ir import Space
from warploom.timing import layout as w
from warploom.timing.accelsim.files import KernelHead, TracedBlock
from warploom.timing.accelsim.lines import MOST_SOURCES, TracedInstruction, width_of
from warploom.timing.machinecode.record import Rerouted
from warploom.timing.machinecode.work import accesses_memory
from warploom.timing.record.records import Record

ZERO_REGISTER = 255
"""RZ, by its number."""


class LaunchTrace:
    """The blocks of a launch's trace. `before` is its record of PTX, with the active lanes of each
    entry, `after` that of its machine code; addresses of global memory count from `origin`."""

    def __init__(
        self, head: KernelHead, listing: Listing, before: Record, after: Rerouted, origin: int
    ) -> None:
        self._head, self._listing, self._before = head, listing, before
        self._after, self._origin = after, origin

    def blocks(self) -> Iterator[TracedBlock]:
        """Yield the blocks in the order of their numbers."""
        launch = self._before.launch
        for block in range(self._before.blocks):
            first = block * launch.warps_per_block
            warps = {
                warp: tuple(self._warp(first + warp)) for warp in range(launch.warps_per_block)
            }
            yield TracedBlock(launch.block_index(block), warps)

    def _warp(self, warp: int) -> Iterator[TracedInstruction]:
        """Yield the instructions of a warp."""
        record, masks = self._after.record, self._before.masks
        assert masks is not None
        places: list[int] = record.warps[warp].tolist()
        stream = places.pop(0)
        first, stop = (int(word) for word in record.streams[stream])
        begin = int(self._before.streams[stream, 0])
        entries: list[list[int]] = record.entries[first : stop + 1].tolist()
        end = int(self._before.streams[stream, 1])
        later = np.append(np.bitwise_or.accumulate(masks[begin:end][::-1])[::-1], 0)
        positions: list[int] = self._after.places[first:stop].tolist()
        alive = -1
        for number, position in enumerate(positions):
            block, access = entries[number]
            mask = int(masks[begin + position]) & alive
            lane_accesses = self._lane_accesses(access, entries[number + 1][w.ENTRY_ACCESS], places)
            start, last = self._after.starts[block], self._after.stops[block] - 1
            for index in range(start, last):
                yield from self._executed(index, mask, lane_accesses.get(index, []))
            taken = mask
            if number + 1 < len(positions):
                after = int(masks[begin + positions[number + 1]])
                taken = self._taken(last, mask, entries[number + 1][w.ENTRY_BLOCK], after)
                if self._listing.instructions[last].name == "EXIT":
                    taken = mask & ~(after if mask & after else int(later[position + 1]))
                    alive &= ~taken
            yield from self._executed(last, taken, lane_accesses.get(last, []))

    def _taken(self, index: int, mask: int, following: int, after: int) -> int:
        """Return the lanes of a mask that execute the last instruction of a stretch, which the
        stretch `following` comes behind with the lanes `after`: of a guarded branch, those that
        take it."""
        made = self._listing.instructions[index]
        if not made.guard or not made.targets:
            return mask
        goes = self._listing.instructions[self._after.starts[following]].offset in made.targets
        return mask & (after if goes else ~after)

    def _executed(
        self, index: int, mask: int, lane_accesses: Sequence[tuple[int, int, tuple[int, ...]]]
    ) -> Iterator[TracedInstruction]:
        """Yield the lines of an instruction: one, or one for each access that it made, which are
        bytes of a lane, lanes and their addresses."""
        pc, opcode, targets, sources, width = self._texts[index]
        for size, lanes, addresses in lane_accesses:
            yield TracedInstruction(pc, lanes, targets, opcode, sources, size, addresses)
        if not lane_accesses:  # an access that no lane makes
            yield TracedInstruction(pc, 0 if width else mask, targets, opcode, sources, width)

    def _lane_accesses(
        self, first: int, stop: int, places: Sequence[int]
    ) -> dict[int, list[tuple[int, int, tuple[int, ...]]]]:
        """Return the accesses of an entry by the instruction of the listing."""
        found: dict[int, list[tuple[int, int, tuple[int, ...]]]] = defaultdict(list)
        record = self._after.record
        rows: list[list[int]] = record.accesses[first:stop].tolist()
        for row in rows:
            size, lanes, offsets, space = record.patterns.lanes_of(row[w.A_PATTERN])
            base = places[row[w.A_SITE]] + row[w.A_DELTA] if space is not Space.LOCAL else 0
            base += self._bases.get(space, 0)
            addresses = (base + offset for lane, offset in enumerate(offsets) if lanes >> lane & 1)
            found[row[w.A_INSTRUCTION]].append((size, lanes, tuple(addresses)))
        return found

    @cached_property
    def _bases(self) -> dict[Space, int]:
        """Return what is added to addresses, by space."""
        return {
            Space.GLOBAL: self._origin,
            Space.CONST: self._origin,
            Space.LOCAL: self._head.local_base,
        }

    @cached_property
    def _texts(self) -> list[tuple[int, str, tuple[int, ...], tuple[int, ...], int]]:
        """Return, by instruction of the listing, its offset, opcode, destinations and sources, and
        the bytes of a lane, where it reaches memory."""
        return [_text(made) for made in self._listing.instructions]


def _text(made: MachineInstruction) -> tuple[int, str, tuple[int, ...], tuple[int, ...], int]:
    written = [_number(name) for name in made.writes if name[0] == "R"]
    target = _first_register(made, 0)
    sources: list[int] = []
    begins_with_target = bool(written) and target in written
    for place in range(int(begins_with_target), len(made.operands)):
        register = _first_register(made, place)
        if register is not None:
            sources.append(register)
    targets = (target,) if begins_with_target and target is not None else tuple(written[:1])
    width = width_of(made.opcode) if accesses_memory(made.name) else 0
    return made.offset, made.opcode, targets, tuple(sources[:MOST_SOURCES]), width


def _first_register(made: MachineInstruction, place: int) -> int | None:
    """Return the first register that an operand names; None where it names none."""
    if place >= len(made.operands):
        return None
    operand = made.operands[place]
    names = [name for name in operand.registers if name[0] == "R"]
    if names:
        return _number(names[0])
    return ZERO_REGISTER if operand.text.lstrip("-~!|+").startswith("RZ") else None


def _number(name: str) -> int:
    return int(name[1:])
