"""Computes the geometry of a texture fetch: texels and filter weight along one axis, cube faces,
and the logarithm for mipmap levels.

Pure functions of numbers; `texture.fetch` combines them. Source: CUDA C++ Programming Guide,
"Texture Fetching", "Texture Memory", "Cubemap Textures".

    4 texels, normalized coordinate 0.5, linear   ->   texels 1 and 2, weight 128 (of 256)
    4 texels, coordinate 5.0, nearest, wrap       ->   texel 0 if normalized, else clamped to 3
"""

from __future__ import annotations

import numpy as np

from warploom.simt.lane_counts import jitable
from warploom.texture.descriptors import BORDERED, CLAMP, CLAMP_OGL, LINEAR, MIRROR, WRAP

ONE_WEIGHT = 256
"""The filter weight 1.0: weights have 8 fraction bits."""

FARTHEST = 2.0**52
"""Magnitude from which doubles have no fraction bits; larger repeating coordinates count as 0."""


@jitable
def cube_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """Returns the face of a cubemap that a direction hits (0 to 5: +x, -x, +y, -y, +z, -z), and the
    coordinates on it, 0 to 1 (guide, "Cubemap Textures"). Of components with equal magnitude, x
    precedes y precedes z. The zero vector hits the middle of face 0."""
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
    """Returns the left and right texel along one axis, and the weight of the right one in 256ths;
    without linear filtering the nearest texel twice and 0. Texel -1 is the border. A NaN counts as
    0, as does a repeating coordinate beyond FARTHEST; WRAP and MIRROR of coordinates that are not
    normalized act as CLAMP.

    `offset` is the instruction's texel offset, `size` the texels of the axis, `mode` an address
    mode; `scale` is nonzero for normalized coordinates, `linear` contains the flag LINEAR.
    """
    u = coordinate * size if scale else coordinate
    u += offset
    if u != u:  # a NaN
        u = 0.0
    if mode in (WRAP, MIRROR):
        if not scale:
            mode = CLAMP  # guide: wrap and mirror need normalized coordinates
        elif abs(u) > FARTHEST:
            u = 0.0
    if linear & LINEAR:
        return linear_texels(u, size, mode)
    texel = nearest_texel(u, size, mode)
    return texel, texel, 0


@jitable
def nearest_texel(u: float, size: int, mode: int) -> int:
    """Returns the nearest texel at `u`, in texels, by the address mode: -1 outside of the axis for
    BORDERED, repeated or mirrored for WRAP and MIRROR, else clamped to the axis."""
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
    """Returns the two texels around `u`, in texels, after the address mode (-1: border), and the
    weight of the second in 256ths. CLAMP_OGL clamps `u` to the axis first, so that half of a texel
    at its ends is the border."""
    if mode == CLAMP_OGL:
        u = min(max(u, 0.0), float(size))
    # Beyond this range the texels are the same, and a huge value would overflow int().
    if mode != WRAP and mode != MIRROR:
        u = min(max(u, -2.0), size + 2.0)
    left = np.floor(u - 0.5)
    weight = int(np.floor((u - 0.5 - left) * ONE_WEIGHT + 0.5))
    lower_texel = int(left)
    return (
        apply_address_mode(lower_texel, size, mode),
        apply_address_mode(lower_texel + 1, size, mode),
        weight,
    )


@jitable
def apply_address_mode(texel: int, size: int, mode: int) -> int:
    """Returns the texel in the axis that stands for a texel index, which may be out of range, by
    the address mode: WRAP repeats the axis, MIRROR does with every second copy reversed, CLAMP uses
    the nearest texel, all others give -1, the border."""
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
    """Returns the base-2 logarithm with 9 fraction bits, rounded down; 0 for a NaN and for values
    up to 1. Computed by repeated squaring, so that Python and machine code agree bit by bit."""
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
