"""Emits the checks of an access: alignment, and that all lanes stay inside of an allocation."""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.llvm.lanes import I64, PTR, Value, repeated
from warploom.llvm.vector_shuffles import fold
from warploom.lower.access.access_call import Call
from warploom.ptx.ir import Space


class AccessCheck:
    """Emits the checks of one access."""

    def __init__(self, access: Call) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def fault(self, bits: Value) -> Value:
        """Return the fault of an access, 0 for none; lanes are looked at one by one only where some
        lane leaves what is known to be its own."""
        b, access, size = self.b, self.access, I64(self.access.access_type.size)
        in_global = access.access_type.space in (Space.GLOBAL, Space.CONST)
        low = b.load(access.cache, typ=I64) if in_global else I64(0)
        high = b.load(self.lanes.slot(access.cache, 1), typ=I64) if in_global else access.limit
        span = b.sub(b.sub(high, low), size)
        behind = b.sub(self.access.addresses, self.lanes.splat(low))
        on = self.lanes.wide_mask(self.access.bits)
        furthest = fold(self.lanes, "umax", behind, on)
        outside = b.icmp_unsigned(">", furthest, self.lanes.splat(span, furthest.type.count))
        if self.access.access_type.size > 1:
            inside = repeated(self.access.access_type.size - 1, I64, furthest.type.count)
            crooked = b.and_(fold(self.lanes, "or", self.access.addresses, on), inside)
            none = repeated(0, I64, furthest.type.count)
            outside = b.or_(outside, b.icmp_unsigned("!=", crooked, none))
        some = self.lanes.some(outside)
        known = b.block
        look, seen = (self.access.function.append_basic_block(name) for name in ("look", "seen"))
        b.cbranch(b.or_(some, b.icmp_signed("<", span, I64(0))), look, seen)
        b.position_at_end(look)
        fault = self._look(self.access.told(self.access.addresses), bits, in_global=in_global)
        b.branch(seen)
        b.position_at_end(seen)
        result = b.phi(I64)
        result.add_incoming(I64(0), known)
        result.add_incoming(fault, look)
        return result

    def _look(self, scratch: Value, bits: Value, *, in_global: bool) -> Value:
        """Check the lanes one by one."""
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
        given = (scratch, bits, size, write, self.access.environment, allocations)
        return call(self.lanes, "check_global", *given, self.access.cache)
