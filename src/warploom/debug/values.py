"""Values of expressions: their type, their bytes or where these are, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from warploom.debug.scene import EvaluationError, Place, Thread
from warploom.debug.types import (
    Arithmetic,
    Array,
    Encoding,
    Enumeration,
    Member,
    Pointer,
    Structure,
    Type,
)
from warploom.isa.instruction import Space

SHOWN = 200
"""Elements of an array that are written."""

DEEPEST = 8
"""Structures in structures that are written."""


@dataclass(frozen=True)
class Value:
    """A value of a type. It is in memory at `place`, or in the PTX register `register`, or nowhere;
    only of a value in memory `data` may be None: it is read when it is needed."""

    type: Type
    data: bytes | None = None
    place: Place | None = None
    register: str | None = None

    def bytes(self, thread: Thread) -> bytes:
        """Returns its bytes, as a thread reads them."""
        if self.data is not None:
            return self.data
        assert self.place is not None
        return thread.read(self.place, self.type.size)

    def number(self, thread: Thread) -> int | float:
        """Returns what it is as a number. Raises EvaluationError for what is none."""
        data = self.bytes(thread)
        match self.type:
            case Arithmetic() as type:
                return type.number(data)
            case Pointer():
                return int.from_bytes(data, "little")
            case Enumeration(signed=signed):
                return int.from_bytes(data, "little", signed=signed)
            case Array() if self.place is not None:
                return self.place.generic
            case _:
                raise EvaluationError(f"a value of type {self.type.name} is not a number")

    def element(self, index: int, thread: Thread) -> Value:
        """Returns an element of an array, or what a pointer points to so many elements on."""
        if isinstance(self.type, Array):
            return self._part(self.type.of, index * self.type.of.size)
        if isinstance(self.type, Pointer) and self.type.to is not None:
            address = int(self.number(thread)) + index * self.type.to.size
            return Value(self.type.to, place=Place(Space.GENERIC, address % (1 << 64)))
        if isinstance(self.type, Structure):
            return self._of_array(index, thread)
        raise EvaluationError(f"a value of type {self.type.name} has no elements")

    def _of_array(self, index: int, thread: Thread) -> Value:
        """Returns an element of an array of Numba: a structure with its data, shape and strides."""
        names = {member.name for member in getattr(self.type, "members", ())}
        if not {"data", "shape", "strides"} <= names:
            raise EvaluationError(f"a value of type {self.type.name} has no elements")
        shape, strides = (
            [int(part.number(thread)) for _, part in self.member(name, thread).parts(thread)]
            for name in ("shape", "strides")
        )
        data = self.member("data", thread)
        if not isinstance(data.type, Pointer) or data.type.to is None:
            raise EvaluationError(f"the element type of {self.type.name} is unknown")
        start = Place(Space.GENERIC, int(data.number(thread)) + index * strides[0])
        if len(shape) == 1:
            return Value(data.type.to, place=start)
        row: Type = data.type.to
        for count in reversed(shape[1:]):
            row = Array(row, count)
        return Value(row, place=start)

    def member(self, name: str, thread: Thread) -> Value:
        """Returns a member of a structure, its own or one that it inherits."""
        if not isinstance(self.type, Structure):
            raise EvaluationError(f"a value of type {self.type.name} has no member {name}")
        for member in self.type.members:
            if member.name == name:
                return self._member(member, thread)
        for member in self.type.members:
            if not member.name and isinstance(member.type, Structure):
                try:
                    return self._part(member.type, member.offset).member(name, thread)
                except EvaluationError:
                    continue
        known = ", ".join(member.name for member in self.type.members if member.name)
        raise EvaluationError(f"{self.type.name} has no member {name}; it has {known or 'none'}")

    def chosen(self, thread: Thread) -> Value:
        """Returns the value that a variable of several types has now; any other is itself."""
        type = self.type
        if not isinstance(type, Structure) or type.selector is None:
            return self
        number = self._member(type.selector, thread).number(thread)
        choice = type.choices.get(int(number))
        return self if choice is None else self._member(choice, thread)

    def parts(self, thread: Thread) -> Iterator[tuple[str, Value]]:
        """Yields the members of a structure, the elements of an array, what a pointer points to."""
        match self.type:
            case Structure(members=members):
                for member in members:
                    yield member.name or member.type.name, self._member(member, thread)
            case Array(count=count):
                for index in range(min(count, SHOWN)):
                    yield f"[{index}]", self.element(index, thread)
            case Pointer(to=to) if to is not None and self.number(thread):
                yield "*", self.element(0, thread)
            case _:
                return

    def _member(self, member: Member, thread: Thread) -> Value:
        part = self._part(member.type, member.offset)
        if not member.bits:
            return part
        whole = int.from_bytes(part.bytes(thread), "little")
        kept = whole >> member.bit & (1 << member.bits) - 1
        type = member.type
        if isinstance(type, Arithmetic) and type.encoding is Encoding.SIGNED:
            kept -= (kept >> member.bits - 1) << member.bits
        return Value(type, (kept % (1 << 8 * type.size)).to_bytes(type.size, "little"))

    def _part(self, type: Type, offset: int) -> Value:
        if self.place is not None:
            return Value(type, place=self.place.moved(offset))
        data = self.data or b""
        if offset < 0 or offset + type.size > len(data):
            raise EvaluationError(
                f"this element or member is outside the value, which has only {len(data)} bytes "
                "and is not in memory"
            )
        return Value(type, data[offset : offset + type.size])


def written(value: Value, thread: Thread, depth: int = 0, most: int = SHOWN) -> str:
    """Returns a value as text, as C++ would have it; of an array, at most `most` elements."""
    match value.type:
        case Arithmetic() as type:
            return number_text(type, value.bytes(thread))
        case Pointer() as type:
            return _pointer(type, int(value.number(thread)), thread, depth)
        case Enumeration(names=names):
            number = int(value.number(thread))
            return names.get(number, str(number))
        case Structure():
            if depth > DEEPEST:
                return "{...}"
            parts = (f"{n} = {written(v, thread, depth + 1, most)}" for n, v in value.parts(thread))
            return "{" + ", ".join(parts) + "}"
        case Array(of=of, count=count):
            if isinstance(of, Arithmetic) and of.encoding is Encoding.CHARACTER:
                return _string(value.bytes(thread))
            shown = islice(value.parts(thread), most)
            parts = [written(v, thread, depth + 1, most) for _, v in shown]
            more = f", ... ({count:,} elements)" if most < SHOWN else ", ..."
            return "{" + ", ".join(parts) + (more if count > most else "") + "}"


def number_text(type: Arithmetic, data: bytes) -> str:
    """Returns a number as text."""
    number = type.number(data)
    if type.encoding is Encoding.BOOLEAN:
        return "true" if number else "false"
    if type.is_float:
        whole = str(np.float64(number) if type.size == 8 else np.float32(number))
        return whole.removesuffix(".0")
    if type.encoding is Encoding.CHARACTER and type.size == 1:
        code = int(number) & 0xFF
        return f"{number} {chr(code)!r}" if 32 <= code < 127 else str(number)
    return str(number)


def address_text(address: int, thread: Thread) -> str:
    """Returns an address, with the buffer that it is in."""
    found = thread.warp.run.memory.find(address)
    if found is None:
        where = Place(Space.GENERIC, address).resolved
        if where.space is Space.GLOBAL:
            return f"{address:#x}"
        return f"{address:#x} <{where.space.value}+{where.address}>"
    return f"{address:#x} <{found.name}+{address - found.address}>"


def _pointer(type: Pointer, address: int, thread: Thread, depth: int) -> str:
    if type.reference and type.to is not None:
        target = Value(type.to, place=Place(Space.GENERIC, address))
        return f"@{address:#x}: {written(target, thread, depth + 1)}"
    found = thread.warp.run.memory.find(address)
    where = address_text(address, thread)
    if found is not None and type.to is not None and type.to.size:
        index, rest = divmod(address - found.address, type.to.size)
        where = f"{address:#x} <{found.name}[{index}]{f'+{rest}' if rest else ''}>"
    return f"({type.name}) {where}"


def _string(data: bytes) -> str:
    text = data.partition(b"\0")[0].decode(errors="replace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
