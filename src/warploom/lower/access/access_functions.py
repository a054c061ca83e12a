"""The functions of accesses that are not the common one, made once for each kind in a module.

A function checks every lane, counts by the device's rules, and gathers or scatters.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import WIDE, AccessType, access_signature, record_memory_change
from warploom.abi.environment import Slot
from warploom.core.types import U64
from warploom.cost.device_rules import AccessRules
from warploom.helpers.calls import call
from warploom.ir.access_plans import Cost
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.isa.spec import Operation
from warploom.llvm.lanes import I32, I64, PTR, Value
from warploom.lower.access.access_call import Call
from warploom.lower.access.access_check import AccessCheck
from warploom.lower.access.access_costs import AccessCosts
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.access.deferred_atomic import KEYS_TYPE, emit_deferred
from warploom.lower.access.lane_by_lane import LaneByLane, Update
from warploom.lower.access.shared_functions import SharedFunctions
from warploom.ptx.ir import Space

SAME_RESULT = ("sem", "scope", "space", "L2::cache_hint")
"""Modifiers of an atomic that do not change what it computes."""


class AccessFunctions:
    """The out-of-line functions of a module, made when they are first asked for: in the module, or
    among those that kernels share (`shared`)."""

    def __init__(
        self,
        module: ir.Module,
        rules: AccessRules,
        *,
        shuffles: bool,
        shared: SharedFunctions | None = None,
    ) -> None:
        self.module, self.rules, self.shuffles = module, rules, shuffles
        self._shared = shared

    def plain(self, access_type: AccessType) -> Value:
        """Return the function for a load or a store."""
        return self._get(f"access.{access_type.name}", access_type, None)

    def atomic(
        self, access_type: AccessType, operation: Operation, count: int, *, tells: bool
    ) -> Value:
        """Return the function for an atomic with `count` operands: the data hold their elements, at
        most two of them, then those of the old value, if it `tells` that."""
        name = _name_of("access", access_type, operation, count, tells=tells)
        update = Update.of(operation, count, access_type.space.value, tells=tells)
        return self._get(name, access_type, update)

    def deferred(
        self,
        access_type: AccessType,
        operation: Operation,
        count: int,
        *,
        tells: bool,
        agreed: bool,
    ) -> Value:
        """Return the same for what goes on a list; if `agreed`, the data hold one operand for
        all."""
        name = _name_of(f"listed{'.agreed' * agreed}", access_type, operation, count, tells=tells)
        if name not in self.module.globals:
            access = Call(
                self.module,
                name,
                access_type,
                self.rules,
                shuffles=self.shuffles,
                addresses=KEYS_TYPE,
            )
            update = Update.of(operation, count, access_type.space.value, tells=tells)
            emit_deferred(access, update, agreed=agreed)
        return self.module.globals[name]

    def completion(self) -> Value:
        """Return the function that tells an mbarrier of bytes which have come; counted as a
        store."""
        access_type = AccessType("store", Space.SHARED, U64)
        return self._get(
            "access.complete_tx", access_type, Update.of(COMPLETE_TX, 1, "", tells=False)
        )

    def _get(self, name: str, access_type: AccessType, update: Update | None) -> Value:
        if self._shared is not None:
            return self._declared(self._shared, name, access_type, update)
        if name not in self.module.globals:
            access = Call(self.module, name, access_type, self.rules, shuffles=self.shuffles)
            _emit(access, update)
        return self.module.globals[name]

    def _declared(
        self, shared: SharedFunctions, name: str, access_type: AccessType, update: Update | None
    ) -> Value:
        """Returns a function of the kernels' own, by a name that tells its rules and order."""
        order = "shuffled." if self.shuffles else ""
        whole = f"{name}.{order}{self.rules.name}"

        def define(module: ir.Module) -> None:
            access = Call(module, whole, access_type, self.rules, shuffles=self.shuffles)
            access.function.linkage = "external"
            _emit(access, update)

        return shared.declare(whole, access_signature(WIDE), define)


def _name_of(
    way: str, access_type: AccessType, operation: Operation, count: int, *, tells: bool
) -> str:
    """Return a name that says all of what an atomic's function does."""
    chosen = operation.modifiers.values.items()
    text = ".".join(choice for slot, choice in chosen if slot not in SAME_RESULT)
    kind = "atomic" if tells else "reduction"
    return f"{way}.{kind}.{text}x{access_type.parts}.{count}.{access_type.space.value}"


def _emit(access: Call, update: Update | None) -> None:
    """Emit the body of one access function."""
    b, access_type, moves = access.lanes.b, access.access_type, AccessMoves(access)
    with b.if_then(b.icmp_unsigned("==", access.bits, I32(0))):
        b.ret(I64(0))
    wide = b.zext(access.bits, I64)
    fault = AccessCheck(access).fault(wide)
    with b.if_then(b.icmp_unsigned("!=", fault, I64(0))):
        b.ret(fault)
    offsets = moves.physical(access.addresses)
    places = access.told(offsets) if update is not None else None
    lie: tuple[Value, Value] | None = None
    counted = access.plan.cost is not Cost.NONE
    early = moves.move if counted and access_type.op == "load" else None
    if counted:
        costs = AccessCosts(access)
        if access_type.op == "store" and places is not None:
            # The patterns of the row are those of the copy that this completes, of another size.
            costs.count_alone(wide, places)
        else:
            lie = costs.count(wide, offsets, places, early)
        costs.look_up(wide, offsets)
    if update is not None and places is not None:
        LaneByLane(access, moves, update).emit(wide, places)
    elif early is None:
        chosen = access.shuffles and access_type.space is not Space.LOCAL
        if access_type.op == "store" and chosen:
            access.bits = b.trunc(_lasting(access, wide, offsets), I32)
        moves.move(lie)
    if access_type.op == "store":
        record_memory_change(access.lanes, access.environment, I64(1))
    b.ret(I64(0))


def _lasting(access: Call, bits: Value, offsets: Value) -> Value:
    """Return the lanes whose stores last, of those that name one address, where a policy chooses;
    else all store, and the highest lasts (`cost.writes.lasting`)."""
    plan = access.lanes.b.inttoptr(access.slot(Slot.PLAN_AT), PTR)
    return call(access.lanes, "lasting", access.told(offsets), bits, plan, access.slot(Slot.BLOCK))
