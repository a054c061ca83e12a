"""Writes messages in OpenCL's terms where the lines in them are of OpenCL C."""

from __future__ import annotations

import re

OPENCL_SOURCE = re.compile(r"\.cl:\d+")

OPENCL = {
    "__syncthreads()": "barrier(CLK_LOCAL_MEM_FENCE)",
    "__syncwarp()": "sub_group_barrier(CLK_LOCAL_MEM_FENCE)",
    "__shared__": "__local",
    "__global__": "__global",
    "__local__": "__private",
    "__surface__": "image",
    "shared memory": "local memory",
    "local memory": "private memory",
    "atomicAdd()": "atomic_add() or atomic_fetch_add()",
    "atomicAdd, not atomicAdd_block": "memory_scope_device, not memory_scope_work_group",
    "cudaMemset": "clEnqueueFillBuffer",
    "Kernels cannot write to constant memory; use __device__ memory. Kernels also cannot write to "
    "the device copy of a read-only host array, because the results could not be copied back; pass "
    "a copy, x.copy().": "Kernels cannot write to"
    " __constant memory, or to a buffer that was created with CL_MEM_READ_ONLY.",
    "Record an event after the first operation, and make the second operation's stream wait for the"
    " event (cudaEventRecord, cudaStreamWaitEvent)": "Put the event of the first operation in"
    " the wait list of the second operation",
    "use one stream": "use one in-order queue",
    "synchronize the first stream": "call clFinish for the first queue",
    "streams": "queues",
    "Threads": "Work-items",
    "Blocks": "Work-groups",
    "Warps": "Sub-groups",
    "grid": "NDRange",
    "threads": "work-items",
    "thread": "work-item",
    "blocks": "work-groups",
    "block": "work-group",
    "warps": "sub-groups",
    "warp": "sub-group",
}
"""CUDA's words, and what OpenCL C says for them (docs/glossary.md)."""

_PHRASES = "|".join(re.escape(word) for word in OPENCL if not word.isalpha())
_PLAIN = "|".join(word for word in OPENCL if word.isalpha())
_WORDS = re.compile(rf"{_PHRASES}|(?<![\w./-])(?:{_PLAIN})(?![\w/-]|\.\w)")
"""Plain words stand alone: not in the name of a file or of a variable."""


def in_words_of_source(message: str) -> str:
    """Returns a message in the terms of the language that the lines in it are of; one that is in
    those of OpenCL stays."""
    if OPENCL_SOURCE.search(message) is None or "work-item" in message:
        return message
    return _WORDS.sub(lambda found: OPENCL[found[0]], message)
