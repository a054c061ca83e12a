"""Draws instructions of textures and surfaces, and creates the objects that they access."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from random_writer import Writer

from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.textures import TextureDescription
from warploom.texture import descriptors as d

LINE, PLANE, SURFACE = (d.HANDLE_TAG + row for row in range(3))
"""The handles of `textures`: a line of floats, a plane of bytes read as numbers, a surface."""

WIDTH, HEIGHT = 8, 4


def textures(memory: DeviceMemory, rng: np.random.Generator) -> int:
    """Creates all three objects, with random texels; returns the address of the surface's."""
    line = memory.allocate(4 * WIDTH, "line")
    memory.write(line.address, rng.random(WIDTH, np.float32).tobytes())
    plane = memory.allocate(4 * WIDTH * HEIGHT, "plane")
    memory.write(plane.address, rng.integers(0, 256, 4 * WIDTH * HEIGHT, np.uint8).tobytes())
    surface = memory.allocate(4 * WIDTH * HEIGHT, "surface")
    wraps = d.sampler_word((d.WRAP, d.MIRROR, d.CLAMP), flags=d.LINEAR | d.NORMALIZED)
    borders = d.sampler_word((d.BORDERED, d.CLAMP, d.CLAMP), flags=0)
    size = (WIDTH, HEIGHT, 1)
    made = (
        TextureDescription(
            d.TEXTURE, "1d", "f32", 1, (WIDTH, 1, 1), (line.address,), sampler=wraps
        ),
        TextureDescription(
            d.TEXTURE, "2d", "u8", 4, size, (plane.address,), as_float=1, sampler=borders
        ),
        TextureDescription(d.SURFACE, "2d", "u32", 1, size, (surface.address,)),
    )
    handles = [memory.textures.add(one) for one in made]
    assert handles == [LINE, PLANE, SURFACE]
    return surface.address


def texels(w: Writer, _: int) -> None:
    """Draws a fetch, a gather, a query, or an access to the surface."""
    kind = w.draw(st.sampled_from(("line", "level", "plane", "gather", "query", "surface")))
    a, b, c, e, x, y = (w.register(32) for _ in range(6))
    four, at = f"{{{a}, {b}, {c}, {e}}}", f"{{{x}, {y}}}"
    if kind == "surface":
        _surface(w)
        return
    w.emit(f"mov.u64 %at, {LINE if kind in ('line', 'level') else PLANE}")
    text = {
        "line": f"tex.1d.v4.f32.f32 {four}, [%at, {{{x}}}]",
        "level": f"tex.level.1d.v4.f32.f32 {four}, [%at, {{{x}}}], {y}",
        "plane": f"tex.2d.v4.f32.{w.draw(st.sampled_from(('f32', 's32')))} {four}, [%at, {at}]",
        "gather": f"tld4.g.2d.v4.f32.f32 {four}, [%at, {at}]",
        "query": f"txq.{w.draw(st.sampled_from(('width', 'addr_mode_1', 'filter_mode')))}.b32"
        f" {a}, [%at]",
    }[kind]
    w.emit(w.guard() + text)


def _surface(w: Writer) -> None:
    """Draws an access whose coordinates are inside or, if they are clamped, anywhere."""
    value, x, y = (w.register(32) for _ in range(3))
    w.emit(f"mov.u64 %at, {SURFACE}")
    w.emit(f"and.b32 %i, {x}, {WIDTH - 1}")
    w.emit("shl.b32 %i, %i, 2")
    w.emit(f"and.b32 %j, {y}, {2 * HEIGHT - 1}")
    at = "[%at, {%i, %j}]"
    text = w.draw(
        st.sampled_from(
            (
                f"suld.b.2d.b32.zero {value}, {at}",
                f"suld.b.2d.b32.clamp {value}, {at}",
                f"sust.b.2d.b32.zero {at}, {value}",
                f"sust.b.2d.b32.clamp {at}, {value}",
                f"sured.b.add.2d.u32.clamp {at}, {value}",
                f"sured.b.min.2d.s32.zero {at}, {value}",
            )
        )
    )
    w.emit(w.guard() + text)
