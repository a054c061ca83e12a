"""Writes spaces.json: a sample of published search spaces, with the times that were measured.

    python benchmarks/tuning/sample.py PATH

PATH is a clone of https://github.com/AutoTuningAssociation/benchmark_hub. Of each space it takes
configurations at random that ran on both devices, and the fastest of either.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

COUNTS = {"convolution": 14, "pnpoly": 14, "gemm": 14, "dedispersion": 60}
"""Configurations taken at random. Most times of dedispersion lie within some percent of each other:
of a predictor whose Spearman coefficient over the whole space is 0.75, samples of 16 configurations
have 0.41 to 0.93."""

OLD = "currently_unused/cachefiles"
FILES = {
    "convolution": {
        "rtx-2080-ti": f"{OLD}/convolution/RTX_2080_Ti.json.gz",
        "rtx-3090": f"{OLD}/convolution/RTX_3090.json.gz",
    },
    "pnpoly": {
        "rtx-2080-ti": f"{OLD}/pnpoly/RTX_2080_Ti.json.gz",
        "rtx-3090": f"{OLD}/pnpoly/RTX_3090.json.gz",
    },
    "gemm": {
        "rtx-2080-ti": f"{OLD}/KernelTuner data/gemm/RTX_2080_Ti.json.gz",
        "rtx-3090": f"{OLD}/KernelTuner data/gemm/RTX_3090.json.gz",
    },
    "dedispersion": {
        "a100": "cachefiles/dedispersion_milo/A100.json.gz",
        "rtx-a6000": "cachefiles/dedispersion_milo/A6000.json.gz",
    },
}
SOURCE = "AutoTuningAssociation/benchmark_hub, commit 8eeb99e7 (MIT)"


def main(root: Path) -> None:
    spaces = {name: _space(root, files, COUNTS[name]) for name, files in FILES.items()}
    text = json.dumps({"source": SOURCE, "spaces": spaces})
    lines = text.replace("]], ", "]],\n").replace("], [", "],\n[") + "\n"
    Path(__file__).with_name("spaces.json").write_text(lines, "utf-8")


def _space(root: Path, files: dict[str, str], count: int) -> dict[str, Any]:
    read = [json.loads(gzip.decompress((root / file).read_bytes())) for file in files.values()]
    names = read[0]["tune_params_keys"]
    times = [_times(one["cache"], names) for one in read]
    both = sorted(set(times[0]) & set(times[1]))
    best = [min(both, key=one.__getitem__) for one in times]
    chosen = sorted({*random.Random(0).sample(both, count), *best})
    return {
        "parameters": names,
        "files": files,
        "configurations": len(both),
        "rows": [[*key, *(one[key] for one in times)] for key in chosen],
    }


def _times(cache: dict[str, Any], names: list[str]) -> dict[tuple[Any, ...], float]:
    """Return milliseconds by configuration, of those that ran."""
    ran = (one for one in cache.values() if isinstance(one.get("time"), int | float))
    return {tuple(one[name] for name in names): one["time"] for one in ran if one["time"] < 1e9}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
