"""Lists the memory accesses that a program can make, as the records in which the interpreter and
compiled kernels count them.

An access record is one instruction with one state space and one kind of access. An instruction with
a generic address has a record for each space that the address may fall into:

    ld.global.f32 %f1, [%rd1];   // (global, load)
    st.f32 [%rd2], %f1;          // (global, store), (shared, store), (local, store)
    cp.async.ca.shared.global [%r1], [%rd1], 16;   // (global, load), (shared, store)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from warploom.cost.fields import FIELDS
from warploom.isa.instruction import Immediate, Instruction, Space, Vector
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.moves import matrix_move, pieces
from warploom.isa.shared_matrices import UNIT_BYTES
from warploom.isa.spec import Operation, Unit
from warploom.program.program import Program
from warploom.program.requests.tensor_memory import tensor_memory_accesses
from warploom.program.requests.tensors import tensor_accesses

__all__ = ["FIELDS", "AccessRecord", "access_records", "space_of"]

FIXED: dict[OpKind, tuple[tuple[Space, str], ...]] = {
    OpKind.COPY: ((Space.GLOBAL, "load"), (Space.SHARED, "store")),
    OpKind.TEXTURE_LOAD: ((Space.TEXTURE, "load"),),
    OpKind.TEXTURE_GATHER: ((Space.TEXTURE, "load"),),
    OpKind.SURFACE_LOAD: ((Space.SURFACE, "load"),),
    OpKind.SURFACE_STORE: ((Space.SURFACE, "store"),),
    OpKind.SURFACE_REDUCTION: ((Space.SURFACE, "atomic"),),
    OpKind.GROUP_PRODUCT: ((Space.SHARED, "load"),),
}
"""The accesses of instructions to spaces that follow from their kind."""

MATRIX_ROW_BYTES = 16
"""Bytes that a lane's address in `ldmatrix` or `stmatrix` covers: a row of eight 16-bit elements.
"""

BULK_PIECE_BYTES = 16
"""Bytes of the pieces in which a bulk copy proceeds; its addresses are aligned to them."""

BULK_FILL_BYTES = 8
"""Bytes of the pieces in which `st.bulk` proceeds."""

PAST_L1, READ_ONLY = "past L1", "read only"

PIECES = {
    **{kind: BULK_PIECE_BYTES for kind in OpKind if kind.has(Effect.USES_TMA)},
    **{kind: UNIT_BYTES for kind in OpKind if kind.has(Effect.USES_TENSOR_MEMORY)},
    OpKind.BULK_COPY: BULK_PIECE_BYTES,
    OpKind.FILL: BULK_FILL_BYTES,
    OpKind.MATRIX_LOAD: MATRIX_ROW_BYTES,
    OpKind.MATRIX_STORE: MATRIX_ROW_BYTES,
    OpKind.GROUP_PRODUCT: UNIT_BYTES,
}
"""Bytes of one access by a lane, of kinds of operations for which these are fixed."""

GENERIC_SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
"""The spaces that a generic address can fall into."""


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One instruction (by its number) that accesses one state space; `op` is load, store or
    atomic."""

    instruction: int
    space: Space
    op: str


def space_of(instruction: Instruction) -> Space:
    """Returns the state space that a memory instruction names; GENERIC if it names none."""
    return _named_space(instruction.operation)


def _named_space(operation: Operation) -> Space:
    """Returns the state space that an operation names, without a suffix such as `::cta`; else
    GENERIC."""
    text = operation.modifiers["space"]
    return Space(text.partition("::")[0]) if text else Space.GENERIC


def accesses(instruction: Instruction) -> tuple[tuple[Space, str], ...]:
    """Returns each state space that an instruction accesses, with the access there ("load", "store"
    or "atomic"): the one that it names, GENERIC if none; of copies, textures, `wgmma` and `tcgen05`
    those that follow from the operation. Empty if it accesses no memory."""
    return _accesses(instruction.operation)


@cache
def _accesses(operation: Operation) -> tuple[tuple[Space, str], ...]:
    """Returns each state space that an operation accesses, with "load", "store" or "atomic": For
    operations of the TMA and on tensor memory these are the accesses of their requests; for a bulk
    copy its two ends; for kinds in FIXED the entry of that table. For others it is the space that
    the operation names (GENERIC if none), if it loads, stores or is atomic. Cached, so that
    instructions with equal operations share one answer."""
    if operation.has(Effect.USES_TMA):
        return tensor_accesses(operation)
    if operation.has(Effect.USES_TENSOR_MEMORY):
        return tensor_memory_accesses(operation)
    if operation.kind is OpKind.BULK_COPY:
        ends = (operation.modifiers.text(name, "").partition("::")[0] for name in ("from", "to"))
        return tuple(zip(map(Space, ends), ("load", "store"), strict=True))
    if operation.kind in FIXED:
        return FIXED[operation.kind]
    if operation.spec.unit is Unit.ATOMIC:
        return ((_named_space(operation), "atomic"),)
    if not operation.has(Effect.LOADS | Effect.STORES):
        return ()
    return ((_named_space(operation), "load" if operation.has(Effect.LOADS) else "store"),)


def bytes_of(instruction: Instruction) -> int:
    """Returns the bytes that a memory instruction moves in each lane, in one access: all elements
    of a vector operand together; the size operand of `cp.async`; the row of 16 bytes for `ldmatrix`
    and `stmatrix`; one element for `wmma`. For instructions that proceed in pieces it is the size
    of a piece: 16 for bulk and tensor copies, 8 for `st.bulk`, UNIT_BYTES for `wgmma` and
    `tcgen05`."""
    operation = instruction.operation
    if operation.kind in PIECES:
        return PIECES[operation.kind]
    if operation.kind is OpKind.COPY:
        size = instruction.operands[2]
        assert isinstance(size, Immediate)
        return size.value
    if operation.kind in (OpKind.WARP_MATRIX_LOAD, OpKind.WARP_MATRIX_STORE):
        return next(pieces(matrix_move(operation))).type.bytes
    vectors = [o for o in instruction.operands if isinstance(o, Vector)]
    return operation.modifiers.scalar().bytes * (len(vectors[0].elements) if vectors else 1)


def route_of(instruction: Instruction) -> str:
    """Returns the cache route that a load requests: "past L1" (`.cg`, `.cv`, `.volatile`; PTX ISA,
    "Cache Operators"), "read only" (`.nc`, `ldu`), or "" for the device's default."""
    modifiers = instruction.operation.modifiers
    if modifiers["cop"] in ("cg", "cv") or "volatile" in modifiers:
        return PAST_L1
    return READ_ONLY if "nc" in modifiers or instruction.operation.name == "ldu" else ""


def spaces_of(space: Space) -> tuple[Space, ...]:
    """Returns the spaces that addresses in a space can fall into: the space itself, or global,
    shared and local for GENERIC."""
    return GENERIC_SPACES if space is Space.GENERIC else (space,)


def access_records(program: Program) -> tuple[AccessRecord, ...]:
    """Returns every access record of a program, in instruction order, without accesses to
    parameters and to the stack of calls (`program.private`). A generic access has a record for each
    of global, shared and local."""
    private = program.private
    return tuple(
        AccessRecord(index, possible_space, op)
        for index, instruction in enumerate(program.instructions)
        if (space_ops := _accesses(instruction.operation)) and index not in private
        for space, op in space_ops
        if space is not Space.PARAM
        for possible_space in spaces_of(space)
    )
