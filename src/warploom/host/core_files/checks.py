"""Checks that the values of a core file fit together: addresses, textures, parameters.

Both machines trust what is checked here, as they trust the host that makes a launch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from warploom.core.errors import WarploomError
from warploom.host.core_files.format import Core, CoreMemory
from warploom.host.loaded import LoadedKernel
from warploom.host.ready_launch import WORKSPACE_BYTES
from warploom.program.program import PARAMETERS
from warploom.texture import descriptors as d
from warploom.texture.descriptors import TextureRow
from warploom.texture.texels import format_bytes

MOST_EXTENT = 1 << 27
"""Texels of a texture along an axis (CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability": a linear texture has the most)."""


def check_addresses(core: Core, kernel: LoadedKernel) -> None:
    """Raises WarploomError unless the addresses of a launch are those of its program and lie in
    allocations."""
    launch, memory, program = core.launch, core.memory, kernel.program
    if len(launch.parameters) != program.parameter_bytes:
        raise WarploomError(
            f"it has {len(launch.parameters)} bytes of parameters, but {core.kernel} takes "
            f"{program.parameter_bytes}"
        )
    sizes = kernel.image.sizes_by_name
    if set(sizes) != set(memory.variables):
        raise WarploomError("its variables do not match the variables of its program")
    wanted = [(name, memory.variables[name], size) for name, size in sizes.items()]
    named = kernel.image.addresses(program.globals)
    others = launch.globals[len(named) :]
    if launch.globals[: len(named)] != named or len(others) != (PARAMETERS in program.slots):
        raise WarploomError("its launch specifies wrong addresses for the global variables")
    wanted += [("the parameters", each, program.parameter_bytes) for each in others]
    if launch.cooperative:
        wanted.append(("grid_workspace", launch.grid_workspace, WORKSPACE_BYTES))
    wanted += [("the heap", address, size) for address, size in _heap(memory)]
    _check_inside(memory, wanted)
    most = max(kernel.context.schedule.resident_blocks, _most_resident(kernel))
    if launch.resident_blocks > most:
        raise WarploomError(
            f"resident_blocks is {launch.resident_blocks:,}, but the device can hold only {most:,}"
        )
    if any(index >= len(program.instructions) for index in launch.interrupts):
        raise WarploomError(
            "the instruction index of an interrupt must be less than the number of "
            f"instructions, {len(program.instructions)}"
        )


def _most_resident(kernel: LoadedKernel) -> int:
    spec = kernel.context.spec
    return spec.sms * spec.max_blocks_per_sm


def _heap(memory: CoreMemory) -> Iterator[tuple[int, int]]:
    """Yields the allocations of the heap: addresses, and sizes before they were rounded up."""
    live = {each.address: each.size for each in memory.allocations}
    for address, extent in memory.heap.items():
        yield address, min(extent, live.get(address, extent))


def _check_inside(memory: CoreMemory, wanted: Iterable[tuple[str, int, int]]) -> None:
    """Raises WarploomError for a range (name, address, bytes) that is in no allocation."""
    live = sorted(memory.allocations, key=lambda each: each.address)
    starts = [each.address for each in live]
    for name, address, size in wanted:
        number = bisect_right(starts, address) - 1
        if number < 0 or address + size > starts[number] + live[number].size:
            raise WarploomError(f"{name} at {address:#x} is not in any allocation")


def check_gaps(memory: CoreMemory) -> None:
    """Raises WarploomError unless the free ranges of memory are in order, and no allocation is in
    one."""
    if list(memory.gaps) != sorted(memory.gaps):
        raise WarploomError("its free memory ranges are not sorted by address")
    own = ((each.address, each.address + each.size) for each in memory.allocations if not each.lent)
    end = memory.base
    for start, stop in sorted([*memory.gaps, *own]):
        if not end <= start <= stop:
            raise WarploomError(f"free ranges or allocations overlap at {start:#x}")
        end = stop


def check_textures(memory: CoreMemory) -> None:
    """Raises WarploomError for a row of the table of textures that no texture has, or whose texels
    are in no allocation."""
    for number, words in enumerate(memory.textures):
        name = f"textures[{number}]"
        if len(words) != TextureRow.WORDS:
            raise WarploomError(f"{name} has {len(words)} words, not {TextureRow.WORDS}")
        row = TextureRow(np.array(words, np.int64), 0)
        if row.kind == d.FREE and not any(words):
            continue
        if not _is_texture(row):
            raise WarploomError(f"{name} does not describe a texture")
        _check_inside(memory, _levels(name, memory.base, row))


def _is_texture(row: TextureRow) -> bool:
    extents = (row.width, row.height, row.depth, row.layers)
    return (
        row.kind in (d.TEXTURE, d.SURFACE)
        and 0 <= row.geometry < len(d.GEOMETRIES)
        and 0 <= row.format < len(d.FORMATS)
        and 1 <= row.components <= 4
        and all(0 <= extent <= MOST_EXTENT for extent in extents)
        and 1 <= row.levels <= d.MOST_LEVELS
        and row.as_float in (0, d.NORMALIZED_TEXELS, d.SRGB)
        and row.sampler & d.SAMPLER_TAG != 0
        and all(
            select < row.components or select in (d.SELECT_ZERO, d.SELECT_ONE)
            for select in (row.selects >> 4 * part & 15 for part in range(4))
        )
    )


def _levels(name: str, base: int, row: TextureRow) -> Iterator[tuple[str, int, int]]:
    """Yields the ranges of a texture's mipmap levels, as `_check_inside` expects them."""
    texel = row.components * format_bytes(row.format) * max(1, row.layers)
    extents = (row.width, row.height, row.depth)
    for level in range(row.levels):
        texels = prod(max(1, extent >> level) for extent in extents)
        yield name, base + int(row.level_at[level]), texels * texel
