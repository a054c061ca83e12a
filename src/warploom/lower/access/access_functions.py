"""Makes the out-of-line functions that perform an access at any addresses, one for each access type
(of atomics also each operation) in a module, or shared by all kernels.

Such a function checks every lane (`access_check`), counts the access (`access_costs`), and moves
the data (`access_moves`, `lane_by_lane`). Accesses whose addresses are uniform or affine are
inlined instead (`affine_access`); they call these functions only where their guard fails.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import WIDE, AccessType, access_signature, record_memory_change
from warploom.abi.environment import Slot
from warploom.core.types import U64
from warploom.cost.device_rules import AccessRules
from warploom.helpers.calls import call
from warploom.ir.access_plans import Cost
from warploom.isa.instruction import Space
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.isa.spec import Operation
from warploom.llvm.lanes import I32, I64, PTR, Value
from warploom.lower.access.access_call import AccessCall
from warploom.lower.access.access_check import AccessCheck
from warploom.lower.access.access_costs import AccessCosts
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.access.deferred_atomic import KEYS_TYPE, emit_deferred
from warploom.lower.access.lane_by_lane import AtomicUpdate, LaneByLane
from warploom.lower.access.shared_functions import SharedFunctions

SAME_RESULT = ("sem", "scope", "space", "L2::cache_hint")
"""Modifiers of an atomic that do not change what it computes."""


class AccessFunctions:
    """Creates a module's functions that perform accesses out of line, one for each access type.

    An access function accepts any addresses. It is emitted in the module itself, or declared among
    the functions that all kernels share (`shared`), on first use."""

    def __init__(
        self,
        module: ir.Module,
        rules: AccessRules,
        *,
        shuffles: bool,
        concurrent: bool = False,
        shared: SharedFunctions | None = None,
    ) -> None:
        """Sets the rules by which functions count and, in `shuffles`, whether an order policy may
        choose among lanes, in `concurrent`, whether workers may conflict; with `shared`, functions
        are declared there, not defined in the module (but for deferred atomics)."""
        self.module, self.rules, self.shuffles = module, rules, shuffles
        self.concurrent = concurrent
        self._shared = shared

    def plain(self, access_type: AccessType) -> Value:
        """Returns the function for a load or a store: emitted in the module, or declared if
        functions are shared, on first use."""
        return self._get(f"access.{access_type.name}", access_type, None)

    def atomic(
        self, access_type: AccessType, operation: Operation, count: int, *, returns_old: bool
    ) -> Value:
        """Returns the function for an atomic with `count` operands, emitted or declared on first
        use. The data buffer holds the elements of at most two operands, then those of the old value
        if the function returns it (`returns_old`)."""
        name = _name_of("access", access_type, operation, count, returns_old=returns_old)
        update = AtomicUpdate.of(operation, count, access_type.space.value, returns_old=returns_old)
        return self._get(name, access_type, update)

    def deferred(
        self,
        access_type: AccessType,
        operation: Operation,
        count: int,
        *,
        returns_old: bool,
        uniform: bool,
    ) -> Value:
        """Returns the function for an atomic that is performed at once and counted later, in a
        batch (`lower.access.deferred_atomic`); emitted on first use, always in the module. `count`
        is the number of operands that are combined with memory. If `uniform`, the data buffer holds
        one element for all lanes, else 32 of each operand."""
        name = _name_of(
            f"deferred{'.uniform' * uniform}",
            access_type,
            operation,
            count,
            returns_old=returns_old,
        )
        if name not in self.module.globals:
            access = self._begin(name, access_type, KEYS_TYPE)
            update = AtomicUpdate.of(
                operation, count, access_type.space.value, returns_old=returns_old
            )
            emit_deferred(access, update, uniform=uniform)
        return self.module.globals[name]

    def completion(self) -> Value:
        """Returns the function that subtracts arrived bytes from mbarriers' pending byte counts
        (`complete_tx`), 64-bit words of shared memory: updated lane by lane like an atomic, but
        counted as a store. Emitted or declared on first use."""
        access_type = AccessType("store", Space.SHARED, U64)
        return self._get(
            "access.complete_tx",
            access_type,
            AtomicUpdate.of(COMPLETE_TX, 1, "", returns_old=False),
        )

    def _get(self, name: str, access_type: AccessType, update: AtomicUpdate | None) -> Value:
        """Returns the function of a name, from the shared ones if there are any, else from the
        module; emits or declares it on first use. `update`: the change of memory by an atomic or
        `complete_tx`, None for loads and stores."""
        if self._shared is not None:
            return self._declare_shared(self._shared, name, access_type, update)
        if name not in self.module.globals:
            _emit(self._begin(name, access_type), update)
        return self.module.globals[name]

    def _begin(self, name: str, access_type: AccessType, addresses: ir.Type = WIDE) -> AccessCall:
        """Declares a function of the module, and begins its body."""
        return AccessCall(
            self.module,
            name,
            access_type,
            self.rules,
            shuffles=self.shuffles,
            concurrent=self.concurrent,
            addresses=addresses,
        )

    def _declare_shared(
        self,
        shared: SharedFunctions,
        name: str,
        access_type: AccessType,
        update: AtomicUpdate | None,
    ) -> Value:
        """Declares and returns a function that kernels share, under a name that includes the
        device's rules and whether an order policy chooses among lanes; a definition is stored with
        it in case no compiled one is cached.
        """
        order = "shuffled." if self.shuffles else ""
        full_name = f"{name}.{order}{self.rules.name}"

        def define(module: ir.Module) -> None:
            """Emits the function, visible to other modules, into a module of its own."""
            access = AccessCall(module, full_name, access_type, self.rules, shuffles=self.shuffles)
            access.function.linkage = "external"
            _emit(access, update)

        return shared.declare(full_name, access_signature(WIDE), define)


def _name_of(
    prefix: str, access_type: AccessType, operation: Operation, count: int, *, returns_old: bool
) -> str:
    """Returns a function name that identifies everything an atomic's function does: whether it
    returns old values, modifiers but those of SAME_RESULT (semantics, scope), elements, operands
    and space. Two atomics of one name share one function."""
    selected = operation.modifiers.values.items()
    text = ".".join(choice for slot, choice in selected if slot not in SAME_RESULT)
    kind = "atomic" if returns_old else "reduction"
    return f"{prefix}.{kind}.{text}x{access_type.parts}.{count}.{access_type.space.value}"


def _emit(access: AccessCall, update: AtomicUpdate | None) -> None:
    """Emits the body of an access function. Without active lanes it returns 0 at once. It checks
    the access, and returns the fault code of one that fails; counts costs by the access plan, also
    in simulated caches; moves the data, and returns 0. A load moves its data before it counts.
    `update`: the change of an atomic, None for loads and stores; a store with one is an mbarrier's
    completion, counted without patterns. Under an order policy, only the surviving one of several
    stores to an address is done (but in local memory): `access.bits` has only these lanes
    afterwards. A store also counts as one change of memory."""
    b, access_type, moves = access.lanes.b, access.access_type, AccessMoves(access)
    # No lane is on: nothing is counted, and the checks below may assume a lowest lane.
    with b.if_then(b.icmp_unsigned("==", access.bits, I32(0))):
        b.ret(I64(0))
    wide = b.zext(access.bits, I64)
    fault = AccessCheck(access).fault(wide)
    with b.if_then(b.icmp_unsigned("!=", fault, I64(0))):
        b.ret(fault)
    offsets = moves.physical(access.addresses)
    stored_offsets = access.store_lanes(offsets) if update is not None else None
    first_and_step: tuple[Value, Value] | None = None
    counted = access.plan.cost is not Cost.NONE
    # A load moves its data before the costs are counted, so that a cache miss of the host overlaps
    # with the counting.
    move_early = moves.move if counted and access_type.op == "load" else None
    if counted:
        costs = AccessCosts(access)
        if access_type.op == "store" and stored_offsets is not None:
            # The record's patterns belong to the copy that this completes, whose element size
            # differs: a match would count the wrong costs.
            costs.count_without_pattern(wide, stored_offsets)
        else:
            first_and_step = costs.count(wide, offsets, stored_offsets, move_early)
        costs.count_in_caches(wide, offsets)
    if update is not None and stored_offsets is not None:
        LaneByLane(access, moves, update).emit(wide, stored_offsets)
    elif move_early is None:
        selected = access.shuffles and access_type.space is not Space.LOCAL
        if access_type.op == "store" and selected:
            access.bits = b.trunc(_surviving_stores(access, wide, offsets), I32)
        moves.move(first_and_step)
    if access_type.op == "store":
        record_memory_change(access.lanes, access.environment, I64(1))
    b.ret(I64(0))


def _surviving_stores(access: AccessCall, bits: Value, offsets: Value) -> Value:
    """Emits the call of the helper `lasting`, and returns the lanes (an i64 mask) of `bits` whose
    stores survive: of several that store to one address, the one that the launch's order policy
    chooses (`cost.writes.lasting`). In code for no policy `bits` is returned: all lanes store, and
    the highest one survives."""
    plan = access.lanes.b.inttoptr(access.slot(Slot.PLAN_AT), PTR)
    return call(
        access.lanes, "lasting", access.store_lanes(offsets), bits, plan, access.slot(Slot.BLOCK)
    )
