"""Prints how well published times order a search space themselves: how the times of two devices, of
two tuners, or of the first and the second half of the launches that were timed agree.

    python benchmarks/tuning/ceilings.py PATH

PATH is a clone of https://github.com/AutoTuningAssociation/benchmark_hub (`sample.py`). Prints
Spearman's coefficients over all configurations that ran in both.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from measure import ranks
from sample import OLD

FILES = {
    "dedispersion": {
        "a100": "cachefiles/dedispersion_milo/A100.json.gz",
        "rtx-a4000": "cachefiles/dedispersion_milo/A4000.json.gz",
        "rtx-a6000": "cachefiles/dedispersion_milo/A6000.json.gz",
    },
    "pnpoly": {
        "rtx-2080-ti": f"{OLD}/pnpoly/RTX_2080_Ti.json.gz",
        "rtx-3090": f"{OLD}/pnpoly/RTX_3090.json.gz",
        "rtx-3090 by Kernel Tuner": f"{OLD}/KernelTuner data/pnpoly/RTX_3090.json.gz",
    },
}
"""The times of the first two of `pnpoly` are KTT's, of one launch each."""


def main(root: Path) -> None:
    for space, files in FILES.items():
        found = {device: _read(root / file) for device, file in files.items()}
        for device, cache in found.items():
            half = {key: one["times"] for key, one in cache.items()}
            if space == "dedispersion":
                first = {key: np.mean(times[:16]) for key, times in half.items()}
                second = {key: np.mean(times[16:]) for key, times in half.items()}
                _print_coefficient(space, f"{device}, launches 1 to 16 and 17 to 32", first, second)
        for one, other in combinations(found, 2):
            times = ({k: v["time"] for k, v in found[name].items()} for name in (one, other))
            _print_coefficient(space, f"{one} and {other}", *times)


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """Return the configurations of a cache file that ran."""
    cache = json.loads(gzip.decompress(file.read_bytes()))["cache"]
    ran = ((key, one) for key, one in cache.items() if isinstance(one["time"], int | float))
    return {key: one for key, one in ran if one["time"] < 1e9}


def _print_coefficient(
    space: str, what: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    """Print the coefficient of two sets of times."""
    both = sorted(set(one) & set(other))
    first, second = (np.array([times[key] for key in both]) for times in (one, other))
    spearman = np.corrcoef(ranks(first), ranks(second))[0, 1]
    print(f"{space}: {what}: {spearman:.2f} of {len(both):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
