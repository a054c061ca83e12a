"""The geometry of a fetch: which texels of one axis a coordinate names, which face of a cube a
direction meets, the logarithm by which levels are found.

Pure functions of numbers, shared by all fetches (`texture.fetch`). Source: CUDA C++ Programming
Guide, "Texture Fetching", "Texture Memory", "Cubemap Textures".
"""

from __future__ import annotations

import numpy as np

from warploom.simt.lane_counts import jitable
from warploom.texture.descriptors import BORDERED, CLAMP, CLAMP_OGL, LINEAR, MIRROR, WRAP

ONE_WEIGHT = 256
"""The weight 1, with its 8 bits of fraction."""

FARTHEST = 2.0**52
"""Coordinates beyond this have no fraction left; where they repeat, they count as 0."""


@jitable
def cube_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """Returns the face of a cube that a direction meets, and where on it, from 0 to 1 (guide,
    "Cubemap Textures"). Of equal sizes, x goes before y before z."""
    face, major, s, t = 4, abs(z), x, -y
    if abs(x) >= abs(y) and abs(x) >= abs(z):
        face, major, s = 0, abs(x), -z
        if x < 0.0:
            face, s = 1, z
    elif abs(y) >= abs(z):
        face, major, t = 2, abs(y), z
        if y < 0.0:
            face, t = 3, -z
    elif z < 0.0:
        face, s = 5, -x
    if not major > 0.0:
        return face, 0.5, 0.5
    return face, (s / major + 1.0) / 2.0, (t / major + 1.0) / 2.0


@jitable
def axis_texels(
    coordinate: float, offset: float, size: int, mode: int, scale: int, linear: int
) -> tuple[int, int, int]:
    """Along one axis: the texel to the left, that to the right, and the weight of the second in
    256ths. -1 is the border."""
    u = coordinate * size if scale else coordinate
    u += offset
    if u != u:
        u = 0.0
    if mode in (WRAP, MIRROR):
        if not scale:
            mode = CLAMP  # guide: only normalized coordinates repeat
        elif abs(u) > FARTHEST:
            u = 0.0
    if linear & LINEAR:
        return linear_texels(u, size, mode)
    texel = nearest_texel(u, size, mode)
    return texel, texel, 0


@jitable
def nearest_texel(u: float, size: int, mode: int) -> int:
    """Returns the texel at u, counted in texels."""
    if mode == BORDERED and not (u >= 0.0 and u < size):
        return -1
    if mode in (WRAP, MIRROR):
        period = np.floor(u / size)
        u -= period * size
        if mode == MIRROR and period % 2.0 != 0.0:
            u = size - u
    return int(np.floor(min(max(u, 0.0), size - 1.0)))


@jitable
def linear_texels(u: float, size: int, mode: int) -> tuple[int, int, int]:
    """Returns the two texels around u, and the weight of the second."""
    if mode == CLAMP_OGL:
        u = min(max(u, 0.0), float(size))
    if mode != WRAP and mode != MIRROR:
        u = min(max(u, -2.0), size + 2.0)
    left = np.floor(u - 0.5)
    weight = int(np.floor((u - 0.5 - left) * ONE_WEIGHT + 0.5))
    first = int(left)
    return apply_address_mode(first, size, mode), apply_address_mode(first + 1, size, mode), weight


@jitable
def apply_address_mode(texel: int, size: int, mode: int) -> int:
    """Returns the texel that one outside stands for."""
    if mode == WRAP:
        return texel % size
    if mode == MIRROR:
        turned = texel % (2 * size)
        return turned if turned < size else 2 * size - 1 - turned
    if mode == CLAMP:
        return min(max(texel, 0), size - 1)
    return texel if 0 <= texel < size else -1


@jitable
def log2_of(value: float) -> float:
    """Returns the logarithm to base 2 with 9 bits of fraction, rounded down; 0 below 1. By squaring,
    so that it is the same everywhere."""
    if not value > 1.0:
        return 0.0
    whole = 0
    while value >= 2.0 and whole < 1024:
        value *= 0.5
        whole += 1
    result, bit = float(whole), 0.5
    for _ in range(9):
        value *= value
        if value >= 2.0:
            value *= 0.5
            result += bit
        bit *= 0.5
    return result
