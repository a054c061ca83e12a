"""Emits the checks in an out-of-line access function: that every active lane is aligned and inside
of one allocation or state space.

The fast path is one comparison for all lanes. For allocation bounds [0x1000, 0x2000), 4-byte
elements and lanes 0x1000, 0x1004, ... it reduces `address - 0x1000` by unsigned max, compares with
0xffc, and tests the low two bits of the OR of all addresses. Only if that fails does a helper look
up each lane (`helpers.checks`), which finds other allocations and makes the fault.
"""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I64, PTR, Value, repeated
from warploom.llvm.vector_shuffles import reduce_to_8_lanes
from warploom.lower.access.access_call import AccessCall


class AccessCheck:
    """Emits the checks of one access function: alignment and bounds of the active lanes.

    Bounds are those of an allocation (global and constant memory) or of the space."""

    def __init__(self, access: AccessCall) -> None:
        """Stores the access function to whose code the checks are emitted."""
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def fault(self, bits: Value) -> Value:
        """Returns the fault code (an i64) of an access by the lanes `bits` (an i64, not empty): 0,
        or 1 with the fault recorded in the environment. Calls the helper that checks lane by lane
        only if some active lane is misaligned or outside of the bounds: in global and constant
        memory those of the allocation cached for the access record (if none is cached, always),
        else those of the space. The helper alone checks whether memory is read-only."""
        b, access, size = self.b, self.access, I64(self.access.access_type.size)
        in_global = access.access_type.space in (Space.GLOBAL, Space.CONST)
        low = b.load(access.cache, typ=I64) if in_global else I64(0)
        high = b.load(self.lanes.slot(access.cache, 1), typ=I64) if in_global else access.limit
        last_start = b.sub(b.sub(high, low), size)
        # An address below `low` wraps around to a large offset, so one unsigned comparison covers
        # both ends.
        offsets = b.sub(self.access.addresses, self.lanes.splat(low))
        on = self.lanes.wide_mask(self.access.bits)
        largest = reduce_to_8_lanes(self.lanes, "umax", offsets, on)
        outside = b.icmp_unsigned(">", largest, self.lanes.splat(last_start, largest.type.count))
        if self.access.access_type.size > 1:
            inside = repeated(self.access.access_type.size - 1, I64, largest.type.count)
            misaligned = b.and_(
                reduce_to_8_lanes(self.lanes, "or", self.access.addresses, on), inside
            )
            none = repeated(0, I64, largest.type.count)
            outside = b.or_(outside, b.icmp_unsigned("!=", misaligned, none))
        # Whether memory is writable is not compared: the helper caches the bounds of an allocation
        # for a store or atomic only if it is.
        any_outside = self.lanes.some(outside)
        entry = b.block
        slow, done = (
            self.access.function.append_basic_block(name) for name in ("check_lanes", "checked")
        )
        # A span below zero means that no allocation is cached, or that it is shorter than one
        # element: the unsigned comparison above would accept every lane.
        b.cbranch(b.or_(any_outside, b.icmp_signed("<", last_start, I64(0))), slow, done)
        b.position_at_end(slow)
        fault = self._check_lanes(
            self.access.store_lanes(self.access.addresses), bits, in_global=in_global
        )
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I64)
        result.add_incoming(I64(0), entry)
        result.add_incoming(fault, slow)
        return result

    def _check_lanes(self, scratch: Value, bits: Value, *, in_global: bool) -> Value:
        """Calls the helper that checks each active lane of the addresses at `scratch` and records
        the fault of the lowest failing one: `check_global` for global and constant memory, which
        searches the allocations and updates the cached bounds, or `check_span`, by the length of
        the space. Returns its fault code, 0 or 1."""
        size = I64(self.access.access_type.size)
        if not in_global:
            return call(
                self.lanes,
                "check_span",
                scratch,
                bits,
                size,
                self.access.limit,
                self.access.environment,
            )
        write = I64(int(self.access.access_type.op != "load"))
        allocations = self.b.inttoptr(self.access.slot(Slot.ALLOCATIONS_AT), PTR)
        arguments = (scratch, bits, size, write, self.access.environment, allocations)
        return call(self.lanes, "check_global", *arguments, self.access.cache)
