"""Compiles the kernels of lessons, explorables and `examples/` to PTX, for installations without
NVRTC.

python tools/precompile.py

Writes `src/warploom/frontends/precompiled.zip`. Kernels that are stored already are kept as they
are, so that a change of one lesson changes its members alone.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from warploom.devices.catalog import find_device
from warploom.frontends.cuda_cpp import compile_cuda, header_folders
from warploom.frontends.opencl import compile_opencl
from warploom.frontends.precompiled import ARCHIVE, PLACEHOLDER, digest_of, member_of
from warploom.ui.explorables import (
    EXPLORABLES,
    requests_along_ranges,
    requests_of_explorable,
)
from warploom.ui.grading import starting_source, task_request
from warploom.ui.lessons import SUFFIXES, changed, lessons, requests_of
from warploom.ui.schema import LaunchRequest

EXAMPLES = Path(__file__).parent.parent / "examples"

EXAMPLE_CAPABILITIES = ((7, 5), (9, 0))
"""Compute capabilities that examples are compiled for; other devices run the PTX of one of them."""

TOOLKIT = "/usr/local/cuda/include/"
"""Folder of CUDA's headers in the line tables of stored PTX."""

EPOCH = (1980, 1, 1, 0, 0, 0)

_TARGET = re.compile(r"^\.target sm_(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Unit:
    """A source to compile, with its options, for a compute capability, by the compiler of its
    language."""

    text: str
    options: tuple[str, ...]
    compute_capability: tuple[int, int]
    compile: Callable[..., str] = compile_cuda


def units() -> Iterator[Unit]:
    """Yield all that lessons, their tasks and solutions, explorables and examples compile."""
    for lesson in lessons():
        launches = list(requests_of(lesson))
        if lesson.task is not None and lesson.task.design is None:
            for source in (starting_source(lesson), lesson.task.solution):
                task = task_request(lesson, source)
                launches += [task, *(changed(task, variant) for variant in lesson.task.also)]
        yield from (_unit(one) for one in launches if not one.ptx)
    for name in EXPLORABLES:
        yield from map(_unit, requests_of_explorable(name))
        yield from map(_unit, requests_along_ranges(name))
    for file in sorted(EXAMPLES.glob("*.cu")):
        for capability in EXAMPLE_CAPABILITIES:
            yield Unit(file.read_text("utf-8"), (), capability)


def _unit(launch: LaunchRequest) -> Unit:
    capability = find_device(launch.device).compute_capability
    compiler = compile_opencl if launch.name.endswith(SUFFIXES["opencl"]) else compile_cuda
    return Unit(launch.source, launch.options, capability, compiler)


def compiled(unit: Unit) -> tuple[str, str]:
    """Return the archive's member for a unit, and its PTX without paths of this computer."""
    ptx = unit.compile(unit.text, PLACEHOLDER, unit.compute_capability, unit.options)
    for folder in (*header_folders(), Path.cwd()):
        ptx = ptx.replace(f'"{folder.as_posix()}/', f'"{TOOLKIT}')
    found = _TARGET.search(ptx)
    assert found is not None
    return member_of(unit.text, unit.options, int(found[1])), ptx


def stored() -> dict[str, str]:
    """Return the members of the archive and their PTX."""
    if not ARCHIVE.exists():
        return {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def main() -> None:
    before, kept = stored(), dict[str, str]()
    wanted = list(dict.fromkeys(units()))
    digests = {digest_of(one.text, one.options) for one in wanted}
    known = {name: text for name, text in before.items() if name.split("/")[0] in digests}
    for unit in wanted:
        name, ptx = compiled(unit)
        kept[name] = known.get(name, ptx)
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(kept):
            archive.writestr(
                zipfile.ZipInfo(name, EPOCH), kept[name], compress_type=zipfile.ZIP_DEFLATED
            )
    print(f"{len(kept)} modules, {ARCHIVE.stat().st_size:,} bytes: {ARCHIVE}")


if __name__ == "__main__":
    main()
