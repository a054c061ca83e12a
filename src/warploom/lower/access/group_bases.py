"""Emits the base addresses of an access group (accesses of a block from one base register), which
its guard then looks up in the range cache; tests varying addresses for a stride.

For affine addresses the first lane of each lane run suffices; varying addresses are compared with
`first + lane * step`, where the step is that of lanes 0 and 1:

    0x100, 0x108, 0x110, ...   step 8: strided
    0x100, 0x108, 0x118, ...   lane 2 differs: no group, the access is not inlined

The last lane is compared first, in scalar code: where lanes have left a loop before at different
iterations, as the remainder of an unrolled loop, it mostly differs, and the others are skipped.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import unsigned
from warploom.ir.access_plans import Guard
from warploom.isa.instruction import Address, Instruction, Operand, Register, Space
from warploom.llvm.lanes import I1, I64, LANES, Value, selection
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.memory import MemoryCode

EIGHT = ir.VectorType(I64, 8)
"""Addresses that are compared at once: 512 bits."""


class GroupBases:
    """Emits the base addresses of access groups (accesses of a block from one base register): the
    register's value in the first lane of each lane run."""

    def __init__(self, memory: MemoryCode) -> None:
        """Stores the memory code, whose operands give base registers."""
        self.memory, self.lanes, self.b = memory, memory.lanes, memory.b

    def emit(self, group: GroupValues, instruction: Instruction, on: Value) -> Value | None:
        """Sets a group's base addresses, `bases` and `firsts`, from the base register of
        `instruction`, one of its accesses, and for varying addresses its `step`. For varying ones
        returns true (an i1) if the active lanes of each lane run follow with that step (for the
        guard ELEMENT: of an element's size); None for affine ones (CACHE), and where each lane is a
        run (LANES)."""
        address = instruction.operands[0 if group.access_type.op == "store" else 1]
        if group.plan.guard is Guard.CACHE:
            self._affine_bases(group, address)
            return None
        if group.plan.guard is Guard.LANES:
            self._lane_bases(group, address, on)
            return None
        return self._strided_bases(group, address, on)

    def _affine_bases(self, group: GroupValues, address: Operand) -> None:
        """Sets `bases` (a vector) and `firsts` (its lanes as single values) of affine addresses to
        the base register's value, without the offset, in the first lane of each lane run."""
        width = group.base.width
        group.bases = self._base(group, address, width)
        group.firsts = [self.lanes.lane(group.bases, run) for run in range(width)]

    def _lane_bases(self, group: GroupValues, address: Operand, on: Value) -> None:
        """Sets the bases where each lane is a run of its own: `bases` has the base register's value
        in all 32 lanes, inactive ones with that of lane 0; `firsts` has that of lane 0 alone."""
        addresses = self._base(group, address)
        first_base = self.lanes.lane(addresses, 0)
        # Pitches of all 32 lanes are compared: what an inactive lane holds must not make them
        # differ.
        group.bases = self.b.select(on, addresses, self.lanes.splat(first_base))
        group.firsts = [first_base]

    def _base(self, group: GroupValues, address: Operand, width: int = LANES) -> Value:
        """Returns the register or variable of an address, without its offset, in `width` 64-bit
        lanes.

        In shared memory, 32-bit addresses in the upper half count as negative. No access there is
        valid, but inactive lanes may have them where active lanes of their run are inside."""
        operands = self.memory.operands
        assert isinstance(address, Address)
        register, shared = address.base, group.access_type.space is Space.SHARED
        if shared and isinstance(register, Register) and register.type.bits == 32:
            narrow = operands.read(register, unsigned(32), width=width)
            return self.b.sext(narrow, ir.VectorType(I64, width))
        return operands.base(address, width)

    def _strided_bases(self, group: GroupValues, address: Operand, on: Value) -> Value:
        """Sets `bases` and `firsts` (as `_affine_bases`: the base register's value in the first
        lane of each lane run) and the step of varying addresses, which is lane 1's minus lane 0's,
        whether these are active or not. Returns true (an i1) if the active lanes of each run are
        strided by that step, which under the guard ELEMENT must also be the element's size."""
        b, runs, addresses = self.b, group.base.width, self._base(group, address)
        heads = selection(range(0, LANES, LANES // runs))
        group.bases = b.shuffle_vector(addresses, addresses, heads)
        group.firsts = [self.lanes.lane(group.bases, run) for run in range(runs)]
        # The step of lanes 0 and 1 is only a guess, which `_is_strided` compares with all lanes.
        group.step = b.sub(self.lanes.lane(addresses, 1), group.firsts[0])
        is_strided = self._is_strided(addresses, LANES // runs, group.step, on)
        if group.plan.guard is Guard.ELEMENT:
            size = I64(group.access_type.size)
            is_strided = b.and_(is_strided, b.icmp_unsigned("==", group.step, size))
        return is_strided

    def _is_strided(self, addresses: Value, length: int, step: Value, on: Value) -> Value:
        """Returns true (an i1) if in each lane run of `length` lanes, the active ones are at the
        run's first lane's address plus `step` times their number in the run. All lanes are compared
        only if the last lane of the first run is at its address so computed, or inactive; else the
        result is false at once."""
        b, last = self.b, length - 1
        distance = b.sub(self.lanes.lane(addresses, last), self.lanes.lane(addresses, 0))
        is_there = b.icmp_unsigned("==", distance, b.mul(step, I64(last)))
        is_off = b.not_(self.lanes.lane(on, last))
        before, compare, done = (
            b.block,
            *(b.append_basic_block(n) for n in ("compare_steps", "steps_compared")),
        )
        # A test of scalars: where lanes left a loop before at different iterations, as in the
        # remainder of an unrolled loop, the addresses of most warps have no step.
        b.cbranch(b.or_(is_there, is_off), compare, done)
        b.position_at_end(compare)
        are_all_strided = self._are_all_strided(addresses, length, step, on)
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I1)
        result.add_incoming(I1(0), before)
        result.add_incoming(are_all_strided, compare)
        return result

    def _are_all_strided(self, addresses: Value, length: int, step: Value, on: Value) -> Value:
        """Returns true (an i1) if in each lane run of `length` lanes, the active ones are at the
        run's first lane's address plus `step` times their number in the run."""
        b, lanes, zeros = self.b, self.lanes, ir.Constant(EIGHT, None)
        numbers = ir.Constant(EIGHT, [I64(lane % length) for lane in range(EIGHT.count)])
        offsets = b.mul(numbers, lanes.splat(step, EIGHT.count))
        differences: Value = zeros
        for begin in range(0, LANES, EIGHT.count):
            part = range(begin, begin + EIGHT.count)
            heads = b.shuffle_vector(
                addresses, addresses, selection(n // length * length for n in part)
            )
            expected = b.add(heads, offsets)
            # A run of more than 8 lanes: `offsets` counts from the begin of each part.
            if begin % length:
                part_offset = lanes.splat(b.mul(step, I64(begin % length)), EIGHT.count)
                expected = b.add(expected, part_offset)
            difference = b.xor(b.shuffle_vector(addresses, addresses, selection(part)), expected)
            active = b.shuffle_vector(on, on, selection(part))
            differences = b.or_(differences, b.select(active, difference, zeros))
        return b.not_(lanes.some(b.icmp_unsigned("!=", differences, zeros)))
