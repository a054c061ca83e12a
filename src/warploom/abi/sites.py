"""Numbers the sites at which all lanes of a warp wait together in compiled code, as in the `resume`
value of its state (`simt.schedule_layout`): ends of basic blocks with a barrier, and headers of
loops at which the warps of a thread block meet (`lower.loops.interleaved_batches`).

    1 ... blocks                 the barrier at the end of block 0 ... blocks - 1
    blocks + 1 ... 2 * blocks    the loop with the header 0 ... blocks - 1

The numbers are the same in all code of a program."""

from __future__ import annotations

from warploom.program.program import Program


def site_of_barrier(block: int) -> int:
    """Returns the site of the barrier at the end of a basic block."""
    return block + 1


def site_of_loop(program: Program, header: int) -> int:
    """Returns the site of the loop with a header."""
    return len(program.blocks) + 1 + header


def block_after_site(program: Program, site: int) -> int:
    """Returns the number of the basic block at which warps continue from a site."""
    if site > len(program.blocks):
        return site - len(program.blocks) - 1
    # The last successor of a block that ends with a barrier is the block that follows.
    return program.blocks[site - 1].successors[-1]
