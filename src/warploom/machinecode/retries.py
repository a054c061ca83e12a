"""Finds the loops by which ptxas implements atomics that shared memory does not have, such as the
addition of floats. PTX has one instruction for them:

    L: LDS R8, [R4]                 one iteration for each lane at an address, and more
       FADD R9, R3, R8              where other warps succeed there in between
       ATOMS.CAST.SPIN R9, [R4], R8, R9
       @!P1 BRA L
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warploom.analysis.linear.affine import LinearAnalysis
from warploom.analysis.linear.lanes import WARP, LaneVariables
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.isa.instruction import Space
from warploom.machinecode.evidence import Evidence, Executions, site_of
from warploom.machinecode.graph import Node
from warploom.machinecode.lines import Sites
from warploom.machinecode.listing import Listing
from warploom.program.program import Program, Site


def retry_nodes(
    program: Program, listing: Listing, nodes: Sequence[Node], owners: Sites
) -> dict[int, Site]:
    """Returns the nodes that are loops around an atomic of the PTX, by their numbers, with the
    atomic. Atomics that compare and swap in PTX are in loops of the PTX. `owners` are the
    instructions of the lines of the assembled text."""
    atomics = {
        site
        for site, one in zip(program.sites, program.instructions, strict=True)
        if "cas" not in one.operation.opcode.split(".")
    }
    found: dict[int, Site] = {}
    for number, node in enumerate(nodes):
        for made in listing.instructions[node.start : node.stop]:
            site = site_of(made, owners)
            is_swap = made.name == "ATOMS" and "SPIN" in made.modifiers
            if number in node.successors and is_swap and site is not None and site in atomics:
                found[number] = site
    return found


def mean_iterations(program: Program, launch: LaunchInputs) -> dict[Site, float]:
    """Returns, by atomic on shared memory, how many iterations a warp has for each lane at an
    address, on average: (n + 1) / 2 where all n warps of a block are known to access the same
    addresses, as they succeed one after the other; 1 for others, which are not in the result."""
    lanes, found = LaneVariables.of(launch.block), dict[Site, float]()
    warps = -(-math.prod(launch.block) // WARP)
    for access in LinearAnalysis(program, launch).memory_accesses(frozenset({Space.SHARED})):
        address = access.address.form
        if address is not None and lanes.is_repeated(address):
            found[program.sites[access.instruction]] = (warps + 1) / 2
    return found


def with_retries(found: Sequence[Evidence], retries: Mapping[int, Site]) -> list[Evidence]:
    """Returns evidence in which the copies of an atomic in retry loops are for its passes."""
    return [
        replace(one, of=Executions.PASSES)
        if one.copies and all(retries.get(node) == one.site for node in one.copies)
        else one
        for one in found
    ]
