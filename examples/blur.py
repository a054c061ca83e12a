"""A blur through a texture: linear filtering and clamped edges do what nine loads would."""

from pathlib import Path

import numpy as np

import warploom as wl

SIZE = 128


def main() -> None:
    gpu = wl.Device("h100")
    module = gpu.load(Path(__file__).with_suffix(".cu"))
    image = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE)).astype(np.float32)
    wide = np.pad(image, 1, mode="edge")
    rows = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    expected = (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 16

    out = gpu.zeros((SIZE, SIZE), np.float32)
    shape = (SIZE // 32, SIZE // 8), (32, 8)
    loads = module["blur_loads"][shape](gpu.to_device(image), out, SIZE, SIZE).counters
    assert np.array_equal(out.copy_to_host(), expected)

    texture = gpu.texture(image, filter="linear", address="clamp")
    fetches = module["blur_texture"][shape](texture, out, SIZE, SIZE).counters
    assert np.array_equal(out.copy_to_host(), expected)

    warps = SIZE * SIZE // 32
    assert loads.global_load_requests == 9 * warps
    assert fetches.texture_load_requests == 4 * warps
    for name, requests, instructions in (
        ("loads", loads.global_load_requests, loads.warp_instructions),
        ("texture", fetches.texture_load_requests, fetches.warp_instructions),
    ):
        print(f"{name:8} {requests:6,} requests, {instructions:7,} warp instructions")


if __name__ == "__main__":
    main()
