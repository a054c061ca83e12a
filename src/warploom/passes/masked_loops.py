"""The pass that finds regions which lanes may leave one by one while the others go on under a mask.

    loop: ...; @%p bra done; ...; bra loop;   ->   exits header=b1 blocks=b1,b2 exits=b1 to=b3

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
