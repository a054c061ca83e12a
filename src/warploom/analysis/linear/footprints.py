"""Decides before a launch whether its thread blocks are independent: none accesses bytes of global
memory that another writes, nor depends on the order of blocks otherwise.

Independent blocks can run on several workers at a time, with the same result in any order:

    x[blockIdx.x * blockDim.x + threadIdx.x] = 1;     independent: blocks write disjoint bytes
    x[threadIdx.x] = 1;                               not: all blocks write the same bytes
    x[y[threadIdx.x]] = 1;                            unknown: accesses to x are to be tracked

Atomics that leave the same in any order may access one address. So may those whose old values
nobody reads, such as sums of floating-point numbers, if nothing else accesses the memory: they can
be performed later, in the order of blocks. Of other atomics, and of addresses from memory, it
states which accesses a launch has to track to find out. Not handled: instructions whose results
depend on block order otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from warploom.analysis.linear.address_ranges import AddressRanges
from warploom.analysis.linear.affine import GLOBAL_SPACES, NOT_SHARED, LinearAnalysis, MemoryAccess
from warploom.analysis.linear.dependence import (
    AddressRange,
    never_overlap,
    overlap_only_if_equal,
)
from warploom.analysis.linear.forms import IndexVariable, form
from warploom.analysis.linear.predicates import NO_FACTS
from warploom.analysis.linear.ranges import Ranges
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.isa.commuting import commuting_operator, is_deferrable
from warploom.isa.instruction import Instruction, Operand, Special, flatten_operands
from warploom.isa.kinds import ACCESSES_BY_LANE, Effect, OpKind
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.services import is_assert, service_of
from warploom.program.tracking import Tracking
from warploom.program.uses import reads

ORDER_DEPENDENT = ("%clock", "%globaltimer", "%gridid")
"""Special registers (by the beginnings of their names) whose values depend on the order of
blocks."""


BY_LANE = ACCESSES_BY_LANE | {OpKind.COPY, OpKind.BULK_COPY}
"""Instructions, besides atomics, in which each lane accesses what its own operands say."""


@dataclass(frozen=True, slots=True)
class BlockConflicts:
    """States why blocks of a launch may conflict, as a sentence with a source line (`reason`, empty
    if they cannot), and which accesses show at run time whether they do (`tracking`, None if none
    can). `late_updates`: blocks are independent if these atomics are performed in the order of
    blocks (`abi.update_log`), by their numbers."""

    reason: str
    tracking: Tracking | None = None
    late_updates: frozenset[int] = frozenset()


def block_conflicts(program: Program, launch: LaunchInputs) -> BlockConflicts:
    """Returns why blocks of a launch may conflict, so that one worker has to run them unless it
    tracks accesses. The reason is the first that is found of three. An instruction depends on other
    blocks (`order_dependence`). Nothing is known of the address of a load or store, which may be
    in any allocation, and the kernel writes to global memory. An allocation is written to, and its
    accesses are not disjoint by block. Atomics that leave the same in any order are no reason, nor
    are `late_updates`.

    An access is assumed to stay in the allocation that its pointer refers to; one that strays into
    another is a fault of the kernel, for which no schedule is specified."""
    unread = unread_atomics(program)
    commuting = _commuting(program, unread)
    dependences = {
        index: reason
        for index, instruction in enumerate(program.instructions)
        if index not in commuting
        and not is_assert(instruction)
        and (reason := order_dependence(instruction))
    }
    late = frozenset(
        index
        for index in unread & dependences.keys()
        if is_deferrable(program.instructions[index].operation)
    )
    # The order of atomics alone can be found out at run time, by tracking; other dependences
    # cannot.
    reasons = [f"{reason} at {program.line(index)}" for index, reason in dependences.items()]
    if any(reason != ATOMIC_ORDER for reason in dependences.values()):
        return BlockConflicts(reasons[0])
    analysis = LinearAnalysis(program, launch)
    memory_accesses = list(analysis.memory_accesses(GLOBAL_SPACES))
    unknown = [access for access in memory_accesses if access.address.allocations is None]
    writes = [access for access in memory_accesses if access.op != "load"]
    if unknown and writes:
        line = program.line(unknown[0].instruction)
        reasons.append(f"the address at {line} cannot be analyzed")
        return BlockConflicts(reasons[0], _tracking(program, memory_accesses, memory_accesses))
    ranges, conflicting = AddressRanges(analysis), list[MemoryAccess]()
    for in_allocation in by_written_allocation(memory_accesses):
        if _are_independent(in_allocation, ranges, dependences, commuting, late):
            continue
        conflicting += in_allocation
        first_write = next(access for access in in_allocation if access.op != "load")
        line = program.line(first_write.instruction)
        reasons.append(
            f"other blocks may access the same addresses as the {first_write.op} at {line}"
        )
    if late == dependences.keys() and not conflicting:
        return BlockConflicts("", late_updates=late)
    return BlockConflicts(reasons[0], _tracking(program, memory_accesses, conflicting))


def _are_independent(
    in_allocation: Sequence[MemoryAccess],
    ranges: AddressRanges,
    dependences: Mapping[int, str],
    commuting: Mapping[int, str],
    late: Set[int],
) -> bool:
    """Returns whether no two blocks touch the same byte by any of these accesses to one allocation,
    one of them by a write, but for commuting atomics, and for those that are performed `late`,
    whose bytes nothing else may access, in any block."""
    at_once = [access for access in in_allocation if access.instruction not in late]
    if any(access.instruction in dependences for access in at_once):
        return False
    if at_once and not have_own_bytes(at_once, ranges, ranges.blocks, commuting):
        return False
    late_ranges = [ranges.of(access) for access in in_allocation if access.instruction in late]
    others = [ranges.of(access) for access in at_once] if late_ranges else []
    if len(late_ranges) * len(others) > MOST_PAIRS:
        return False
    return all(
        at is not None and other is not None and never_overlap(at, other)
        for at in late_ranges
        for other in others
    )


def by_written_allocation(memory_accesses: Sequence[MemoryAccess]) -> Iterator[list[MemoryAccess]]:
    """Yields, for each allocation that one of these accesses may write, in the order of addresses,
    those that may be in it. Accesses that may be in any allocation are in none."""
    writes = [access for access in memory_accesses if access.op != "load"]
    for allocation in sorted({start for write in writes for start in _allocations(write)}):
        yield [access for access in memory_accesses if allocation in _allocations(access)]


def _allocations(access: MemoryAccess) -> frozenset[int]:
    """Returns the allocations that an access is in, if all that it may be in are known."""
    return access.address.allocations or frozenset()


TRACKED_KINDS = frozenset((OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.REDUCTION))
"""Instructions whose accesses code can record in the access set of a worker."""


def _tracking(
    program: Program, memory_accesses: Sequence[MemoryAccess], conflicting: Sequence[MemoryAccess]
) -> Tracking | None:
    """Returns what to track if `conflicting` accesses may conflict: these, and all other writes,
    which have to be undone if they do. None if code cannot record one of them."""
    reads = frozenset(access.instruction for access in conflicting if access.op == "load")
    writes = frozenset(access.instruction for access in conflicting if access.op != "load")
    all_writes = frozenset(a.instruction for a in memory_accesses if a.op != "load")
    tracked = [a for a in memory_accesses if a.instruction in reads | all_writes]
    kinds = {program.instructions[access.instruction].operation.kind for access in tracked}
    if not kinds <= TRACKED_KINDS:
        return None
    unit = min((access.size for access in tracked), default=1)
    return Tracking(reads, writes, all_writes - writes, unit)


ATOMIC_ORDER = "the result depends on the order of atomics"
"""Why atomics may conflict that do not leave the same in any order."""


def commuting_atomics(program: Program) -> dict[int, str]:
    """Returns the atomics of a program on memory that blocks share which leave the same in any
    order, and whose old values no instruction reads: for each by its number, what it does to
    memory. Two that do the same may access one address in any order."""
    return _commuting(program, unread_atomics(program))


def unread_atomics(program: Program) -> frozenset[int]:
    """Returns the atomics and reductions of a program, by their numbers, whose old values no
    instruction reads. The order of others shows in these values, though memory may end up the
    same."""
    read = frozenset[Operand]().union(*map(reads, program.instructions))
    return frozenset(
        index
        for index, instruction in enumerate(program.instructions)
        if instruction.operation.kind in (OpKind.ATOMIC, OpKind.REDUCTION)
        and read.isdisjoint(
            flatten_operands(instruction.operands[: len(instruction.operation.spec.destinations)])
        )
    )


def _commuting(program: Program, unread: Set[int]) -> dict[int, str]:
    """Returns what those of some atomics do to memory that leave the same in any order."""
    commuting: dict[int, str] = {}
    for index in sorted(unread):
        operation = program.instructions[index].operation
        operator = commuting_operator(operation.combine(operation.value_count))
        if operator is not None:
            commuting[index] = f"{operator} {operation.modifiers.scalar().name}"
    return commuting


def order_dependence(instruction: Instruction) -> str:
    """Returns why an instruction depends on other blocks, whatever its addresses: a call of a
    function of the host, a special register of clocks or the grid's number, a tensor map; an
    atomic, or an access that is not by lane (BY_LANE; matrices, textures, surfaces), in memory that
    blocks share. Empty if it does not."""
    # The call of any other function does nothing: its body follows.
    if service_of(instruction) is not None:
        return "the kernel calls printf or malloc"
    special_names = [
        o.name for o in flatten_operands(instruction.operands) if isinstance(o, Special)
    ]
    if any(name.startswith(ORDER_DEPENDENT) for name in special_names):
        return "the kernel reads a value that depends on block order"
    if instruction.operation.has(Effect.USES_TMA):
        return "the addresses that a tensor map describes are not known"
    for space, op in accesses(instruction):
        if space in NOT_SHARED:
            continue
        if op == "atomic":
            return ATOMIC_ORDER
        if instruction.operation.kind not in BY_LANE:
            return "the kernel accesses memory with matrix, texture or surface instructions"
    return ""


# ---- independence of blocks ---------------------------------------------------------------------

MOST_PAIRS = 2_000
"""Pairs of accesses to one allocation above which they are not compared pair by pair."""


def have_own_bytes(
    memory_accesses: Sequence[MemoryAccess],
    ranges: AddressRanges,
    variables: Sequence[IndexVariable],
    commuting: Mapping[int, str],
) -> bool:
    """Returns whether it is certain that no two blocks (`variables`: their indices) or threads
    (block and thread indices) touch the same byte by any of these accesses (at least one) to one
    allocation, one of them by a write; but for atomics that do the same (`commuting`, by
    instruction)."""
    return are_disjoint(memory_accesses, variables) or _are_disjoint_in_pairs(
        memory_accesses, ranges, variables, commuting
    )


def are_disjoint(
    memory_accesses: Sequence[MemoryAccess], variables: Sequence[IndexVariable]
) -> bool:
    """Returns whether no two blocks, or threads, that differ in `variables` touch the same byte by
    any of these accesses (at least one) to one allocation, whatever facts hold at their
    instructions. They are taken together, as one access of the largest one's size whose constant
    has several values, which needs one comparison. False if addresses are unknown or have different
    strides."""
    forms = [access.address.form for access in memory_accesses]
    forms_known = [known_form for known_form in forms if known_form is not None]
    if len(forms_known) < len(forms) or len({known_form.strides for known_form in forms_known}) > 1:
        return False
    least_constant = min(known_form.constant for known_form in forms_known)
    offsets = [known_form.constant - least_constant for known_form in forms_known]
    # The constants 0, 4 and 12 become 4 times a variable of extent 4, which covers 8 as well: one
    # comparison of the union with itself, instead of one for each pair, at the price of precision.
    unit = math.gcd(*offsets)
    strides = dict(forms_known[0].strides)
    if unit:
        strides[IndexVariable("constant", max(offsets) // unit + 1)] = unit
    together = form(least_constant, strides)
    size = max(access.size for access in memory_accesses)
    every_index = [together, *(form(0, {variable: 1}) for variable in variables)]
    addresses = AddressRange(together, size, Ranges.under(NO_FACTS, every_index))
    return overlap_only_if_equal(addresses, addresses, variables)


def _are_disjoint_in_pairs(
    memory_accesses: Sequence[MemoryAccess],
    ranges: AddressRanges,
    variables: Sequence[IndexVariable],
    commuting: Mapping[int, str],
) -> bool:
    """Returns the same as `have_own_bytes` under the facts at the instructions (guards such as `x <
    width`). Compares each write with each access, but not an atomic with another that does the
    same. False if addresses are unknown, or with more than MOST_PAIRS pairs."""
    bounded = [(access, ranges.of(access)) for access in memory_accesses]
    writes = [(access, at) for access, at in bounded if access.op != "load"]
    if len(writes) * len(bounded) > MOST_PAIRS:
        return False
    return all(
        _do_the_same(write, access, commuting)
        or _differ_where_they_overlap(at, other_range, variables)
        for write, at in writes
        for access, other_range in bounded
    )


def _do_the_same(left: MemoryAccess, right: MemoryAccess, commuting: Mapping[int, str]) -> bool:
    """Returns whether two accesses are atomics that may access one address in any order."""
    does = commuting.get(left.instruction)
    return does is not None and does == commuting.get(right.instruction)


def _differ_where_they_overlap(
    left: AddressRange | None, right: AddressRange | None, variables: Sequence[IndexVariable]
) -> bool:
    """Returns whether it is certain that two accesses with other values of `variables` touch no
    common byte."""
    if left is None or right is None:
        return False
    return never_overlap(left, right) or overlap_only_if_equal(left, right, variables)
