"""Compiles the helpers of the engine and of the model of time for the package.

    python tools/build_helpers.py

writes src/warploom/codegen/objects: an object for each set of helpers and each level of this kind
of processor (`warploom.codegen.target.LEVELS`). It takes 40 s. Without them the first launch
of each user compiles the helpers.
"""

from __future__ import annotations

import platform

from warploom.codegen import helpers
from warploom.codegen.target import LEVELS
from warploom.timing import compiled


def main() -> None:
    for made in (helpers.COMMON, *helpers.RARE.values(), compiled.ENGINE):
        for path in made.ship(LEVELS.get(platform.machine(), ())):
            print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
