"""Conditions that the PTX ISA sets for instructions of asynchronous copies and barriers in memory.

An instruction that breaks one has undefined behavior; both machines stop at it with a fault. A
condition is a term over source operands, or over the word in memory that an atomic finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.asynchronous.mbarrier import COUNT_BITS, VALID_AT
from warploom.core.lazy import cached_property
from warploom.core.types import PRED, U32, U64
from warploom.isa.terms import Term, argument, eq, extend, ne


@dataclass(frozen=True, eq=False)
class Precondition:
    """A condition, and the text of the fault where it does not hold.

    `operands` names the source operands that `holds` takes, addresses as .u64 and others as .u32;
    the fault shows the value of the first. Without any, `holds` takes the word in memory.
    `number` is that of the fault (`machine.faults.fault_errors.FaultKind`), `kind` what
    `MemoryFault.kind` says. `title` may show {opcode}, {value}, {address} and {space}.
    """

    name: str
    number: int
    kind: str
    operands: tuple[str, ...]
    holds: Callable[..., Term]
    title: str
    rule: str
    remedy: str

    @cached_property
    def of_memory(self) -> Term:
        """Returns the condition on the word of 64 bits that an atomic finds."""
        return self.holds(argument(0, U64))

    def of_operands(self, addresses: tuple[bool, ...]) -> Term:
        """Returns the condition on the operands; `addresses` says which of them are addresses."""
        types = (U64 if is_address else U32 for is_address in addresses)
        return self.holds(*(argument(index, type) for index, type in enumerate(types)))


BULK_UNIT = 16
"""Sizes and addresses of bulk copies are multiples of it (PTX ISA, "cp.async.bulk")."""

BUFFERS = "Align the buffer (alignas(16)), and use offsets that are multiples of 16."


def _in_units(value: Term) -> Term:
    """Returns whether a value is a multiple of 16 bytes, the unit of bulk copies."""
    return eq(value & (BULK_UNIT - 1), 0)


def _is_count(count: Term) -> Term:
    """Returns whether an mbarrier can expect that many arrivals: not 0, and within its field."""
    return (count - 1) < (1 << COUNT_BITS) - 1


def _is_valid(word: Term) -> Term:
    """Returns whether a word in memory is an initialized mbarrier."""
    return ne(word & (1 << VALID_AT), 0)


def _source_fits(count: Term, size: Term) -> Term:
    """Returns whether the bytes that are read of the source are no more than those written."""
    return count <= size


def _source_is_aligned(source: Term, size: Term, count: Term) -> Term:
    """Returns whether the source is aligned to the size of the copy; it need not be if nothing is
    read."""
    aligned = eq(source & (extend(size, U64) - 1), 0)
    return Term("or", PRED, (aligned, eq(count, 0)))


INITIALIZED = Precondition(
    "initialized",
    14,
    "invalid mbarrier",
    (),
    _is_valid,
    "{opcode} on an uninitialized mbarrier, at {space} address {address:#x}",
    'PTX ISA, "mbarrier.inval": without a valid mbarrier object, only mbarrier.init is allowed.',
    "Initialize it with mbarrier.init in one thread, and execute __syncthreads() before other"
    " threads use it.",
)
COUNT = Precondition(
    "count",
    15,
    "bad count",
    ("count",),
    _is_count,
    "{opcode} with a count of {value}",
    'PTX ISA, "mbarrier.init": the count must be from 1 to 2^20 - 1.',
    "Pass the number of arrivals that complete a phase.",
)
BULK_SIZE = Precondition(
    "bulk_size",
    16,
    "bad size",
    ("size",),
    _in_units,
    "{opcode} of {value} bytes",
    'PTX ISA, "cp.async.bulk": the size must be a multiple of 16.',
    "Copy the bytes after the last multiple of 16 with ordinary loads and stores.",
)
BULK_TARGET = Precondition(
    "bulk_target",
    17,
    "misaligned",
    ("d",),
    _in_units,
    "{opcode} to address {address:#x}",
    'PTX ISA, "cp.async.bulk": the destination address must be a multiple of 16.',
    BUFFERS,
)
BULK_SOURCE = Precondition(
    "bulk_source",
    18,
    "misaligned",
    ("a",),
    _in_units,
    "{opcode} from address {address:#x}",
    'PTX ISA, "cp.async.bulk": the source address must be a multiple of 16.',
    BUFFERS,
)
SOURCE_SIZE = Precondition(
    "source_size",
    19,
    "bad size",
    ("count", "size"),
    _source_fits,
    "{opcode} with {value} source bytes, which is more than it copies",
    'PTX ISA, "cp.async": src-size must not exceed cp-size.',
    "Pass cp-size to copy all bytes, or a smaller value to fill the rest with zeros.",
)
SOURCE_ALIGNMENT = Precondition(
    "source_alignment",
    20,
    "misaligned",
    ("a", "size", "count"),
    _source_is_aligned,
    "{opcode} from address {address:#x}",
    'PTX ISA, "Addresses as Operands": the source address must be a multiple of cp-size,'
    " even if fewer bytes are read.",
    "Use a smaller cp-size (4, 8 or 16), or align the source.",
)

PRECONDITIONS = {
    precondition.number: precondition
    for precondition in (
        *(INITIALIZED, COUNT, BULK_SIZE, BULK_TARGET, BULK_SOURCE),
        *(SOURCE_SIZE, SOURCE_ALIGNMENT),
    )
}
"""All of them by their faults' numbers."""

BY_NAME = {precondition.name: precondition for precondition in PRECONDITIONS.values()}
"""All of them by their names, as declarations of syntax give them (`isa.spec.op`)."""
