"""Types of options that several calls share, with the values that each takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, SupportsIndex

import numpy.typing as npt

from warploom.core.values import ElementType, Integer, OneOf, Rule
from warploom.host.engines import ENGINES
from warploom.machine.launch import ORDERS, POLICIES
from warploom.sanitize.findings import TOOLS

MOST_BYTES = 1 << 47
"""Processes on x86-64 and AArch64 have no larger address space."""

MOST_WORKERS = 1024
"""Threads or processes of the host that one call may start."""

Bytes = Annotated[int, Integer(0, MOST_BYTES)]
Size = Annotated[int, Integer(1, MOST_BYTES)]
Count = Annotated[int, Integer(0, 2**63 - 1)]
Positive = Annotated[int, Integer(1, 2**63 - 1)]
Seed = Annotated[int, Integer(-(2**63), 2**63 - 1)]
Workers = Annotated[int, Integer(1, MOST_WORKERS)]

Engine = Annotated[str, OneOf(ENGINES)]
Policy = Annotated[str, OneOf(POLICIES)]
Order = Annotated[str, OneOf(ORDERS)]

Tools = Sequence[Annotated[str, OneOf(TOOLS)]]
"""Tools that check a launch."""

Extent = Annotated[SupportsIndex, Integer(0, MOST_BYTES)]
"""Elements along one axis."""

Content = Annotated[npt.ArrayLike, Rule()]
"""The content of a buffer: `Device.to_device` checks it."""

Element = Annotated[npt.DTypeLike, ElementType()]
"""The element type of a buffer."""

Cluster = Positive | Sequence[Positive]
"""The blocks of a cluster: along x, or along each axis."""

Shape = Extent | Sequence[Extent]
"""The shape of a buffer: elements, or elements along each axis."""

CODES = ("machine", "ptx")
"""What a time can rest on (`run.time(code=)`). By default it is machine code where there is some
that can be followed, else PTX."""

CACHES = ("cold", "warm")
"""The caches when a timed launch begins (`run.time(caches=)`): empty, or as an equal launch left
them."""
