"""What atomics leave in memory and give, written from the PTX manual: functions of the operation
and of the bits of the value in memory and of the operands, to the new value and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import manual_floats
from exact_numbers import FORMATS
from manual_floats import PAIRS, Bits
from manual_integers import type_of, value_of

from warploom.isa.spec import Operation

Result = Callable[[Operation, Bits], "tuple[int, int] | None"]


def integer(operation: Operation, old: int, b: int) -> int:
    kind, width = type_of(operation)
    x, y = value_of(old, kind, width), value_of(b, kind, width)
    found = {
        "add": x + y,
        "min": min(x, y),
        "max": max(x, y),
        "inc": 0 if x >= y else x + 1,
        "dec": y if x == 0 or x > y else x - 1,
        "and": x & y,
        "or": x | y,
        "xor": x ^ y,
        "exch": y,
    }[operation.modifiers.text("op", "")]
    return found & ((1 << width) - 1)


def floating(operation: Operation, old: int, b: int) -> int:
    """As the instruction of that name, to nearest; .f32 flushes subnormals but in shared memory."""
    m = operation.modifiers
    result = manual_floats.EXACT[m.text("op", "")](operation, [old, b])
    assert result is not None
    return result[0]


def single(operation: Operation, old: int, b: int) -> int:
    format = FORMATS["f32"]
    if operation.modifiers.text("space", "").startswith("shared"):
        return floating(operation, old, b)
    return format.flushed(floating(operation, format.flushed(old), format.flushed(b)))


def updated(operation: Operation, values: Bits) -> tuple[int, int]:
    """The new value; the result is the old one."""
    old, *operands = values
    m = operation.modifiers
    type = m.text("type", "")
    if m["op"] == "cas":
        return (operands[1] if old == operands[0] else old), old
    if type == "f32":
        return single(operation, old, operands[0]), old
    if type in FORMATS or type in PAIRS:
        return floating(operation, old, operands[0]), old
    return integer(operation, old, operands[0]), old


# ---- mbarriers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Barrier:
    """The word of an mbarrier, whose layout is Warploom's (`isa.ops.mbarrier`)."""

    pending: int
    expected: int
    bytes: int
    valid: int
    phase: int

    @staticmethod
    def of(word: int) -> Barrier:
        return Barrier(
            word & 0xFFFFF,
            word >> 20 & 0xFFFFF,
            word >> 40 & 0x1FFFFF,
            word >> 61 & 1,
            word >> 62,
        )

    @property
    def word(self) -> int:
        """The phase that is complete when nothing is pending any more begins anew."""
        if not self.pending and not self.bytes:
            begun = replace(self, pending=self.expected, phase=(self.phase + 1) % 4)
            return begun.bits
        return self.bits

    @property
    def bits(self) -> int:
        return (
            self.pending
            | self.expected << 20
            | self.bytes << 40
            | self.valid << 61
            | self.phase << 62
        )

    def arrived(self, count: int, *, drop: bool) -> Barrier:
        expected = self.expected - count * drop
        return replace(
            self, pending=(self.pending - count) % (1 << 20), expected=expected % (1 << 20)
        )

    def transacted(self, bytes: int) -> Barrier:
        return replace(self, bytes=(self.bytes + bytes) % (1 << 21))


def mbarrier(operation: Operation, values: Bits) -> tuple[int, int] | None:
    """PTX ISA, mbarrier: what each operation does to the word; open for a count out of range."""
    old, *operands = values
    m, barrier = operation.modifiers, Barrier.of(old)
    name = m.text("op", "")
    if name == "init":
        count = operands[0]
        return None if count >> 20 else (Barrier(count, count, 0, 1, 0).bits, old)
    if name == "inval":
        return 0, old
    if name == "check_layout":  # layout v1 holds reports of copies, and none is made here
        return old, int("layout::v0" in operation.text)
    if name in ("test_wait", "try_wait"):
        given = operands[0]
        waits = barrier.phase % 2 != given % 2 if "parity" in m else barrier.phase != given >> 62
        return old, int(waits)
    if name in ("expect_tx", "complete_tx"):
        sign = 1 if name == "expect_tx" else -1
        return barrier.transacted(sign * operands[0]).word, old
    drop = name == "arrive_drop"
    if "expect_tx" in m:
        return barrier.transacted(operands[0]).arrived(1, drop=drop).word, old
    return barrier.arrived(operands[0] if operands else 1, drop=drop).word, old


def copies_arrive(operation: Operation, values: Bits) -> tuple[int, int]:
    """Without .noinc the arrival was not expected: the count goes up before it goes down."""
    if "noinc" not in operation.modifiers:
        return values[0], values[0]
    return Barrier.of(values[0]).arrived(1, drop=False).word, values[0]


RESULTS: dict[str, Result] = {
    "atom": updated,
    "red": updated,
    "mbarrier": mbarrier,
    "cp": copies_arrive,
}
