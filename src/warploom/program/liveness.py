"""Computes the registers that are live at the start of each basic block.

A register is live if some path reads it before writing it. A guarded write may leave the old value,
so it kills nothing; a plain write kills in each lane, whatever the active mask, since lanes that
are inactive have their own program counter. Sets of registers are bit masks.

    loop: add %r1, %r1, %r2;  setp.lt %p, %r1, %r3;  @%p bra loop;      live-in: %r1, %r2, %r3
"""

from __future__ import annotations

from collections.abc import Sequence

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
    bits = {register.name: 1 << i for i, register in enumerate(registers)}
    effects = [_gen_and_kill(instructions[b.start : b.stop], bits) for b in blocks]
    live = [0] * (len(blocks) + 1)  # the last is the exit, where nothing is live
    predecessors: list[list[int]] = [[] for _ in live]
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.index)
    pending = [block.index for block in blocks]
    while pending:
        # The last block first: information flows backwards, so most blocks are visited once.
        index = pending.pop()
        read, written = effects[index]
        after = 0
        for successor in blocks[index].successors:
            after |= live[successor]
        before = read | (after & ~written)
        if before != live[index]:
            live[index] = before
            pending.extend(predecessors[index])
    sets = {mask: _registers(mask, registers) for mask in set(live[:-1])}
    return tuple(sets[mask] for mask in live[:-1])


def _gen_and_kill(instructions: Sequence[Instruction], bits: dict[str, int]) -> tuple[int, int]:
    """Returns the bit masks of the registers that a block reads before an unguarded instruction of
    it writes them (gen), and of all that its unguarded instructions write (kill). `bits` has the
    bit of each of its registers, by name."""
    read, written = set[str](), set[str]()
    for instruction in instructions:
        for register in reads(instruction):
            if register.name not in written:
                read.add(register.name)
        if instruction.guard is None:
            written.update(register.name for register in writes(instruction))
    return sum(map(bits.__getitem__, read)), sum(map(bits.__getitem__, written))


def _registers(mask: int, registers: Sequence[Register]) -> frozenset[Register]:
    """Returns the registers whose bits are set in a mask."""
    members: list[Register] = []
    while mask:
        lowest = mask & -mask
        members.append(registers[lowest.bit_length() - 1])
        mask ^= lowest
    return frozenset(members)
