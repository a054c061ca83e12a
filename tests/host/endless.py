"""Runs an endless kernel of each kind and interrupts it: prints how long each took to stop.

python tests/host/endless.py [KIND ...]
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import warploom as wl

BODIES = {
    "tight loop": "for (unsigned n = 1; n; n += 2) sum += n; out[0] = sum;",
    "loads": "for (;;) sum += ((volatile int*)out)[threadIdx.x];",
    "barrier": "for (;;) { out[threadIdx.x] += 1; __syncthreads(); }",
    "atomics": "for (;;) atomicAdd(out, 1);",
    "printf": 'for (;;) printf("%d ", threadIdx.x);',
    "malloc": "for (;;) free(malloc(16));",
}
SOURCE = "\n".join(
    f'extern "C" __global__ void k{n}(int* out) {{ volatile int sum = 0; {body} }}'
    for n, body in enumerate(BODIES.values())
)
PLACES: dict[str, dict[str, Any]] = {
    "": {},
    ", in a stream": {},
    ", two workers": {"workers": 2},
    ", reference machine": {"engine": "reference"},
}
KINDS = [body + place for body in BODIES for place in PLACES]


def seconds_to_stop(kind: str) -> float:
    """Launches an endless kernel; returns the seconds from Ctrl-C to the end of the launch."""
    body, comma, place = kind.partition(", ")
    gpu = wl.Device("h100", output=lambda _: None, **PLACES[comma + place])
    kernel = gpu.compile(SOURCE)[f"k{[*BODIES].index(body)}"]
    out = gpu.zeros(64, np.int32)
    with contextlib.suppress(wl.InstructionLimit):  # compiles the kernel
        kernel[2, 64](out, max_instructions=1)
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    try:
        if place == "in a stream":
            _ = kernel[2, 64, gpu.stream()](out).counters
        else:
            kernel[2, 64](out)
    except KeyboardInterrupt:
        pass
    with gpu.turn:  # the launch in a stream has ended, too
        return time.monotonic() - sent[0]


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    for kind in sys.argv[1:] or KINDS:
        print(f"{kind}: {seconds_to_stop(kind):.2f} s", flush=True)


if __name__ == "__main__":
    main()
