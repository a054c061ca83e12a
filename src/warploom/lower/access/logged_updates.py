"""Emits the log of updates whose order shows, for workers that share a launch (`abi.update_log`).

`red.global.add.f32 [%rd1], %f1` of a worker with a log appends, for each active lane,

    store [entry], @access.reduction.add.f32.apply; store [entry + 8], address of lane
    store [entry + 16], operand of lane

and once the blocks before have ended, the host calls the function that the entries name: a loop
that loads each element, combines it with the operand, and stores it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.abi.update_log import LoggedUpdate, UpdateLog
from warploom.isa.terms import Term
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I64, PTR, Lanes, Value, lane_type
from warploom.lower.access.access_call import AccessCall
from warploom.lower.terms.terms import Lowering

APPLY_TYPE = ir.FunctionType(ir.VoidType(), [PTR, PTR])
"""The type of `apply` functions."""

NEVER = (1 << 63) - 1
"""More than any budget, so that each is below it."""


class LoggedUpdates:
    """Appends updates by the term `combine` to a log, in the access function that performs them."""

    def __init__(self, access: AccessCall, log: Value, combine: Term) -> None:
        """Emits nothing. `log` is the address of an `UpdateLog`."""
        self._access, self._lanes, self._b = access, access.lanes, access.lanes.b
        self._log, self._combine = log, combine

    @contextmanager
    def space_for(self, elements: Value) -> Generator[None, None, None]:
        """Emits the code of its body, which appends some elements (an i64), where the log has space
        for them. Otherwise notes that it has overflown. A log that is filled as far as `pausing`
        first has the launch return to the host before its next turn, so that there is space."""
        b, count, capacity = self._b, self._get(UpdateLog.count), self._get(UpdateLog.capacity)
        is_full = b.icmp_unsigned(">=", count, self._get(UpdateLog.pausing))
        with b.if_then(is_full, likely=False):
            pause_at = self._lanes.slot(self._access.environment, int(Slot.PAUSE_AT))
            b.store(I64(NEVER), pause_at)
        fits = b.icmp_unsigned("<=", b.add(count, elements), capacity)
        with b.if_else(fits, likely=True) as (on_space, on_overflow):
            with on_space:
                yield
            with on_overflow:
                b.store(I64(1), self._at(UpdateLog.has_overflown))

    def append(self, address: Value, operand: Value) -> None:
        """Emits the appending of the update of the element at a host address (a pointer) by an
        operand, a vector of 1 lane."""
        b, lanes, count = self._b, self._lanes, self._get(UpdateLog.count)
        entries = b.inttoptr(self._get(UpdateLog.entries_at), PTR)
        entry = lanes.slot(entries, b.mul(count, I64(LoggedUpdate.WORDS)))
        b.store(b.ptrtoint(self._apply(), I64), lanes.slot(entry, LoggedUpdate.apply))
        b.store(b.ptrtoint(address, I64), lanes.slot(entry, LoggedUpdate.address))
        b.store(operand, lanes.slot(entry, LoggedUpdate.operand), align=8)
        b.store(b.add(count, I64(1)), self._at(UpdateLog.count))

    def _at(self, field: int) -> Value:
        """Returns the address of a word of the log's head."""
        return self._lanes.slot(self._log, field)

    def _get(self, field: int) -> Value:
        """Emits a load of a word of the log's head."""
        return self._b.load(self._at(field), typ=I64)

    def _apply(self) -> ir.Function:
        """Returns the function of the module that performs logged updates of this access function
        (`abi.update_log`); emits it at the first call."""
        module, name = self._lanes.module, f"{self._access.name}.apply"
        if name in module.globals:
            return module.globals[name]
        function = ir.Function(module, APPLY_TYPE, name)
        function.linkage = "internal"
        self._emit_apply(Lanes(module, FoldingBuilder(function.append_basic_block("entry"))))
        return function

    def _emit_apply(self, lanes: Lanes) -> None:
        """Emits the body of the function: a loop over the entries from the first one, which is of
        this function, up to the end, or to the first of another function, which it calls for the
        rest."""
        b, function = lanes.b, lanes.b.function
        single = lane_type(self._access.access_type.type, 1)
        first, end = function.args
        before = b.block
        body, done, others = (b.append_basic_block(n) for n in ("update", "done", "others"))
        b.branch(body)
        b.position_at_end(body)
        entry = b.phi(PTR)
        entry.add_incoming(first, before)
        at = b.inttoptr(b.load(lanes.slot(entry, LoggedUpdate.address), typ=I64), PTR)
        operand = b.load(lanes.slot(entry, LoggedUpdate.operand), typ=single, align=8)
        old = b.load(at, typ=single, align=1)
        b.store(Lowering(lanes, 1)(self._combine, [old, operand]), at, align=1)
        following = lanes.slot(entry, LoggedUpdate.WORDS)
        with b.if_then(b.icmp_unsigned("==", following, end)):
            b.branch(done)
        next_apply = b.load(lanes.slot(following, LoggedUpdate.apply), typ=I64)
        is_own = b.icmp_unsigned("==", next_apply, b.ptrtoint(function, I64))
        entry.add_incoming(following, b.block)
        b.cbranch(is_own, body, others)
        b.position_at_end(others)
        # A call in place of the return, so that the stack does not grow.
        b.call(
            b.inttoptr(next_apply, ir.PointerType(APPLY_TYPE)), [following, end], tail="musttail"
        )
        b.ret_void()
        b.position_at_end(done)
        b.ret_void()
