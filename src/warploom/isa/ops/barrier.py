"""Barriers of a block and fences: PTX ISA, "Parallel Synchronization and Communication".

They have no terms: who waits for whom is for the machines to say. A fence orders memory accesses;
on machines whose accesses take effect in program order it changes no value.
"""

from __future__ import annotations

from warploom.isa.spec import Unit, declare

SCOPES = ("cta", "cluster", "gpu", "sys")
SYNC_DOC = "waits at barrier a until b threads are there      PTX ISA: bar, barrier"
FENCE_DOC = "orders memory accesses                           PTX ISA: membar, fence"

declare("bar{.cta}.sync", src="a:u32, b:u32?", unit=Unit.BARRIER, doc=SYNC_DOC)
declare("barrier{.cta}.sync{.aligned}", src="a:u32, b:u32?", unit=Unit.BARRIER, doc=SYNC_DOC)
declare("membar.level", unit=Unit.MEMORY, doc=FENCE_DOC, level=("cta", "gl", "sys"))
declare(
    "fence{.sem}.scope",
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    sem=("sc", "acq_rel", "acquire", "release"),
    scope=SCOPES,
)
