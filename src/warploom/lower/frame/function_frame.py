"""Declares the function that runs a warp, and emits reads of the environment that it is called
with."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.ir.warp_ir import WarpIR
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, zero
from warploom.lower.frame.position import Position
from warploom.shapes.operand_shapes import BlockShapes, OperandShapes
from warploom.simt.schedule_layout import Plan

WARP_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, PTR, I64])
"""The type of `status = warp(environment, counts, records, contexts, warp)`: contexts of the thread
block, and the warp's number in it. All pointers are `noalias`, so only registers are accessed
through `contexts`; the SIMT stack in the same memory is addressed through the environment."""


class FunctionFrame:
    """Holds the function of one warp while it is emitted, and its arguments.

    `lanes` emits at the current position; `prologue` in the entry block, which dominates all code.
    `warp_ir` is the kernel, `shapes` its vector shapes of registers, `variant` the options of its
    code. `position` is what is true of the code that is being emitted.
    """

    def __init__(self, module: ir.Module, warp_ir: WarpIR) -> None:
        """Declares the function, with its blocks `entry` and `exit`, and stores the number of the
        warp that it is called for.
        """
        self.module, self.warp_ir, self.layout = module, warp_ir, warp_ir.layout
        self.program, self.variant, self.shapes = (
            warp_ir.program,
            warp_ir.variant,
            warp_ir.uniformity,
        )
        self.position = Position(OperandShapes(self.program, self.variant.warp_layout, {}))
        self.function = ir.Function(module, WARP_SIGNATURE, "warp")
        self.function.linkage = "internal"
        for argument in self.function.args[:4]:
            argument.add_attribute("noalias")
        self.environment, self.counts, self.records, self.contexts, warp = self.function.args
        self.entry = self.function.append_basic_block("entry")
        self.prologue = Lanes(module, FoldingBuilder(self.entry))
        self.lanes = Lanes(module, FoldingBuilder())
        self.exit_block = self.function.append_basic_block("exit")
        self._loaded: dict[Slot, Value] = {}
        self._constants: dict[Slot, Value] = {}
        self._pointers: dict[Slot, Value] = {}
        self._warp_values: dict[tuple[str, ir.Block], Value] = {}
        self._first_row: Value | None = None
        self._warp, self._status = self.variable(I64), self.variable(I64)
        self.prologue.b.store(warp, self._warp)

    def variable(self, type: ir.Type) -> Value:
        """Returns the address of a new stack slot, zero at the entry; LLVM promotes it to a
        register."""
        slot_address = self.prologue.alloca(type)
        self.prologue.b.store(zero(type), slot_address)
        return slot_address

    @contextmanager
    def at(self, position: Position) -> Generator[None]:
        """Sets `position` while it is open; restores the one before when it closes."""
        outer, self.position = self.position, position
        yield
        self.position = outer

    def at_block(
        self, index: int, *, convergent: bool, shapes: BlockShapes | None = None
    ) -> AbstractContextManager[None]:
        """Sets, while it is open, the vector shapes of the position to those of basic block `index`
        (or to `shapes`, as batches of iterations assume; `index` is then not used) and its
        `convergent`; its other facts stay. The position is restored at the end."""
        shapes = shapes or self.shapes.at(index)
        operand_shapes = OperandShapes(self.program, self.variant.warp_layout, shapes)
        return self.at(replace(self.position, operand_shapes=operand_shapes, convergent=convergent))

    # ---- the running warp ------------------------------------------------------------------------

    @property
    def warp(self) -> Value:
        """Returns the number of the running warp in its thread block, an i64."""
        return self.get(self._warp)

    def set_warp(self, number: Value) -> None:
        """Makes `number` (an i64) the running warp, as a loop over warps does; values of `of_warp`
        are emitted anew.
        """
        self._warp_values.clear()
        self.lanes.b.store(number, self._warp)

    def of_warp(self, name: str, make: Callable[[], Value]) -> Value:
        """Returns a value that depends on the running warp alone, such as its context's address.
        `make` emits it at its first use in each LLVM block, as one of another block need not
        dominate this; later uses in the block, under the same `name`, get that value."""
        key = name, self.lanes.b.block
        if key not in self._warp_values:
            self._warp_values[key] = make()
        return self._warp_values[key]

    @property
    def row(self) -> Value:
        """Returns the number of the running warp's context, an i64, counted from that of the first
        warp of the call's thread block."""
        return (
            self.warp if self._first_row is None else self.lanes.b.add(self._first_row, self.warp)
        )

    @contextmanager
    def in_block_of(self, first_row: Value) -> Generator[None]:
        """While it is open, warps are those of the thread block that has its contexts from number
        `first_row` on (an i64, negative for blocks in earlier slots). The code must not read what
        else belongs to a block (its index, its shared or local memory, states of warps)."""
        self._warp_values.clear()
        self._first_row = first_row
        yield
        self._warp_values.clear()
        self._first_row = None

    def for_each_warp(
        self, start: Value, end: Value, body: Callable[[], None], *, rolled: bool = False
    ) -> None:
        """Emits `for warp in range(start, end): body()` (i64 numbers), each made the running warp.
        Afterwards the running warp is `end`, or `start` if the range is empty. `rolled` prevents
        LLVM from unrolling the loop."""
        b = self.lanes.b
        head, inside, done = (b.append_basic_block(f"warps.{n}") for n in ("head", "body", "done"))
        self.set_warp(start)
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_unsigned("<", self.warp, end), inside, done)
        b.position_at_end(inside)
        body()
        self.set_warp(b.add(self.warp, I64(1)))
        back_branch = b.branch(head)
        if rolled:
            self.lanes.disable_unrolling(back_branch)
        b.position_at_end(done)

    # ---- the environment -------------------------------------------------------------------------

    @contextmanager
    def blocks_of(self, size: tuple[int, int, int] | None) -> Generator[None]:
        """Makes `slot` return constants for the block size, NTID_X to NTID_Z, THREADS and WARPS,
        while it is open; changes nothing if `size` is None. Code emitted meanwhile is for thread
        blocks of that size only."""
        if size is not None:
            threads = math.prod(size)
            words = (*size, threads, -(-threads // LANES))
            names = (Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z, Slot.THREADS, Slot.WARPS)
            self._constants = dict(zip(names, map(I64, words), strict=True))
        yield
        self._constants = {}

    def slot(self, slot: Slot) -> Value:
        """Returns a 64-bit word of the environment that does not change in a call: a constant
        inside of `blocks_of`, else loaded once, in the prologue."""
        if slot in self._constants:
            return self._constants[slot]
        if slot not in self._loaded:
            at = self.prologue.slot(self.environment, int(slot))
            self._loaded[slot] = self.prologue.b.load(at, typ=I64)
        return self._loaded[slot]

    def pointer(self, slot: Slot) -> Value:
        """Returns the host address in a slot of the environment (`slot`) as a pointer, converted
        once, in the prologue.
        """
        if slot not in self._pointers:
            self._pointers[slot] = self.prologue.b.inttoptr(self.slot(slot), PTR)
        return self._pointers[slot]

    def word(self, slot: Slot) -> Value:
        """Returns a 64-bit word of the environment (`slot`), truncated to an i32."""
        return self.prologue.b.trunc(self.slot(slot), I32)

    def record(self, slot: Slot, value: Value) -> None:
        """Stores an i64 in a slot of the environment, where the caller of `warp` reads it."""
        self.lanes.b.store(value, self.lanes.slot(self.environment, int(slot)))

    def get(self, slot_address: Value) -> Value:
        """Loads an i64 from the address of a stack slot or a word in memory."""
        return self.lanes.b.load(slot_address, typ=I64)

    def has_policy(self, policy: int) -> Value:
        """Returns whether `policy` is the launch's scheduling policy (`simt.split_policy`), an
        i1."""
        return self.lanes.b.icmp_unsigned("==", self.get(self.plan(Plan.policy)), I64(policy))

    def plan(self, word: int) -> Value:
        """Returns the address of a word of the schedule (`simt.schedule_layout.Plan`)."""
        return self.lanes.slot(self.pointer(Slot.PLAN_AT), word)

    # ---- returns ---------------------------------------------------------------------------------

    def leave(self, status: int) -> None:
        """Emits the return of `status` from the warp function: a branch to the exit block, which
        stores what is left of the turn's budget in the environment. The warp's registers and lanes
        must have been saved."""
        self.lanes.b.store(I64(int(status)), self._status)
        self.lanes.b.branch(self.exit_block)

    def fault(self, kind: int, instruction: int, lane: Value, address: Value, size: Value) -> None:
        """Emits stores of a lane's fault in the running warp to the environment
        (`machine.faults.fault_errors`) and the exit with FAULT. The fault has its `kind`, the
        number of the instruction, the running warp's number, and the lane (an i32). `address` and
        `size` (i64) are those of an access in bytes, or details whose meaning the kind defines. The
        slot of the space is not stored.
        """
        b = self.lanes.b
        record = {
            Slot.FAULT_KIND: I64(kind),
            Slot.FAULT_INSTRUCTION: I64(instruction),
            Slot.FAULT_WARP: self.warp,
            Slot.FAULT_LANE: b.zext(lane, I64),
            Slot.FAULT_ADDRESS: address,
            Slot.FAULT_SIZE: size,
        }
        for slot, value in record.items():
            self.record(slot, value)
        self.leave(Status.FAULT)

    def emit_return(self) -> None:
        """Emits the function's one `ret`, of the status that `leave` has stored."""
        self.lanes.b.ret(self.get(self._status))
