"""Runs the passes that build the Warp IR of a kernel, in a fixed order.

Passes that can be disabled have the names of `ir.options`. `WARPLOOM_PRINT_AFTER=PASS,...` prints
the IR after some passes to standard error (`all`: after each), whenever a kernel is compiled, but
not if its code comes from the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warploom.abi.environment import CountLayout
from warploom.ir.options import PRINT_VARIABLE, Pass, named_passes
from warploom.ir.text import print_warp_ir
from warploom.ir.variant import KernelVariant
from warploom.ir.warp_ir import BasicBlock, WarpIR
from warploom.passes.block_shapes import find_block_shapes
from warploom.passes.branches import find_branches
from warploom.passes.groups import group_accesses
from warploom.passes.masked_loops import find_masked_loops
from warploom.passes.plans import complete_plans
from warploom.passes.predicated_blocks import find_predicated_blocks
from warploom.passes.reconvergence import find_reconvergence
from warploom.passes.region_versions import mark_region_versions
from warploom.passes.scattered import find_scattered_registers
from warploom.passes.spills import spill_registers
from warploom.passes.static_schedule import find_static_schedule
from warploom.passes.store_batching import batch_stores
from warploom.passes.strided_loops import find_strided_loops
from warploom.passes.uniformity import find_shapes
from warploom.passes.versions import make_fast_versions
from warploom.passes.warp_loops import find_warp_loops


@dataclass(frozen=True)
class WarpPass:
    """A pass: its name, by which a variant can leave it out, and its function from an IR to an
    IR."""

    name: str
    transform: Callable[[WarpIR], WarpIR]

    def run(self, ir: WarpIR) -> WarpIR:
        """Returns the transformed IR, or the IR itself if the variant leaves the pass out."""
        return ir if self.name in ir.variant.disabled else self.transform(ir)


def warp_ir(layout: CountLayout, variant: KernelVariant) -> WarpIR:
    """Returns the Warp IR of a variant of a kernel after all passes that the variant does not
    disable; prints it after those that WARPLOOM_PRINT_AFTER names. `layout` has the program and the
    device's access rules."""
    return run_passes(begin(layout, variant))


def run_passes(ir: WarpIR) -> WarpIR:
    """Returns an IR after all passes that its variant does not disable, in order. Prints it to
    standard error after each pass that WARPLOOM_PRINT_AFTER names, also one that is disabled."""
    printed, result = printed_passes(), ir
    for name, result in after_each_pass(ir):
        if name in printed:
            print(f"# after {name}\n{print_warp_ir(result)}", file=sys.stderr)
    return result


def after_each_pass(ir: WarpIR) -> Iterator[tuple[str, WarpIR]]:
    """Yields the name of each pass with the IR after it, which is unchanged where the variant
    leaves the pass out."""
    for compiler_pass in PIPELINE:
        ir = compiler_pass.run(ir)
        yield compiler_pass.name, ir


def printed_passes() -> frozenset[str]:
    """Returns the passes that WARPLOOM_PRINT_AFTER lists, all for `all`. Raises WarploomError for
    an unknown name."""
    return named_passes(PRINT_VARIABLE, [compiler_pass.name for compiler_pass in PIPELINE])


def begin(layout: CountLayout, variant: KernelVariant) -> WarpIR:
    """Returns the IR of a variant of a kernel before the first pass."""
    return WarpIR(layout, variant, (BasicBlock(),) * len(layout.program.blocks))


# The order follows from what passes read. Shapes depend on masked regions, for a register that
# lanes retain when they leave is varying after it, and nearly all other passes depend on shapes.
# Groups need `scattered` and the predicated blocks; batches of stores take members from groups;
# versions count what is left; `plans` then removes exits to slow versions that do not exist. Loops
# come last: they copy groups with their final plans.
PIPELINE: tuple[WarpPass, ...] = (
    WarpPass(Pass.MASKED_LOOPS, find_masked_loops),
    WarpPass(Pass.UNIFORMITY, find_shapes),
    WarpPass("reconvergence", find_reconvergence),
    WarpPass("spills", spill_registers),
    WarpPass(Pass.PREDICATED_BLOCKS, find_predicated_blocks),
    WarpPass("branches", find_branches),
    WarpPass("scattered", find_scattered_registers),
    WarpPass(Pass.GROUPS, group_accesses),
    WarpPass(Pass.STORE_BATCHING, batch_stores),
    WarpPass(Pass.VERSIONS, make_fast_versions),
    WarpPass("plans", complete_plans),
    WarpPass(Pass.STRIDED_LOOPS, find_strided_loops),
    WarpPass("block-shapes", find_block_shapes),
    WarpPass(Pass.STATIC_SCHEDULE, find_static_schedule),
    WarpPass(Pass.WARP_LOOPS, find_warp_loops),
    WarpPass(Pass.REGION_VERSIONS, mark_region_versions),
)
"""All passes, in order."""
