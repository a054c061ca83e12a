"""Holds the LLVM function of an out-of-line access while its body is emitted: its arguments and its
access type.

`lower.access.access_functions` makes such a function for each kind of access;
`abi.access_type.access_signature` has its signature.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import WIDE, AccessType, access_signature
from warploom.abi.environment import Slot
from warploom.cost.device_rules import AccessRules
from warploom.ir.access_plans import ANYWHERE, Cost, Facts, general, select
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I64, Lanes, Value, vector


class AccessCall:
    """Holds the arguments of an access function, its name, and the access type that it performs.

    `bits` are the active lanes, an i32; under an order policy, a store clears the lanes whose
    values do not survive. `addresses` are 64-bit lanes, or the 8-bit word numbers of
    `lower.access.deferred_atomic`. `record` is the address of the access record that counts;
    `cache` that of the bounds of the allocation that the record accessed last; `data` that of the
    buffer of operands and results. `base` and `limit` are the host address and the length in bytes
    of the state space; `plan` is the plan for any addresses."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        access_type: AccessType,
        rules: AccessRules,
        *,
        shuffles: bool,
        concurrent: bool = False,
        addresses: ir.Type = WIDE,
    ) -> None:
        """Declares `name` in the module as an internal function that is not inlined, with
        `access_signature`, begins its entry block, to which `lanes` emits, and stores its arguments
        as attributes. `rules` count the access; `shuffles`: an order policy may choose among lanes;
        `concurrent`: other workers may access the same memory, so that atomics are those of the
        host; `addresses` is the type of that argument."""
        self.name, self.access_type = name, access_type
        self.rules, self.shuffles = rules, shuffles
        self.concurrent = concurrent
        self.plan = general(access_type)
        self.function = ir.Function(module, access_signature(addresses), name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.lanes = Lanes(module, FoldingBuilder(self.function.append_basic_block("entry")))
        self._scratch = self.lanes.alloca(vector(I64))
        (
            self.environment,
            self.record,
            self.cache,
            self.addresses,
            self.bits,
            self.data,
            self.base,
            self.limit,
        ) = self.function.args

    @property
    def deferred(self) -> bool:
        """Returns true if accesses of this type may be counted in batches, after they have been
        performed (`cost.deferred_atomics`): 4-byte atomics on shared memory under rules that permit
        it, where no policy chooses the order of lanes."""
        facts = Facts(fixed=not self.shuffles, deferred=self.rules.defers_atomics)
        return select(self.access_type, ANYWHERE, facts).cost is Cost.LIST

    def store_lanes(self, values: Value) -> Value:
        """Stores 64-bit lanes to the function's one scratch vector, over what the last call stored,
        for a helper that reads them one by one; returns its address."""
        self.lanes.b.store(values, self._scratch)
        return self._scratch

    def slot(self, slot: Slot) -> Value:
        """Emits a load of the i64 in a slot of the launch environment."""
        return self.lanes.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)
