"""Compiles a program to an object: runs the passes, emits LLVM IR, and calls LLVM.

It is imported only for a kernel that the cache on disk does not have.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import CountLayout
from warploom.core.collector import collector_paused
from warploom.core.interrupts import let_interrupts_through
from warploom.ir.options import Pass
from warploom.ir.variant import KernelVariant, Observing
from warploom.ir.warp_ir import WarpIR
from warploom.isa.kinds import Needs
from warploom.llvm.deadline import Deadline
from warploom.llvm.objects import object_of
from warploom.llvm.opt_level import Effort
from warploom.llvm.printing import ModulePrinter
from warploom.lower.access.shared_functions import Define
from warploom.lower.kernel.blocks import BlockOptions
from warploom.lower.kernel.grid import GridFunction, GridOptions
from warploom.lower.kernel.warp import WarpFunction
from warploom.passes.pipeline import warp_ir
from warploom.program.uses import reads_clock

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class EmittedKernel:
    """Holds a kernel's object and what its host needs: whether the scheduler runs its warps, the
    bytes of a warp's context, and the definitions, by name, of the shared functions that it
    calls."""

    scheduled: bool
    context_bytes: int
    object_code: bytes
    functions: Mapping[str, Define]


@dataclass(frozen=True, slots=True)
class KernelIR:
    """Holds a kernel as the text of LLVM IR, before LLVM's passes, and what its host needs
    (`EmittedKernel`)."""

    text: str
    scheduled: bool
    context_bytes: int
    functions: Mapping[str, Define]


def emit(
    layout: CountLayout,
    variant: KernelVariant,
    effort: Effort,
    lock: AbstractContextManager[None],
) -> EmittedKernel:
    """Compiles a kernel to an object: passes, emission of LLVM IR, LLVM at the level `effort`. Only
    LLVM runs under `lock`. Raises CompileError beyond the time limit of emission."""
    _LOG.debug("compiling %s of %s", layout.program.name, layout.program.module.name)
    kernel = emit_ir(layout, variant)
    with lock:
        object_code = object_of(kernel.text, effort, "run")
    return EmittedKernel(kernel.scheduled, kernel.context_bytes, object_code, kernel.functions)


def emit_ir(layout: CountLayout, variant: KernelVariant) -> KernelIR:
    """Runs the passes on a kernel, and returns its LLVM IR: the functions `warp`, which runs a
    warp, and `run`, which runs the grid. Python's garbage collector is paused meanwhile."""
    with collector_paused():
        return emit_warp_ir(warp_ir(layout, variant))


def emit_warp_ir(kernel: WarpIR) -> KernelIR:
    """Returns the LLVM IR of a kernel whose passes have run. Emits `warp`, and then `run`, which
    depends on whether one call may run all warps of a block in warp order. It may if that pass is
    enabled, warps can suspend, and nothing observes the order of warps: no policy, log, observer,
    clock, cluster or debugger. The scheduler runs the warps if they may suspend, in clusters, and
    where buffers are laid out as under a policy (`WarpIR.is_scheduled`). Raises CompileError beyond
    the time limit (`llvm.deadline`)."""
    program, variant = kernel.program, kernel.variant
    with collector_paused():
        module = ir.Module(program.name)
        warp = WarpFunction(module, kernel)
        deadline = Deadline(program)

        def between_blocks() -> None:
            """Raises CompileError beyond the time limit, or an interrupt that was held back; called
            between the blocks that are emitted."""
            deadline.check()
            let_interrupts_through()

        warp.emit(between_blocks)
        scheduled = kernel.is_scheduled
        # Warp order changes neither results nor counts unless the order of warps can be observed:
        # by a policy, a log, a clock, another block of the cluster, or a debugger.
        no_warp_order = variant.shuffles or variant.is_watched or reads_clock(program.instructions)
        no_warp_order = no_warp_order or variant.clusters or Needs.CLUSTER_BARRIER in program.needs
        no_warp_order = no_warp_order or variant.steps or not variant.does(Pass.WARP_ORDER)
        # Warps that cannot suspend run to their ends in one turn.
        no_warp_order = no_warp_order or not warp.suspends
        in_warp_order = None if no_warp_order else warp.control.warp_order.sites.table(module)
        options = GridOptions(
            suspends=scheduled,
            sites=in_warp_order,
            slices=variant.steps,
            lasting_bytes=warp.frame.context_layout.lasting,
        )
        blocks = BlockOptions(
            local_bytes=program.local_bytes,
            delays=variant.shuffles and Needs.COMPLETION_QUEUE in program.needs,
            tensor_memory=program.has_tensor_memory,
            observes=variant.observes or Observing(),
        )
        grid = GridFunction(module, options, blocks)
        grid.emit()
        text, functions = ModulePrinter(module).text(), warp.functions.definitions
        _clear(module)
        return KernelIR(text, scheduled, warp.frame.context_layout.size, functions)


def _clear(module: ir.Module) -> None:
    """Unlinks the instructions of a module, so that they are freed at once: they are in reference
    cycles, for which the garbage collector uses a tenth of the time of emission."""
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                instruction.operands = ()
            block.instructions.clear()
