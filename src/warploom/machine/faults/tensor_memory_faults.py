"""Builds the messages of faults of `tcgen05` instructions."""

from __future__ import annotations

from warploom.asynchronous.tensor_memory import checks as c
from warploom.asynchronous.tensor_memory.descriptors import columns_of, rows_of
from warploom.isa.spec import Operation

NAMES = {
    c.NOT_ALLOCATED: "not allocated",
    c.ALLOCATION_SIZE: "bad allocation",
    c.NO_PERMIT: "bad allocation",
    c.GROWING_ALLOCATION: "bad allocation",
    c.NO_COLUMNS: "out of tensor memory",
    c.NOT_AN_ALLOCATION: "bad deallocation",
    c.OTHER_LANES: "other lanes",
    c.NO_MATRIX_DESCRIPTOR: "bad descriptor",
    c.NO_SUCH_PRODUCT: "bad descriptor",
    c.STILL_ALLOCATED: "still allocated",
    c.NO_PAIR: "no such block",
    c.NO_SUCH_LANE: "no such lane",
}
"""The kinds of these faults, as in `MemoryFault.kind`."""

DESCRIPTOR_PROBLEMS = {
    c.SHAPE_OF_D: "no such shape (M {rows}, N {columns})",
    c.TYPE_OF_A: "no such type of A for this kind",
    c.TYPE_OF_B: "no such type of B for this kind",
    c.TYPE_OF_SUMS: "no such type of D for this kind",
    c.SPARSITY: "sparsity that is not the instruction's",
    c.DEPTH: "K of 96, which dense products alone have, of pairs with M of 256 (M {rows})",
    c.ASHIFT: ".ashift, which M of 128 and 256 alone have (M {rows})",
    c.ZEROS: "a column shift of more than 16 with M 32, or more than 32 (M {rows})",
    c.TRANSPOSITION: "a transposed matrix of elements of 4 or 6 bits",
}
"""What is wrong with an instruction descriptor, by the code that the check records."""
ADVICE = {
    c.NOT_ALLOCATED: (
        'PTX ISA, "tcgen05.alloc": an address is the lane times 65536 and the column; only columns'
        " that are allocated, of 512, can be reached.\n    Use the address that tcgen05.alloc has"
        " stored, behind a barrier, and allocate as many columns as the instruction reaches."
    ),
    c.ALLOCATION_SIZE: 'PTX ISA, "tcgen05.alloc": nCols is a power of two from 32 to 512.',
    c.NO_PERMIT: (
        'PTX ISA, "tcgen05.relinquish_alloc_permit": no thread of the block allocates after it.'
    ),
    c.GROWING_ALLOCATION: (
        'PTX ISA, "tcgen05.alloc": one allocation of a block is no larger than the one before it.'
        "\n    Allocate the largest first."
    ),
    c.NO_COLUMNS: (
        'PTX ISA, "tcgen05.alloc": the warp waits until so many columns are free; nothing that is'
        " done before it frees them.\n    Free what is not needed (tcgen05.dealloc), or allocate"
        " less."
    ),
    c.NOT_AN_ALLOCATION: (
        'PTX ISA, "tcgen05.dealloc": the address and nCols are those of one tcgen05.alloc that has'
        " not been freed.\n    Free each allocation once, as a whole."
    ),
    c.OTHER_LANES: (
        'PTX ISA, "Access restrictions": warp n of the block reaches lanes 32 * (n % 4) to'
        " 32 * (n % 4) + 31.\n    Add the warp's first lane, shifted left by 16, to the address."
    ),
    c.NO_MATRIX_DESCRIPTOR: (
        'PTX ISA, "Shared Memory Descriptor": bits 46 to 48 are 0b001, bits 53 to 60 are 0, and the'
        " swizzle is 0, 1, 2, 4 or 6."
    ),
    c.NO_SUCH_PRODUCT: 'PTX ISA, "Instruction Descriptor", "Matrix Shape" and "Data Types".',
    c.STILL_ALLOCATED: (
        'PTX ISA, "tcgen05.alloc": all that a kernel allocates is freed before it exits.\n    Free'
        " it (tcgen05.dealloc) behind the last access."
    ),
    c.NO_SUCH_LANE: (
        'PTX ISA, "Tensor Memory Addressing": bits 16 to 31 of an address are the lane, of 128.\n'
        "    Let the address begin at a lane after which there are as many as the instruction"
        " accesses."
    ),
    c.NO_PAIR: (
        'PTX ISA, "CTA pair": with .cta_group::2 the two blocks of a cluster whose ranks differ in'
        " the lowest bit work together.\n    Launch clusters of an even number of blocks, and let"
        " no block end before its peer is done."
    ),
}
"""The rule that was broken and how to comply, by fault kind."""


def tensor_memory_fault(
    kind: int, operation: Operation, address: int, size: int, at: str
) -> tuple[str, str]:
    """Returns the kind's name and the message of a fault: opcode, problem, column or lane `at`,
    rule and remedy. `address` and `size` are the two words that `asynchronous.tensor_memory`
    records; their meaning depends on the kind (`_problem`)."""
    title = f"{operation.opcode}: {_problem(kind, address, size)}"
    return NAMES[kind], f"{title}\n    {at}\n    {ADVICE[kind]}"


def _problem(kind: int, address: int, size: int) -> str:
    """Returns the phrase that states what was wrong, chosen by the kind of fault, with the two
    recorded words in it: mostly an address or a number of columns, for NO_SUCH_PRODUCT an
    instruction descriptor and the code of its problem (DESCRIPTOR_PROBLEMS)."""
    if kind == c.NO_SUCH_PRODUCT:
        text = DESCRIPTOR_PROBLEMS[size].format(rows=rows_of(address), columns=columns_of(address))
        return f"instruction descriptor {address:#010x} has {text}"
    return {
        c.NOT_ALLOCATED: f"column {size} of tensor memory, from {address:#010x} on, is not"
        " allocated",
        c.ALLOCATION_SIZE: f"{address} columns of tensor memory",
        c.NO_PERMIT: f"{address} columns, and the block has relinquished its permit",
        c.GROWING_ALLOCATION: f"{address} columns, after an allocation of {size}",
        c.NO_COLUMNS: f"{address} columns side by side are not free",
        c.NOT_AN_ALLOCATION: f"{size} columns at {address:#010x} are no allocation",
        c.OTHER_LANES: f"{address:#010x} leads to lanes that are not the warp's, which begin at"
        f" {size}",
        c.NO_MATRIX_DESCRIPTOR: f"{address & ((1 << 64) - 1):#018x} is no descriptor of a matrix",
        c.STILL_ALLOCATED: "the block ends and has not freed its tensor memory",
        c.NO_SUCH_LANE: f"lane {size}, from {address:#010x} on: tensor memory has lanes 0 to 127",
        c.NO_PAIR: f"block {address} of the cluster has no peer",
    }[kind]
