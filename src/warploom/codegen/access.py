"""An access of a warp to memory as compiled code sees it: what it moves, and a call that does it.

Accesses like earlier ones are inlined (`codegen.shaped_access`). Any other goes through a function
made once for its kind (`codegen.access_functions`).
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.codegen.environment import Slot
from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.lanes import I32, I64, LANES, PTR, Lanes, Value, vector
from warploom.core.types import ScalarType
from warploom.ptx.ir import Space
from warploom.rules.atomics import WORD_BYTES
from warploom.rules.choice import AccessRules
from warploom.rules.plan_words import CHANGES

WIDE = vector(I64)

STACK = "stack"
"""The route of what a call keeps in local memory: it is not counted."""

DATA_BYTES = 3 * LANES * 16
"""Room for the operands or the result of the widest access, lane by lane, part by part."""


@dataclass(frozen=True)
class Shape:
    """The data that an access moves in each lane: `parts` elements of `type`.

    `route` is the way that a load asks for (`analysis.accesses`), or STACK.
    """

    op: str
    space: Space
    type: ScalarType
    parts: int = 1
    route: str = ""

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


def can_be_listed(shape: Shape, rules: AccessRules, *, shuffles: bool) -> bool:
    """Returns whether some accesses of that shape are put on a list (`rules.listed`)."""
    words = shape.op == "atomic" and shape.space is Space.SHARED and shape.size == WORD_BYTES
    return words and rules.lists_words and not shuffles


def access_signature(addresses: ir.Type) -> ir.FunctionType:
    """`fault = access(environment, row, cache, addresses, mask, data, base, limit)`.

    `base` and `limit` are where the space's memory begins on the host and how long it is; global
    memory needs neither. `data` holds what is stored, or receives what is loaded.
    """
    return ir.FunctionType(I64, [PTR, PTR, PTR, addresses, I32, PTR, PTR, I64])


class Call:
    """The function of an access while it is emitted: its arguments, and what it is to do.

    `bits` are the lanes that take part; a policy may take some out (`lasting`). `addresses` are
    64-bit lanes, or what stands for them (`codegen.listed_atomic`).
    """

    def __init__(
        self,
        module: ir.Module,
        name: str,
        shape: Shape,
        rules: AccessRules,
        *,
        shuffles: bool,
        addresses: ir.Type = WIDE,
    ) -> None:
        self.shape, self.rules, self.shuffles = shape, rules, shuffles
        self.function = ir.Function(module, access_signature(addresses), name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.lanes = Lanes(module, FoldingBuilder(self.function.append_basic_block("entry")))
        self._scratch = self.lanes.alloca(vector(I64))
        (
            self.environment,
            self.row,
            self.cache,
            self.addresses,
            self.bits,
            self.data,
            self.base,
            self.limit,
        ) = self.function.args

    @property
    def listed(self) -> bool:
        """Returns whether some of such accesses are put on a list."""
        return can_be_listed(self.shape, self.rules, shuffles=self.shuffles)

    def told(self, places: Value) -> Value:
        """Return the lanes' places in memory, for a helper that is to look at them."""
        self.lanes.b.store(places, self._scratch)
        return self._scratch

    def slot(self, slot: Slot) -> Value:
        """Return a value of the environment."""
        return self.lanes.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)


def count_change(lanes: Lanes, environment: Value, amount: Value) -> None:
    """Memory may not be what it was: whoever waits for a change may go on (`rules.scheduling`)."""
    plan = lanes.b.load(lanes.slot(environment, int(Slot.PLAN_AT)), typ=I64)
    lanes.add_to(lanes.slot(lanes.b.inttoptr(plan, PTR), CHANGES), amount)
