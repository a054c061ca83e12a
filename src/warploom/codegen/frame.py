"""The frame of a warp's function: its registers, its mask, its way back to the environment.

In code for all lanes together a register is an alloca, of 32 lanes or of as many values as its
shape has, that LLVM turns into vector registers. Code for lanes that have parted keeps registers
that basic blocks share in the warp's context (`codegen.context_layout`): as values they would be
phi nodes of 32 lanes in every one of its many blocks, and most of what there is to compile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from llvmlite import ir

from warploom.analysis.program import Program
from warploom.analysis.shapes import Shapes, ShapesHere
from warploom.analysis.strides import Shape
from warploom.analysis.tensor_waits import waits_for_phases
from warploom.codegen.context_layout import ContextLayout, shared_registers
from warploom.codegen.environment import CountLayout, Slot, Status
from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.lanes import (
    I1,
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    storage_type,
    undefined,
    zero,
)
from warploom.codegen.nans import open_nan_registers
from warploom.codegen.variant import KernelVariant
from warploom.core.types import PRED
from warploom.ptx.ir import Register
from warploom.rules.plan_words import STATE_WORDS
from warploom.rules.warp_table import NODE_WORDS, NODES_AT, NONE, POINT, node_count

ALL_NODES = (1 << node_count(LANES)) - 1

WARP_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, PTR, I64])
"""`status = warp(environment, counts, rows, contexts of the block, warp in block)`. Through the
contexts only registers are reached; what else is there, by addresses in the environment."""


class Frame:
    """All that the code of one warp refers to, while it is being emitted.

    `lanes` emits at the place where code goes now; `prologue` at the function's entry, whose values
    reach everywhere. `variant` has the options of the code; where it is baseline code, there is
    the divergent copy of each basic block alone, and all registers are kept in the context.
    """

    def __init__(
        self,
        module: ir.Module,
        program: Program,
        layout: CountLayout,
        shapes: Shapes,
        context: ContextLayout,
        pieces: Mapping[int, Register],
        variant: KernelVariant,
    ) -> None:
        self.module, self.program, self.layout, self.shapes = module, program, layout, shapes
        self.context_layout, self.pieces, self.variant = context, pieces, variant
        self.convergent = False
        """Whether code is made for all living lanes together, so that registers have shapes."""
        self.here: ShapesHere = {}
        """The shapes that they then have in the block for which code is made."""
        self.function = ir.Function(module, WARP_SIGNATURE, "warp")
        self.function.linkage = "internal"
        for argument in self.function.args[:4]:
            argument.add_attribute("noalias")
        self.environment, self.counts, self.rows, self._contexts, warp = self.function.args
        self.entry = self.function.append_basic_block("entry")
        self.prologue = Lanes(module, FoldingBuilder(self.entry))
        self.lanes = Lanes(module, FoldingBuilder())
        self.open_nans = open_nan_registers(program)
        self.shared_over_blocks = shared_registers(program)
        self._loaded: dict[Slot, Value] = {}
        self._warp_values: dict[tuple[str, ir.Block], Value] = {}
        self._known: dict[Slot, Value] = {}
        self._sums: dict[int, Value] | None = None
        self._pointers: dict[Slot, Value] = {}
        held = () if variant.baseline else (*program.registers, *pieces.values())
        self._registers = {
            register: self.variable(storage_type(register.type)) for register in held
        }
        self.steady: Mapping[Register, int] = {}
        """Registers that go into the context as soon as they are written (`codegen.saved`), and
        where."""
        self._shaped = {
            register: self.variable(storage_type(register.type, shape.width))
            for register, shape in shapes.known.items()
        }
        self._active = self.variable(I32)
        self.live = self.variable(I32)
        self.fewer = self.variable(I1)
        """Whether threads of the block may have ended, where all its warps run in one call."""
        self.top = self.variable(I64)
        self.point = self.variable(I64)
        self.free = self.variable(I64)
        self.fuel = self.variable(I64)
        self._failed_wait = self.variable(I1) if waits_for_phases(program) else None
        """Whether lanes have waited in vain for a phase of an mbarrier in this turn."""
        self._warp, self._status = self.variable(I64), self.variable(I64)
        self.prologue.b.store(warp, self._warp)
        self.leaving = self.function.append_basic_block("leaving")
        self.ahead = 0  # instructions from the one being emitted to the end of its block

    def variable(self, type: ir.Type) -> Value:
        """Return a place for a value, zero at the entry; LLVM turns it into a register."""
        place = self.prologue.alloca(type)
        self.prologue.b.store(zero(type), place)
        return place

    @property
    def warp(self) -> Value:
        """Return the number of the running warp in its block."""
        return self.get(self._warp)

    def begin_turn(self) -> None:
        """Give the running warp the instructions of a turn."""
        self.lanes.b.store(self.slot(Slot.FUEL), self.fuel)
        if self._failed_wait is not None:
            self.lanes.b.store(I1(0), self._failed_wait)

    def fail_wait(self, lanes: Value) -> None:
        """Have the turn end at the next way back where some of these lanes, as bits, have waited
        in vain for a phase of an mbarrier."""
        assert self._failed_wait is not None
        b = self.lanes.b
        some = b.icmp_unsigned("!=", lanes, I32(0))
        b.store(b.or_(some, b.load(self._failed_wait, typ=I1)), self._failed_wait)

    def ends_turn(self) -> Value:
        """Returns whether the turn of the running warp ends at the next way back: its instructions
        are used up, or lanes have waited in vain for a phase of an mbarrier."""
        b = self.lanes.b
        used_up = b.icmp_signed("<", self.get(self.fuel), I64(0))
        if self._failed_wait is None:
            return used_up
        return b.or_(used_up, b.load(self._failed_wait, typ=I1))

    def set_warp(self, number: Value) -> None:
        """Run another warp from here on."""
        self._warp_values.clear()
        self.lanes.b.store(number, self._warp)

    def clear(self, kept: Iterable[Register] = ()) -> None:
        """Fills the registers that blocks share with zeros, as at the begin of the function; but
        for those that are kept."""
        if self.variant.baseline:
            for register in self._sorted(self.program.live_in[0]):
                self.put_apart(register, zero(storage_type(register.type)))
            return
        places = self.context_layout
        for register in self._sorted(places.memory & self.program.live_in[0] - set(kept)):
            self.put_apart(register, zero(storage_type(register.type)))
        for register in self._sorted(places.apart.keys() - places.memory - set(kept)):
            self.lanes.b.store(zero(storage_type(register.type)), self._registers[register])
            if register in self._shaped:
                whole = storage_type(register.type, self.shapes.known[register].width)
                self.lanes.b.store(zero(whole), self._shaped[register])

    # ---- the environment ------------------------------------------------------------------------

    @contextmanager
    def blocks_of(self, size: tuple[int, int, int] | None) -> Generator[None]:
        """Make code for blocks of a size only, if one is given."""
        if size is not None:
            threads = math.prod(size)
            words = (*size, threads, -(-threads // LANES))
            names = (Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z, Slot.THREADS, Slot.WARPS)
            self._known = dict(zip(names, map(I64, words), strict=True))
        yield
        self._known = {}

    def slot(self, slot: Slot) -> Value:
        """Return a value of the environment, loaded once at the entry (it does not change in a
        call)."""
        if slot in self._known:
            return self._known[slot]
        if slot not in self._loaded:
            at = self.prologue.slot(self.environment, int(slot))
            self._loaded[slot] = self.prologue.b.load(at, typ=I64)
        return self._loaded[slot]

    def pointer(self, slot: Slot) -> Value:
        """Return a host address of the environment, as a pointer."""
        if slot not in self._pointers:
            self._pointers[slot] = self.prologue.b.inttoptr(self.slot(slot), PTR)
        return self._pointers[slot]

    def word(self, slot: Slot) -> Value:
        """Return a value of the environment as an i32."""
        return self.prologue.b.trunc(self.slot(slot), I32)

    def record(self, slot: Slot, value: Value) -> None:
        """Write a value into the environment."""
        self.lanes.b.store(value, self.lanes.slot(self.environment, int(slot)))

    def set_state(self, word: int, value: Value) -> None:
        """Write a word of this warp's state (`rules.scheduling`)."""
        self.lanes.b.store(value, self.state(word))

    def state(self, word: int) -> Value:
        """Return the address of a word of this warp's state."""
        return self.lanes.slot(self._of_warp("state", self._states), word)

    def _states(self) -> Value:
        """Returns the address of this warp's state."""
        index = self.lanes.b.mul(self.warp, I64(STATE_WORDS))
        return self.lanes.slot(self.pointer(Slot.STATES_AT), index)

    def table(self, word: int) -> Value:
        """Return the address of a word of this warp's table (`rules.warp_table`)."""
        return self.context(8 * word)

    def get(self, place: Value) -> Value:
        """Return a 64-bit word from its address."""
        return self.lanes.b.load(place, typ=I64)

    # ---- lanes and counts -----------------------------------------------------------------------

    def mask(self) -> Value:
        """Return the active mask, here and now."""
        return self.lanes.mask(self.active())

    def active(self) -> Value:
        """Return its bits, as an i32. So it is kept: what is asked of it most often is how many
        lanes it has, and whether they all go one way."""
        return self.lanes.b.load(self._active, typ=I32)

    def activate(self, bits: Value) -> None:
        """From here on these lanes are active."""
        self.lanes.b.store(bits, self._active)

    def count(self, index: int, amount: Value) -> None:
        """Add to one of the counts."""
        if self._sums is None:
            self.lanes.add_to(self.lanes.slot(self.counts, index), amount)
        else:
            known = self._sums.get(index)
            self._sums[index] = amount if known is None else self.lanes.b.add(known, amount)

    @contextmanager
    def adding_up(self) -> Generator[None]:
        """Add to each count once, in the end, what is counted in straight code in between."""
        self._sums = {}
        yield
        found, self._sums = self._sums, None
        for index, amount in found.items():
            self.count(index, amount)

    def has_shape(self, register: Register) -> bool:
        """Returns whether code that is made now keeps a register by its shape."""
        return self.convergent and register in self.here

    @contextmanager
    def standing(self, block: int, *, convergent: bool) -> Generator[None]:
        """Make code for a block, by its registers' shapes there if lanes are together."""
        was = self.here, self.convergent
        self.here, self.convergent = self.shapes.at(block), convergent
        yield
        self.here, self.convergent = was

    def load(self, register: Register, width: int = LANES) -> Value:
        """Return a register in 32 lanes, or in as many as its shape has or a wider one needs."""
        if self._is_apart(register):
            return self._get(register, self.context_layout.apart[register], LANES)
        if not self.has_shape(register):
            assert width == LANES, register
            return self.lanes.b.load(self._registers[register], typ=storage_type(register.type))
        shape = self.here[register]
        kept = self.lanes.b.load(
            self._shaped[register], typ=storage_type(register.type, shape.width)
        )
        return self.lanes.fan(kept, shape.stride, width)

    def store(self, register: Register, value: Value) -> None:
        """Writes a register. The value of one that is kept by its shape may have as many lanes as
        the shape, fewer, or all 32: then the active lanes are known to have the shape."""
        self._put(register, value)
        if self.convergent and register in self.steady and not self._is_apart(register):
            self.keep(register, self.steady[register])

    def _is_apart(self, register: Register) -> bool:
        """Returns True where code made now keeps a register in the context."""
        if self.convergent:
            return register in self.context_layout.memory
        return register in self.context_layout.apart

    def _put(self, register: Register, value: Value) -> None:
        if self._is_apart(register):
            assert value.type.count == LANES, register
            self.put_apart(register, value)
        elif self.has_shape(register):
            shape = self.here[register]
            if value.type.count > shape.width:
                value = self.by_shape(value, self.active(), shape)
            whole = self.lanes.fan(value, shape.stride, shape.width)
            self.lanes.b.store(whole, self._shaped[register])
        else:
            assert value.type.count == LANES, register
            self.put_loose(register, value)

    def put_loose(self, register: Register, value: Value) -> None:
        """Writes a register lane by lane in code for all lanes together, whatever its shape."""
        if register in self.context_layout.memory:
            self.put_apart(register, value)
        else:
            self.lanes.b.store(value, self._registers[register])

    def put_apart(self, register: Register, value: Value) -> None:
        """Writes a register as code for lanes that have parted finds it."""
        self._set(register, value, self.context_layout.apart[register])

    def get_apart(self, register: Register) -> Value:
        """Returns a register as code for lanes that have parted has left it."""
        return self._get(register, self.context_layout.apart[register], LANES)

    def loosen(self, origin: int, index: int) -> None:
        """Let all lanes go on from one block to another: keep lane by lane what has no shape
        there."""
        for register in self._sorted(self.here.keys() & self.loosened(origin, index)):
            self.put_loose(register, self.load(register))

    def loosened(self, origin: int, index: int) -> frozenset[Register]:
        """Return the registers that have a shape in block `origin` and none in the next, which
        reads them."""
        live = self.program.live_in[index] if index < self.program.exit else frozenset[Register]()
        return live & self.shapes.loosened(index) - self.shapes.loosened(origin)

    def part(self, live: Iterable[Register]) -> None:
        """Lanes that were together are about to part, and will read these registers: put them
        where code for lanes that have parted finds them."""
        places = self.context_layout
        kept = {*live, *self.pieces.values()} - places.memory
        for register in self._sorted(kept & places.apart.keys()):
            self.put_apart(register, self.load(register))
            if register in self.here:
                self.keep(register, places.shaped[register])
        for register in self._sorted(kept & self.here.keys() - places.apart.keys()):
            self.put_loose(register, self.load(register))

    def join(self, registers: Iterable[Register]) -> None:
        """Take the registers that are read from here on from where `part` has put them. All others
        hold nothing any more; zeros tell the optimiser so, which else would carry along what they
        were."""
        places, live = self.context_layout, {*registers, *self.pieces.values()}
        for register in self._sorted(places.apart.keys() - places.memory - self.here.keys()):
            kept = register in live
            value = self.get_apart(register) if kept else zero(storage_type(register.type))
            self.put_loose(register, value)
        for register in self._sorted(places.shaped.keys() & self.here.keys() & live):
            self.fetch(register, places.shaped[register])

    @staticmethod
    def _sorted(registers: Iterable[Register]) -> list[Register]:
        return sorted(registers, key=lambda register: register.name)

    def by_shape(self, found: Value, bits: Value, shape: Shape) -> Value:
        """32 lanes as those of a shape, by the lowest lane of the warp or of each row in `bits`."""
        b, lanes, element = self.lanes.b, self.lanes, found.type.element
        kept: Value = undefined(ir.VectorType(element, shape.width))
        for row in range(shape.width):
            part = LANES // shape.width
            inside = b.lshr(bits, I32(row * part))
            inside = b.or_(inside, I32((1 << part - 1) - (1 << part if part == LANES else 0)))
            step = lanes.intrinsic("llvm.cttz.i32", I32, [inside, I1(0)])
            value = lanes.lane(found, b.add(step, I32(row * part)))
            if shape.stride:
                value = b.sub(value, b.mul(_as(b, step, element), element(shape.stride)))
            kept = b.insert_element(kept, value, I32(row))
        return kept

    def leave(self, status: int) -> None:
        """Return from the function."""
        self.lanes.b.store(I64(int(status)), self._status)
        self.lanes.b.branch(self.leaving)

    def emit_leaving(self) -> None:
        """Return, handing back what is left of the fuel."""
        b = self.lanes.b
        self.record(Slot.FUEL, b.load(self.fuel, typ=I64))
        if self._failed_wait is not None:
            failed = b.zext(b.load(self._failed_wait, typ=I1), I64)
            self.record(Slot.FAILED_WAIT, failed)
        self.lanes.b.ret(self.get(self._status))

    def fault(self, kind: int, instruction: int, lane: Value, address: Value, size: Value) -> None:
        """Return with the record of a fault of a lane (an i32); see `machine.faults`."""
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

    def forget(self, gone: Value) -> None:
        """Forget these lanes, as bits, which have exited."""
        b = self.lanes.b
        b.store(I1(1), self.fewer)
        b.store(b.and_(b.load(self.live, typ=I32), b.not_(gone)), self.live)

    # ---- suspension -----------------------------------------------------------------------------

    def context(self, offset: int) -> Value:
        """Return an address in this warp's context, of what is not a register."""
        base = self._of_warp("context", lambda: self._in_context(self.pointer(Slot.CONTEXTS_AT)))
        return self.lanes.b.gep(base, [I64(offset)], source_etype=I8)

    def _in_context(self, contexts: Value) -> Value:
        """Returns the begin of this warp's context, behind the block's first one."""
        b = self.lanes.b
        start = b.mul(self.warp, I64(self.context_layout.size))
        return b.gep(contexts, [start], source_etype=I8)

    def _of_warp(self, name: str, make: Callable[[], Value]) -> Value:
        """Returns a value that depends on the running warp alone, made once in an LLVM block."""
        key = name, self.lanes.b.block
        if key not in self._warp_values:
            self._warp_values[key] = make()
        return self._warp_values[key]

    def width(self, register: Register) -> int:
        """Return in how many lanes code that is made now keeps a register."""
        return self.here[register].width if self.has_shape(register) else LANES

    def keep(self, register: Register, offset: int) -> None:
        """Put a register into the context, by its shape or lane by lane."""
        if register in self.context_layout.memory:
            return
        self._set(register, self.load(register, self.width(register)), offset)

    def fetch(self, register: Register, offset: int) -> None:
        """Fetch what `keep` has kept."""
        if register in self.context_layout.memory:
            return
        self._put(register, self._get(register, offset, self.width(register)))

    def _set(self, register: Register, value: Value, offset: int) -> None:
        """Writes a value of a register into the context."""
        b = self.lanes.b
        if register.type == PRED:
            single = value.type.count == 1
            value = b.zext(value, ir.VectorType(I8, 1)) if single else self.lanes.bits(value)
        b.store(value, self._held(offset), align=alignment(offset))

    def _get(self, register: Register, offset: int, width: int) -> Value:
        """Returns the value of a register in the context, of so many lanes."""
        b, at, align = self.lanes.b, self._held(offset), alignment(offset)
        if register.type != PRED:
            return b.load(at, typ=storage_type(register.type, width), align=align)
        if width == 1:
            return b.trunc(b.load(at, typ=ir.VectorType(I8, 1)), ir.VectorType(I1, 1))
        return self.lanes.mask(b.load(at, typ=I32))

    def registers_at(self) -> Value:
        """Returns the address of this warp's context, through which registers are reached."""
        return self._of_warp("registers", lambda: self._in_context(self._contexts))

    def home(self, register: Register) -> Value:
        """Returns the place of a register in this warp's context, lane by lane."""
        return self._held(self.context_layout.apart[register])

    def _held(self, offset: int) -> Value:
        """Returns the address of a register in this warp's context."""
        return self.lanes.b.gep(self.registers_at(), [I64(offset)], source_etype=I8)

    def level(self) -> Value:
        """Returns how many calls deep the running lanes are (`analysis.calls`), where there are
        any."""
        assert self.program.depth is not None
        lowest = [self.active(), ir.Constant(ir.IntType(1), 0)]
        lane = self.lanes.intrinsic("llvm.cttz.i32", I32, lowest)
        return self.lanes.b.zext(self.lanes.lane(self.load(self.program.depth), lane), I64)

    def node(self, node: Value, word: int) -> Value:
        """Return the address of a word of a node."""
        return self.lanes.slot(self.node_at(node), word)

    def node_at(self, node: Value) -> Value:
        """Return the address of a node."""
        index = self.lanes.b.mul(node, I64(NODE_WORDS))
        return self.lanes.slot(self.context(8 * NODES_AT), index)

    def set_top(self, node: Value) -> None:
        """Make a node (or NONE) the innermost; `point` is where it gathers."""
        b = self.lanes.b
        none = b.icmp_signed("<", node, I64(0))
        known = b.select(none, I64(0), node)
        point = b.select(none, I64(NONE), self.get(self.node(known, POINT)))
        b.store(node, self.top)
        b.store(point, self.point)


def alignment(offset: int) -> int:
    """Returns how a place in a context is aligned: contexts begin at lines of 64 bytes."""
    return min(64, offset & -offset)


def _as(b: Value, number: Value, type: ir.IntType) -> Value:
    """Return a small i32 as another integer."""
    return b.zext(number, type) if type.width > 32 else b.trunc(number, type)
