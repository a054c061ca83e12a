"""Describes a program's instructions to the detector: flags for how each accesses memory and
synchronises.

    st.release.gpu [f], 1     STRONG | RELEASES | GPU << SCOPE_AT
    atom.add [c], 1           STRONG | GPU << SCOPE_AT
    ld [x] (only stored)      COPIES
    cp.async [s], [g], 16     ASYNC
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.passed_barriers import barriers_passed_by_all
from warploom.detector import layout as words
from warploom.isa.kinds import OpKind
from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.launch_control import is_cancellation
from warploom.isa.ops.mbarrier import ARRIVALS
from warploom.isa.ops.mbarrier import WAITS as MBARRIER_WAITS
from warploom.isa.ops.memory import COMPLETES as COMPLETES_BYTES
from warploom.isa.ops.tcgen05 import is_tensor_memory_operation
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.isa.spec import Unit
from warploom.program.accesses import is_bulk_copy
from warploom.program.effects.synchronising import event_of, is_warp_barrier
from warploom.program.program import Program
from warploom.program.uses import (
    destinations,
    is_reducing_barrier,
    leaf_operands,
    member_mask,
    reads,
    sources,
)
from warploom.ptx.ir import Immediate, Instruction, Register

SCOPES = {
    "cta": words.CTA,
    "cluster": words.CLUSTER,
    "gpu": words.GPU,
    "gl": words.GPU,
    "sys": words.SYS,
}
"""The scopes of the manual, and those of `membar`."""

TEXEL_READS = ("tex", "tld4", "suld")

FULL_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Sites:
    """Holds the description of a program for the detector: a word of flags and a number of the
    source line for each instruction; `exact` and `agents` decide `layout.EXACT` and
    `layout.AGENTS`."""

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
    """Returns whether threads may synchronise by an instruction in another way than by barriers of
    the whole block or warp."""
    if flags & (words.ACQUIRES | words.RELEASES | words.MBARRIER | words.ASYNC):
        return True
    if instruction.operation.spec.unit is Unit.BARRIER:
        operands = sources(instruction)
        return "arrive" in instruction.operation.modifiers or len(
            operands
        ) > 1 + is_reducing_barrier(instruction)
    if is_warp_barrier(instruction):
        mask = member_mask(instruction)
        return not (isinstance(mask, Immediate) and mask.value & FULL_MASK == FULL_MASK)
    return False


def flags_of(instruction: Instruction, copies: frozenset[Register]) -> int:
    """Returns the flags of an instruction (`layout`)."""
    operation = instruction.operation
    modifiers, name = operation.modifiers, operation.name
    if name in ("mbarrier", "cp") and operation.spec.unit is Unit.ATOMIC:
        return _mbarrier_flags(instruction)
    if name == "cp":
        return _copy_flags(instruction)
    if is_cancellation(operation):
        return words.BULK | words.ASYNC
    if operation.spec.unit is Unit.TEXTURE:
        if name == "sured":
            return words.STRONG | words.GPU << words.SCOPE_AT
        return words.TEXELS * (name in TEXEL_READS)
    if is_tensor_memory_operation(operation):
        return _tensor_memory_flags(instruction)
    if name in ("fence", "membar"):
        return _fence_flags(instruction)
    if is_cluster_barrier(operation):
        arrives = "arrive" in modifiers and modifiers["sem"] != "relaxed"
        return words.RELEASES * arrives
    completes = name in ("st", "red") and COMPLETES_BYTES in modifiers
    flags = completes * (words.ASYNC | words.BULK | words.COMPLETES)
    if operation.spec.unit is Unit.ATOMIC:
        flags |= words.STRONG | words.COMPARES * (modifiers["op"] == "cas")
        return flags | _order(modifiers["sem"] or "") | _scope(instruction, words.GPU)
    if completes:
        return flags
    if name not in ("ld", "st", "ldu"):
        return 0
    flags = words.COPIES * (name != "st" and _registers(instruction) <= copies)
    if "volatile" in modifiers:
        return flags | words.STRONG | words.VOLATILE | words.SYS << words.SCOPE_AT
    order = next((o for o in ("relaxed", "acquire", "release") if o in modifiers), None)
    if order is None:
        return flags
    return flags | words.STRONG | _order(order) | _scope(instruction, words.GPU)


def _copy_flags(instruction: Instruction) -> int:
    """Returns the flags of a `cp`: reductions in memory are relaxed at gpu scope (PTX ISA,
    "cp.reduce.async.bulk")."""
    modifiers = instruction.operation.modifiers
    flags = words.BULK * ("bulk" in modifiers) | words.ASYNC * _is_copy(instruction)
    if "reduce" in modifiers:
        flags |= words.STRONG | words.GPU << words.SCOPE_AT
    return flags


def _tensor_memory_flags(instruction: Instruction) -> int:
    """Returns the flags of a `tcgen05`: products and copies read shared memory by the proxy of bulk
    copies (PTX ISA, "tcgen05.mma", "tcgen05.cp")."""
    modifiers = instruction.operation.modifiers
    if not any(name in modifiers for name in ("mma", "cp", "shift", "ld", "st")):
        return 0
    reads = "mma" in modifiers or "cp" in modifiers
    return words.ASYNC | words.BULK * reads | words.COPIES * ("cp" in modifiers)


def _is_copy(instruction: Instruction) -> bool:
    """Returns whether a `cp` copies bytes."""
    modifiers = instruction.operation.modifiers
    if "bulk" not in modifiers:
        return "global" in modifiers
    return is_bulk_copy(instruction.operation) or (
        is_tensor_operation(instruction.operation) and "prefetch" not in modifiers
    )


def _mbarrier_flags(instruction: Instruction) -> int:
    """Returns the flags of an instruction on an mbarrier (PTX ISA, "mbarrier")."""
    modifiers = instruction.operation.modifiers
    op = modifiers["op"] or ""
    flags = words.MBARRIER
    if instruction.operation.name == "cp":
        return flags | words.ARRIVES_ASYNC
    if op in ("init", "inval"):
        return flags | (words.PLAIN_WRITE if op == "init" else words.INVALIDATES)
    relaxed = modifiers["sem"] == "relaxed"
    if op in ARRIVALS:
        return flags | words.ARRIVES | words.RELEASES * (not relaxed)
    if op in MBARRIER_WAITS:
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
    if instruction.operation.name == "st":
        address = {
            leaf for leaf in leaf_operands(instruction.operands[0]) if isinstance(leaf, Register)
        }
        return set(reads(instruction)) - address
    if instruction.operation.kind is OpKind.MOVE and _registers(instruction) <= copies:
        return set(reads(instruction))
    return set()
