"""The threads of a litmus test: instructions of its notation, run on a path."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warploom.core.errors import WarploomError
from warploom.memory_model.events import Arrival, Event, Kind, Place, Strength
from warploom.memory_model.paths import Path
from warploom.memory_model.values import Loaded, Value, combined, loads_of

BITS = 32
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc")
ALU: Mapping[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
}
COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "beq": operator.eq,
    "bne": operator.ne,
    "blt": operator.lt,
    "ble": operator.le,
    "bgt": operator.gt,
    "bge": operator.ge,
}
PROXIES = {"suld": "surface", "sust": "surface", "tld": "texture", "cold": "constant"}
LOADS = ("ld", "suld", "tld", "cold")
STORES = ("st", "sust")


@dataclass(frozen=True, slots=True)
class Cell:
    """One instruction: the parts of its opcode, its operands; or a label."""

    text: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]

    @staticmethod
    def of(text: str) -> Cell:
        """Returns the instruction of a text."""
        opcode, _, rest = text.partition(" ")
        operands = tuple(part.strip() for part in rest.split(",") if part.strip())
        return Cell(text, tuple(opcode.split(".")), operands)

    @property
    def label(self) -> str:
        """Returns the label that it is, or nothing."""
        return self.text[:-1].strip() if self.text.endswith(":") else ""

    def strength(self, order: str) -> Strength:
        """Returns how it takes part in synchronization; `order` where it does not say."""
        said = next((part for part in self.parts[1:] if part in ORDERS), order)
        scope = next((part for part in self.parts[1:] if part in SCOPES), "sys")
        return Strength(said, scope, PROXIES.get(self.parts[0], "generic"))


def column(
    cells: Sequence[Cell], places: Mapping[str, Place], registers: Mapping[str, int]
) -> Callable[[Path], None]:
    """Returns what runs a thread on a path. Raises WarploomError for what is no instruction."""
    labels = {cell.label: i for i, cell in enumerate(cells) if cell.label}
    for cell in cells:
        _check(cell, labels)

    def run(path: Path) -> None:
        thread = _Thread(path, places, dict(registers))
        at = 0
        while at < len(cells):
            path.visit(at)
            label = thread.step(cells[at])
            at = labels[label] if label else at + 1
        path.registers = thread.registers

    return run


KNOWN = {*ALU, *COMPARE, *LOADS, *STORES, "goto", "atom", "red", "fence", "bar"}


def _check(cell: Cell, labels: Mapping[str, int]) -> None:
    if cell.label:
        return
    if cell.parts[0] not in KNOWN:
        raise WarploomError(f"{cell.text!r}: litmus tests do not support this instruction")
    jumps = cell.parts[0] in COMPARE or cell.parts[0] == "goto"
    if jumps and (not cell.operands or cell.operands[-1] not in labels):
        raise WarploomError(f"{cell.text!r}: the thread has no label with this name")


class _Thread:
    """A thread on its way: its registers."""

    def __init__(
        self, path: Path, places: Mapping[str, Place], registers: dict[str, Value]
    ) -> None:
        self._path, self._places, self.registers = path, places, registers

    def step(self, cell: Cell) -> str:
        """Executes one instruction; returns the label where it goes, or nothing."""
        name = cell.parts[0]
        if cell.label:
            return ""
        if name == "goto":
            return cell.operands[0]
        if name in COMPARE:
            left, right, label = cell.operands
            test = combined(
                lambda a, b: COMPARE[name](_signed(a), _signed(b)),
                self._value(left),
                self._value(right),
            )
            return label if self._path.branch(test) else ""
        if name == "fence":
            self._fence(cell)
        elif name == "bar":
            self._barrier(cell)
        elif name in ("atom", "red"):
            self._atomic(cell)
        elif name in STORES:
            self._write(
                cell, cell.strength("weak"), cell.operands[0], self._value(cell.operands[1])
            )
        elif name in ALU:
            left, right = map(self._value, cell.operands[1:])
            self.registers[cell.operands[0]] = combined(_wrapped(ALU[name]), left, right)
        elif len(cell.parts) == 1:
            self.registers[cell.operands[0]] = self._value(cell.operands[1])
        else:
            read = self._read(cell, cell.strength("weak"), cell.operands[1])
            self.registers[cell.operands[0]] = Loaded(read)
        return ""

    def _value(self, text: str) -> Value:
        if re.fullmatch(r"-?\d+", text):
            return int(text) % (1 << BITS)
        return self.registers.get(text, 0)

    def _place(self, name: str) -> Place:
        return self._places.get(name, Place(name, name))

    def _read(self, cell: Cell, strength: Strength, name: str) -> int:
        event = Event(
            Kind.READ, strength, self._place(name), control=self._path.control, text=cell.text
        )
        return self._path.add(event)

    def _write(
        self, cell: Cell, strength: Strength, name: str, value: Value, partner: int | None = None
    ) -> None:
        self._path.add(
            Event(
                Kind.WRITE,
                strength,
                self._place(name),
                value,
                partner,
                data=loads_of(value),
                control=self._path.control,
                text=cell.text,
            )
        )

    def _atomic(self, cell: Cell) -> None:
        """Executes `atom` or `red`: a read and, but for a compare that fails, a write."""
        strength, op = cell.strength("relaxed"), cell.parts[-1]
        target, *rest = cell.operands if cell.parts[0] == "atom" else ("", *cell.operands)
        place, *given = rest
        values = [self._value(text) for text in given]
        order = strength.order
        reads = "relaxed" if order == "release" else order
        writes = "relaxed" if order == "acquire" else order
        read = self._read(cell, Strength(reads, strength.scope), place)
        old = Loaded(read)
        if target:
            self.registers[target] = old
        if op == "cas":
            same = combined(lambda a, b: int(a == b), old, values[0])
            if not self._path.decide(same, (0, 1)):
                return
            new = values[1]
        else:
            new = values[0] if op == "exch" else combined(_wrapped(ALU[op]), old, values[0])
        self._write(cell, Strength(writes, strength.scope), place, new, read)

    def _fence(self, cell: Cell) -> None:
        if "proxy" in cell.parts:
            strength = Strength("weak", "cta", cell.parts[-1])
        else:
            strength = cell.strength("sc")
        self._path.add(Event(Kind.FENCE, strength, control=self._path.control, text=cell.text))

    def _barrier(self, cell: Cell) -> None:
        instance, *named = cell.operands
        number = self._value(named[0]) if named else int(instance)
        count = self._value(named[1]) if len(named) > 1 else None
        arrival = Arrival(number, count, "arrive" not in cell.parts, int(instance) if named else -1)
        self._path.add(
            Event(
                Kind.BARRIER,
                Strength("weak", "cta"),
                control=self._path.control,
                arrival=arrival,
                text=cell.text,
            )
        )


def _wrapped(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: compute(a, b) % (1 << BITS)


def _signed(value: int) -> int:
    return value - (1 << BITS) if value >> (BITS - 1) else value
