"""Turns the record of a fault into the exception that the user reads; both machines use it.

A `Fault` is what compiled code leaves in the environment: a kind number, an instruction, a lane and
two words. Messages have the form of compute-sanitizer's: what was done, where, by which thread,
next to which allocation, and how to fix it. Messages of tensor copies, tensor memory and textures
are in files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from pathlib import PurePath
from typing import TypedDict

from warploom.asynchronous.tensor_memory import checks
from warploom.asynchronous.tensors import addresses
from warploom.core.errors import (
    Allocation,
    DeviceTrap,
    Dim3,
    KernelFault,
    MemoryFault,
)
from warploom.core.source import BUILT_IN_HEADER
from warploom.core.wording import in_words_of_source
from warploom.isa import preconditions
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.preconditions import PRECONDITIONS
from warploom.machine.faults.bounds import bounds_advice, is_null, signed_address
from warploom.machine.faults.tensor_faults import NAMES as TENSOR_FAULTS
from warploom.machine.faults.tensor_faults import tensor_fault
from warploom.machine.faults.tensor_memory_faults import NAMES as TENSOR_MEMORY_FAULTS
from warploom.machine.faults.tensor_memory_faults import tensor_memory_fault
from warploom.machine.faults.texture_faults import texel_fault
from warploom.machine.launch import Launch
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.simt import register_pool
from warploom.simt.product_groups import CAPACITY
from warploom.simt.register_pool import CODE_AT, HAS_LESS

ACCESS_NOUNS = {
    **dict.fromkeys((OpKind.COPY, OpKind.COPY_ARRIVE, OpKind.BULK_COPY), "copy"),
    **dict.fromkeys((OpKind.TMA_BULK_COPY, OpKind.BULK_REDUCTION), "copy"),
    **dict.fromkeys((OpKind.TENSOR_COPY, OpKind.TENSOR_PREFETCH), "copy"),
    OpKind.MBARRIER: "mbarrier access",
    OpKind.MBARRIER_INIT: "mbarrier access",
    OpKind.MBARRIER_WAIT: "mbarrier access",
    OpKind.CALL: "read",
}
"""Nouns for the accesses of instructions that do more than read or write; a `call` is one of printf
or assert, which read their strings."""


@unique
class FaultKind(IntEnum):
    """The kinds of faults, by the numbers that compiled code reports."""

    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    READ_ONLY = 3
    TRAP = 4
    BAD_INDEX = 5
    NOT_A_MEMBER = 6
    BAD_BARRIER = 7
    BAD_HANDLE = 11
    OTHER_GEOMETRY = 12
    OUTSIDE_SURFACE = 13
    INVALID_MBARRIER = preconditions.INITIALIZED.number
    BAD_COUNT = preconditions.COUNT.number
    BULK_SIZE = preconditions.BULK_SIZE.number
    BULK_TARGET = preconditions.BULK_TARGET.number
    BULK_SOURCE = preconditions.BULK_SOURCE.number
    SOURCE_SIZE = preconditions.SOURCE_SIZE.number
    SOURCE_ALIGNMENT = preconditions.SOURCE_ALIGNMENT.number
    PART_OF_A_WARP_GROUP = 21
    TOO_MANY_IN_FLIGHT = 22
    NO_TENSOR_MAP = addresses.NO_TENSOR_MAP
    OTHER_TENSOR = addresses.OTHER_TENSOR
    TENSOR_ALIGNMENT = addresses.TENSOR_ALIGNMENT
    UNSUPPORTED_TENSOR = addresses.UNSUPPORTED_TENSOR
    NO_BLOCK = addresses.NO_BLOCK
    BULK_ALIGNMENT = addresses.BULK_ALIGNMENT
    COLUMN_OPERANDS = addresses.COLUMN_OPERANDS
    OPEN_HALO = addresses.OPEN_HALO
    PACKED_RULE = addresses.PACKED_RULE
    NEW_VALUES = addresses.NEW_VALUES
    MAP_STRIDE = addresses.MAP_STRIDE
    NO_SUCH_LANE = checks.NO_SUCH_LANE
    NOT_ALLOCATED = checks.NOT_ALLOCATED
    ALLOCATION_SIZE = checks.ALLOCATION_SIZE
    NO_PERMIT = checks.NO_PERMIT
    GROWING_ALLOCATION = checks.GROWING_ALLOCATION
    NO_COLUMNS = checks.NO_COLUMNS
    NOT_AN_ALLOCATION = checks.NOT_AN_ALLOCATION
    OTHER_LANES = checks.OTHER_LANES
    NO_MATRIX_DESCRIPTOR = checks.NO_MATRIX_DESCRIPTOR
    NO_SUCH_PRODUCT = checks.NO_SUCH_PRODUCT
    STILL_ALLOCATED = checks.STILL_ALLOCATED
    NO_PAIR = checks.NO_PAIR
    REGISTER_COUNT = register_pool.FAULT


@dataclass(frozen=True, slots=True)
class Fault:
    """The position and kind of a fault: the lowest lane of the first warp instruction that failed.

    `block` and `warp` are linear numbers; `address` is in `space` (an offset in shared and local
    memory), `size` the bytes that the lane accesses. Kinds that are not accesses store other words
    in these two fields (for a barrier, its number and thread count).
    """

    kind: FaultKind
    instruction: int
    block: int
    warp: int
    lane: int
    address: int = 0
    size: int = 0
    space: Space = Space.GLOBAL


def fault_error(
    fault: Fault, program: Program, launch: Launch, nearest: Allocation | None
) -> KernelFault:
    """Returns the exception to raise: DeviceTrap for traps, bad barriers, calls, member masks,
    register counts and warp groups, else MemoryFault. `nearest` is the live allocation closest to a
    global address; for shared and local memory it is the block's or the thread's own memory. Only
    errors of ordinary accesses name it; other MemoryFaults have None."""
    line = program.line(fault.instruction)
    location: _FaultLocation = {
        "kernel": program.name,
        "line": line,
        "block": launch.block_index(fault.block),
        "thread": launch.thread_index(fault.warp, fault.lane),
    }
    at = (
        f"at {line}{_header_text(fault, program)} in kernel {program.title}, by thread"
        f" {location['thread']} in block {location['block']}"
    )
    # Order matters: a call-stack overflow is recorded as an out-of-bounds access to local memory.
    trap = _trap_message(fault, program, launch, at)
    if trap is not None:
        message = in_words_of_source(trap)
        return DeviceTrap(message, kind=fault.kind.name.lower().replace("_", " "), **location)
    if fault.kind in PRECONDITIONS:
        kind, message = _precondition_message(fault, program, at)
        nearest = None
    elif fault.kind in TENSOR_FAULTS:
        operation = program.instructions[fault.instruction].operation
        kind, message = tensor_fault(fault.kind, operation, fault.address, fault.size, at)
        nearest = None
    elif fault.kind in TENSOR_MEMORY_FAULTS:
        operation = program.instructions[fault.instruction].operation
        recorded = fault.kind, operation, fault.address, fault.size
        kind, message = tensor_memory_fault(*recorded, at)
        nearest = None
    elif fault.space in (Space.TEXTURE, Space.SURFACE):
        operation = program.instructions[fault.instruction].operation
        kind, message = texel_fault(fault.kind, operation, fault.address, fault.size, at)
        nearest = None
    else:
        kind = fault.kind.name.lower().replace("_", " ")
        message = _access_message(fault, program, at, nearest)
    message = in_words_of_source(message)
    return MemoryFault(
        message, kind=kind, address=fault.address, size=fault.size, nearest=nearest, **location
    )


def _header_text(fault: Fault, program: Program) -> str:
    """Returns " (in FILE:LINE)" if the fault is in a CUDA header that was inlined into the user's
    line: the header's name, without folders, and its line. Empty for a header that is built in, for
    code of no header, and if the instruction has no source position."""
    location = program.instructions[fault.instruction].location
    if location is None or location.written is location or location.file.endswith(BUILT_IN_HEADER):
        return ""
    return f" (in {PurePath(location.file).name}:{location.line})"


class _FaultLocation(TypedDict):
    """The source line, kernel, thread block and thread of a fault."""

    kernel: str
    line: str
    block: Dim3
    thread: Dim3


def _access_message(fault: Fault, program: Program, at: str, nearest: Allocation | None) -> str:
    """Returns the message of an access that is out of bounds, misaligned, or a write to read-only
    memory; `at` is the text that states where it happened."""
    noun = _access_noun(program.instructions[fault.instruction])
    title = {
        FaultKind.OUT_OF_BOUNDS: f"Invalid __{fault.space.value}__ {noun}",
        FaultKind.MISALIGNED: f"Misaligned __{fault.space.value}__ {noun}",
        FaultKind.READ_ONLY: f"Forbidden __{fault.space.value}__ {noun} (read-only memory)",
    }[fault.kind]
    return (
        f"{title} of size {fault.size} bytes\n    {at}\n"
        f"    Address {fault.address:#x} is {_locate(fault, nearest)}\n"
        f"    {_advice(fault, program, nearest)}"
    )


def _access_noun(instruction: Instruction) -> str:
    """Returns the noun for the access that an instruction makes: that of ACCESS_NOUNS, else by its
    first access "read", "write" or "atomic"; "atomic" for one without accesses."""
    kind = instruction.operation.kind
    if kind in ACCESS_NOUNS:
        return ACCESS_NOUNS[kind]
    ops = [op for _, op in accesses(instruction)]
    return {"load": "read", "store": "write"}.get(ops[0] if ops else "", "atomic")


def _precondition_message(fault: Fault, program: Program, at: str) -> tuple[str, str]:
    """Returns the kind and the message of a fault in which operands break a precondition of the
    instruction: title, rule and remedy of the precondition (PRECONDITIONS)."""
    broken = PRECONDITIONS[fault.kind]
    title = broken.title.format(
        opcode=program.instructions[fault.instruction].operation.opcode,
        value=fault.size,
        address=fault.address,
        space=fault.space.value,
    )
    return broken.kind, f"{title}\n    {at}\n    {broken.rule}\n    {broken.remedy}"


def _trap_message(fault: Fault, program: Program, launch: Launch, at: str) -> str | None:
    """Returns the message of a fault that ends in DeviceTrap: a trap, a bad barrier, or a fault of
    a call (call stack overflow), a member mask, a register count or a warp group; None for
    others."""
    if fault.kind is FaultKind.TRAP:
        return (
            f"trap executed\n    {at}\n    The kernel stopped itself with a trap instruction; "
            "check the condition under which it executes this line."
        )
    if fault.kind is FaultKind.BAD_BARRIER:
        return (
            f"barrier {fault.address} for {fault.size or 'all'} threads\n    {at}\n    A block "
            "has barriers 0 to 15, and the number of threads must be a multiple of "
            f"{launch.warp_size}."
        )
    message = _call_message(fault, program, at) or _members_message(fault, program, at)
    message = message or _register_message(fault, program, launch, at)
    return message or _group_message(fault, program, launch, at)


def _call_message(fault: Fault, program: Program, at: str) -> str | None:
    """Returns the message of a call stack overflow (an out-of-bounds access to local memory by an
    instruction of a call), or of a call or indexed branch without a valid target; None for other
    faults."""
    # `private` instructions access the call stack; `hidden` ones maintain it for calls.
    own = fault.instruction in program.private
    if own and fault.space is Space.LOCAL and fault.kind is FaultKind.OUT_OF_BOUNDS:
        return (
            f"the thread's call stack is full\n    {at}\n    Calls are nested too deeply, or "
            "alloca allocates too much. Give the device a larger stack (stack_bytes), or end the "
            "recursion earlier."
        )
    if fault.kind is not FaultKind.BAD_INDEX:
        return None
    if fault.instruction in program.hidden:
        return (
            "call through an address that is not a function with matching parameters and results\n"
            f"    {at}\n    Check that code in this module has set the pointer."
        )
    return (
        f"indexed branch to a target that is not in its list: index {fault.address}\n    {at}\n   "
        " Such a branch is undefined behavior; check the index first."
    )


def _members_message(fault: Fault, program: Program, at: str) -> str | None:
    """Returns the message of a lane that is not in the member mask which it passes
    (`fault.address`); None for other faults."""
    if fault.kind is not FaultKind.NOT_A_MEMBER:
        return None
    opcode = program.instructions[fault.instruction].operation.opcode
    return (
        f"lane {fault.lane} is not in its own member mask {fault.address:#010x}\n    {at}\n    "
        f"The behavior of {opcode} is then undefined. Every lane that executes it must be in the "
        "mask: pass the whole warp (0xffffffff), or compute the mask with __ballot_sync() before "
        "the branch at which the lanes diverge."
    )


def _register_message(fault: Fault, program: Program, launch: Launch, at: str) -> str | None:
    """Returns the message of a `setmaxnreg` with undefined behavior; None for other faults.
    `fault.address` is the count that it names; `fault.size` packs an error code (from bit CODE_AT)
    and the number of registers that a thread of the warp has."""
    if fault.kind is not FaultKind.REGISTER_COUNT:
        return None
    opcode = program.instructions[fault.instruction].operation.opcode
    code, number = fault.size >> CODE_AT, fault.size & (1 << CODE_AT) - 1
    verb, less, opposite = (
        ("releases", "fewer", "inc") if code == HAS_LESS else ("requests", "more", "dec")
    )
    return (
        f"{opcode} {fault.address} in a warp whose threads have {number} registers\n    {at}\n    "
        f'PTX ISA, "setmaxnreg": the behavior is undefined if a warp that {verb} registers has '
        f"{less} than the given number. Use .{opposite} here, or pass another number."
    )


def _group_message(fault: Fault, program: Program, launch: Launch, at: str) -> str | None:
    """Returns the message of a warp-group product (`wgmma`) without a full warp group, or with too
    many products in flight; None for other faults."""
    opcode = program.instructions[fault.instruction].operation.opcode
    if fault.kind is FaultKind.PART_OF_A_WARP_GROUP:
        return (
            f"{opcode} by a warpgroup that has fewer than 4 warps\n    {at}\n    The block has "
            f"{launch.threads_per_block} threads; a warpgroup consists of 4 warps, and the index "
            "of the first warp is a multiple of 4. Make the number of threads per block a multiple "
            "of 128."
        )
    if fault.kind is FaultKind.TOO_MANY_IN_FLIGHT:
        return (
            f"{opcode} while {CAPACITY} products of the warp are in flight\n    {at}\n    With "
            "this schedule, a product completes only when the warp waits for it, and at most "
            f"{CAPACITY} products can be in flight. Wait for some products (wgmma.wait_group), or "
            "use the default schedule."
        )
    return None


def _locate(fault: Fault, nearest: Allocation | None) -> str:
    """Returns a text that states where the faulting address is relative to the nearest allocation:
    after, before, too close to its end, or inside; or that there is no allocation."""
    if is_null(fault.space, fault.address):
        return "not in any allocation."
    if nearest is None:
        return "not in any allocation: there is no live allocation."
    name = f"{nearest.name} ({nearest.size} bytes at {nearest.address:#x})"
    end = nearest.address + nearest.size
    address = signed_address(fault.space, fault.address)
    if address >= end:
        return f"{address - end} bytes after the nearest allocation, {name}."
    if address < nearest.address:
        return f"{nearest.address - address} bytes before the nearest allocation, {name}."
    # The access begins in the allocation and ends behind it.
    if fault.address + fault.size > end:
        return f"only {end - fault.address} bytes before the end of {name}."
    return f"inside {name}."


def _advice(fault: Fault, program: Program, nearest: Allocation | None) -> str:
    """Returns the sentence of a message that states how to fix an access: chosen by the operation
    (tensor map, matrix descriptor), else by the kind of fault."""
    operation = program.instructions[fault.instruction].operation
    if operation.kind in (OpKind.TENSOR_COPY, OpKind.TENSOR_PREFETCH):
        return (
            "Check the tensor map: its address, dimensions and strides, and whether the memory "
            "that it describes is still allocated; for shared memory, check the size of the box."
        )
    if operation.kind is OpKind.GROUP_PRODUCT or operation.has(Effect.USES_TENSOR_MEMORY):
        return (
            "Check the matrix descriptor: its start address, its leading and stride byte offsets, "
            "its swizzle, and whether the matrix is transposed."
        )
    if fault.kind is FaultKind.MISALIGNED:
        return f"The address must be a multiple of {fault.size}, the access size in bytes."
    if fault.kind is FaultKind.READ_ONLY:
        return (
            "Kernels cannot write to constant memory; use __device__ memory. Kernels also cannot "
            "write to the device copy of a read-only host array, because the results could not be "
            "copied back; pass a copy, x.copy()."
        )
    return bounds_advice(fault.space, fault.address, program, nearest)
