"""Measures coalescers: functions that group the addresses of a warp's access into transactions.

The accesses are those that a launch made, as its trace has them. A transaction is an aligned block
of 32, 64 or 128 bytes. On its way it takes a packet of 32 bytes for each 32 bytes of data, and one
for its header: an estimate, since no source gives the size of a header. Every byte that a lane
asked for has to be in a transaction.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.observe.trace import Trace
from warploom.ui.designs.policy_source import FILE, Form, PolicyError

COALESCE = Form("coalesce", ("addresses", "size"), collections=True)

SECTOR, LINE = 32, 128
SIZES = (SECTOR, 64, LINE)
"""Bytes that a transaction can have."""

Transactions = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Access:
    """Addresses of the active lanes of an access to global memory, relative to a multiple of LINE,
    the bytes of each, and the line of the source."""

    addresses: tuple[int, ...]
    size: int
    line: int


def accesses_of(trace: Trace) -> Counter[Access]:
    """Returns how often each access to global memory occurred; atomics are not coalesced."""
    columns = trace.accesses
    sites: list[int] = np.frombuffer(columns.site, "<u4").tolist()
    shapes: list[int] = np.frombuffer(columns.shape, "<u4").tolist()
    bases: list[int] = np.frombuffer(columns.base, "<u8").tolist()
    found: Counter[Access] = Counter()
    for number, pattern, base in zip(sites, shapes, bases, strict=True):
        site, shape = trace.sites[number], trace.shapes[pattern]
        if site.space != "global" or site.op == "atomic":
            continue
        addresses = tuple(base % LINE + offset for offset in shape.offsets)
        lowest = min(addresses) // LINE * LINE
        line = trace.code[site.instruction].line
        found[Access(tuple(one - lowest for one in addresses), site.size, line)] += 1
    return found


def one_by_one(addresses: Sequence[int], size: int) -> Transactions:
    """Returns the sectors of each lane, whether or not another lane has them."""
    return [one for address in addresses for one in _blocks([address], size, SECTOR)]


def whole_lines(addresses: Sequence[int], size: int) -> Transactions:
    """Returns each line that a lane touches."""
    return _blocks(addresses, size, LINE)


def sectors(addresses: Sequence[int], size: int) -> Transactions:
    """Returns each sector that a lane touches."""
    return _blocks(addresses, size, SECTOR)


def _blocks(addresses: Sequence[int], size: int, length: int) -> Transactions:
    """Returns the aligned blocks of a length that the lanes touch, each once."""
    touched = {
        byte // length * length for address in addresses for byte in (address, address + size - 1)
    }
    return [(start, length) for start in sorted(touched)]


COALESCERS = (
    ("no coalescing", one_by_one),
    ("lines of 128 bytes", whole_lines),
    ("sectors of 32 bytes", sectors),
)


def costs_of_coalescers(accesses: Counter[Access], coalesce: Callable[..., Any]) -> list[int]:
    """Returns the packets of the known coalescers, then of a function. Raises PolicyError where the
    function fails, or its transactions are not allowed or lack a byte."""
    known = (function for _, function in COALESCERS)
    return [
        sum(count * _packets(function, access) for access, count in accesses.items())
        for function in (*known, coalesce)
    ]


def _packets(coalesce: Callable[..., Any], access: Access) -> int:
    """Returns the packets of an access."""
    try:
        made = list(coalesce(list(access.addresses), access.size))
    except MemoryError:
        raise
    except Exception as error:
        lines = [
            one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == FILE
        ]
        raise PolicyError(
            f"{error or type(error).__name__} ({_shown(access)})", (lines or [1])[-1] or 1
        ) from None
    for problem in _problems(made, access):
        raise PolicyError(f"{problem} ({_shown(access)})", 1)
    return sum(1 + length // SECTOR for _, length in made)


def _problems(made: list[Any], access: Access) -> Iterator[str]:
    """Yields what is wrong with the transactions of an access."""
    for one in made:
        pair: list[Any] = [*one] if isinstance(one, tuple | list) else []
        if len(pair) != 2:
            yield f"{one!r} is not a (start, length) pair"
            return
        start, length = pair
        if length not in SIZES or type(start) is not int or start % length:
            yield f"({start}, {length}) is not an aligned transaction of 32, 64 or 128 bytes"
            return
    covered = {sector for start, length in made for sector in range(start, start + length, SECTOR)}
    for address in access.addresses:
        for byte in (address, address + access.size - 1):
            if byte // SECTOR * SECTOR not in covered:
                yield f"byte {byte} is in no transaction"
                return


def _shown(access: Access) -> str:
    """Returns an access as messages show it."""
    first = ", ".join(map(str, access.addresses[:4]))
    more = ", ..." if len(access.addresses) > 4 else ""
    return (
        f"{len(access.addresses)} lanes of {access.size} bytes at {first}{more}, line {access.line}"
    )
