"""Products for the tests: drawing matrices, and spreading them over lanes by their fragments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from warploom.isa.fragments import Fragment

FLOATS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m1 in a byte": ml_dtypes.float4_e2m1fn,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
}
INTEGERS = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "s32": (-999, 999)}
ROUNDED = {"f16": 2.0**-10, "f32": 2.0**-21, "f64": 2.0**-50}
"""Error allowed relative to the sum of absolute products: a few roundings of the accumulator."""


def draw(fragment: Fragment, rng: np.random.Generator) -> tuple[npt.NDArray, npt.NDArray]:
    """A random matrix: its bits, and its values in double precision or as integers."""
    shape = (fragment.rows, fragment.columns)
    if fragment.type == "b1":
        bits = rng.integers(0, 1 << 32, shape, np.uint32)
        return bits, bits
    if fragment.type in INTEGERS:
        values = rng.integers(*INTEGERS[fragment.type], shape)
        return (values & ((1 << fragment.bits) - 1)).astype(np.uint32), values
    made = rng.standard_normal(shape).astype(FLOATS[fragment.type])
    if fragment.type == "tf32":
        made = (made.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    bits = made.view(f"u{made.dtype.itemsize}")
    if fragment.type == "e2m1 in a byte":
        bits = bits << 2
    return bits, made.astype(np.float64)


def registers(fragment: Fragment, bits: npt.NDArray) -> npt.NDArray:
    """Lanes by registers, as the fragment has the elements."""
    wide = np.uint64 if fragment.bits == 64 else np.uint32
    words = np.zeros((32, fragment.registers), wide)
    for lane in range(32):
        for element in range(fragment.count):
            register, inside = divmod(element, fragment.packed)
            found = int(bits[fragment.position(lane, element)]) << (inside * fragment.bits)
            words[lane, register] |= wide(found)
    return words


def values(fragment: Fragment, words: npt.NDArray) -> npt.NDArray:
    """The matrix that registers hold, NaN where no lane has an element."""
    result = np.full((fragment.rows, fragment.columns), np.nan)
    for (row, column), (lane, element) in fragment.holders.items():
        register, inside = divmod(element, fragment.packed)
        bits = int(words[lane, register]) >> (inside * fragment.bits) & ((1 << fragment.bits) - 1)
        if fragment.type == "s32":
            result[row, column] = bits - (bits >> 31 << 32)
        else:
            raw = np.array([bits], f"u{fragment.bits // 8}")
            result[row, column] = raw.view(FLOATS[fragment.type])[0]
    return result


def moves(names: list[str], bits: int, offset: int, *, stores: bool) -> list[str]:
    """Loads or stores of registers, as many at once as a vector takes."""
    step = min(len(names), 128 // bits)
    shape = {1: "", 2: ".v2", 4: ".v4"}[step]
    found: list[str] = []
    for i in range(0, len(names), step):
        data = ", ".join(names[i : i + step])
        data = f"{{{data}}}" if step > 1 else data
        at = f"[%at+{offset + i * bits // 8}]"
        ends = (at, data) if stores else (data, at)
        found.append(f"{'st' if stores else 'ld'}.global{shape}.b{bits} {', '.join(ends)};")
    return found


def program(declared: str, body: list[str], target: str = "sm_90") -> str:
    """Returns a kernel of one warp: `%base` is its argument, `%lane` the lane, `%at`, `%n` free."""
    return f""".version 9.0\n.target {target}\n.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .b64 %base, %at; .reg .b32 %lane, %n;
{declared}
ld.param.u64 %base, [out]; mov.u32 %lane, %tid.x;
{chr(10).join(body)}
ret;
}}"""
