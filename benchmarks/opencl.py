"""The workloads on an OpenCL platform, PoCL's or Oclgrind's, through pyopencl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from workloads import Workload


def prepared(
    work: Workload, arguments: Sequence[Any]
) -> tuple[Callable[[], None], Callable[[], list[Any]]]:
    """What launches once on the arrays of `arguments`, and what gives the workload's own as they
    are after one fresh launch."""
    import pyopencl as cl  # pyright: ignore[reportMissingImports]

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, Path(__file__).with_name("peers.cl").read_text("utf-8")).build()
    kernel = getattr(program, work.kernel)
    size = tuple(g * b for g, b in zip(work.grid, work.block, strict=True))

    def made(values: Sequence[Any], how: int) -> list[Any]:
        flags = cl.mem_flags.READ_WRITE | how
        return [
            cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray)
            else np.int32(a) if isinstance(a, int) else a
            for a in values
        ]  # fmt: skip

    given = made(arguments, cl.mem_flags.USE_HOST_PTR)

    def launch(arguments: list[Any]) -> None:
        kernel(queue, size, work.block, *arguments)
        queue.finish()

    def results() -> list[Any]:
        fresh = made(work.arguments, cl.mem_flags.COPY_HOST_PTR)
        launch(fresh)
        got: list[Any] = []
        for host, buffer in zip(work.arguments, fresh, strict=True):
            copy = host.copy() if isinstance(host, np.ndarray) else host
            if isinstance(copy, np.ndarray):
                cl.enqueue_copy(queue, copy, buffer)
            got.append(copy)
        return got

    return lambda: launch(given), results
