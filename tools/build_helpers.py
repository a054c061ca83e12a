"""Compiles the helpers of the engine and of the model of time for the package, and the functions of
baseline code that many kernels call.

    python tools/build_helpers.py [--processes N]

writes src/warploom/helpers/objects: an object for each set of helpers and each level of this kind
of processor (`warploom.llvm.target.LEVELS`), and a file of functions for each level: those that
the kernels of examples and of benchmarks/families call on the default device, and those that record
for timing. It takes minutes of processor time, in a process for each core unless N says otherwise.
Without them each user compiles what first launches need.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import warploom as wl
from warploom.abi.environment import CountLayout
from warploom.compilation.emission import emit_ir
from warploom.core.errors import CompileError
from warploom.cost.device_rules import access_rules
from warploom.devices.catalog import find_device
from warploom.helpers import table
from warploom.ir.variant import KernelVariant
from warploom.llvm.target import LEVELS, Processor
from warploom.lower.access.shared_functions import Define, ship_functions
from warploom.lower.baseline.tables import GuardFunction
from warploom.shapes.warp_layout import warp_layout_of
from warploom.timing.engine import compiled

ROOT = Path(__file__).parent.parent
SOURCES = ("examples/*.cu", "benchmarks/families/*.cu")

RULES = access_rules(find_device(), None)
VARIANT = KernelVariant(
    warp_layout_of((256, 1, 1)),
    alike=True,
    size=None,
    independent=True,
    interleaves_paths=False,
    shuffles=False,
    records=False,
    baseline=True,
)
"""The baseline code of launches on the default device."""

RECORDED = replace(VARIANT, records=True)
"""The baseline code of launches that are recorded for timing (`warploom.host.records.timing`)."""


def functions() -> dict[str, Define]:
    """Returns the functions of guards and, with NVRTC, those that the kernels of SOURCES call, by
    name."""
    gpu = wl.Device()
    guards = (
        GuardFunction(negated, records) for negated, records in product((False, True), repeat=2)
    )
    found: dict[str, Define] = {one.name: one.define for one in guards}
    for path in (path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))):
        try:
            module = gpu.load(path)
        except CompileError as error:
            print(f"{path.name}: {error}")
            continue
        for name in module.kernels:
            program = module[name].program
            for variant in (VARIANT, RECORDED):
                found |= emit_ir(CountLayout(program, RULES), variant).functions
    return found


HELPERS: tuple[table.HelperObject, ...] = (
    table.COMMON,
    compiled.ENGINE,
    *table.RARE.values(),
)
"""The sets of table, the two largest first."""


def build_helpers(processors: Sequence[Processor], number: int) -> list[Path]:
    """Writes the objects of one of HELPERS for each processor. Returns their paths."""
    return HELPERS[number].ship(processors)


def build_functions(processors: Sequence[Processor]) -> list[Path]:
    """Writes the functions of baseline code for each processor. Returns the files' paths."""
    return ship_functions(functions(), processors)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiles the helpers for the package.")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    given = parser.parse_args()
    processors = LEVELS.get(platform.machine(), ())
    with ProcessPoolExecutor(given.processes) as pool:
        works = [
            pool.submit(build_functions, processors),
            *(pool.submit(build_helpers, processors, number) for number in range(len(HELPERS))),
        ]
        for work in works:
            for path in work.result():
                print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
