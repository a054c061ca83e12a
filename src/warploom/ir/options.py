"""Names the optional transformations of optimized code, and reads which ones the environment
variable `WARPLOOM_DISABLE` switches off. Neither results nor counters depend on them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from enum import StrEnum

from warploom.core.errors import WarploomError

VARIABLE, PRINT_VARIABLE, ALL = "WARPLOOM_DISABLE", "WARPLOOM_PRINT_AFTER", "all"
"""The environment variables that list passes to leave out, and passes after which the IR is printed
(`passes.pipeline`); and the word for all passes."""


class Pass(StrEnum):
    """Names the optional transformations."""

    UNIFORMITY = "uniformity"
    MASKED_LOOPS = "masked-loops"
    PREDICATED_BLOCKS = "predicated-blocks"
    GROUPS = "groups"
    STEPS = "steps"
    VERSIONS = "versions"
    STORE_BATCHING = "store-batching"
    STRIDED_LOOPS = "strided-loops"
    REGION_VERSIONS = "region-versions"
    WARP_LOOPS = "warp-loops"
    STATIC_SCHEDULE = "static-schedule"
    WARP_ORDER = "warp-order"


DESCRIPTIONS: Mapping[Pass, str] = {
    Pass.UNIFORMITY: "stores a register as fewer than 32 values if it is uniform or affine",
    Pass.MASKED_LOOPS: "lets some lanes leave a loop, or jump over blocks, while the other lanes "
    "continue",
    Pass.PREDICATED_BLOCKS: "runs the body of a short `if` under a mask while the lanes that skip "
    "the body wait",
    Pass.GROUPS: "uses one guard for all accesses in a block that use the same base register; "
    "chooses vector, gather or scatter accesses according to the pattern of the addresses",
    Pass.STEPS: "measures the stride between the addresses of lanes at run time, and chooses "
    "vector, gather or scatter accesses accordingly",
    Pass.VERSIONS: "adds a fast version of a block, for use when all lanes are active and all "
    "addresses have the expected pattern",
    Pass.STORE_BATCHING: "defers stores in which each lane writes a different cache line, then "
    "performs them lane by lane",
    Pass.STRIDED_LOOPS: "checks and counts accesses once per batch of iterations if their "
    "addresses advance by a constant stride",
    Pass.REGION_VERSIONS: "adds a copy of each barrier region for fully converged warps",
    Pass.WARP_LOOPS: "runs a barrier region as one loop over the warps of a block",
    Pass.STATIC_SCHEDULE: "runs all barrier regions of a block in one call if their order is known",
    Pass.WARP_ORDER: "switches from a waiting warp to the next warp without returning to the "
    "scheduler",
}
"""A description of each transformation, as docs and the command line show it."""


OLD_NAMES: Mapping[str, Pass] = {
    "shapes": Pass.UNIFORMITY,
    "leaving": Pass.MASKED_LOOPS,
    "asides": Pass.PREDICATED_BLOCKS,
    "put-off": Pass.STORE_BATCHING,
    "rounds": Pass.REGION_VERSIONS,
    "sweeps": Pass.WARP_LOOPS,
    "courses": Pass.STATIC_SCHEDULE,
    "relay": Pass.WARP_ORDER,
}
"""Deprecated names, which still work."""


def disabled() -> frozenset[Pass]:
    """Returns the transformations that WARPLOOM_DISABLE switches off: names of passes, names that
    they had before, or `all` (`named_passes`). Raises WarploomError for an unknown name."""
    return frozenset(map(Pass, named_passes(VARIABLE, [*Pass])))


def named_passes(variable: str, passes: Collection[str]) -> frozenset[str]:
    """Returns the passes that an environment variable lists, separated by commas; for ALL, all of
    `passes`. Raises WarploomError for a name that is not in `passes`."""
    written = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]
    names = [_current_name(variable, name) for name in written]
    if ALL in names:
        return frozenset(passes)
    for name in names:
        if name not in passes:
            raise WarploomError(
                f"{variable}={name}: there is no such pass; the passes are {', '.join(passes)} "
                f"and {ALL}"
            )
    return frozenset(names)


def _current_name(variable: str, name: str) -> str:
    """Returns the current name of a pass that the environment variable `variable` lists. A
    deprecated name gives its new one, with a DeprecationWarning at the reader of the options; any
    other name is returned as it is, known or not."""
    if name not in OLD_NAMES:
        return name
    message = f"{variable}={name} is deprecated: use {OLD_NAMES[name]}"
    warnings.warn(message, DeprecationWarning, stacklevel=4)
    return OLD_NAMES[name]
