"""Describes a program's instructions to the detector: flags for how each accesses memory and
synchronizes.

    st.release.gpu [f], 1     STRONG | RELEASES | GPU << SCOPE_AT
    atom.add [c], 1           STRONG | GPU << SCOPE_AT
    ld [x] (only stored)      COPIES
    cp.async [s], [g], 16     ASYNC
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.passed_barriers import barriers_passed_by_all
from warploom.detector import layout as words
from warploom.isa.instruction import Immediate, Instruction, Register
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.ops.mbarrier import ARRIVALS
from warploom.isa.spec import Unit
from warploom.program.effects.synchronising import event_of
from warploom.program.program import Program
from warploom.program.uses import (
    destinations,
    is_reducing_barrier,
    leaf_operands,
    member_mask,
    reads,
    sources,
)

SCOPES = {
    "cta": words.CTA,
    "cluster": words.CLUSTER,
    "gpu": words.GPU,
    "gl": words.GPU,
    "sys": words.SYS,
}
"""The scopes of the manual, and those of `membar`."""

TEXEL_READS = (OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER, OpKind.SURFACE_LOAD)

MBARRIERS = (OpKind.MBARRIER, OpKind.MBARRIER_INIT, OpKind.MBARRIER_WAIT, OpKind.COPY_ARRIVE)

_RELAXED = words.STRONG | words.GPU << words.SCOPE_AT
_BULK_COPY = words.BULK | words.ASYNC
FIXED_FLAGS = {
    OpKind.COPY: words.ASYNC,
    OpKind.BULK_COPY: _BULK_COPY,
    OpKind.TMA_BULK_COPY: _BULK_COPY,
    OpKind.LAUNCH_CANCEL: _BULK_COPY,
    OpKind.BULK_REDUCTION: _BULK_COPY,
    OpKind.TENSOR_COPY: _BULK_COPY,
    OpKind.TENSOR_PREFETCH: words.BULK,
    OpKind.SURFACE_REDUCTION: _RELAXED,
    OpKind.TENSOR_PRODUCT: _BULK_COPY,
    OpKind.TENSOR_MEMORY_COPY: _BULK_COPY | words.COPIES,
    OpKind.TENSOR_SHIFT: words.ASYNC,
    OpKind.TENSOR_LOAD: words.ASYNC,
    OpKind.TENSOR_STORE: words.ASYNC,
}
"""The flags of kinds that have the same ones in all forms. Reductions in memory are relaxed at gpu
scope (PTX ISA, "cp.reduce.async.bulk", "sured"); products and copies of tensor memory read shared
memory by the proxy of bulk copies ("tcgen05.mma", "tcgen05.cp")."""

FULL_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Sites:
    """Holds the description of a program for the detector: a word of flags and a number of the
    source line for each instruction; `exact` and `agents` decide `DetectorState.exact` and
    `DetectorState.agents`."""

    flags: tuple[int, ...]
    lines: tuple[int, ...]
    exact: bool
    agents: bool


def sites_of(program: Program) -> Sites:
    """Returns the description of a program."""
    cached = program.cache.get("sites")
    if not isinstance(cached, Sites):
        cached = program.cache["sites"] = _sites(program)
    return cached


def _sites(program: Program) -> Sites:
    copies = copied_registers(program)
    flags = tuple(flags_of(instruction, copies) for instruction in program.instructions)
    if program.has_tensor_memory:
        flags = tuple(map(_ordering_mbarriers, flags))
    passed = barriers_passed_by_all(program)
    flags = tuple(
        each | words.PASSED_BY_ALL * (index in passed) for index, each in enumerate(flags)
    )
    names: dict[str, int] = {}
    lines = tuple(
        names.setdefault(program.line(index), len(names))
        for index in range(len(program.instructions))
    )
    agents = any(each & words.ASYNC for each in flags)
    exact = agents or any(map(needs_exactness, program.instructions, flags))
    return Sites(flags, lines, exact, agents)


def _ordering_mbarriers(flags: int) -> int:
    """Returns the flags of an instruction of a kernel with tensor memory, whose fences order it
    around relaxed arrivals and waits (PTX ISA, "Memory Consistency Model for 5th generation of
    TensorCore operations"): they count as release and acquire."""
    if not flags & words.MBARRIER:
        return flags
    return (
        flags
        | words.RELEASES * bool(flags & words.ARRIVES)
        | words.ACQUIRES * bool(flags & words.WAITS)
    )


def needs_exactness(instruction: Instruction, flags: int) -> bool:
    """Returns whether threads may synchronize by an instruction in another way than by barriers of
    the whole block or warp."""
    if flags & (words.ACQUIRES | words.RELEASES | words.MBARRIER | words.ASYNC):
        return True
    if instruction.operation.spec.unit is Unit.BARRIER:
        operands = sources(instruction)
        return "arrive" in instruction.operation.modifiers or len(
            operands
        ) > 1 + is_reducing_barrier(instruction)
    if instruction.operation.kind is OpKind.WARP_BARRIER:
        mask = member_mask(instruction)
        return not (isinstance(mask, Immediate) and mask.value & FULL_MASK == FULL_MASK)
    return False


def flags_of(instruction: Instruction, copies: frozenset[Register]) -> int:
    """Returns the flags of an instruction (`layout`)."""
    operation = instruction.operation
    modifiers, kind = operation.modifiers, operation.kind
    if kind in MBARRIERS:
        return _mbarrier_flags(instruction)
    if kind in FIXED_FLAGS:
        return FIXED_FLAGS[kind] | _RELAXED * ("reduce" in modifiers)
    if kind in (OpKind.COPY_COMMIT, OpKind.COPY_WAIT, OpKind.CACHE_HINT):
        return words.BULK * ("bulk" in modifiers)
    if kind in TEXEL_READS:
        return words.TEXELS
    if operation.has(Effect.USES_TENSOR_MEMORY):
        return 0
    if kind is OpKind.FENCE:
        return _fence_flags(instruction)
    if kind is OpKind.CLUSTER_BARRIER:
        arrives = "arrive" in modifiers and modifiers["sem"] != "relaxed"
        return words.RELEASES * arrives
    completes = kind in (OpKind.ASYNC_STORE, OpKind.ASYNC_REDUCTION)
    flags = completes * (words.ASYNC | words.BULK | words.COMPLETES)
    if operation.spec.unit is Unit.ATOMIC:
        flags |= words.STRONG | words.COMPARES * (modifiers["op"] == "cas")
        return flags | _order(modifiers["sem"] or "") | _scope(instruction, words.GPU)
    if completes:
        return flags
    if kind not in (OpKind.LOAD, OpKind.STORE, OpKind.FILL):
        return 0
    flags = words.COPIES * (kind is OpKind.LOAD and _registers(instruction) <= copies)
    if "volatile" in modifiers:
        return flags | words.STRONG | words.VOLATILE | words.SYS << words.SCOPE_AT
    order = next((o for o in ("relaxed", "acquire", "release") if o in modifiers), None)
    if order is None:
        return flags
    return flags | words.STRONG | _order(order) | _scope(instruction, words.GPU)


def _mbarrier_flags(instruction: Instruction) -> int:
    """Returns the flags of an instruction on an mbarrier (PTX ISA, "mbarrier")."""
    modifiers = instruction.operation.modifiers
    op = modifiers["op"] or ""
    flags = words.MBARRIER
    if instruction.operation.kind is OpKind.COPY_ARRIVE:
        return flags | words.ARRIVES_ASYNC
    if op in ("init", "inval"):
        return flags | (words.PLAIN_WRITE if op == "init" else words.INVALIDATES)
    relaxed = modifiers["sem"] == "relaxed"
    if op in ARRIVALS:
        return flags | words.ARRIVES | words.RELEASES * (not relaxed)
    if instruction.operation.kind is OpKind.MBARRIER_WAIT:
        return flags | words.WAITS | words.ACQUIRES * (not relaxed)
    return flags


def _fence_flags(instruction: Instruction) -> int:
    """Returns the flags of a fence."""
    if event_of(instruction) != words.FENCE:
        return 0
    modifiers = instruction.operation.modifiers
    both = words.ACQUIRES | words.RELEASES
    sem = modifiers["sem"] or ""
    order = _order(sem) if sem in ("acquire", "release") else both
    scope = modifiers["scope"] or modifiers["level"] or "sys"
    return order | SCOPES[scope] << words.SCOPE_AT


def _order(sem: str) -> int:
    return {
        "acquire": words.ACQUIRES,
        "release": words.RELEASES,
        "acq_rel": words.ACQUIRES | words.RELEASES,
    }.get(sem, 0)


def _scope(instruction: Instruction, default: int) -> int:
    scope = instruction.operation.modifiers["scope"]
    return (SCOPES[scope] if scope else default) << words.SCOPE_AT


def _registers(instruction: Instruction) -> set[Register]:
    """Returns the registers that an instruction writes."""
    registers_written = (
        leaf for operand in destinations(instruction) for leaf in leaf_operands(operand)
    )
    return {leaf for leaf in registers_written if isinstance(leaf, Register)}


# ---- copies -------------------------------------------------------------------------------------


def copied_registers(program: Program) -> frozenset[Register]:
    """Returns the registers whose values are only moved and stored. Starts with all registers and
    removes those with another use until none is left."""
    # Greatest fixed point: each pass removes registers that have another use.
    copies = set(program.registers)
    changed = True
    while changed:
        changed = False
        for instruction in program.instructions:
            used = set(reads(instruction)) & copies
            removed = used - _copied_by(instruction, copies)
            if removed:
                copies -= removed
                changed = True
    return frozenset(copies)


def _copied_by(instruction: Instruction, copies: set[Register]) -> set[Register]:
    """Returns the registers that an instruction only moves or stores."""
    if instruction.guard is not None and instruction.guard.register in copies:
        return set()
    if instruction.operation.kind in (OpKind.STORE, OpKind.FILL, OpKind.ASYNC_STORE):
        address = {
            leaf for leaf in leaf_operands(instruction.operands[0]) if isinstance(leaf, Register)
        }
        return set(reads(instruction)) - address
    if instruction.operation.kind is OpKind.MOVE and _registers(instruction) <= copies:
        return set(reads(instruction))
    return set()
