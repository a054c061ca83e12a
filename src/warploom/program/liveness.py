"""Computes the registers that are live at the start of each basic block.

A register is live if some path reads it before writing it. A guarded write may leave the old value,
so it kills nothing; a plain write kills in each lane, whatever the active mask, since lanes that
are inactive have their own program counter. Sets of registers are bit masks, of those alone that
some block reads before it writes them: most registers live within one block, and a mask of all
would make memory grow with the square of a kernel's length.

    loop: add %r1, %r1, %r2;  setp.lt %p, %r1, %r3;  @%p bra loop;      live-in: %r1, %r2, %r3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warploom.isa.instruction import Instruction, Register
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import reads, writes


def live_in(
    instructions: Sequence[Instruction],
    blocks: Sequence[ProgramBlock],
    registers: Sequence[Register],
) -> tuple[frozenset[Register], ...]:
    """Returns the registers that are live at the start of each block: backward data flow to a fixed
    point. A guarded write leaves a register live. `registers` must have every register that
    `instructions` read or write."""
    effects = [_gen_and_kill(instructions[b.start : b.stop]) for b in blocks]
    exposed = set[str]().union(*(read for read, _ in effects))
    crossing = [register for register in registers if register.name in exposed]
    bits = {register.name: i for i, register in enumerate(crossing)}
    # Registers outside of `exposed` are live in no block: each is written before it is read.
    masks = [(_mask(read, bits), _mask(written & exposed, bits)) for read, written in effects]
    live = [0] * (len(blocks) + 1)  # the last is the exit, where nothing is live
    predecessors: list[list[int]] = [[] for _ in live]
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.index)
    pending = [block.index for block in blocks]
    while pending:
        # The last block first: information flows backwards, so most blocks are visited once.
        index = pending.pop()
        read, written = masks[index]
        after = 0
        for successor in blocks[index].successors:
            after |= live[successor]
        before = read | (after & ~written)
        if before != live[index]:
            live[index] = before
            pending.extend(predecessors[index])
    sets = {mask: _registers(mask, crossing) for mask in set(live[:-1])}
    return tuple(sets[mask] for mask in live[:-1])


def _gen_and_kill(instructions: Sequence[Instruction]) -> tuple[set[str], set[str]]:
    """Returns the registers that a block reads before an unguarded instruction of it writes them
    (gen), and all that its unguarded instructions write (kill), by name."""
    read, written = set[str](), set[str]()
    for instruction in instructions:
        for register in reads(instruction):
            # Before the writes of the same instruction: `add %r1, %r1, 1` reads the old value.
            if register.name not in written:
                read.add(register.name)
        if instruction.guard is None:
            written.update(register.name for register in writes(instruction))
    return read, written


def _mask(names: Iterable[str], bits: Mapping[str, int]) -> int:
    """Returns the mask with the bits of registers set."""
    mask = 0
    for name in names:
        mask |= 1 << bits[name]
    return mask


def _registers(mask: int, registers: Sequence[Register]) -> frozenset[Register]:
    """Returns the registers whose bits are set in a mask."""
    members: list[Register] = []
    while mask:
        lowest = mask & -mask
        members.append(registers[lowest.bit_length() - 1])
        mask ^= lowest
    return frozenset(members)
