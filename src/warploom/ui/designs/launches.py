"""Launches the kernels on which designs are measured."""

from __future__ import annotations

from msgspec.structs import replace

from warploom.core.input_files import read_text
from warploom.host.examples import examples_folder
from warploom.host.run import Run
from warploom.observe.limits import TraceLimits
from warploom.observe.trace import Trace
from warploom.ui.record import prepare_launch
from warploom.ui.schema import Design, LaunchRequest, MeasuredKernel

MEMORY = 512 << 20
"""Bytes of memory of the device of each launch."""

TRACED_WARPS, TRACED_STEPS = 1 << 12, 1 << 16
"""More warps and steps than a measured kernel has."""


def request_of(design: Design, kernel: MeasuredKernel) -> LaunchRequest:
    """Returns the launch of a kernel on the design's device."""
    return LaunchRequest(
        name=kernel.file,
        source=read_text(examples_folder() / kernel.file),
        kernel=kernel.kernel,
        grid=kernel.grid,
        block=kernel.block,
        shared=kernel.shared,
        args=kernel.args,
        device=design.device,
    )


def recorded_run(request: LaunchRequest) -> Run:
    """Returns a launch that was recorded to be timed."""
    ready = prepare_launch(request, MEMORY, record=True)
    return ready.launcher(*ready.values)


def traced(request: LaunchRequest) -> Trace:
    """Returns all accesses of a launch, by compiled code."""
    ready = prepare_launch(replace(request, engine="compiled"), MEMORY)
    limits = TraceLimits(warps=TRACED_WARPS, steps=TRACED_STEPS, registers=0, contents=0)
    return ready.launcher.trace(*ready.values, limits=limits, engine="compiled")
