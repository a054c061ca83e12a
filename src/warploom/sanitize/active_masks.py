"""Warns of stores whose value depends on which lanes happen to run together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warploom.analysis.active_masks import mask_stores
from warploom.machine.launch import Launch
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.sanitize.findings import WARNING, Finding

TEXT = (
    "Value of the active mask stored\n    at {store}\n    The value depends on which lanes "
    "execute __activemask() together\n    at {mask}\n    On compute capability 7.0 and later, "
    "lanes on the same path need not run together\n    "
    '(PTX ISA, "activemask"). Specify the lanes with __ballot_sync(mask, 1), where mask\n    '
    "contains the lanes that reach this line; or choose the leader from the mask: __ffs(mask) - 1."
)


def mask_findings(
    program: Program, launch: Launch, counted: Callable[[], Tally]
) -> Iterator[Finding]:
    """Yields a warning for each store, executed by the launch, of a value that depends on an
    `activemask` (`analysis.active_masks`), on devices whose threads are scheduled
    independently."""
    if not launch.schedule.independent:
        return
    for store, mask in mask_stores(program):
        if counted().warps[store]:
            lines = program.line(store), program.line(mask)
            text = TEXT.format(store=lines[0], mask=lines[1])
            yield Finding(
                "sync", "active mask", WARNING, "", *lines, (), "", text, instructions=(store, mask)
            )
