"""The function of an access while it is emitted (`codegen.access_functions`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import WIDE, Shape, access_signature
from warploom.codegen.access_table import ANYWHERE, Cost, Facts, general, select
from warploom.codegen.environment import Slot
from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.lanes import I64, Lanes, Value, vector
from warploom.rules.choice import AccessRules


class Call:
    """The arguments of such a function, and what it is to do.

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
        self.plan = general(shape)
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
        """Returns whether some of such accesses are put on a list (`rules.listed`)."""
        facts = Facts(fixed=not self.shuffles, listed=self.rules.lists_words)
        return select(self.shape, ANYWHERE, facts).cost is Cost.LIST

    def told(self, places: Value) -> Value:
        """Return the lanes' places in memory, for a helper that is to look at them."""
        self.lanes.b.store(places, self._scratch)
        return self._scratch

    def slot(self, slot: Slot) -> Value:
        """Return a value of the environment."""
        return self.lanes.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)
