"""The form of core files: a launch that went wrong, with all that it takes to run it again.

A core file is a zip archive. `core.json` has what `Core` says; `kernel.ptx` the program; `memory/A`
the contents of the allocation at A (hexadecimal) before the launch, where not all of it is zero;
`written/A` which of its bytes were written, where not all were; `sources/N` the N-th source file.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

import msgspec

from warploom.core.errors import Dim3, WarploomError

VERSION = 1

SUFFIX = ".wlcore"


class CoreAllocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An allocation of device memory, or `lent` memory of the host."""

    address: int
    size: int
    name: str
    constant: bool
    lent: bool


class CoreDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describe what a launch ran on: a device of the catalog, the options of `warploom.Device`."""

    name: str
    warp_size: int
    engine: str
    l1_global: bool | None
    bank_bytes: int | None
    caches: bool
    stack_bytes: int


class CoreLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of `machine.launch.Launch` and of its schedule."""

    grid: Dim3
    block: Dim3
    parameters: bytes
    globals: tuple[int, ...]
    dynamic_shared_bytes: int
    max_instructions: int | None
    cooperative: bool
    grid_workspace: int
    cluster: Dim3
    explicit_cluster: bool
    policy: str
    seed: int
    independent: bool
    resident_blocks: int
    interrupts: tuple[int, ...]


class CoreMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Device memory: its range, what is allocated and free in it, the heap of kernels, the
    descriptions of textures, and where the variables of the module are."""

    base: int
    capacity: int
    allocations: tuple[CoreAllocation, ...]
    gaps: tuple[tuple[int, int], ...]
    heap: dict[int, int]
    heap_limit: int
    textures: tuple[tuple[int, ...], ...]
    variables: dict[str, int]


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hold what `core.json` says: `reason` is "fault", "deadlock", "limit", "findings" or
    "position", `message` tells it, `position` is the number of warp instructions up to there, None
    where the engine did not count them. `tools` are the sanitizers that found something. `sources`
    are the names of the source files."""

    version: int
    made_by: str
    kernel: str
    module: str
    source: str
    terms: str
    reason: str
    message: str
    position: int | None
    tools: tuple[str, ...]
    sources: tuple[str, ...]
    device: CoreDevice
    launch: CoreLaunch
    memory: CoreMemory


class _Version(msgspec.Struct):
    version: int


def read_head(archive: ZipFile, file: Path) -> Core:
    """Return what `core.json` of a core file says. Raises WarploomError for what is none, and for
    a version or a field that is not known."""
    try:
        text = archive.read("core.json")
        version = msgspec.json.decode(text, type=_Version).version
        if version == VERSION:
            return msgspec.json.decode(text, type=Core)
    except (KeyError, msgspec.MsgspecError, BadZipFile, OSError) as error:
        raise WarploomError(f"{file} is not a core file of Warploom: {error}") from None
    raise WarploomError(
        f"{file} is a core file of version {version}; this Warploom reads version {VERSION}"
    )
