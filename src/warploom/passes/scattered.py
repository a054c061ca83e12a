"""The pass that finds the registers whose lanes hold unrelated values, such as loaded indices: in
addresses made of them no stride is looked for.

    ld.global.u32 %r6, [%rd4];   ->   %r6 .b32 scattered: a loaded index
    mul.wide.s32 %rd5, %r6, 4;   ->   %rd5 .b64 scattered
    add.s64 %rd6, %rd1, %rd5;    ->   %rd6 .b64 scattered: [%rd6] is gathered without a look for a
                                      stride

Not handled: control dependence (`analysis.scattered`). It costs nothing in code; a wrong guess
costs the check for a stride, or a gather where a vector would do."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.scattered import scattered_registers
from warploom.ir.warp_ir import WarpIR


def find_scattered_registers(ir: WarpIR) -> WarpIR:
    """Adds, as `scattered`, the registers whose lanes hold unrelated values: plans for addresses
    made of them have no check for a stride. Registers that are uniform or affine in all blocks are
    never among them. Changes nothing for code of one copy, if accesses are not inlined, or without
    the pass `steps`."""
    if ir.variant.has_one_copy or not (ir.accesses.facts.inlined and ir.accesses.facts.steps):
        return ir
    lasting = {r: shape for r, shape in ir.shapes.items() if r in ir.uniformity.lasting}
    registers = scattered_registers(ir.program, ir.variant.warp_layout, lasting)
    return replace(ir, scattered=registers)
