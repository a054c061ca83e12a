"""Images and samplers in kernels of OpenCL C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.frontends.opencl import compile_opencl
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.host.programs.ptxas import find_tool

PROGRAMS = Path(__file__).parent / "programs"

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())


def test_reads_and_writes_agree_with_the_specifications_formulas(run_program: Run) -> None:
    pytest.importorskip("pyopencl")
    ended = run_program([sys.executable, "-W", "ignore", str(PROGRAMS / "image_reads.py")])
    assert ended.stdout == "ok\n", ended.stdout + ended.stderr


FILTER = """
constant sampler_t LINEAR =
    CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void half_size(read_only image2d_t of, write_only image2d_t to)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float2 middle = (convert_float2(at) + 0.5f) / (float2)(get_image_width(to), 8);
    write_imagef(to, at, read_imagef(of, LINEAR, middle));
}

kernel void nearest(read_only image2d_t of, sampler_t s, global float *to)
{
    int x = get_global_id(0);
    to[x] = read_imagef(of, s, (float2)(x, 0)).x;
}
"""


def test_kernels_of_files_take_textures_and_surfaces_with_their_counts() -> None:
    """Halving an image is a linear read in the middle of each square of four pixels, whose mean it
    gives; 64 work-items are 2 warps, and each reads and writes once. In 16 columns of 4 bytes, two
    rows of 64 bytes that a warp reads are 4 sectors; 32 work-items of 8 columns read 8 rows."""
    gpu = wl.Device("a100")
    module = gpu.compile(FILTER, "opencl")
    pixels = np.arange(256, dtype=np.float32).reshape(16, 16)
    of, to = gpu.texture(pixels), gpu.surface(np.zeros((8, 8), np.float32))
    run = module["half_size"][1, (8, 8)](of, to)
    assert np.array_equal(to.copy_to_host(), pixels.reshape(8, 2, 8, 2).mean(axis=(1, 3)))
    assert run.counters.texture_load_requests == 2
    assert run.counters.texture_load_sectors == 2 * 8 * 2
    assert run.counters.global_load_requests == 0


def test_the_sampler_of_a_texture_is_one() -> None:
    gpu = wl.Device("a100")
    made = np.zeros(32, np.float32)
    texture = gpu.texture(np.arange(64, dtype=np.float32).reshape(2, 32))
    gpu.compile(FILTER, "opencl")["nearest"][1, 32](texture, texture, made)
    assert np.array_equal(made, np.arange(32))


KINDS = {
    "image1d_t": "int",
    "image2d_t": "int2",
    "image3d_t": "int4",
    "image1d_array_t": "int2",
    "image2d_array_t": "int4",
}
EVERY = """
kernel void of_{kind}(read_only {kind} a, write_only {kind} b, sampler_t s, global int *to)
{{
    {whole} c = ({whole})(get_global_id(0));
    write_imagef(b, c, read_imagef(a, s, convert_{point}(c)) + read_imagef(a, c));
    write_imagei(b, c, read_imagei(a, s, c));
    write_imageui(b, c, read_imageui(a, s, convert_{point}(c)));
    to[0] = get_image_width(a) + get_image_width(b) + get_image_channel_order(b);
}}
"""


def test_ptxas_takes_the_functions_of_images(tmp_path: Path) -> None:
    ptxas, file = find_tool("ptxas"), tmp_path / "images.ptx"
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    text = "".join(
        EVERY.format(kind=kind, whole=whole, point=whole.replace("int", "float"))
        for kind, whole in KINDS.items()
    )
    file.write_text(compile_opencl(text, "images.cl", (9, 0)), "utf-8")
    subprocess.run([ptxas, "-arch=sm_90", str(file), "-o", str(tmp_path / "out")], check=True)


def test_a_write_outside_of_an_image_names_its_line() -> None:
    text = """kernel void k(write_only image2d_t to)
    {
        write_imagef(to, (int2)(get_global_id(0), 1), (float4)(1));
    }"""
    gpu = wl.Device("a100")
    kernel = gpu.compile(text, "opencl", name="outside.cl")["k"]
    with pytest.raises(wl.WarploomError, match=r"outside\.cl:3"):
        kernel[1, 32](gpu.surface(np.zeros((4, 16), np.float32)))


NAMED = """
import numpy as np, pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
text = '''typedef struct { int width; } image_facts;
kernel void k(read_only image1d_t image, global image_facts *facts)
{ facts->width = get_image_width(image); }'''
made = np.zeros(1, np.int32)
facts = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
format = cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT)
image = cl.create_image(context, cl.mem_flags.READ_ONLY, format, (5,))
cl.Program(context, text).build().k(queue, (1,), None, image, facts)
cl.enqueue_copy(queue, made, facts)
print(made[0])
"""


def test_a_structure_whose_name_begins_like_an_images_is_none(run_program: Run) -> None:
    pytest.importorskip("pyopencl")
    ended = run_program([sys.executable, "-W", "ignore", "-c", NAMED])
    assert ended.stdout == "5\n", ended.stderr
