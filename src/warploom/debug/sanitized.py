"""Runs a launch under a sanitizer, and tells the accesses that it finds fault with."""

from __future__ import annotations

from warploom.debug.target import Target
from warploom.sanitize.launching import SanitizedLaunch
from warploom.sanitize.report import Site


def sites_found(target: Target, engine: str, tool: str) -> list[Site]:
    """Return the accesses that a tool finds fault with, in the order in which they come up. Memory
    is as it was before the launch, and changed by it. Raises WarploomError where the sanitizer
    cannot check the launch."""
    memory = target.memory
    unwritten = {address: bits.copy() for address, bits in memory.unwritten.items()}
    checked = SanitizedLaunch(target.spec, target.options, engine, (tool,), unwritten)
    checked.execute(target.program, target.launch, memory, None)
    return checked.sites
