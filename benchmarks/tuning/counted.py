"""Holds executed machine instructions of point in polygon against the counts that KTT published.

    python benchmarks/tuning/counted.py PATH --nvrtc DIR

PATH is a clone of https://github.com/AutoTuningAssociation/benchmark_hub (`sample.py`), DIR has the
NVRTC of another release (`compiler.py`). Prints instructions of a warp and registers of a thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from compiler import Compiler
from ktt import results
from measure import cases
from published import POINTS, SPACES, Device, compiled

NAMES = ("BETWEEN_METHOD", "BLOCK_SIZE_X", "TILE_SIZE", "USE_METHOD")
WARP, BLOCKS = 32, 2


def published(root: Path) -> dict[tuple[int, ...], tuple[float, int]]:
    """Return instructions of a warp and registers by configuration."""
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for one in results(root, "Pnpoly"):
        warps = POINTS / WARP / one.parameters["TILE_SIZE"]
        executed = one.counters["smsp__inst_executed.sum"] / warps
        found[tuple(one.parameters[name] for name in NAMES)] = executed, one.registers
    return found


def counted(configuration: dict[str, Any], compiler: Compiler | None) -> tuple[float, int]:
    """Return the same of whole blocks, from machine code."""
    gpu, threads = Device("rtx-2080-ti"), configuration["block_size_x"]
    kernel = compiled(SPACES["pnpoly"], gpu, configuration, compiler)
    count = BLOCKS * threads * configuration["tile_size"]
    points = np.random.default_rng(1).random((count, 2), np.float32).reshape(-1)
    run = kernel[BLOCKS, threads](gpu.zeros(count, np.int32), gpu.to_device(points), count)
    return run.machine.instructions / (BLOCKS * threads / WARP), run.kernel.resources.registers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--nvrtc", type=Path)
    asked = parser.parse_args()
    known = published(asked.path)
    compiler = None if asked.nvrtc is None else Compiler(asked.nvrtc)
    case = next(case for case in cases() if case.space == "pnpoly")
    for one in case.configurations:
        (theirs, registers), (ours, own) = known[tuple(one.values())], counted(one, compiler)
        print(
            f"{[*one.values()]}: {theirs:,.1f} published, {ours:,.1f} counted"
            f" ({100 * (ours / theirs - 1):+.1f} %), registers {registers} and {own}"
        )


if __name__ == "__main__":
    main()
