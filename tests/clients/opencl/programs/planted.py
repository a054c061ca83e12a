"""Launches a kernel with a mistake, which its argument names."""

import sys

import numpy as np
import pyopencl as cl

SOURCE = """kernel void group_race(global int *sums, global const int *x) {
    sums[0] += x[get_global_id(0)];
}
kernel void local_race(global int *to, local int *part) {
    int i = get_local_id(0);
    part[i] = i;
    to[get_global_id(0)] = part[(i + 1) % get_local_size(0)];
}
kernel void variable_race(global int *to) {
    local int part[64];
    int i = get_local_id(0);
    part[i] = i;
    to[get_global_id(0)] = part[63 - i];
}
kernel void skipped_barrier(global int *to) {
    if (get_local_id(0) < 10)
        barrier(CLK_LOCAL_MEM_FENCE);
    to[get_global_id(0)] = 1;
}
kernel void unwritten(global const float *never, global float *to) {
    to[get_global_id(0)] = never[get_global_id(0)] + 1;
}
kernel void beyond(global int *to) {
    to[get_global_id(0) + 1] = 1;
}
kernel void image_race(write_only image2d_t image) {
    write_imagef(image, (int2)(0, 0), (float4)(get_global_id(0)));
}
kernel void image_beyond(write_only image2d_t image) {
    write_imagef(image, (int2)(get_global_id(0), 0), (float4)(1));
}
kernel void below(global int *to) {
    to[(int)get_global_id(0) - 1] = 1;
}
kernel void local_beyond(global int *to) {
    local int part[64];
    part[get_local_id(0) + 1] = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    to[get_global_id(0)] = part[63 - get_local_id(0) / 2];
}
kernel void constant_beyond(constant int *from, global int *to) {
    to[get_global_id(0)] = from[2 * get_global_id(0)];
}
kernel void misaligned(global char *to) {
    *(global int *)(to + 4 * get_global_id(0) + 1) = 1;
}
kernel void null(global int *to) {
    to[get_global_id(0)] = 1;
}
kernel void into_input(global int *to) {
    to[get_global_id(0)] = 1;
}
kernel void loop_barrier(global int *to) {
    for (int i = 0; i < (int)get_local_id(0) / 32 + 1; i++)
        barrier(CLK_LOCAL_MEM_FENCE);
    to[get_global_id(0)] = 1;
}
kernel void unwritten_local(global int *to) {
    local int part[64];
    if (get_local_id(0) < 32)
        part[get_local_id(0)] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    to[get_global_id(0)] = part[get_local_id(0)] + 1;
}
kernel void unwritten_private(global int *to, global int *at) {
    int own[4];
    own[at[0]] = 1;
    to[get_global_id(0)] = own[at[0] - 1] + 1;
}
kernel void private_beyond(global int *to, global int *at) {
    int own[4] = {0, 1, 2, 3};
    own[at[0] + 3] = 1;
    to[get_global_id(0)] = own[at[0]];
}
kernel void copy_without_wait(global const int *from, global int *to) {
    local int part[64];
    event_t copied = async_work_group_copy(part, from, 64, 0);
    to[get_global_id(0)] = part[63 - get_local_id(0)];
    wait_group_events(1, &copied);
}
kernel void counter_read(global int *counter, global int *to) {
    atomic_inc(counter);
    to[get_global_id(0)] = *counter;
}
"""
COUNT = 128
FLAGS = cl.mem_flags

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, SOURCE).build()
buffers = [
    cl.Buffer(context, FLAGS.COPY_HOST_PTR, hostbuf=np.ones(COUNT, np.int32)) for _ in range(2)
]
never = cl.Buffer(context, FLAGS.READ_WRITE, 4 * COUNT)
image = cl.create_image(
    context, FLAGS.READ_WRITE, cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT), (8, 8)
)
only_read = cl.Buffer(context, FLAGS.READ_ONLY, 4 * COUNT)
arguments = {
    "group_race": buffers,
    "local_race": (buffers[0], cl.LocalMemory(256)),
    "unwritten": (never, buffers[0]),
    "image_race": (image,),
    "image_beyond": (image,),
    "constant_beyond": buffers,
    "null": (None,),
    "into_input": (only_read,),
    "unwritten_private": buffers,
    "private_beyond": buffers,
    "copy_without_wait": buffers,
    "counter_read": buffers,
}
name = sys.argv[1]
kernel = cl.Kernel(program, name)
kernel(queue, (COUNT,), (64,), *arguments.get(name, buffers[:1]))
queue.finish()
