"""Describes a memory access of a warp (operation, state space, element type), and the C signature
of the functions that perform accesses out of line.

A table (`ir.access_plans`) chooses how an access is done: inlined by `lower.access.affine_access`,
or by a function that is emitted once for an access type (`lower.access.access_functions`)."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import ScalarType
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, vector
from warploom.simt.schedule_layout import Plan

WIDE = vector(I64)

STACK = "stack"
"""The route of accesses to registers that a call saves in local memory; they are not counted."""

DATA_BYTES = 3 * LANES * 16
"""The size of a buffer for the data of the widest access: 3 operands of 16 bytes for each lane."""


@dataclass(frozen=True)
class AccessType:
    """Describes an access that moves `parts` elements of `type` in each lane.

    `op` is load, store or atomic; `route` the path that a load names, such as past L1
    (`program.accesses`), or STACK.
    """

    op: str
    space: Space
    type: ScalarType
    parts: int = 1
    route: str = ""

    @property
    def name(self) -> str:
        """Returns a name for such accesses, from operation, state space, element type, parts and
        route: the names of the functions that perform them contain it after `access.`."""
        return f"{self.op}.{self.space.value}.{self.type.name}x{self.parts}.{self.route}"

    @property
    def size(self) -> int:
        """Returns the bytes that each lane moves."""
        return self.type.bytes * self.parts

    @property
    def part_bytes(self) -> int:
        """Returns the bytes of one part in all lanes, which is the distance of parts in the data
        buffer."""
        return self.type.bytes * LANES

    @property
    def element(self) -> ir.IntType:
        """Returns the LLVM integer type that has as many bits as one element."""
        return ir.IntType(self.type.bits)


def access_signature(addresses: ir.Type) -> ir.FunctionType:
    """Returns the type of `fault = access(environment, record, cache, addresses, mask, data, base,
    limit)`, whose argument `addresses` has the given type.

    `record` is the access record that counts it, `cache` the bounds of the allocation that it
    touched last, `mask` the active lanes. `base` and `limit` are the host address and the size of
    the space's memory; global memory needs neither. `data` holds the operands of a store or an
    atomic, and receives the result of a load or, after the operands, of an atomic: part by part,
    lane by lane. `fault` is 0, or 1 if the function has recorded a fault in the environment.
    """
    return ir.FunctionType(I64, [PTR, PTR, PTR, addresses, I32, PTR, PTR, I64])


def record_memory_change(lanes: Lanes, environment: Value, amount: Value) -> None:
    """Emits code that adds `amount` to `Plan.changes`, the schedule's count of changes of memory,
    by which the scheduler detects warps that spin on a value that no runnable thread can change
    (`simt.scheduling`)."""
    plan = lanes.b.load(lanes.slot(environment, int(Slot.PLAN_AT)), typ=I64)
    lanes.add_to(lanes.slot(lanes.b.inttoptr(plan, PTR), Plan.changes), amount)
