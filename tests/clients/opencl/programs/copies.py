"""Every kind of copy, fill and map of buffers and images, against a model in NumPy."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
random = np.random.default_rng(3)
flags = cl.mem_flags


def some(*shape: int) -> np.ndarray:
    return random.integers(0, 256, shape).astype(np.uint8)


def check_buffers() -> None:
    model = some(4096)
    buffer = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=model)
    other = cl.Buffer(context, flags.READ_WRITE, 4096)
    for size in (1, 2, 4, 8, 16, 128):
        given = some(size)
        cl.enqueue_fill_buffer(queue, buffer, given, 256, 4 * size)
        model[256 : 256 + 4 * size] = np.tile(given, 4)
    piece = some(100)
    cl.enqueue_copy(queue, buffer, piece, dst_offset=33)
    model[33:133] = piece
    cl.enqueue_copy(queue, other, buffer, byte_count=500, src_offset=20, dst_offset=700)
    out = np.empty(500, np.uint8)
    cl.enqueue_copy(queue, out, other, src_offset=700)
    assert (out == model[20:520]).all()
    part = buffer[512:1024]
    cl.enqueue_copy(queue, part, np.arange(64, dtype=np.uint8), dst_offset=8)
    model[520:584] = np.arange(64)
    mapped, _ = cl.enqueue_map_buffer(
        queue, buffer, cl.map_flags.READ | cl.map_flags.WRITE, 0, (4096,), np.uint8
    )
    assert (mapped == model).all()
    mapped[1000:1010] = 5
    model[1000:1010] = 5
    mapped.base.release()
    out = np.empty(4096, np.uint8)
    cl.enqueue_copy(queue, out, buffer)
    assert (out == model).all()


def check_rectangles() -> None:
    model, host = some(8, 16, 32), some(6, 10, 20)
    buffer = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=model)
    steps = {"buffer_pitches": (32, 32 * 16), "host_pitches": (20, 200)}
    cl.enqueue_copy(
        queue,
        buffer,
        host,
        buffer_origin=(3, 2, 1),
        host_origin=(5, 1, 2),
        region=(7, 6, 3),
        **steps,
    )
    model[1:4, 2:8, 3:10] = host[2:5, 1:7, 5:12]
    out = np.zeros((6, 10, 20), np.uint8)
    cl.enqueue_copy(
        queue,
        out,
        buffer,
        buffer_origin=(1, 0, 0),
        host_origin=(2, 2, 0),
        region=(9, 8, 4),
        **steps,
    )
    assert (out[0:4, 2:10, 2:11] == model[0:4, 0:8, 1:10]).all()
    assert not out[4:].any()
    cl.enqueue_copy(
        queue,
        buffer,
        buffer,
        src_origin=(0, 0, 0),
        dst_origin=(16, 8, 4),
        region=(10, 8, 4),
        src_pitches=(32, 512),
        dst_pitches=(32, 512),
    )
    model[4:8, 8:16, 16:26] = model[0:4, 0:8, 0:10].copy()
    out = np.empty_like(model)
    cl.enqueue_copy(queue, out, buffer)
    assert (out == model).all()


def check_host_memory() -> None:
    """The program's own memory shows the content where it is mapped, and not before."""
    mine = np.arange(64, dtype=np.int32)
    buffer = cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=mine)
    program = cl.Program(context, "__kernel void f(__global int *p) { p[get_global_id(0)] *= 2; }")
    cl.Kernel(program.build(), "f")(queue, (64,), None, buffer)
    queue.finish()
    mapped, _ = cl.enqueue_map_buffer(
        queue, buffer, cl.map_flags.READ | cl.map_flags.WRITE, 0, (64,), np.int32
    )
    assert mapped.ctypes.data == mine.ctypes.data
    assert (mine == 2 * np.arange(64)).all()
    mapped[0] = 99
    mapped.base.release()
    out = np.empty(64, np.int32)
    cl.enqueue_copy(queue, out, buffer)
    assert out[0] == 99


def check_images() -> None:
    rgba = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    model = some(12, 20, 4)
    image = cl.create_image(
        context, flags.READ_WRITE | flags.COPY_HOST_PTR, rgba, (20, 12), hostbuf=model
    )
    assert (image.width, image.height, image.row_pitch) == (20, 12, 80)
    piece = some(5, 6, 4)
    cl.enqueue_copy(queue, image, piece, origin=(3, 2), region=(6, 5))
    model[2:7, 3:9] = piece
    cl.enqueue_fill_image(queue, image, np.array([1, 2, 3, 400], np.uint32), (10, 1), (2, 3))
    model[1:4, 10:12] = (1, 2, 3, 255)
    buffer = cl.Buffer(context, flags.READ_WRITE, 4096)
    cl.enqueue_copy(queue, buffer, image, offset=16, origin=(1, 1), region=(8, 4))
    out = np.empty((4, 8, 4), np.uint8)
    cl.enqueue_copy(queue, out, buffer, src_offset=16)
    assert (out == model[1:5, 1:9]).all()
    cl.enqueue_copy(queue, image, buffer, offset=16, origin=(12, 8), region=(8, 4))
    model[8:12, 12:20] = out
    cl.enqueue_copy(queue, image, image, src_origin=(0, 0), dest_origin=(0, 8), region=(4, 4))
    model[8:12, 0:4] = model[0:4, 0:4].copy()
    mapped, _, row_pitch, _ = cl.enqueue_map_image(
        queue,
        image,
        cl.map_flags.READ | cl.map_flags.WRITE,
        (2, 3),
        (4, 2),
        (2, 4, 4),
        np.uint8,
        strides=(80, 4, 1),
    )
    assert row_pitch == 80
    assert (mapped == model[3:5, 2:6]).all()
    mapped[0, 0] = 9
    model[3, 2] = 9
    mapped.base.release()
    out = np.empty_like(model)
    cl.enqueue_copy(queue, out, image, origin=(0, 0), region=(20, 12))
    assert (out == model).all()


def check_volumes() -> None:
    one = cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT)
    model = random.random((3, 4, 5), np.float32)
    image = cl.create_image(
        context, flags.READ_WRITE | flags.COPY_HOST_PTR, one, (5, 4, 3), hostbuf=model
    )
    out = np.empty((2, 2, 3), np.float32)
    cl.enqueue_copy(queue, out, image, origin=(1, 1, 1), region=(3, 2, 2))
    assert (out == model[1:3, 1:3, 1:4]).all()
    half = cl.ImageFormat(cl.channel_order.BGRA, cl.channel_type.UNORM_INT8)
    flat = cl.create_image(context, flags.READ_WRITE, half, (4, 4))
    cl.enqueue_fill_image(queue, flat, np.array([0.2, 0.6, 2, -1], np.float32), (0, 0), (4, 4))
    out = np.empty((4, 4, 4), np.uint8)
    cl.enqueue_copy(queue, out, flat, origin=(0, 0), region=(4, 4))
    assert (out == (255, 153, 51, 0)).all()  # blue first, to the nearest of 255 steps


def check_shared_memory() -> None:
    array = cl.svm_empty(context, cl.svm_mem_flags.READ_WRITE, 256, np.int32)
    program = cl.Program(context, "__kernel void f(__global int *p) { p[get_global_id(0)] += 1; }")
    with cl.SVM(array).map_rw(queue) as seen:
        seen[:] = np.arange(256)
    cl.Kernel(program.build(), "f")(queue, (256,), None, cl.SVM(array))
    with cl.SVM(array).map_ro(queue) as seen:
        assert (seen == np.arange(1, 257)).all()
    cl.enqueue_svm_memfill(queue, cl.SVM(array), np.int32(7))
    queue.finish()
    assert (array == 7).all()


for check in (
    *(check_buffers, check_rectangles, check_host_memory, check_images, check_volumes),
    check_shared_memory,
):
    check()
print("ok")
