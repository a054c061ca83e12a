"""Mandelbrot: lanes leave the loop at different times and wait for the last one."""

from pathlib import Path

import numpy as np

import warploom as wl

SIZE, LIMIT = 128, 64
SHADES = " .:-=+*#%@"


def expected() -> np.ndarray:
    """The same arithmetic in NumPy; fused multiply-adds are exact in double precision first."""
    single, index = np.float32, np.arange(SIZE, dtype=np.float32)
    cx = single(-2) + single(3) * index / single(SIZE)
    cy = (single(-1.5) + single(3) * index / single(SIZE))[:, None]
    c = cx.astype(np.float64) + 1j * cy.astype(np.float64)
    z, steps = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(LIMIT):
        inside = np.abs(z) < 2
        steps += inside
        z = np.where(inside, z * z + c, z)
    return steps


def main() -> None:
    gpu = wl.Device("h100")
    kernel = gpu.load(Path(__file__).with_suffix(".cu"))["mandelbrot"]
    steps = gpu.zeros((SIZE, SIZE), np.int32)
    run = kernel[(SIZE // 32, SIZE // 8), (32, 8)](steps, SIZE, SIZE, LIMIT)
    picture = steps.copy_to_host()
    # Single precision may take another number of steps where a point grazes the circle.
    assert np.mean(picture != expected()) < 0.02
    for line in picture[::6, ::3]:
        print("".join(SHADES[int(n) * (len(SHADES) - 1) // LIMIT] for n in line))
    print(f"{run.counters.average_active_lanes:.1f} of 32 lanes active on average")


if __name__ == "__main__":
    main()
