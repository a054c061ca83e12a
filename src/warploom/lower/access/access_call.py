"""The function of an access while it is emitted (`lower.access.access_functions`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import WIDE, AccessType, access_signature
from warploom.abi.environment import Slot
from warploom.cost.device_rules import AccessRules
from warploom.ir.access_plans import ANYWHERE, Cost, Facts, general, select
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I64, Lanes, Value, vector


class Call:
    """The arguments of such a function, and what it is to do.

    `bits` are the lanes that take part; a policy may take some out (`lasting`). `addresses` are
    64-bit lanes, or what stands for them (`lower.access.deferred_atomic`).
    """

    def __init__(
        self,
        module: ir.Module,
        name: str,
        access_type: AccessType,
        rules: AccessRules,
        *,
        shuffles: bool,
        addresses: ir.Type = WIDE,
    ) -> None:
        self.access_type, self.rules, self.shuffles = access_type, rules, shuffles
        self.plan = general(access_type)
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
    def deferred(self) -> bool:
        """Returns whether some of such accesses are put on a list (`cost.deferred_atomics`)."""
        facts = Facts(fixed=not self.shuffles, deferred=self.rules.defers_atomics)
        return select(self.access_type, ANYWHERE, facts).cost is Cost.LIST

    def told(self, places: Value) -> Value:
        """Return the lanes' places in memory, for a helper that is to look at them."""
        self.lanes.b.store(places, self._scratch)
        return self._scratch

    def slot(self, slot: Slot) -> Value:
        """Return a value of the environment."""
        return self.lanes.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)
