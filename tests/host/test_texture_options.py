"""What can be asked of a texture or a surface, and what is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

FLOATS = np.zeros((4, 4), np.float32)
BYTES = np.zeros((4, 4), np.uint8)


@pytest.mark.parametrize(
    ("array", "options", "reason"),
    [
        (
            FLOATS,
            {"address": "repeat"},
            "'repeat' is not a valid address mode; choose from wrap, mirror",
        ),
        (FLOATS, {"filter": "cubic"}, "'cubic' is not a valid filter"),
        (FLOATS, {"read": "bits"}, "'bits' is not a valid read mode"),
        (FLOATS, {"read": "normalized"}, "only 8-bit and 16-bit integers"),
        (BYTES, {"filter": "linear"}, "linear filtering needs texels that are read as floats"),
        (FLOATS, {"address": "wrap"}, "pass normalized=True"),
        (FLOATS, {"mipmaps": [FLOATS[:2, :2]]}, "pass normalized=True"),
        (FLOATS, {"mipmaps": [FLOATS], "normalized": True}, r"level 1 .* shape \(2, 2\)"),
        (FLOATS.astype(np.float64), {}, "texels of float64 are not supported"),
        (FLOATS, {"channels": 3}, "1, 2 or 4 channels"),
        (FLOATS, {"channels": 2}, "requires a last axis of length 2"),
        (np.zeros((2, 2, 2, 2), np.float32), {}, "has 4 spatial axes"),
        (FLOATS, {"cube": True}, "6 square faces"),
        (BYTES, {"border": 0.5}, "an integer border"),
    ],
)
def test_what_does_not_go_together(array: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(wl.WarploomError, match=reason):
        wl.Device("h100").texture(array, **options)


def test_a_buffer_is_copied() -> None:
    gpu = wl.Device("h100")
    buffer = gpu.to_device(np.array([1, 2, 3], np.float32))
    texture = gpu.texture(buffer)
    buffer.view[:] = 0
    np.testing.assert_array_equal(texture.copy_to_host(), [1, 2, 3])


def test_handles_end() -> None:
    gpu = wl.Device("h100")
    surface = gpu.surface(np.arange(6, dtype=np.int16).reshape(3, 2), name="board")
    assert surface.shape == (3, 2)
    assert surface.dtype == np.int16
    np.testing.assert_array_equal(surface.copy_to_host(), [[0, 1], [2, 3], [4, 5]])
    texture = gpu.texture(surface)
    surface.free()
    surface.free()
    with pytest.raises(wl.WarploomError, match="board has been freed"):
        assert surface.handle
    np.testing.assert_array_equal(texture.copy_to_host(), [[0, 1], [2, 3], [4, 5]])
    other = wl.Device("h100")
    kernel = other.compile('extern "C" __global__ void k(cudaTextureObject_t t, int n) {}')["k"]
    with pytest.raises(wl.LaunchError, match="belongs to another device"):
        kernel[1, 1](texture, 1)
    with pytest.raises(wl.LaunchError, match="is not a cudaTextureObject_t"):
        kernel[1, 1](other.texture(FLOATS), other.texture(FLOATS))


HEADER = """
.version 8.0
.target sm_90
.address_size 64
.global .samplerref s = { filter_mode = linear };
.entry k() { .reg .f32 %f<8>; .reg .b32 %r<4>; .reg .b64 %t;
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0, %r1}];", "`.2dms` is not valid"),
        ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4}];", "requires 2 or 4 coordinates"),
        ("tex.2d.v4.f32.f32 {%f0, %f1, %f2}, [%t, {%f4, %f5}];", "requires 4 elements"),
        ("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5}];", "a 32-bit integer here"),
        ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5}], %f6;", "depth comparisons"),
        ("tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5, %f6, %f6}], {%r0, %r1, %r2};",
         "cube textures do not support offsets"),
        ("tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%r0, {%f4}];", "a variable or a handle"),
        ("tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t];", r"\[a, \{x, \.\.\.\}\]"),
        ("suld.b.1d.b32.trap {%r0}, [%t, s, {%r1}];", "does not take a sampler"),
        (".reg .texref %x;", "a type such as"),
    ],
)  # fmt: skip
def test_ptx_that_breaks_a_rule(line: str, reason: str) -> None:
    with pytest.raises((wl.PtxSyntaxError, wl.UnsupportedInstruction), match=reason):
        verify(parse(HEADER + line + " ret; }"))


def test_opaque_variables_are_global() -> None:
    text = HEADER.replace(".global .samplerref s = { filter_mode = linear };", ".shared .texref t;")
    with pytest.raises(wl.PtxSyntaxError, match=r"a \.texref variable must be \.global"):
        verify(parse(text + "ret; }"))


def test_samplers_say_what_they_can_be() -> None:
    for settings, reason in (
        ("filter_mode = cubic", "`cubic` is not one of nearest, linear"),
        ("colour = 1", "`colour` is not a sampler setting"),
    ):
        with pytest.raises(wl.PtxSyntaxError, match=reason):
            parse(HEADER.replace("filter_mode = linear", settings) + "ret; }")
