"""Reads images of every kind, format, address mode and filter in kernels, and compares the colors
with those that the formulas of the specification give (OpenCL 3.0, "Image Addressing and
Filtering"; OpenCL C 3.0, "Mapping of image channels"), in NumPy.

A weight of linear filtering has 8 bits of fraction on NVIDIA's devices (CUDA C++ Programming Guide,
"Linear Filtering"): each axis may be off by half a unit of it.
"""

import sys

import numpy as np
import pyopencl as cl

ORDER, TYPE = cl.channel_order, cl.channel_type
MODE, FILTER = cl.addressing_mode, cl.filter_mode

KINDS = {
    # Sizes along x, y, z, the components of a coordinate, and whether the last one is a layer.
    "image1d_t": ((23,), 1, False),
    "image2d_t": ((13, 7), 2, False),
    "image3d_t": ((9, 5, 4), 4, False),
    "image1d_array_t": ((11, 5), 2, True),
    "image2d_array_t": ((8, 6, 3), 4, True),
    "image1d_buffer_t": ((23,), 1, False),
}
TYPE_NAMES = {
    "image1d_t": "IMAGE1D",
    "image2d_t": "IMAGE2D",
    "image3d_t": "IMAGE3D",
    "image1d_array_t": "IMAGE1D_ARRAY",
    "image2d_array_t": "IMAGE2D_ARRAY",
    "image1d_buffer_t": "IMAGE1D_BUFFER",
}
TYPES = {
    TYPE.SNORM_INT8: ("i1", 127),
    TYPE.SNORM_INT16: ("i2", 32767),
    TYPE.UNORM_INT8: ("u1", 255),
    TYPE.UNORM_INT16: ("u2", 65535),
    TYPE.SIGNED_INT8: ("i1", 0),
    TYPE.SIGNED_INT16: ("i2", 0),
    TYPE.SIGNED_INT32: ("i4", 0),
    TYPE.UNSIGNED_INT8: ("u1", 0),
    TYPE.UNSIGNED_INT16: ("u2", 0),
    TYPE.UNSIGNED_INT32: ("u4", 0),
    TYPE.HALF_FLOAT: ("f2", 0),
    TYPE.FLOAT: ("f4", 0),
}
ORDERS = {
    # For red, green, blue and alpha: which channel of a pixel, or what there is without one.
    ORDER.R: (0, "0", "0", "1"),
    ORDER.A: ("0", "0", "0", 0),
    ORDER.RG: (0, 1, "0", "1"),
    ORDER.RA: (0, "0", "0", 1),
    ORDER.RGBA: (0, 1, 2, 3),
    ORDER.BGRA: (2, 1, 0, 3),
    ORDER.INTENSITY: (0, 0, 0, 0),
    ORDER.LUMINANCE: (0, 0, 0, "1"),
    ORDER.sRGBA: (0, 1, 2, 3),
}
CHANNELS = {ORDER.RG: 2, ORDER.RA: 2, ORDER.RGBA: 4, ORDER.BGRA: 4, ORDER.sRGBA: 4}
RESULTS = {"f": ("float", np.float32), "i": ("int", np.int32), "ui": ("uint", np.uint32)}

KERNEL = """
kernel void sampled(read_only {kind} image, sampler_t s, global const {point} *at, global {e}4 *to)
{{ size_t i = get_global_id(0); to[i] = read_image{end}(image, s, at[i]); }}
kernel void fetched(read_only {kind} image, global const {whole} *at, global {e}4 *to)
{{ size_t i = get_global_id(0); to[i] = read_image{end}(image, at[i]); }}
kernel void whole(read_only {kind} image, sampler_t s, global const {whole} *at, global {e}4 *to)
{{ size_t i = get_global_id(0); to[i] = read_image{end}(image, s, at[i]); }}
"""
COUNT, DEPTH = 512, 0x10BD


def colors(pixels, order, type):
    """The colors of pixels, whose last axis is the channels."""
    most = TYPES[type][1]
    values = pixels.astype(np.float64)
    if most:
        values = np.maximum(values / most, -1)
    if order == ORDER.sRGBA:
        linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        values = np.concatenate([linear[..., :3], values[..., 3:]], axis=-1)
    one = [
        np.full(values.shape[:-1], float(n)) if isinstance(n, str) else values[..., n]
        for n in ORDERS[order]
    ]
    return np.stack(one, axis=-1)


def texels_of(s, size, mode, linear, normalized):
    """The two pixels along an axis, -1 for the border, and the weight of the second."""
    s = s.astype(np.float64)
    if mode == MODE.REPEAT:
        u = (s - np.floor(s)) * size
    elif mode == MODE.MIRRORED_REPEAT:
        u = np.abs(s - 2 * np.rint(0.5 * s)) * size
    else:
        u = s * size if normalized else s
    first = np.floor(u - 0.5 if linear else u).astype(np.int64)
    second, weight = first + 1, (u - 0.5) - np.floor(u - 0.5)
    if not linear:
        second, weight = first, np.zeros_like(u)
    if mode == MODE.REPEAT:
        return first % size, second % size, weight
    if mode == MODE.CLAMP:
        outside = lambda n: np.where((n < 0) | (n >= size), -1, n)  # noqa: E731
        return outside(first), outside(second), weight
    return np.clip(first, 0, size - 1), np.clip(second, 0, size - 1), weight


def model(image, border, coordinates, layered, mode, linear, normalized):
    """The colors at coordinates; the axes of `image` are those of the coordinates, backwards."""
    axes = image.ndim - 1
    spatial = axes - layered
    found = [
        texels_of(coordinates[:, n], image.shape[axes - 1 - n], mode, linear, normalized)
        for n in range(spatial)
    ]
    layer = [np.clip(np.rint(coordinates[:, spatial]), 0, image.shape[0] - 1)] if layered else []
    total = np.zeros((len(coordinates), 4))
    for corner in range(1 << spatial if linear else 1):
        chosen = [found[n][corner >> n & 1] for n in range(spatial)]
        weight = np.ones(len(coordinates))
        for n in range(spatial):
            w = found[n][2]
            weight = weight * (w if corner >> n & 1 else 1 - w)
        outside = np.any([c < 0 for c in chosen], axis=0)
        index = [np.asarray(c).astype(np.int64) for c in (*layer, *chosen[::-1])]
        color = np.where(outside[:, None], border, image[tuple(np.maximum(i, 0) for i in index)])
        total += weight[:, None] * color
    return total


def image_of(context, flags, format, kind, pixels=None, buffer=None):
    """An image of a kind; PyOpenCL's own function makes arrays of one dimension with one layer."""
    sizes, described = KINDS[kind][0], cl.ImageDescriptor()
    described.image_type = getattr(cl.mem_object_type, TYPE_NAMES[kind])
    described.shape = (sizes[0], 1, sizes[1]) if kind == "image1d_array_t" else sizes
    described.pitches, described.num_mip_levels, described.num_samples = (0, 0), 0, 0
    described.buffer = buffer
    return cl.Image(context, flags, format, hostbuf=pixels, desc=described)


def check(context, queue, programs, random, kind, order, type):
    sizes, components, layered = KINDS[kind]
    stored, most = TYPES[type]
    is_number = bool(most) or stored[0] == "f"
    end = "f" if is_number else {"i": "i", "u": "ui"}[stored[0]]
    element, dtype = RESULTS[end]
    channels = CHANNELS.get(order, 1)
    shape = (*sizes[::-1], channels)
    if stored[0] == "f":
        pixels = random.uniform(-2, 2, shape).astype(stored)
    else:
        limits = np.iinfo(stored)
        pixels = random.integers(limits.min, limits.max, shape, stored, endpoint=True)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    image = image_of(context, flags, cl.ImageFormat(order, type), kind, pixels)
    if (kind, end) not in programs:
        n = "" if components == 1 else components
        text = KERNEL.format(kind=kind, end=end, e=element, point=f"float{n}", whole=f"int{n}")
        program = cl.Program(context, text).build()
        programs[kind, end] = [cl.Kernel(program, n) for n in ("sampled", "fetched", "whole")]
    sampled, fetched, whole_numbers = programs[kind, end]
    texels = colors(pixels, order, type)
    border = [0, 0, 0, 1.0 if ORDERS[order][3] == "1" else 0]
    made = np.zeros((COUNT, 4), dtype)
    to = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, made.nbytes)

    def compare(kernel, sampler, points, expected, tolerance, what):
        at = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=points)
        extra = () if sampler is None else (sampler,)
        kernel(queue, (COUNT,), (128,), image, *extra, at, to)
        cl.enqueue_copy(queue, made, to)
        error = np.abs(made.astype(np.float64) - expected)
        bound = tolerance + np.abs(expected) * 2.0**-22
        if (error > bound).any():
            worst = np.argwhere(error > bound)[0][0]
            print(what, points[worst], made[worst], expected[worst], (error > bound).mean())
            return 1
        return 0

    wrong, spatial = 0, len(sizes) - layered
    whole = np.zeros((COUNT, components), np.int32)
    for n, size in enumerate(sizes):
        whole[:, n] = random.integers(0, size, COUNT)
    index = tuple(whole[:, n] for n in reversed(range(len(sizes))))
    label = (kind, order, type)
    wrong += compare(fetched, None, whole, texels[index], 0, (*label, "fetched"))
    modes = [MODE.CLAMP, MODE.CLAMP_TO_EDGE]
    for mode in modes:
        beyond = whole + random.integers(-3, 4, whole.shape).astype(np.int32)
        sampler = cl.Sampler(context, False, mode, FILTER.NEAREST)
        expected = model(texels, border, beyond, layered, mode, False, False)
        wrong += compare(whole_numbers, sampler, beyond, expected, 0, (*label, mode, "whole"))
    modes = [*modes, MODE.REPEAT, MODE.MIRRORED_REPEAT]
    for mode in modes:
        for normalized in (False, True):
            if not normalized and mode in (MODE.REPEAT, MODE.MIRRORED_REPEAT):
                continue
            for linear in (False, True) if is_number else (False,):
                points = np.zeros((COUNT, components), np.float32)
                for n, size in enumerate(sizes):
                    scale = 1 if normalized and n < spatial else size
                    points[:, n] = random.uniform(-1.5 * scale, 2.5 * scale, COUNT)
                chosen = FILTER.LINEAR if linear else FILTER.NEAREST
                sampler = cl.Sampler(context, normalized, mode, chosen)
                expected = model(texels, border, points, layered, mode, linear, normalized)
                span = np.ptp(np.append(texels, [0, 1]))
                # Coordinates are floats, whose product with a size is rounded.
                tolerance = (spatial * (2.0**-9 + 2.0**-18) * span) if linear else 0
                what = (*label, mode, normalized, "linear" if linear else "nearest")
                wrong += compare(sampled, sampler, points, expected, tolerance, what)
    return wrong


def supported(context, kind):
    found = cl.get_supported_image_formats(
        context, cl.mem_flags.READ_ONLY, getattr(cl.mem_object_type, TYPE_NAMES[kind])
    )
    return [(f.channel_order, f.channel_data_type) for f in found]


DEPTHS = """
kernel void read(read_only image2d_depth_t image, sampler_t s, global float *to)
{ int x = get_global_id(0), y = get_global_id(1);
  to[13 * y + x] = read_imagef(image, s, (float2)(x + 0.5f, y + 0.5f))
      + read_imagef(image, (int2)(x, y)); }
kernel void write(write_only image2d_depth_t image)
{ int x = get_global_id(0), y = get_global_id(1);
  write_imagef(image, (int2)(x, y), (x + 13 * y) / 128.0f); }
"""


def check_depths(context, queue):
    """A pixel of depth is one number: 91 of them, divided by 128, fit 16 bits to 2^-17."""
    program, wrong = cl.Program(context, DEPTHS).build("-cl-std=CL3.0"), 0
    for type in (TYPE.FLOAT, TYPE.UNORM_INT16):
        made = np.zeros((7, 13), np.float32)
        to = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, made.nbytes)
        format = cl.ImageFormat(DEPTH, type)
        image = image_of(context, cl.mem_flags.READ_WRITE, format, "image2d_t")
        sampler = cl.Sampler(context, False, MODE.CLAMP_TO_EDGE, FILTER.NEAREST)
        program.write(queue, (13, 7), None, image)
        program.read(queue, (13, 7), None, image, sampler, to)
        cl.enqueue_copy(queue, made, to)
        expected = np.arange(91).reshape(7, 13) / 64
        wrong += int(np.abs(made - expected).max() > (2.0**-16 if type != TYPE.FLOAT else 0))
    return wrong


WRITES = """
kernel void write(write_only {kind} image, global const {whole} *at, global const {e}4 *from)
{{ size_t i = get_global_id(0); write_image{end}(image, at[i], from[i]); }}
kernel void ask(write_only {kind} image, read_only {kind} other, global int *to)
{{ to[0] = get_image_width(image); to[1] = get_image_channel_order(image);
   to[2] = get_image_channel_data_type(image); to[3] = get_image_width(other);
   to[4] = get_image_channel_order(other); to[5] = get_image_channel_data_type(other);
   {more} }}
"""
MORE = {
    "image2d_t": ("get_image_height(other)", "get_image_dim(image).y"),
    "image3d_t": ("get_image_height(image)", "get_image_depth(other)", "get_image_dim(other).z"),
    "image1d_array_t": ("(int)get_image_array_size(other)", "(int)get_image_array_size(image)"),
    "image2d_array_t": ("get_image_dim(image).x", "(int)get_image_array_size(image)"),
}
ANSWERS = {
    "image2d_t": (7, 7),
    "image3d_t": (5, 4, 4),
    "image1d_array_t": (5, 5),
    "image2d_array_t": (8, 3),
}


def check_writes(context, queue, programs, random, kind, order, type):
    """Writes every pixel, and reads the image by a copy: what is stored is the color's channels,
    limited to the type's range and rounded to the nearest."""
    sizes, components, _ = KINDS[kind]
    stored, most = TYPES[type]
    is_number = bool(most) or stored[0] == "f"
    end = "f" if is_number else {"i": "i", "u": "ui"}[stored[0]]
    element, dtype = RESULTS[end]
    count = int(np.prod(sizes))
    at = np.zeros((count, components), np.int32)
    for n, axis in enumerate(np.indices(sizes).reshape(len(sizes), -1)):
        at[:, n] = axis
    given = random.uniform(-1.5, 1.5, (count, 4)).astype(np.float32)
    if not is_number:
        limits = np.iinfo(dtype)
        given = random.integers(limits.min, limits.max, (count, 4), dtype, endpoint=True)
        given[::2] %= 100
    n = "" if components == 1 else components
    more = " ".join(f"to[{6 + i}] = {one};" for i, one in enumerate(MORE.get(kind, ())))
    text = WRITES.format(kind=kind, end=end, e=element, whole=f"int{n}", more=more)
    if (kind, end, "writes") not in programs:
        program = cl.Program(context, text).build()
        programs[kind, end, "writes"] = [cl.Kernel(program, n) for n in ("write", "ask")]
    write, ask = programs[kind, end, "writes"]
    image = image_of(context, cl.mem_flags.READ_WRITE, cl.ImageFormat(order, type), kind)
    where = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=at)
    source = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=given)
    write(queue, (count,), None, image, where, source)
    channels = CHANNELS.get(order, 1)
    made = np.zeros((*sizes[::-1], channels), stored)
    region = (*sizes, 1, 1)[:3] if kind != "image1d_array_t" else (*sizes, 1)
    # PyOpenCL's own copies are of images with two and three dimensions alone.
    cl._cl._enqueue_read_image(queue, image, (0, 0, 0), region, made)
    held = [n for n in range(4) if not isinstance(ORDERS[order][n], str)]
    expected = np.zeros((count, channels), stored)
    for n in reversed(held):
        color = given[:, n]
        if most:
            low = 0 if stored[0] == "u" else -1
            color = np.rint(np.clip(color.astype(np.float64), low, 1) * most)
        elif not is_number:
            limits = np.iinfo(stored)
            color = np.clip(color, limits.min, limits.max)
        expected[:, ORDERS[order][n]] = color.astype(stored)
    found = made[tuple(at[:, n] for n in reversed(range(len(sizes))))]
    wrong = int(not np.array_equal(found, expected))
    said = np.zeros(9, np.int32)
    to = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=said)
    ask(queue, (1,), None, image, image, to)
    cl.enqueue_copy(queue, said, to)
    answers = [sizes[0], order, type, sizes[0], order, type, *ANSWERS.get(kind, ())]
    wrong += int(said[: len(answers)].tolist() != answers)
    if wrong:
        print("written", kind, order, type, found[0], expected[0], said, answers)
    return wrong


def check_buffers(context, queue):
    """An image in a buffer: its pixels are the buffer's."""
    text = """kernel void k(read_only image1d_buffer_t of, write_only image1d_buffer_t to)
    { int i = get_global_id(0);
      write_imageui(to, i, read_imageui(of, i) + (uint4)(1, 2, 3, get_image_width(of))); }"""
    program = cl.Program(context, text).build()
    format = cl.ImageFormat(ORDER.RGBA, TYPE.UNSIGNED_INT32)
    given, made = np.arange(92, dtype=np.uint32), np.zeros(92, np.uint32)
    flags = cl.mem_flags.READ_WRITE
    of = cl.Buffer(context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=given)
    to = cl.Buffer(context, flags, made.nbytes)
    images = [image_of(context, flags, format, "image1d_buffer_t", buffer=b) for b in (of, to)]
    program.k(queue, (23,), None, *images)
    cl.enqueue_copy(queue, made, to)
    return int(not np.array_equal(made, given + np.tile([1, 2, 3, 23], 23).astype(np.uint32)))


def main():
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    assert context.devices[0].image_support
    random = np.random.default_rng(5)
    programs, wrong, seen = {}, 0, set()
    for kind in [*KINDS][:5]:
        for order, type in supported(context, kind):
            if order in ORDERS:
                seen.add((order, type))
                wrong += check(context, queue, programs, random, kind, order, type)
                if order != ORDER.sRGBA:
                    wrong += check_writes(context, queue, programs, random, kind, order, type)
    assert len(seen) == 5 * 12 + 2 * 6 + 4 + 1, len(seen)
    wrong += check_buffers(context, queue) + check_depths(context, queue)
    print("ok" if not wrong else f"{wrong} wrong")


sys.exit(main())
