"""Runs a launch under a sanitizer, and reports the accesses that it finds fault with."""

from __future__ import annotations

from warploom.debug.target import Target
from warploom.host.engines import checking_engine
from warploom.sanitize.launching import SanitizedLaunch
from warploom.sanitize.report import FindingSite


def sites_found(target: Target, engine: str, tool: str) -> list[FindingSite]:
    """Returns the accesses that a tool finds fault with, in the order in which they come up. Memory
    is as it was before the launch, and changed by it. Raises WarploomError where the sanitizer
    cannot check the launch."""
    memory = target.memory
    unwritten = {address: bits.copy() for address, bits in memory.unwritten.items()}
    made = checking_engine(engine, target.spec, target.options)
    checked = SanitizedLaunch(made, (tool,), unwritten)
    checked.execute(target.program, target.launch, memory, None)
    return checked.sites
