"""An access of a warp to memory as compiled code sees it: what it moves, and the signature of
functions that do it.

How it is done is chosen by a table (`ir.access_plans`): inlined (`lower.access.affine_access`), or
by a function made once for its kind (`lower.access.access_functions`).
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import ScalarType
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, vector
from warploom.ptx.ir import Space
from warploom.simt.schedule_layout import CHANGES

WIDE = vector(I64)

STACK = "stack"
"""The route of what a call keeps in local memory: it is not counted."""

DATA_BYTES = 3 * LANES * 16
"""Room for the operands or the result of the widest access, lane by lane, part by part."""


@dataclass(frozen=True)
class AccessType:
    """The data that an access moves in each lane: `parts` elements of `type`.

    `route` is the way that a load asks for (`program.accesses`), or STACK.
    """

    op: str
    space: Space
    type: ScalarType
    parts: int = 1
    route: str = ""

    @property
    def name(self) -> str:
        """Return the name that functions for such accesses have."""
        return f"{self.op}.{self.space.value}.{self.type.name}x{self.parts}.{self.route}"

    @property
    def size(self) -> int:
        """Bytes a lane."""
        return self.type.bytes * self.parts

    @property
    def part_bytes(self) -> int:
        """Bytes of one part in all lanes: where the next begins in the data buffer."""
        return self.type.bytes * LANES

    @property
    def element(self) -> ir.IntType:
        return ir.IntType(self.type.bits)


def access_signature(addresses: ir.Type) -> ir.FunctionType:
    """`fault = access(environment, row, cache, addresses, mask, data, base, limit)`.

    `base` and `limit` are where the space's memory begins on the host and how long it is; global
    memory needs neither. `data` holds what is stored, or receives what is loaded.
    """
    return ir.FunctionType(I64, [PTR, PTR, PTR, addresses, I32, PTR, PTR, I64])


def count_change(lanes: Lanes, environment: Value, amount: Value) -> None:
    """Memory may not be what it was: whoever waits for a change may go on (`simt.scheduling`)."""
    plan = lanes.b.load(lanes.slot(environment, int(Slot.PLAN_AT)), typ=I64)
    lanes.add_to(lanes.slot(lanes.b.inttoptr(plan, PTR), CHANGES), amount)
