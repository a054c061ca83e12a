"""Emits loads and stores of registers in memory, in the forms that they have in contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod

from llvmlite import ir

from warploom.core.types import PRED
from warploom.isa.instruction import Register
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, Lanes, Value, storage_type


class RegisterMemory(ABC):
    """Loads and stores registers at byte offsets from an address (`base`). A predicate of 32 lanes
    is an i32 of bits there, a uniform one an i8."""

    def __init__(self, lanes: Lanes, max_alignment: int) -> None:
        """Stores the emitter; emits nothing. `max_alignment`: that of `base`, in bytes."""
        self.lanes, self._max_alignment = lanes, max_alignment

    @abstractmethod
    def base(self) -> Value:
        """Returns the host address from which offsets count, as a pointer."""

    def set(self, register: Register, value: Value, offset: int) -> None:
        """Stores a register's value, of 32 lanes or fewer, at a byte offset; a predicate as an i32
        of bits, of 1 lane as an i8."""
        b = self.lanes.b
        if register.type == PRED:
            single = value.type.count == 1
            value = b.zext(value, ir.VectorType(I8, 1)) if single else self.lanes.bits(value)
        b.store(value, self._address(offset), align=self._alignment(offset))

    def get(self, register: Register, offset: int, width: int) -> Value:
        """Returns a register's value of `width` lanes, loaded from the byte offset at which `set`
        stored it; a predicate as `width` i1 (1 or 32), whatever its form in memory."""
        b, at, align = self.lanes.b, self._address(offset), self._alignment(offset)
        if register.type != PRED:
            return b.load(at, typ=storage_type(register.type, width), align=align)
        if width == 1:
            return b.trunc(b.load(at, typ=ir.VectorType(I8, 1)), ir.VectorType(I1, 1))
        return self.lanes.mask(b.load(at, typ=I32))

    def _address(self, offset: int) -> Value:
        """Returns the address at an offset."""
        return self.lanes.b.gep(self.base(), [I64(offset)], source_etype=I8)

    def _alignment(self, offset: int) -> int:
        """Returns the alignment in bytes at an offset: the greatest power of two that divides it,
        at most that of the base."""
        return min(self._max_alignment, offset & -offset or self._max_alignment)


def stored_size(register: Register, width: int) -> int:
    """Returns the bytes in which `RegisterMemory` stores a register of `width` lanes."""
    if register.type == PRED:
        return 1 if width == 1 else LANES // 8
    return width * register.type.bits // 8
