"""Barriers of a block and fences: PTX ISA, "Parallel Synchronization and Communication".

They have no terms: who waits for whom is for the machines to say. A fence orders memory accesses;
on machines whose accesses take effect in program order it changes no value.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers, Operation, OpSpec, Since, Unit, declare

SCOPES = ("cta", "cluster", "gpu", "sys")
SYNC_DOC = "waits at barrier a until b threads have arrived   PTX ISA: bar, barrier"
FENCE_DOC = "orders memory accesses                           PTX ISA: membar, fence"

declare(
    "bar{.cta}.sync",
    OpKind.BLOCK_BARRIER,
    src="a:u32, b:u32?",
    unit=Unit.BARRIER,
    doc=SYNC_DOC,
)
declare(
    "barrier{.cta}.sync{.aligned}",
    OpKind.BLOCK_BARRIER,
    src="a:u32, b:u32?",
    unit=Unit.BARRIER,
    doc=SYNC_DOC,
)
ARRIVE_DOC = (
    "arrives at barrier a, which expects b threads, and does not wait   PTX ISA: bar, barrier"
)
RED_DOC = "waits at barrier a; d = the reduction of c over the threads   PTX ISA: bar, barrier"
for name, aligned in (("bar{.cta}", ""), ("barrier{.cta}", "{.aligned}")):
    declare(
        f"{name}.arrive{aligned}",
        OpKind.BLOCK_BARRIER,
        src="a:u32, b:u32",
        unit=Unit.BARRIER,
        doc=ARRIVE_DOC,
    )
    for dst, ops, type in (("d:u32", ("popc",), "u32"), ("d:pred", ("and", "or"), "pred")):
        # The count may be left out, and what is counted stands behind it.
        declare(
            f"{name}.red.op{aligned}.{type}",
            OpKind.BLOCK_BARRIER,
            dst=dst,
            src="a:u32, b:any, c:pred?",
            unit=Unit.BARRIER,
            doc=RED_DOC,
            op=ops,
        )
declare(
    "membar.level",
    OpKind.FENCE,
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    level=("cta", "gl", "sys"),
)
declare(
    "membar.proxy.kind",
    OpKind.FENCE,
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    kind=("alias", "async"),
)
declare(
    "fence{.sem}.scope",
    OpKind.FENCE,
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    sem=("sc", "acq_rel", "acquire", "release"),
    scope=SCOPES,
)


def fence(syntax: str, src: str = "", **choices: tuple[str, ...]) -> None:
    """Declares one syntax line of a fence, of threads or of proxies."""
    declare(
        syntax,
        OpKind.FENCE,
        dst="",
        src=src,
        unit=Unit.MEMORY,
        semantics=None,
        doc=FENCE_DOC,
        **choices,
    )


for proxy in ("", ".proxy.async::generic"):
    for sem, space in (("acquire", "cluster"), ("release", "cta")):
        fence(
            f"fence{proxy}.sem.sync_restrict.scope",
            sem=(sem,),
            scope=("cluster",),
            sync_restrict=(f"sync_restrict::shared::{space}",),
        )
declare(
    "fence.proxy.async::generic.release.restrict.scope",
    OpKind.FENCE,
    Since((9, 4), (9, 0)),
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    restrict=("sync_restrict::shared::cluster::read",),
    scope=("cta", "cluster"),
)
declare(
    "fence.alias.sync_restrict::read.release.sys",
    OpKind.FENCE,
    Since((9, 5), (9, 0)),
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
)
fence(
    "fence.proxy.kind",
    kind=("alias", "async"),
)
declare(
    "fence.proxy.alias.sem.sys",
    OpKind.FENCE,
    Since((9, 4), (9, 0)),
    unit=Unit.MEMORY,
    doc=FENCE_DOC,
    sem=("acquire", "release"),
)
fence(
    "fence.proxy.between.alias.sem.sys",
    between=("fabric::fabric", "fabric::generic", "generic::fabric"),
    sem=("acquire", "release"),
)
"""Syntax: CCCL's `cuda::ptx` (libcu++ of CUDA 13.3). They order accesses by `fabric` to memory of
other devices, of which there are none here."""
fence("fence.proxy.async.space", space=("global", "shared::cta", "shared::cluster"))
fence("fence.proxy.tensormap::generic.release.scope", scope=SCOPES)
fence("fence.proxy.tensormap::generic.acquire.scope", src="a:address, size:u32", scope=SCOPES)
declare(
    "griddepcontrol.action",
    OpKind.DEPENDENT_LAUNCH,
    unit=Unit.CONTROL,
    doc="lets the next launch begin, or waits for the previous launch   PTX ISA: griddepcontrol",
    action=("launch_dependents", "wait"),
)
declare(
    "pmevent",
    OpKind.EVENT_HINT,
    src="a:u32",
    unit=Unit.CONTROL,
    doc="triggers a performance event (ignored by Warploom)   PTX ISA: pmevent",
)
declare(
    "pmevent.mask",
    OpKind.EVENT_HINT,
    src="a:u16",
    unit=Unit.CONTROL,
    doc="triggers performance events (ignored by Warploom)   PTX ISA: pmevent",
)
declare(
    "setmaxnreg.action.sync.aligned.u32",
    OpKind.REGISTER_COUNT,
    src="count:registers",
    unit=Unit.CONTROL,
    doc="changes the maximum number of registers per thread   PTX ISA: setmaxnreg",
    action=("inc", "dec"),
)
REGISTER_WAIT = Operation(
    "setmaxnreg.wait",
    OpSpec(
        "setmaxnreg",
        "setmaxnreg.wait",
        (),
        (),
        Unit.BARRIER,
        OpKind.REGISTER_WAIT,
        None,
        "waits for the registers that the warp has requested",
    ),
    Modifiers({"wait": "wait"}),
)
"""Stands hidden behind each `setmaxnreg.inc`, and in no table."""
