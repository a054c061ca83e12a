"""Compiles the helpers of the engine and of the model of time for the package, and the functions of
baseline code that many kernels call.

    python tools/build_helpers.py

writes src/warploom/helpers/objects: an object for each set of helpers and each level of this kind
of processor (`warploom.llvm.target.LEVELS`), and a file of functions for each level: those that
the kernels of examples and of benchmarks/families call on the default device, and those that record
for timing. It takes minutes.
Without them each user compiles what first launches need.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from itertools import product
from pathlib import Path

import warploom as wl
from warploom.abi.environment import CountLayout
from warploom.analysis.shape_transfer import warp_layout_of
from warploom.compilation.emission import emit_ir
from warploom.core.errors import CompileError
from warploom.cost.device_rules import access_rules
from warploom.devices.catalog import find_device
from warploom.helpers import table
from warploom.ir.variant import KernelVariant
from warploom.llvm.target import LEVELS
from warploom.lower.access.shared_functions import Define, ship_functions
from warploom.lower.baseline.tables import GuardFunction
from warploom.timing.engine import compiled

ROOT = Path(__file__).parent.parent
SOURCES = ("examples/*.cu", "benchmarks/families/*.cu")

RULES = access_rules(find_device(), None)
VARIANT = KernelVariant(
    warp_layout_of((256, 1, 1)),
    alike=True,
    size=None,
    independent=True,
    mixes=False,
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


def main() -> None:
    processors = LEVELS.get(platform.machine(), ())
    made = [path for each in _helper_objects() for path in each.ship(processors)]
    for path in (*made, *ship_functions(functions(), processors)):
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def _helper_objects() -> tuple[table.HelperObject, ...]:
    return (table.COMMON, *table.RARE.values(), compiled.ENGINE)


if __name__ == "__main__":
    main()
