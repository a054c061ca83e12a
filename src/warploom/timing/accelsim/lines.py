"""Reads and writes one instruction of a trace in Accel-Sim's format, which is a line of text.

    [line] PC mask destinations [registers] opcode sources [registers] width [mode addresses]

`PC` and `mask` are hexadecimal. A width of 0 bytes marks an instruction without addresses; else the
addresses of the active lanes follow in one of three modes: all of them (0), the first and the
stride from lane to lane (1), or the first and the difference of each to the one before (2). A line
may end with an immediate operand, which is ignored.

    0080 0000000f 1 R4 LDG.E 1 R2 4 1 0x7f0000000000 4      four lanes, stride 4

Source: accel-sim-framework, gpu-simulator/trace-parser and util/tracer_nvbit/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from warploom.core.errors import WarploomError

LANES = 32
ALL_ADDRESSES, STRIDE, DISTANCES = range(3)

MOST_DESTINATIONS, MOST_SOURCES = 1, 4
"""Registers of a line that Accel-Sim's parser accepts."""

BULK = ("UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UBLKCP", "UBLKPF", "UBLKRED")
"""Opcodes of bulk copies, whose lines have addresses in another form."""


@dataclass(frozen=True, slots=True)
class TracedInstruction:
    """Holds one executed warp instruction. Registers are numbers; `width` is the bytes of a lane, 0
    for an instruction without addresses; `addresses` are those of the lanes in `mask`, from the
    lowest."""

    pc: int
    mask: int
    destinations: tuple[int, ...]
    opcode: str
    sources: tuple[int, ...]
    width: int = 0
    addresses: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Returns the instruction as a line of a trace, without a source line."""
        parts = [f"{self.pc:04x}", f"{self.mask:08x}"]
        parts += [str(len(self.destinations)), *(f"R{number}" for number in self.destinations)]
        parts += [self.opcode]
        parts += [str(len(self.sources)), *(f"R{number}" for number in self.sources)]
        parts += [str(self.width)]
        if self.width:
            parts += self._compressed()
        return " ".join(parts)

    def _compressed(self) -> list[str]:
        """Returns the fields of a line that follow the width: a mode and the addresses. If active
        lanes are consecutive and one stride leads from lane to lane, they are STRIDE, the first
        address and the stride (0 for a single lane, and address 0 without lanes). Else they are
        DISTANCES, the first address, and the difference of each further address to the one
        before."""
        first = self.addresses[0] if self.addresses else 0
        steps = [after - before for before, after in pairwise(self.addresses)]
        low = self.mask >> ((self.mask & -self.mask).bit_length() - 1) if self.mask else 0
        if len(set(steps)) <= 1 and low & (low + 1) == 0:
            return [str(STRIDE), f"{first:#x}", str(steps[0] if steps else 0)]
        return [str(DISTANCES), f"{first:#x}", *map(str, steps)]


def parse_line(
    text: str, *, has_line: bool = False, has_position: bool = False
) -> TracedInstruction:
    """Returns the instruction of a line: PC, mask, destinations, opcode, sources, width, and if
    that is not 0 the addresses; what follows is ignored. With `has_line` a source line's number
    comes first, and with `has_position` (before version 3) four words of block and warp; both are
    skipped. Raises WarploomError for any other text, for masks of more than 32 lanes, and for bulk
    copies (BULK)."""
    parts = iter(text.split()[4 * has_position + has_line :])
    try:
        pc, mask = int(next(parts), 16), int(next(parts), 16)
        destinations = _registers(parts)
        opcode = next(parts)
        sources = _registers(parts)
        width = int(next(parts))
        if opcode.partition(".")[0] in BULK:
            raise WarploomError(
                f"{text!r} is a bulk copy, which the timing model does not support in traces"
            )
        addresses = _addresses(parts, mask) if width else ()
    except (StopIteration, ValueError, IndexError):
        raise WarploomError(
            f"{text!r} is not a trace instruction: a trace instruction has a PC, a mask, "
            "destinations, an opcode, sources, a width and addresses"
        ) from None
    if not 0 <= mask < 1 << LANES:
        raise WarploomError(f"{text!r} has a mask with more than {LANES} bits")
    return TracedInstruction(pc, mask, destinations, opcode, sources, width, addresses)


def _registers(parts: Iterator[str]) -> tuple[int, ...]:
    """Returns the numbers of registers, from the next words of a line, which it consumes: a count,
    then as many names (`R5`). Raises ValueError for a malformed word, StopIteration if words are
    missing."""
    return tuple(int(next(parts).removeprefix("R")) for _ in range(int(next(parts))))


def _addresses(parts: Iterator[str], mask: int) -> tuple[int, ...]:
    """Returns the addresses of the lanes of a mask, from the words of a line that follow its width:
    a mode, then its words. These are each address (ALL_ADDRESSES), the first and a stride from one
    active lane to the next (STRIDE), or the first and the difference of each to the one before
    (DISTANCES). Raises ValueError for an unknown mode or a malformed word, StopIteration if words
    are missing."""
    count, mode = mask.bit_count(), int(next(parts))
    if mode == ALL_ADDRESSES:
        return tuple(int(next(parts), 16) for _ in range(count))
    first = int(next(parts), 16)
    if mode == STRIDE:
        stride = int(next(parts))
        return tuple(first + stride * index for index in range(count))
    if mode != DISTANCES:
        raise ValueError
    addresses = [first][:count]
    for _ in range(count - 1):
        addresses.append(addresses[-1] + int(next(parts)))
    return tuple(addresses)


_BITS = re.compile(r"[US]?(\d+)")


def width_of(opcode: str) -> int:
    """Returns the bytes that a lane accesses, by the first modifier of an opcode that names a
    number of bits (`.64`, `.U8`), at least 1; 4 without such a modifier."""
    for part in opcode.split(".")[1:]:
        bits = _BITS.fullmatch(part)
        if bits:
            return max(1, int(bits[1]) // 8)
    return 4
