"""Compiles the launches of recorded.py to machine code, on any computer.

    python validation/hardware/prepare.py FOLDER --cc 9.0

FOLDER then has launches.json and a .cubin for each launch, made by Warploom's NVRTC and ptxas:
what Warploom counts and times is this machine code. `record.py` takes it to a GPU.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from recorded import (
    ROOT,
    Launch,
    family_launches,
    figure_launches,
    space_launches,
    write_launches,
)

from warploom.frontends.cuda_cpp import compile_cuda
from warploom.host.programs.ptxas import architecture_of, find_tool, identity, run_ptxas


def machine_code(launch: Launch, capability: tuple[int, int]) -> bytes:
    """Returns the .cubin of a launch's kernel; raises RuntimeError where ptxas refuses it."""
    source = (ROOT / launch.source).read_text("utf-8")
    ptx = compile_cuda(source, str(ROOT / launch.source), capability, launch.options)
    ptxas = find_tool("ptxas")
    assert ptxas is not None, "pip install warploom[ptxas]"
    made = run_ptxas(identity(ptxas), architecture_of(ptx, capability), ptx, launch.kernel)
    if made.code:
        raise RuntimeError(f"{launch.name}: {made.messages}")
    return made.binary


def main() -> None:
    options = argparse.ArgumentParser(description="Compile the launches that are recorded.")
    options.add_argument("folder", type=Path)
    options.add_argument("--cc", default="9.0", help="compute capability")
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    major, minor = map(int, given.cc.split("."))
    given.folder.mkdir(parents=True, exist_ok=True)
    launches = [*family_launches(), *figure_launches(), *space_launches()]
    with ProcessPoolExecutor(given.workers) as pool:
        codes = pool.map(partial(machine_code, capability=(major, minor)), launches)
        for launch, code in zip(launches, codes, strict=True):
            (given.folder / launch.file).write_bytes(code)
    write_launches(given.folder / "launches.json", launches)
    print(f"{len(launches)} launches in {given.folder}")


if __name__ == "__main__":
    main()
