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
    c.SHAPE_OF_D: "specifies an unsupported shape (M = {rows}, N = {columns})",
    c.TYPE_OF_A: "specifies a type for A that this kind does not support",
    c.TYPE_OF_B: "specifies a type for B that this kind does not support",
    c.TYPE_OF_SUMS: "specifies a type for D that this kind does not support",
    c.SPARSITY: "specifies a sparsity that does not match the instruction",
    c.DEPTH: (
        "specifies K = 96, which requires a dense product and, with .cta_group::2, M = 256 (here, "
        "M is {rows})"
    ),
    c.ASHIFT: "specifies .ashift, which requires M = 128 or 256, but M is {rows}",
    c.ZEROS: (
        "specifies M = {rows}, for which the zero-column mask is shifted too far: the maximum "
        "shift is 16 columns if M is 32, and 32 columns otherwise"
    ),
    c.TRANSPOSITION: "specifies a transposed matrix, which must not have elements of 4 or 6 bits",
}
"""What is wrong with an instruction descriptor, as a verb phrase, by the code that the check
records."""
ADVICE = {
    c.NOT_ALLOCATED: (
        'PTX ISA, "tcgen05.alloc": an address is the lane times 65536 plus the column; of the '
        "512 columns, only allocated ones can be accessed.\n    Use the address that tcgen05.alloc "
        "stored, after a barrier, and allocate as many columns as the instruction accesses."
    ),
    c.ALLOCATION_SIZE: 'PTX ISA, "tcgen05.alloc": nCols must be a power of two from 32 to 512.',
    c.NO_PERMIT: (
        'PTX ISA, "tcgen05.relinquish_alloc_permit": no thread of the block may allocate '
        "after this instruction."
    ),
    c.GROWING_ALLOCATION: (
        'PTX ISA, "tcgen05.alloc": a block must not allocate more columns than in its previous '
        "allocation.\n    Allocate the largest first."
    ),
    c.NO_COLUMNS: (
        'PTX ISA, "tcgen05.alloc": the warp waits until enough columns are free, but none of the '
        "warps that can still run frees any columns.\n    Free columns that are no longer needed "
        "(tcgen05.dealloc), or allocate fewer columns."
    ),
    c.NOT_AN_ALLOCATION: (
        'PTX ISA, "tcgen05.dealloc": the address and nCols must be those of a single '
        "allocation (tcgen05.alloc) that has not been freed.\n    Free each allocation once, as a "
        "whole."
    ),
    c.OTHER_LANES: (
        'PTX ISA, "Access restrictions": warp n of the block can access lanes 32 * (n % 4) to 32 '
        "* (n % 4) + 31.\n    Add the warp's first lane, shifted left by 16, to the address."
    ),
    c.NO_MATRIX_DESCRIPTOR: (
        'PTX ISA, "Shared Memory Descriptor": bits 46 to 48 must be 0b001, bits 53 to 60 must be '
        "0, and the swizzle must be 0, 1, 2, 4 or 6."
    ),
    c.NO_SUCH_PRODUCT: 'PTX ISA, "Instruction Descriptor", "Matrix Shape" and "Data Types".',
    c.STILL_ALLOCATED: (
        'PTX ISA, "tcgen05.alloc": a kernel must free all its allocations before it exits.\n    '
        "Free each allocation (tcgen05.dealloc) after its last access."
    ),
    c.NO_SUCH_LANE: (
        'PTX ISA, "Tensor Memory Addressing": bits 16 to 31 of an address are the lane, 0 to 127.\n'
        "    Choose a first lane that leaves enough lanes for the access."
    ),
    c.NO_PAIR: (
        'PTX ISA, "CTA pair": with .cta_group::2, two blocks whose ranks in the cluster differ '
        "only in the lowest bit work together.\n    Launch clusters with an even number of blocks, "
        "and do not let a block end before its peer has finished."
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
        return f"instruction descriptor {address:#010x} {text}"
    return {
        c.NOT_ALLOCATED: f"column {size} of tensor memory is not allocated (address "
        f"{address:#010x})",
        c.ALLOCATION_SIZE: f"{address} columns of tensor memory",
        c.NO_PERMIT: f"{address} columns, but the block has relinquished its permit",
        c.GROWING_ALLOCATION: f"{address} columns, but the block's previous allocation had only "
        f"{size}",
        c.NO_COLUMNS: f"fewer than {address} contiguous columns are free",
        c.NOT_AN_ALLOCATION: f"{size} columns at {address:#010x} do not match any allocation",
        c.OTHER_LANES: f"{address:#010x} is in lanes that the warp cannot access; the warp's "
        f"lanes begin at {size}",
        c.NO_MATRIX_DESCRIPTOR: f"{address & (1 << 64) - 1:#018x} is not a matrix descriptor",
        c.STILL_ALLOCATED: "the block ends without freeing its tensor memory",
        c.NO_SUCH_LANE: f"lane {size} (address {address:#010x}): tensor memory has lanes 0 to 127",
        c.NO_PAIR: f"block {address} of the cluster has no peer",
    }[kind]
