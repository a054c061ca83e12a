"""The control information of a machine instruction of compute capability 7.0 and later.

Bits of the 128 of its encoding: stall count 105 to 108,
yield 109, write barrier 110 to 112, read barrier 113 to 115, barriers waited for 116 to 121, reuse
122 to 125. Sources: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking", 2018, section 2.1 (arXiv 1804.06826); Huerta et al., "Dissecting and Modeling
the Architecture of Modern GPU Cores", MICRO 2025, section 4, for how the cores use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

FIRST_BIT, BITS = 105, 21
NO_BARRIER = 7
BARRIERS = 6


@dataclass(frozen=True, slots=True)
class Control:
    """The control information of one machine instruction, for the scheduler.

    `stall`: cycles until the warp's next instruction may issue; `yields`: another warp should go
    next; `write_barrier`, `read_barrier`: the barrier that is released once its result is written,
    or its operands are read, None without one; `waits`: the barriers that have to be free before it
    issues; `reuse`: source operand slots that are kept in the register file's operand cache.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]


def control_of(encoding: int) -> Control:
    """Returns the control information in the 128 bits of an instruction."""
    return _control(encoding >> FIRST_BIT & (1 << BITS) - 1)


@lru_cache(maxsize=1 << 14)
def _control(bits: int) -> Control:
    """Returns the same of the bits that hold it."""
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        write_barrier=_barrier(bits >> 5 & 7),
        read_barrier=_barrier(bits >> 8 & 7),
        waits=tuple(i for i in range(BARRIERS) if bits >> 11 + i & 1),
        reuse=tuple(i for i in range(4) if bits >> 17 + i & 1),
    )


def _barrier(number: int) -> int | None:
    return None if number == NO_BARRIER else number
