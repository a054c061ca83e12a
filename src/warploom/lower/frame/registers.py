"""Registers as the code of a warp holds them.

In code for all lanes together a register is an alloca, of 32 lanes or of as many values as its
shape has, that LLVM turns into vector registers. Code for lanes that have diverged keeps registers
that basic blocks share in the warp's context (`abi.context_layout`): as values they would be
phi nodes of 32 lanes in every one of its many blocks, and most of what there is to compile.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from llvmlite import ir

from warploom.analysis.shape_transfer import BlockShapes, RegisterShapes
from warploom.analysis.vector_shape import VectorShape
from warploom.llvm.lanes import I1, I32, LANES, Lanes, Value, storage_type, undefined
from warploom.lower.frame.active_lanes import ActiveLanes
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.ptx.ir import Register


class Standing(Protocol):
    """Has code made as in a block, while it is open."""

    def __call__(
        self, index: int, /, *, convergent: bool, shapes: BlockShapes | None = None
    ) -> AbstractContextManager[None]: ...


class Registers:
    """Loads and stores registers, by their shapes where code for all lanes together has them.

    `convergent` says whether code is made for all living lanes together, `here` which shapes
    registers then have in the block for which it is made. `spilled` are the registers that go into
    the context as soon as they are written (`lower.frame.spills`), and their places there. `held`
    have allocas: all, but in baseline code.
    """

    def __init__(
        self,
        frame: FunctionFrame,
        shapes: RegisterShapes,
        homes: ContextRegisters,
        active: ActiveLanes,
        held: Iterable[Register],
    ) -> None:
        self.lanes, self._shapes, self._homes, self._active = frame.lanes, shapes, homes, active
        self._layout = homes.layout
        self.convergent = False
        self.here: BlockShapes = {}
        self.spilled: Mapping[Register, int] = {}
        self._places = {register: frame.variable(storage_type(register.type)) for register in held}
        self._shaped = {
            register: frame.variable(storage_type(register.type, shape.width))
            for register, shape in shapes.by_register.items()
        }
        self._frame = frame
        self._assumed: dict[tuple[Register, int], Value] = {}

    @contextmanager
    def standing(
        self, block: int, *, convergent: bool, shapes: BlockShapes | None = None
    ) -> Generator[None]:
        """Make code for a block, by its registers' shapes there if lanes are together, or by other
        `shapes`."""
        was = self.here, self.convergent
        self.here, self.convergent = shapes or self._shapes.at(block), convergent
        yield
        self.here, self.convergent = was

    def has_shape(self, register: Register) -> bool:
        """Returns whether code that is made now keeps a register by its shape."""
        return self.convergent and register in self.here

    def width(self, register: Register) -> int:
        """Return in how many lanes code that is made now keeps a register."""
        return self.here[register].width if self.has_shape(register) else LANES

    def load(self, register: Register, width: int = LANES) -> Value:
        """Return a register in 32 lanes, or in as many as its shape has or a wider one needs."""
        if self._is_by_lane(register):
            return self._homes.get(register, self._layout.by_lane[register], LANES)
        if not self.has_shape(register):
            assert width == LANES, register
            return self.lanes.b.load(self._places[register], typ=storage_type(register.type))
        shape = self.here[register]
        type = storage_type(register.type, shape.width)
        kept = self.lanes.b.load(self._place_of_shape(register, shape), typ=type)
        return self.lanes.fan(kept, shape.stride, width)

    def store(self, register: Register, value: Value) -> None:
        """Writes a register. The value of one that is kept by its shape may have as many lanes as
        the shape, fewer, or all 32: then the active lanes are known to have the shape."""
        self._put(register, value)
        if self.convergent and register in self.spilled and not self._is_by_lane(register):
            self.keep(register, self.spilled[register])

    def _is_by_lane(self, register: Register) -> bool:
        """Returns True where code made now keeps a register in the context."""
        if self.convergent:
            return register in self._layout.memory
        return register in self._layout.by_lane

    def _put(self, register: Register, value: Value) -> None:
        if self._is_by_lane(register):
            assert value.type.count == LANES, register
            self._homes.write(register, value)
        elif self.has_shape(register):
            shape = self.here[register]
            if value.type.count > shape.width:
                value = values_by_shape(self.lanes, value, self._active.bits(), shape)
            whole = self.lanes.fan(value, shape.stride, shape.width)
            self.lanes.b.store(whole, self._place_of_shape(register, shape))
        else:
            assert value.type.count == LANES, register
            self.put_loose(register, value)

    def _place_of_shape(self, register: Register, shape: VectorShape) -> Value:
        """Returns the address of a register by its shape; of one that has it in some batches of
        iterations alone, there is none before it is first asked for."""
        known = self._shapes.by_register.get(register)
        if known is not None and known.width == shape.width:
            return self._shaped[register]
        if (register, shape.width) not in self._assumed:
            place = self._frame.variable(storage_type(register.type, shape.width))
            self._assumed[register, shape.width] = place
        return self._assumed[register, shape.width]

    def put_loose(self, register: Register, value: Value) -> None:
        """Writes a register lane by lane in code for all lanes together, whatever its shape."""
        if register in self._layout.memory:
            self._homes.write(register, value)
        else:
            self.lanes.b.store(value, self._places[register])

    def keep(self, register: Register, offset: int) -> None:
        """Put a register into the context, by its shape or lane by lane."""
        if register in self._layout.memory:
            return
        self._homes.set(register, self.load(register, self.width(register)), offset)

    def fetch(self, register: Register, offset: int) -> None:
        """Fetch what `keep` has kept."""
        if register in self._layout.memory:
            return
        self._put(register, self._homes.get(register, offset, self.width(register)))

    def place(self, register: Register) -> Value:
        """Returns the address of a register that is held lane by lane outside of the context."""
        return self._places[register]

    def place_by_shape(self, register: Register) -> Value | None:
        """Returns the address of a register that is held by its shape; None of one without."""
        return self._shaped.get(register)


def values_by_shape(lanes: Lanes, found: Value, bits: Value, shape: VectorShape) -> Value:
    """Returns 32 lanes as the values of a shape, by the lowest lane of the
    warp, or of each of its runs, in `bits`."""
    b, element = lanes.b, found.type.element
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


def _as(b: Value, number: Value, type: ir.IntType) -> Value:
    """Return a small i32 as another integer."""
    return b.zext(number, type) if type.width > 32 else b.trunc(number, type)
