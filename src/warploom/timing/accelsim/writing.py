"""Writes the trace of a launch as one of machine code in Accel-Sim's format, from the record of the
launch: the instructions that each warp executes, with their lanes, registers and addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Space
from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.timing.accelsim.files import KernelHead, TracedBlock
from warploom.timing.accelsim.lines import MOST_SOURCES, TracedInstruction, width_of
from warploom.timing.machinecode.record import MachineCodeRecord
from warploom.timing.machinecode.work import loads_or_stores
from warploom.timing.record.record import Record
from warploom.timing.records import StreamEntry, TimedAccess, WarpStream

ZERO_REGISTER = 255
"""The number of RZ."""


class LaunchTrace:
    """Generates the blocks of a launch's trace. `ptx_record` is its record of PTX, with the active
    lanes of each entry, `machine_record` that of its machine code; `origin` is added to its
    addresses of global and constant memory."""

    def __init__(
        self,
        head: KernelHead,
        listing: Listing,
        ptx_record: Record,
        machine_record: MachineCodeRecord,
        origin: int,
    ) -> None:
        """Stores the arguments. `listing`: the machine code, of which the trace names instructions.
        `origin`: the first address of global and constant memory in the trace. `ptx_record` must
        have been made with masks, which is not checked here."""
        self._head, self._listing, self._ptx_record = head, listing, ptx_record
        self._machine_record, self._origin = machine_record, origin

    def blocks(self) -> Iterator[TracedBlock]:
        """Yields the recorded blocks (of a sampled launch, its first ones) in the order of their
        numbers, each with the instructions of all its warps."""
        launch = self._ptx_record.launch
        for block in range(self._ptx_record.blocks):
            first = block * launch.warps_per_block
            warps = {
                warp: tuple(self._warp(first + warp)) for warp in range(launch.warps_per_block)
            }
            yield TracedBlock(launch.block_index(block), warps)

    def _warp(self, warp: int) -> Iterator[TracedInstruction]:
        """Yields the instructions of a warp in the order of execution, each with the lanes that
        execute it: those of the entry of the PTX record that its span (a basic block of the machine
        code) belongs to, without lanes that have exited. The last instruction of a span, if it is a
        guarded branch, has the lanes that branch; if it is an EXIT that spans follow, the lanes
        that are in neither the next span nor, where none of them is there, any later one."""
        record, masks = self._machine_record.record, self._ptx_record.masks
        assert masks is not None
        warp_words: list[int] = record.warps[warp].tolist()
        stream = warp_words.pop(0)
        first, stop = (int(word) for word in record.streams[stream])
        first_entry = int(self._ptx_record.streams[stream, WarpStream.entries])
        entries: list[list[int]] = record.entries[first : stop + 1].tolist()
        last_entry = int(self._ptx_record.streams[stream, WarpStream.stop])
        # Lanes that any later entry has: after an EXIT the others have ended.
        later_masks = np.append(
            np.bitwise_or.accumulate(masks[first_entry:last_entry][::-1])[::-1], 0
        )
        positions: list[int] = self._machine_record.path_positions[first:stop].tolist()
        # A mask of all lanes; an EXIT removes those that it ends.
        alive = -1
        for number, position in enumerate(positions):
            block, access = entries[number]
            mask = int(masks[first_entry + position]) & alive
            lane_accesses = self._lane_accesses(
                access, entries[number + 1][StreamEntry.access], warp_words
            )
            start, last = self._machine_record.starts[block], self._machine_record.stops[block] - 1
            for index in range(start, last):
                yield from self._executed(index, mask, lane_accesses.get(index, []))
            executing = mask
            if number + 1 < len(positions):
                next_mask = int(masks[first_entry + positions[number + 1]])
                executing = self._taken(
                    last, mask, entries[number + 1][StreamEntry.block], next_mask
                )
                if self._listing.instructions[last].name == "EXIT":
                    executing = mask & ~(
                        next_mask if mask & next_mask else int(later_masks[position + 1])
                    )
                    alive &= ~executing
            yield from self._executed(last, executing, lane_accesses.get(last, []))

    def _taken(self, index: int, mask: int, following: int, next_mask: int) -> int:
        """Returns the lanes of `mask` that execute instruction `index` of the listing, the last of
        a span: of a branch with a guard and targets those that branch, of others all. `following`
        is the number of the span that the warp executes next, with the lanes `next_mask`: if it
        begins at a target, these branch; else they do not, and the others of `mask` do."""
        instruction = self._listing.instructions[index]
        if not instruction.guard or not instruction.targets:
            return mask
        is_taken = (
            self._listing.instructions[self._machine_record.starts[following]].offset
            in instruction.targets
        )
        return mask & (next_mask if is_taken else ~next_mask)

    def _executed(
        self, index: int, mask: int, lane_accesses: Sequence[tuple[int, int, tuple[int, ...]]]
    ) -> Iterator[TracedInstruction]:
        """Yields the lines of one execution of instruction `index` of the listing. `lane_accesses`
        are the accesses that it made, each as the bytes of a lane, the mask of lanes, and their
        addresses in the trace: a line for each, with its own mask. Without any there is one line
        without addresses, with `mask`, or with mask 0 for an instruction that accesses memory."""
        pc, opcode, targets, sources, width = self._texts[index]
        for size, lanes, addresses in lane_accesses:
            yield TracedInstruction(pc, lanes, targets, opcode, sources, size, addresses)
        if not lane_accesses:  # an access that no lane makes
            yield TracedInstruction(pc, 0 if width else mask, targets, opcode, sources, width)

    def _lane_accesses(
        self, first: int, stop: int, warp_words: Sequence[int]
    ) -> dict[int, list[tuple[int, int, tuple[int, ...]]]]:
        """Returns the accesses of an entry of the stream, those from number `first` to `stop`
        (exclusive) of the machine code's record, by the index of their instruction in the listing,
        in order. Each has the bytes of a lane, the mask of lanes, and their addresses in the trace,
        which include the base of the space (`_bases`). `warp_words` are the warp's base addresses
        by site; in local memory they do not count."""
        accesses: dict[int, list[tuple[int, int, tuple[int, ...]]]] = defaultdict(list)
        record = self._machine_record.record
        rows: list[list[int]] = record.accesses[first:stop].tolist()
        for access in rows:
            size, pattern, space = record.patterns.lanes_of(access[TimedAccess.pattern])
            base = (
                warp_words[access[TimedAccess.site]] + access[TimedAccess.delta]
                if space is not Space.LOCAL
                else 0
            )
            base += self._bases.get(space, 0)
            addresses = tuple([base + offset for offset in pattern.offsets])
            accesses[access[TimedAccess.instruction]].append((size, pattern.lanes, addresses))
        return accesses

    @cached_property
    def _bases(self) -> dict[Space, int]:
        """Returns, by space, the address at which the space begins in the trace, which is added to
        the record's addresses: `origin` for global and constant memory, the head's base for local.
        Spaces that are absent, shared memory among them, have 0."""
        return {
            Space.GLOBAL: self._origin,
            Space.CONST: self._origin,
            Space.LOCAL: self._head.local_base,
        }

    @cached_property
    def _texts(self) -> list[tuple[int, str, tuple[int, ...], tuple[int, ...], int]]:
        """Returns, by instruction of the listing, what its trace lines have in common (`_text`):
        offset, opcode, destinations, sources, and the bytes of a lane (0 if it does not access
        memory)."""
        return [_text(instruction) for instruction in self._listing.instructions]


def _text(
    instruction: MachineInstruction,
) -> tuple[int, str, tuple[int, ...], tuple[int, ...], int]:
    """Returns the offset, opcode, destinations and sources of an instruction, and the bytes of a
    lane by its opcode (0 if it does not access memory). There is at most one destination: the first
    operand's register if the instruction writes it, which is then no source; else the first written
    register, if any. The sources are the first general register (or RZ) of each other operand, at
    most MOST_SOURCES, as Accel-Sim accepts; predicates and uniform registers are left out."""
    destinations = [_number(name) for name in instruction.writes if name[0] == "R"]
    destination = _first_register(instruction, 0)
    sources: list[int] = []
    begins_with_target = bool(destinations) and destination in destinations
    for index in range(int(begins_with_target), len(instruction.operands)):
        register = _first_register(instruction, index)
        if register is not None:
            sources.append(register)
    targets = (
        (destination,)
        if begins_with_target and destination is not None
        else tuple(destinations[:1])
    )
    width = width_of(instruction.opcode) if loads_or_stores(instruction.name) else 0
    return instruction.offset, instruction.opcode, targets, tuple(sources[:MOST_SOURCES]), width


def _first_register(instruction: MachineInstruction, index: int) -> int | None:
    """Returns the number of the first general register (R) that operand `index` names,
    ZERO_REGISTER if it names none and is RZ; None for other operands and where there is no such
    operand."""
    if index >= len(instruction.operands):
        return None
    operand = instruction.operands[index]
    names = [name for name in operand.registers if name[0] == "R"]
    if names:
        return _number(names[0])
    return ZERO_REGISTER if operand.text.lstrip("-~!|+").startswith("RZ") else None


def _number(name: str) -> int:
    """Returns the number in the name of a register, which follows one letter: 5 for `R5`."""
    return int(name[1:])
