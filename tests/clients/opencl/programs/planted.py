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
arguments = {
    "group_race": buffers,
    "local_race": (buffers[0], cl.LocalMemory(256)),
    "unwritten": (never, buffers[0]),
    "image_race": (image,),
    "image_beyond": (image,),
}
name = sys.argv[1]
kernel = cl.Kernel(program, name)
kernel(queue, (COUNT,), (64,), *arguments.get(name, buffers[:1]))
queue.finish()
