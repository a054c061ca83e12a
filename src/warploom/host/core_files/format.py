"""The form of core files: a launch that went wrong or was captured, with all that it takes to run
it again.

A core file is a zip archive. `core.json` has what `Core` says; `kernel.ptx` the program; `memory/A`
the contents of the allocation at A (hexadecimal) before the launch, where not all of it is zero;
`written/A` which of its bytes were written, where not all were; `sources/N` the N-th source file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import Archive
from warploom.host.engines import ENGINES
from warploom.machine.launch import POLICIES
from warploom.texture.descriptors import (
    TextureRow,
    default_order,
    default_selects,
    selects_word,
)

VERSION = 2
"""The version of the files that are written; those of version 1 have shorter rows of textures."""

HIGHEST = 1 << 47
"""The end of the addresses of a process (x86-64, AArch64 with pages of 4 KiB)."""

Word = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Address = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST)]
Unsigned32 = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Sizes = tuple[Positive, Positive, Positive]

REASONS = ("fault", "deadlock", "limit", "findings", "position", "launch")


def _one_of(names: Sequence[str]) -> msgspec.Meta:
    """Returns the rule for a text that is one of some names."""
    return msgspec.Meta(pattern=f"^({'|'.join(names)})$")


class CoreAllocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An allocation of device memory, or `lent` memory of the host."""

    address: Address
    size: Address
    name: str
    constant: bool
    lent: bool


class CoreDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describe what a launch ran on: a device of the catalog, the options of `warploom.Device`."""

    name: str
    warp_size: Positive
    engine: Annotated[str, _one_of(ENGINES)]
    l1_global: bool | None
    bank_bytes: Word | None
    caches: bool
    stack_bytes: Address


class CoreLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of `machine.launch.Launch` and of its schedule."""

    grid: Sizes
    block: Sizes
    parameters: bytes
    globals: tuple[Address, ...]
    dynamic_shared_bytes: Address
    max_instructions: Count | None
    cooperative: bool
    grid_workspace: Address
    cluster: Sizes
    explicit_cluster: bool
    policy: Annotated[str, _one_of(POLICIES)]
    seed: Word
    independent: bool
    resident_blocks: Positive
    interrupts: tuple[Count, ...]
    nd_range: tuple[Unsigned32, Unsigned32, Unsigned32, Unsigned32] = (0, 0, 0, 0)


class CoreMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Device memory: its range, what is allocated and free in it, the heap of kernels, the
    descriptions of textures, and where the variables of the module are."""

    base: Address
    capacity: Address
    allocations: tuple[CoreAllocation, ...]
    gaps: tuple[tuple[Address, Address], ...]
    heap: dict[Address, Address]
    heap_limit: Address
    textures: tuple[tuple[Word, ...], ...]
    variables: dict[str, Address]


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hold what `core.json` says: `reason` is "fault", "deadlock", "limit", "findings", "position",
    or "launch" for one that was captured; `message` explains it, `position` is the number of warp
    instructions up to there, None where the engine did not count them. `tools` are the sanitizers
    that found something. `sources` are the names of the source files."""

    version: int
    made_by: str
    kernel: str
    module: str
    source: str
    terms: str
    reason: Annotated[str, _one_of(REASONS)]
    message: str
    position: Count | None
    tools: tuple[str, ...]
    sources: tuple[str, ...]
    device: CoreDevice
    launch: CoreLaunch
    memory: CoreMemory


class _Version(msgspec.Struct):
    version: Word


def read_head(archive: Archive, file: Path) -> Core:
    """Returns the content of `core.json` of a core file. Raises WarploomError for a version that is
    not known, and what `Archive.read` and msgspec raise for damaged files."""
    text = archive.read("core.json")
    version = msgspec.json.decode(text, type=_Version).version
    if version not in (1, VERSION):
        raise WarploomError(
            f"{file} is a version {version} core file; this version of Warploom reads "
            f"versions 1 and {VERSION}"
        )
    core = msgspec.json.decode(text, type=Core)
    if version == VERSION:
        return core
    textures = tuple(map(_with_channels, core.memory.textures))
    memory = msgspec.structs.replace(core.memory, textures=textures)
    return msgspec.structs.replace(core, version=VERSION, memory=memory)


def _with_channels(row: tuple[int, ...]) -> tuple[int, ...]:
    """Returns a row of the table of textures from one of version 1, which has neither `selects` nor
    `order`: results had the first components of texels."""
    if len(row) != TextureRow.WORDS - 2:
        return row  # `check_textures` refuses it
    components = row[TextureRow.components]
    added = selects_word(default_selects(components)), default_order(components)
    return *row[: TextureRow.selects], *added, *row[TextureRow.selects :]
