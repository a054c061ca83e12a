"""Compiles the helpers of the engine and of the model of time for the package, and the functions of
baseline code that many kernels call.

    python tools/build_helpers.py

writes src/warploom/codegen/objects: an object for each set of helpers and each level of this kind
of processor (`warploom.codegen.target.LEVELS`), and a file of functions for each level: those that
the kernels of examples and of benchmarks/families call on the default device. It takes a minute.
Without them each user compiles what first launches need.
"""

from __future__ import annotations

import platform
from pathlib import Path

import warploom as wl
from warploom.analysis.shapes import formation_of
from warploom.codegen import helpers
from warploom.codegen.emission import emit_ir
from warploom.codegen.environment import CountLayout
from warploom.codegen.shared_functions import Define, ship_functions
from warploom.codegen.target import LEVELS
from warploom.codegen.variant import KernelVariant
from warploom.core.errors import CompileError
from warploom.devices.catalog import find_device
from warploom.rules.choice import access_rules
from warploom.timing import compiled

ROOT = Path(__file__).parent.parent
SOURCES = ("examples/*.cu", "benchmarks/families/*.cu")

RULES = access_rules(find_device(), None)
VARIANT = KernelVariant(
    formation_of((256, 1, 1)),
    alike=True,
    size=None,
    independent=True,
    mixes=False,
    shuffles=False,
    records=False,
    baseline=True,
)
"""The baseline code of launches on the default device."""


def functions() -> dict[str, Define]:
    """Returns the functions that the kernels of SOURCES call, by name; none without NVRTC."""
    gpu = wl.Device()
    found: dict[str, Define] = {}
    for path in (path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))):
        try:
            module = gpu.load(path)
        except CompileError as error:
            print(f"{path.name}: {error}")
            continue
        for name in module.kernels:
            found |= emit_ir(CountLayout(module[name].program, RULES), VARIANT).functions
    return found


def main() -> None:
    processors = LEVELS.get(platform.machine(), ())
    made = [path for each in _helper_objects() for path in each.ship(processors)]
    for path in (*made, *ship_functions(functions(), processors)):
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def _helper_objects() -> tuple[helpers.HelperObject, ...]:
    return (helpers.COMMON, *helpers.RARE.values(), compiled.ENGINE)


if __name__ == "__main__":
    main()
