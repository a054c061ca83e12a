"""From a program to an object: what is done for a kernel that the cache on disk does not have."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import CountLayout
from warploom.core.collector import collector_paused
from warploom.core.interrupts import let_interrupts_through
from warploom.ir.options import Pass
from warploom.ir.variant import KernelVariant, Observing
from warploom.ir.warp_ir import WarpIR
from warploom.llvm.deadline import Deadline
from warploom.llvm.objects import object_of
from warploom.llvm.opt_level import Effort
from warploom.lower.access.shared_functions import Define
from warploom.lower.kernel.blocks import BlockOptions
from warploom.lower.kernel.grid import GridFunction, GridOptions
from warploom.lower.kernel.warp import WarpFunction
from warploom.passes.pipeline import warp_ir
from warploom.program.effects.clusters import has_cluster_barrier
from warploom.program.effects.tensor_waits import completes_later
from warploom.program.uses import reads_clock

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Emitted:
    """A kernel's object; whether it is scheduled, the bytes of a warp's context, and by name the
    definitions of the shared functions that it calls."""

    scheduled: bool
    context_bytes: int
    made: bytes
    functions: Mapping[str, Define]


@dataclass(frozen=True, slots=True)
class KernelIR:
    """A kernel as LLVM IR, before any pass; whether it is scheduled, the bytes of a warp's
    context, and the definitions of the shared functions that it calls, by name."""

    text: str
    scheduled: bool
    context_bytes: int
    functions: Mapping[str, Define]


def emit(
    layout: CountLayout, variant: KernelVariant, effort: Effort, lock: threading.Lock
) -> Emitted:
    """Returns a kernel compiled to an object. LLVM works under `lock`."""
    _LOG.debug("compiling %s of %s", layout.program.name, layout.program.module.name)
    kernel = emit_ir(layout, variant)
    with lock:
        made = object_of(kernel.text, effort, "run")
    return Emitted(kernel.scheduled, kernel.context_bytes, made, kernel.functions)


def emit_ir(layout: CountLayout, variant: KernelVariant) -> KernelIR:
    """Returns the code of a kernel: the functions `warp`, of one warp, and `run`, of the grid."""
    with collector_paused():
        return emit_warp_ir(layout, warp_ir(layout, variant))


def emit_warp_ir(layout: CountLayout, facts: WarpIR) -> KernelIR:
    """Returns the same of a kernel of which passes have found these facts."""
    program, variant = layout.program, facts.variant
    with collector_paused():
        module = ir.Module(program.name)
        warp = WarpFunction(module, layout, facts)
        deadline = Deadline(program)

        def between_blocks() -> None:
            deadline.check()
            let_interrupts_through()

        warp.emit(between_blocks)
        scheduled = warp.suspends or variant.shuffles or variant.clusters
        alone = variant.shuffles or variant.is_watched or reads_clock(program.instructions)
        alone = alone or variant.clusters or has_cluster_barrier(program)
        alone = alone or variant.steps or not variant.does(Pass.WARP_ORDER)
        in_warp_order = None if alone else warp.control.warp_order.sites.table(module)
        options = GridOptions(
            suspends=scheduled,
            sites=in_warp_order,
            slices=variant.steps,
            lasting_bytes=warp.frame.context_layout.lasting,
        )
        blocks = BlockOptions(
            local_bytes=program.local_bytes,
            delays=variant.shuffles and completes_later(program),
            tensor_memory=program.has_tensor_memory,
            observes=variant.observes or Observing(),
        )
        grid = GridFunction(module, options, blocks)
        grid.emit()
        functions = warp.functions.definitions
        return KernelIR(str(module), scheduled, warp.frame.context_layout.size, functions)
