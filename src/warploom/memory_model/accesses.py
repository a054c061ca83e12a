"""The memory of a kernel as its threads name it, and the strength of its accesses."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.isa.instruction import Space
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation, Unit
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.operands import WINDOWS
from warploom.memory_model.events import Place, Strength
from warploom.program.program import Program
from warploom.simt.address_windows import WINDOW_SIZE

SEMANTICS = ("relaxed", "acquire", "release", "acq_rel", "sc")


def strength_of(operation: Operation) -> Strength:
    """Returns the order and the scope of an access or a fence (PTX ISA, "Operation types")."""
    modifiers = operation.modifiers
    scope = modifiers["scope"]
    if operation.kind is OpKind.FENCE:
        if level := modifiers["level"]:  # membar
            return Strength("sc", "gpu" if level == "gl" else level)
        return Strength(modifiers.text("sem", "acq_rel"), scope or "sys")
    if operation.spec.unit is Unit.ATOMIC:
        return Strength(modifiers.text("sem", "relaxed"), scope or "gpu")
    if "volatile" in modifiers:
        return Strength("relaxed", "sys")
    said = next((order for order in SEMANTICS if order in modifiers), "weak")
    return Strength(said, scope or "sys")


def order_of(strength: Strength, other: str) -> str:
    """Returns the order of the half of a read-modify-write that `other` does not order."""
    return "relaxed" if strength.order == other else strength.order


@dataclass
class Memory:
    """Names the locations that threads access, and keeps their initial values.

    All accesses to overlapping bytes must be of the same bytes (PTX ISA, "Overlap": mixed sizes
    are outside of what the model orders).
    """

    program: Program
    device: DeviceMemory
    initial: dict[str, int] = field(default_factory=dict[str, int])
    shared: set[str] = field(default_factory=set[str])
    _known: dict[tuple[int, int], tuple[int, str]] = field(
        default_factory=dict[tuple[int, int], tuple[int, str]]
    )

    def place(self, space: Space, block: int, address: int, size: int) -> Place | str:
        """Returns the location of `size` bytes; or why there is none, as the end of a sentence."""
        if space is Space.GENERIC:
            space, address = _located(address)
        if space is Space.LOCAL:
            return "local memory is not supported"
        home = block if space is Space.SHARED else -1
        if address % size:
            return "a misaligned access is not supported"
        for (where, start), (length, name) in self._known.items():
            if where != home or start + length <= address or address + size <= start:
                continue
            if (start, length) != (address, size):
                return f"an access to part of {name} is not supported"
            return Place(name, name)
        name = self._enter(space, block, address, size)
        if not name:
            return "an out-of-bounds access is not supported"
        self._known[home, address] = size, name
        return Place(name, name)

    def _enter(self, space: Space, block: int, address: int, size: int) -> str:
        """Returns the name of a location that is accessed for the first time, and records its
        initial value; returns "" for bytes in no allocation."""
        if space is Space.SHARED:
            name = self._shared_name(block, address, size)
            self.shared.add(name)
            return name
        found = self.device.find(address)
        if found is None or address + size > found.address + found.size:
            return ""
        index = (address - found.address) // size
        whole = found.size == size
        name = found.name if whole else f"{found.name}[{index}]"
        self.initial[name] = int.from_bytes(self.device.read(address, size), "little")
        return name

    def _shared_name(self, block: int, address: int, size: int) -> str:
        """Returns the name of bytes of a block's shared memory, by its variables where it can."""
        for symbol, place in self.program.slots.items():
            inside = place.offset <= address < place.offset + max(place.size, 1)
            if place.space is Space.SHARED and inside:
                index = (address - place.offset) // size
                own = symbol if place.size == size else f"{symbol}[{index}]"
                return f"{own} of block {block}"
        return f"shared byte {address} of block {block}"


def _located(address: int) -> tuple[Space, int]:
    """Returns the space that a generic address leads to, and the address there."""
    for space, start in WINDOWS.items():
        if start <= address < start + WINDOW_SIZE:
            return space, address - start
    return Space.GLOBAL, address
