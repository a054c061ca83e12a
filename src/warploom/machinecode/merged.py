"""Finds the PTX accesses that ptxas merged into one wider machine access.

ptxas joins loads (or stores) of consecutive addresses into one instruction of 8 or 16 bytes, to
whose lines of PTX only one of them belongs: the others have no machine instruction. They stand in
one basic block, or are those of several turns of a loop that ptxas unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warploom.isa.instruction import Address, Immediate, Instruction, Register
from warploom.isa.kinds import OpKind
from warploom.machinecode.listing import MachineInstruction
from warploom.program.accesses import accesses, bytes_of
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program, Site
from warploom.program.uses import writes

_PLAIN = ("LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS")
_WIDTHS = {"64": 8, "128": 16, "256": 32}


@dataclass(frozen=True, slots=True)
class AccessExtent:
    """Describes the bytes that a PTX access touches in each lane: `size` bytes, `offset` bytes from
    an unknown `base`. Accesses with equal bases have the same operation, space and guard."""

    base: tuple[object, ...]
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Merged:
    """The PTX accesses for which one machine access of `width` bytes stands: those of a basic block
    of PTX, the one with the lowest address at position `first` of it, in so many turns of their
    loop."""

    first: int
    width: int
    turns: int


class Merging:
    """Finds the PTX accesses that ptxas merged into each machine access of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.offsets_in_blocks: dict[Site, tuple[int, int]] = {}
        """By PTX instruction the number of its block, the first of all copies, and its position in
        there."""
        self._extents: dict[int, dict[int, AccessExtent]] = {}
        for block in program.blocks:
            for index in range(block.start, block.stop):
                self.offsets_in_blocks.setdefault(
                    program.sites[index], (block.index, index - block.start)
                )

    def of(self, made: MachineInstruction, site: Site, taken: Iterable[Site]) -> Merged | None:
        """Returns what a machine instruction stands for that was made for a PTX instruction, where
        that is more; `taken` are those with machine instructions in the same basic block."""
        width = width_of(made)
        if not width:
            return None
        number, own = self.offsets_in_blocks[site]
        if number not in self._extents:
            self._extents[number] = extents_of(self._program, self._program.blocks[number])
        offsets = (self.offsets_in_blocks[one] for one in taken)
        others = [place for block, place in offsets if block == number]
        return merged_into(self._extents[number], own, others, width)


def width_of(made: MachineInstruction) -> int:
    """Returns the bytes that a lane moves in a wide load or store (8 or more), else 0."""
    if made.name not in _PLAIN:
        return 0
    return max((_WIDTHS.get(modifier, 0) for modifier in made.modifiers), default=0)


def extents_of(program: Program, block: ProgramBlock) -> dict[int, AccessExtent]:
    """Returns the extents of the plain accesses of a basic block, by their position in the block.

    Sums of a register and a constant are followed within the block.
    """
    known: dict[str, tuple[object, int]] = {}
    versions: dict[str, int] = {}

    def value(register: Register) -> tuple[object, int]:
        return known.get(register.name, ((register.name, versions.get(register.name, 0)), 0))

    found: dict[int, AccessExtent] = {}
    for place, made in enumerate(program.instructions[block.start : block.stop]):
        access = _plain_access(made)
        if access is not None:
            address, kind = access
            base, offset = address.base, address.offset
            root, more = value(base) if isinstance(base, Register) else (base, 0)
            guard = made.guard and (value(made.guard.register), made.guard.negated)
            found[place] = AccessExtent((*kind, root, guard), offset + more, bytes_of(made))
        total = _sum(made)
        moved = (value(total[0]), total[1]) if total is not None else None
        for register in writes(made):
            versions[register.name] = versions.get(register.name, 0) + 1
            known.pop(register.name, None)
            if moved is not None:
                (root, more), by = moved
                known[register.name] = root, more + by
    return found


def merged_into(
    extents: Mapping[int, AccessExtent], own: int, taken: Iterable[int], width: int
) -> Merged | None:
    """Returns what a machine access of `width` bytes stands for that was made for access `own` of a
    basic block; None where it stands for that alone.

    `taken` are the positions of accesses with machine instructions of their own.
    """
    extent = extents.get(own)
    if extent is None or extent.size >= width:
        return None
    others = set(taken) - {own}
    free = {
        one.offset: (one.size, place)
        for place, one in reversed([*extents.items()])
        if one.base == extent.base and place not in others
    }
    # The line is mostly that of the access with the lowest address.
    for first in sorted(free, key=lambda offset: (abs(offset - extent.offset), offset)):
        stop = _stop(free, first, first + width)
        if stop == first + width and first <= extent.offset < stop:
            return Merged(free[first][1], width, 1)
    first = min(offset for offset in free if _stop(free, offset, extent.offset) == extent.offset)
    turns, rest = divmod(width, _stop(free, first, first + width) - first)
    return Merged(free[first][1], width, turns) if turns > 1 and not rest else None


def _stop(parts: Mapping[int, tuple[int, int]], start: int, most: int) -> int:
    """Returns where parts stop that follow each other from `start` on, up to `most` or beyond."""
    while start in parts and start < most:
        start += parts[start][0]
    return start


def _plain_access(made: Instruction) -> tuple[Address, tuple[str, ...]] | None:
    """Returns the address of a plain load or store, and its opcode without its width."""
    operation = made.operation
    if operation.kind not in (OpKind.LOAD, OpKind.STORE):
        return None
    [*spaces] = accesses(made)
    address = next((one for one in made.operands if isinstance(one, Address)), None)
    if address is None or len(spaces) != 1:
        return None
    space, op = spaces[0]
    return address, (space.value, op)


def _sum(made: Instruction) -> tuple[Register, int] | None:
    """Returns a register and what is added to it, where an instruction does that or copies it."""
    if made.guard is not None:
        return None
    match made.operation.name, made.operands[1:]:
        case "mov", [Register() as register]:
            return register, 0
        case "add", [Register() as register, Immediate(int() as by)]:
            return register, by
        case _:
            return None
