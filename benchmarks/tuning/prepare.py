"""Tells what it costs to prepare a configuration for tuning: the largest of the published spaces.

    python benchmarks/tuning/prepare.py

prints processor seconds of each part, without the caches of earlier runs.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from published import SPACES, Device, source_of

from warploom.frontends.cuda_cpp import compile_cuda

DEVICE = "rtx-3090"
LARGEST = {
    "block_size_x": 32,
    "block_size_y": 4,
    "tile_size_x": 5,
    "tile_size_y": 5,
    "filter_width": 15,
    "filter_height": 14,
    "use_padding": 1,
    "read_only": 0,
}
"""A convolution of 25 results a thread by a filter of 210 taps, all unrolled."""


def timed(what: str, work: Callable[[], Any]) -> Any:
    """Do some work; print its processor seconds, and return what it gives."""
    began = time.process_time()
    result = work()
    print(f"{what}: {time.process_time() - began:.1f} s")
    return result


def main() -> None:
    """Prepare the configuration in an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARPLOOM_CACHE_DIR"] = folder
        space = SPACES["convolution"]
        gpu = Device(DEVICE, record=True, sampled=True)
        source, options = source_of(space, LARGEST)
        capability = gpu.spec.compute_capability
        name = "kernels.cu"
        ptx = timed("NVRTC", lambda: compile_cuda(source, name, capability, options))
        kernel = timed("the parser", lambda: gpu.compile(ptx, language="ptx"))[space.kernel]
        print(f"{len(kernel.program.instructions):,} instructions of PTX")
        (part,) = space.parts(LARGEST)
        launcher = kernel[part.grid, space.block(LARGEST)]
        run = timed("the first blocks", lambda: launcher(*space.arguments(gpu, 0, part.first)))
        timed("machine code and the replay", lambda: run.time(sample=2))


if __name__ == "__main__":
    main()
