"""Emits loads and stores of PTX registers in the code of a warp.

In convergent code a register is an alloca, of 32 lanes or of one value for each run if it is
uniform or affine; LLVM promotes allocas to vector registers. In divergent code, registers that
basic blocks share are in the warp's context (`abi.context_layout`): as values they would be phi
nodes of 32 lanes in each of its many blocks, and need most of the time to compile.

    add.s32 %r1, %r2, 4;  %r2 affine<1>, convergent:   <1 x i32> alloca, one scalar addition
                          divergent:                   <32 x i32> in the context, blended by mask
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir

from warploom.isa.instruction import Register
from warploom.llvm.lanes import I1, I32, LANES, Lanes, Value, storage_type, undefined
from warploom.lower.frame.active_lanes import ActiveLanes
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.shapes.operand_shapes import RegisterShapes
from warploom.shapes.vector_shape import VectorShape


class Registers:
    """Loads and stores registers, in their short form (one value for each run of lanes) where
    convergent code has one.

    `held`: the registers that have allocas: all, in baseline code none."""

    def __init__(
        self,
        frame: FunctionFrame,
        shapes: RegisterShapes,
        context_registers: ContextRegisters,
        active: ActiveLanes,
        held: Iterable[Register],
    ) -> None:
        """Allocates the registers: 32 lanes for each of `held`, and a short form for each with a
        vector shape.
        """
        self.lanes, self._shapes, self._context_registers, self._active = (
            frame.lanes,
            shapes,
            context_registers,
            active,
        )
        self._layout = context_registers.layout
        self._slots = {register: frame.variable(storage_type(register.type)) for register in held}
        self._shaped = {
            register: frame.variable(storage_type(register.type, shape.width))
            for register, shape in shapes.by_register.items()
        }
        self._frame = frame
        self._assumed: dict[tuple[Register, int], Value] = {}

    def has_shape(self, register: Register) -> bool:
        """Returns whether a register is uniform or affine in the code being emitted: never in
        divergent code."""
        return self._frame.position.convergent and register in self._frame.position.shapes

    def width(self, register: Register) -> int:
        """Returns the number of values that hold a register in the code being emitted: the width of
        its vector shape, or 32 for a varying one and in divergent code."""
        return self._frame.position.shapes[register].width if self.has_shape(register) else LANES

    def load(self, register: Register, width: int = LANES) -> Value:
        """Returns a register in `width` lanes: 32, or the width of its vector shape or a wider one.
        It is read from the context, always in 32 lanes, if divergent code is emitted and basic
        blocks share it, else from an alloca; a short form is expanded by the shape's stride."""
        if self._is_in_context(register):
            return self._context_registers.get(register, self._layout.by_lane[register], LANES)
        if not self.has_shape(register):
            assert width == LANES, register
            return self.lanes.b.load(self._slots[register], typ=storage_type(register.type))
        shape = self._frame.position.shapes[register]
        type = storage_type(register.type, shape.width)
        values = self.lanes.b.load(self._affine_slot(register, shape), typ=type)
        return self.lanes.expand(values, width, shape.offsets(width))

    def store(self, register: Register, value: Value) -> None:
        """Stores a register in all lanes, inactive ones included, and to the context as well if it
        is one of `spilled` in convergent code.

        If it is uniform or affine here, the value may have the width of its shape, fewer elements
        if the stride is 0, or 32: then it is known to have the shape in the active lanes, and the
        short form is computed from these."""
        self._store(register, value)
        if self._frame.position.convergent and register in self._frame.position.spilled:
            self.save(register, self._frame.position.spilled[register])

    def _is_in_context(self, register: Register) -> bool:
        """Returns whether a register is in the context in the code being emitted: divergent code,
        and the register is shared by basic blocks.
        """
        return not self._frame.position.convergent and register in self._layout.by_lane

    def _store(self, register: Register, value: Value) -> None:
        """Stores a register where, and in the form that, it has in the code being emitted: its slot
        in the context, its short form, or 32 lanes.
        """
        if self._is_in_context(register):
            assert value.type.count == LANES, register
            self._context_registers.write(register, value)
        elif self.has_shape(register):
            shape = self._frame.position.shapes[register]
            # Results of 32 lanes, such as those of loads, are known to have the shape in active
            # lanes only; the rest of them is dropped.
            if value.type.count > shape.width:
                value = values_by_shape(self.lanes, value, self._active.bits(), shape)
            assert value.type.count == shape.width or shape.stride == 0, register
            whole = self.lanes.expand(value, shape.width)
            self.lanes.b.store(whole, self._affine_slot(register, shape))
        else:
            assert value.type.count == LANES, register
            self.store_varying(register, value)

    def _affine_slot(self, register: Register, shape: VectorShape) -> Value:
        """Returns the alloca of a register's short form of the width of `shape`: that of the
        analysis, or another one that only a batch of iterations assumes, created at its first use.
        """
        analysed = self._shapes.by_register.get(register)
        if analysed is not None and analysed.width == shape.width:
            return self._shaped[register]
        if (register, shape.width) not in self._assumed:
            variable = self._frame.variable(storage_type(register.type, shape.width))
            self._assumed[register, shape.width] = variable
        return self._assumed[register, shape.width]

    def store_varying(self, register: Register, value: Value) -> None:
        """Stores a value of 32 lanes to a register's alloca of 32 lanes, even if it is uniform or
        affine here.
        """
        self.lanes.b.store(value, self._slots[register])

    def save(self, register: Register, offset: int) -> None:
        """Stores a register to a byte offset of the context, in the form (short or 32 lanes) that
        it has in the code being emitted.
        """
        self._context_registers.set(register, self.load(register, self.width(register)), offset)

    def restore(self, register: Register, offset: int) -> None:
        """Loads a register from the byte offset of the context to which `save` has stored it in the
        same form, and stores it where the code being emitted has it."""
        self._store(register, self._context_registers.get(register, offset, self.width(register)))

    def slot(self, register: Register) -> Value:
        """Returns the alloca of a register's 32 lanes."""
        return self._slots[register]

    def affine_slot(self, register: Register) -> Value | None:
        """Returns the alloca of a register's short form, None if it has none."""
        return self._shaped.get(register)


def values_by_shape(lanes: Lanes, whole: Value, bits: Value, shape: VectorShape) -> Value:
    """Returns the first value of each run of an affine value of 32 lanes, computed from the run's
    lowest lane in `bits` (an i32). If that is d lanes after the run's first one, it is its value
    minus d times the stride. With repeats, the lowest lane is that of all equal runs, and d its
    distance in its own run. Inactive lanes may hold anything; a run without active lanes uses its
    last lane's."""
    b, element = lanes.b, whole.type.element
    values: Value = undefined(ir.VectorType(element, shape.width))
    part = LANES // shape.width
    for row in range(shape.width):
        inside = b.lshr(bits, I32(row * part))
        # The last lane's bit is set in any case: the count of zeros stays below the run's length if
        # none of its lanes is active. (With one run, that is bit 31, written as a negative i32.)
        inside = b.or_(inside, I32((1 << part - 1) - (1 << part if part == LANES else 0)))
        step = lanes.intrinsic("llvm.cttz.i32", I32, [inside, I1(0)])
        value = lanes.lane(whole, b.add(step, I32(row * part)))
        if shape.stride:
            distance = b.and_(step, I32(shape.length - 1))
            value = b.sub(value, b.mul(_as(b, distance, element), element(shape.stride)))
        values = b.insert_element(values, value, I32(row))
    return values


def _as(b: Value, number: Value, type: ir.IntType) -> Value:
    """Converts a small, non-negative i32 to another integer type."""
    return b.zext(number, type) if type.width > 32 else b.trunc(number, type)
