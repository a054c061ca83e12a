"""The pass that finds regions which lanes may leave one by one while the others go on under a mask.

    b1: setp.ge.s32 %p1, %r7, %r6; @%p1 bra b3;
    b2: ...; add.f32 %f1, %f1, %f2; ...; bra b1;
    b3: st.global.f32 [%rd7], %f1;
    ->   exits header=b1 blocks=b1,b2 exits=b1 to=b3 written=%f1,%f2,%p1,... retained=%f1

`written` are the registers that the region writes. A lane that has left retains its value of
those that are live at the target (`retained`), while the others go on writing theirs.

Not handled: regions with several entries or targets, and those whose instructions wait for other
lanes or read them (`program.masked_loops`). Costs an addition to the mask at each exit; without it
lanes diverge there, and the others run first."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.warp_ir import WarpIR
from warploom.program.masked_loops import masked_regions


def find_masked_loops(ir: WarpIR) -> WarpIR:
    """Adds the regions that lanes may leave separately while others go on under a mask, as `exits`;
    none in a variant or kernel whose registers have no shapes (`has_shapes`)."""
    return replace(ir, exits=masked_regions(ir.program)) if ir.has_shapes else ir
