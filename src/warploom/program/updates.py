"""Finds the updates of a program: a load, a computation, and a store to the address of the load.

    1: ld.global.u32 %r1, [%rd1];
    2: add.u32 %r2, %r1, 1;
    3: st.global.u32 [%rd1], %r2;     ->   Update(load=1, store=3, atomic="atomicAdd")

A race between the load or the store and that of another thread loses updates, and the finding names
the atomic function to use instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from warploom.isa.instruction import Address, Instruction, Register
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.uses import reads, sources, writes

_ATOMICS = {
    **dict.fromkeys(("add", "sub", "fma", "mad"), "atomicAdd"),
    "min": "atomicMin",
    "max": "atomicMax",
    "and": "atomicAnd",
    "or": "atomicOr",
    "xor": "atomicXor",
}
"""The atomic function of CUDA that does what an instruction does, by the instruction's name."""

_COPIES = frozenset(["mov", "cvt", "cvta"])
"""Instructions that hand a value on."""

_LONGEST = 8
"""The most instructions between the load and the store of an update."""


@dataclass(frozen=True, slots=True)
class Update:
    """The numbers of the load and of the store, and the atomic function that does both at once;
    empty if CUDA has none."""

    load: int
    store: int
    atomic: str


def find_update(program: Program, instruction: int, other_instruction: int) -> Update | None:
    """Returns the update (load, computation and store of one address) that has both of two
    instructions, given by number, as its load or its store: one each, or both the same; None if
    there is none."""
    if find_update not in program.cache:
        program.cache[find_update] = tuple(_updates(program))
    updates = cast(tuple[Update, ...], program.cache[find_update])
    pair = {instruction, other_instruction}
    return next((update for update in updates if pair <= {update.load, update.store}), None)


def _updates(program: Program) -> Iterator[Update]:
    """Yields the updates of a program, each within one basic block."""
    for block in program.blocks:
        last_writers: dict[str, int] = {}
        for index in range(block.start, block.stop):
            instruction = program.instructions[index]
            if _does(instruction, "store") and (update := _update(program, index, last_writers)):
                yield update
            last_writers |= dict.fromkeys(
                (register.name for register in writes(instruction)), index
            )


def _update(program: Program, store: int, last_writers: Mapping[str, int]) -> Update | None:
    """Returns the update that ends in a store; None if the stored value does not come from a load
    of the same address. `last_writers` are the instructions that wrote registers last."""
    address = _address(program.instructions[store])
    stored = [o for o in sources(program.instructions[store]) if isinstance(o, Register)]
    # Instructions on the way back from the store, each with the computations between.
    paths: list[tuple[int, tuple[str, ...]]] = [
        (last_writers[operand.name], ()) for operand in stored if operand.name in last_writers
    ]
    for _ in range(_LONGEST):
        following: list[tuple[int, tuple[str, ...]]] = []
        for index, names in paths:
            instruction = program.instructions[index]
            if _does(instruction, "load"):
                if _address(instruction) == address:
                    return Update(index, store, _atomic(names))
                continue
            name = instruction.operation.opcode.partition(".")[0]
            longer = names if name in _COPIES else (*names, name)
            following += [
                (last_writers[register.name], longer)
                for register in reads(instruction)
                # Only writers before this instruction: a later one has not made the value it reads.
                if last_writers.get(register.name, store) < index
            ]
        paths = following
    return None


def _atomic(names: tuple[str, ...]) -> str:
    """Returns the atomic function that does the computations of an update; "" for several."""
    return _ATOMICS.get(names[0], "") if len(names) == 1 else ""


def _does(instruction: Instruction, op: str) -> bool:
    """Returns whether an instruction is a load, a store or an atomic, as given by `op`."""
    return any(kind == op for _, kind in accesses(instruction))


def _address(instruction: Instruction) -> Address | None:
    """Returns the first address operand of an instruction; None if it has none."""
    return next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
