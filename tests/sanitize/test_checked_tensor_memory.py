"""Tensor memory under the race detector: what is waited for and fenced is clean, and what is not is
found at its two lines. Each kernel has a wrong and a right twin.

The rules are those of PTX ISA, "Memory Consistency Model for 5th generation of TensorCore
operations": loads and stores are waited for by `tcgen05.wait`, other work by the mbarrier of a
`tcgen05.commit`; a thread's products, copies and shifts are done in order; between threads fences
stand on both sides of what synchronizes them.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import numpy as np
import pytest

import warploom as wl
from warploom.sanitize.findings import Finding

HEAD = """
.version 8.8
.target sm_103a
.address_size 64
"""
KERNEL = """
.visible .entry {name}(.param .u64 pout)
{{
.reg .b32 %v<8>, %t, %a, %b, %base, %lane, %slot, %bar, %id, %buf, %s; .reg .b64 %out, %x, %da, %db;
.reg .pred %first, %one, %other, %low, %done, %adds;
.shared .align 1024 .b8 buf[8192]; .shared .align 8 .b64 bar[2]; .shared .align 4 .b32 slot;
ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %slot, slot; mov.u32 %bar, bar; mov.u32 %buf, buf;
shr.u32 %lane, %t, 5; shl.b32 %lane, %lane, 21;
setp.lt.u32 %first, %t, 32; setp.eq.u32 %one, %t, 0; setp.eq.u32 %other, %t, 64;
setp.lt.u32 %low, %t, 64; setp.ne.u32 %adds, %t, %t;
shl.b32 %s, %t, 6; add.u32 %s, %s, %buf; mov.u32 %v0, %t;
st.shared.v4.b32 [%s], {{%v0, %v0, %v0, %v0}}; st.shared.v4.b32 [%s+16], {{%v0, %v0, %v0, %v0}};
st.shared.v4.b32 [%s+32], {{%v0, %v0, %v0, %v0}}; st.shared.v4.b32 [%s+48], {{%v0, %v0, %v0, %v0}};
fence.proxy.async;
@!%first bra allocated;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
@%one mbarrier.init.shared.b64 [%bar], 1;
@%one mbarrier.init.shared.b64 [%bar+8], 1;
bar.sync 0;
ld.shared.b32 %base, [%slot]; add.u32 %a, %base, %lane;
mov.u64 %da, {matrix}; shr.u32 %b, %buf, 4; cvt.u64.u32 %x, %b; or.b64 %da, %da, %x;
add.u64 %db, %da, 256; mov.u32 %id, {product};
{body}
fence.proxy.async;
tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;
bar.sync 0;
@!%first bra end;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
end:
ret;
}}
"""
MATRIX = 1 << 46 | 8 << 16 | 16 << 32
"""A matrix of f16, 16 of them along k, without swizzle: 8 rows of 16 bytes are side by side, 128
bytes are from there to the next ones along k, 256 to the next rows (PTX ISA, "Shared Memory
Descriptor")."""
PRODUCT = 1 << 4 | 2 << 17 | 8 << 24
"""Products of 128 x 16 f16 with 16 x 16 f16 into f32: kind f16 (PTX ISA, "Instruction
Descriptor")."""

WORDS = {
    "STORE": "tcgen05.st.sync.aligned.32x32b.x4.b32 [%a], {%v0, %v1, %v2, %v3};",
    "LOAD": "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%v4, %v5, %v6, %v7}, [%a];",
    "WAIT_STORE": "tcgen05.wait::st.sync.aligned;",
    "WAIT_LOAD": "tcgen05.wait::ld.sync.aligned;",
    "MMA": "@%one tcgen05.mma.cta_group::1.kind::f16 [%base], %da, %db, %id, %adds;",
    "OTHER_MMA": "@%other tcgen05.mma.cta_group::1.kind::f16 [%base], %da, %db, %id, %adds;",
    "COPY": "@%one tcgen05.cp.cta_group::1.128x128b [%base], %da;",
    "COMMIT": "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];",
    "OTHER_COMMIT": "@%other tcgen05.commit.cta_group::1.mbarrier::arrive::one"
    ".shared::cluster.b64 [%bar+8];",
    "OTHER_AWAIT": "W{n}: mbarrier.try_wait.parity.shared.b64 %done, [%bar+8], 0;"
    " @!%done bra W{n};",
    "AWAIT": "W{n}: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra W{n};",
    "BEFORE": "tcgen05.fence::before_thread_sync;",
    "AFTER": "tcgen05.fence::after_thread_sync;",
    "MEET": "bar.sync 0;",
    "KEEP": "mad.wide.u32 %x, %t, 4, %out; st.global.b32 [%x], %v4;",
    "TILE": "st.shared.b32 [%s], %v0;",
    "PROXY": "fence.proxy.async;",
}
"""The words of the cases, for instructions of all threads or of the first one."""

CASES = """
// case store_read_without_a_wait race
STORE here
WAIT_STORE pass
LOAD here
WAIT_LOAD

// case load_overwritten_without_a_wait race
LOAD here
WAIT_LOAD pass
STORE here

// case product_read_without_a_wait race
MMA here
COMMIT
AWAIT pass
AFTER
LOAD here

// case product_without_a_commit race
COMMIT fail
MMA here
COMMIT pass
AWAIT
AFTER
LOAD here

// case product_over_what_was_stored race
STORE here
WAIT_STORE
BEFORE
MEET pass
AFTER
MMA here
COMMIT
AWAIT

// case store_not_waited_for_before_a_product race
STORE here
WAIT_STORE pass
BEFORE
MEET
AFTER
MMA here
COMMIT
AWAIT

// case product_over_what_is_still_read race
LOAD here
WAIT_LOAD pass
BEFORE
MEET
AFTER
MMA here
COMMIT
AWAIT

// case no_fence_before_the_barrier unfenced
STORE here
WAIT_STORE
BEFORE pass
MEET
AFTER
MMA here
COMMIT
AWAIT

// case no_fence_behind_the_barrier unfenced
STORE here
WAIT_STORE
BEFORE
MEET
AFTER pass
MMA here
COMMIT
AWAIT

// case fence_in_front_of_the_wait unfenced
STORE here
BEFORE fail
WAIT_STORE
BEFORE pass
MEET
AFTER
MMA here
COMMIT
AWAIT

// case no_fence_behind_the_mbarrier unfenced
MMA here
COMMIT
AWAIT
AFTER pass
LOAD here
WAIT_LOAD

// case fence_in_front_of_the_mbarrier unfenced
MMA here
COMMIT
AFTER fail
AWAIT
AFTER pass
LOAD here
WAIT_LOAD

// case products_of_one_thread_are_in_order race
MMA
COPY
MMA here
COMMIT
AWAIT pass
AFTER
LOAD here

// case products_of_two_threads race
MMA here
BEFORE
MEET pass
AFTER
OTHER_MMA here
COMMIT
OTHER_COMMIT
AWAIT
OTHER_AWAIT

// case tile_overwritten_while_it_is_multiplied race
MMA here
COMMIT
AWAIT pass
TILE here

// case tile_multiplied_without_a_proxy_fence proxy
TILE here
PROXY pass
MEET
MMA here
COMMIT
AWAIT

// case tile_copied_before_the_barrier race
TILE here
PROXY
MEET pass
COPY here
COMMIT
AWAIT

// case freed_while_it_is_written race
MMA here
COMMIT
AWAIT pass
MEET fail
"""
DEALLOC = "dealloc"
HEADS = re.compile(r"// case (\w+) (\w+)\n")


def cases() -> dict[str, tuple[str, list[list[str]]]]:
    """Return the kind and the marked words of each case, by name."""
    parts = HEADS.split(CASES)[1:]
    return {
        name: (kind, [line.split() for line in body.splitlines() if line])
        for name, kind, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def text_of(name: str, twin: str) -> str:
    """Return the PTX of a twin; lines where a finding is to lie end in a comment."""
    lines: list[str] = []
    for number, (word, *marks) in enumerate(cases()[name][1]):
        if not set(marks) & ({"pass", "fail"} - {twin}):
            line = WORDS[word].replace("{n}", str(number))
            lines.append(f"{line}  // here" if "here" in marks else line)
    body = "\n".join(lines)
    return KERNEL.format(name=f"{name}_{twin}", matrix=MATRIX, product=PRODUCT, body=body)


TEXT = HEAD + "".join(text_of(*each) for each in product(cases(), ("pass", "fail")))


@cache
def loaded(engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device(cc="10.3", engine=engine)
    return gpu, gpu.compile(TEXT, "ptx")


def findings(name: str, twin: str, engine: str, schedule: str = "converge") -> tuple[Finding, ...]:
    """Return what the tools find in a twin."""
    gpu, module = loaded(engine)
    kernel = module[f"{name}_{twin}"]
    out = gpu.zeros(128, np.uint32)
    return kernel[1, 128](out, sanitize=("race", "init", "sync"), schedule=schedule).findings


def check(name: str, engine: str, schedule: str = "converge") -> None:
    kind = cases()[name][0]
    found = findings(name, "pass", engine, schedule)
    assert found == (), "\n".join(map(str, found))
    found = findings(name, "fail", engine, schedule)
    assert {one.kind for one in found} == {kind}, "\n".join(map(str, found))
    lines = TEXT.splitlines()
    for one in found:
        for place in filter(None, (one.line, one.other_line)):
            line = lines[int(place.rpartition(":")[2]) - 1]
            assert line.endswith("// here") or DEALLOC in line, str(one)


@pytest.mark.parametrize("name", cases())
def test_compiled(name: str) -> None:
    check(name, "compiled")


@pytest.mark.nightly
@pytest.mark.parametrize("name", cases())
def test_reference(name: str) -> None:
    check(name, "reference")


LATE = HEAD + "".join(
    KERNEL.format(
        name=name, matrix=MATRIX, product=PRODUCT, body="\n".join(WORDS[w] for w in words)
    )
    for name, words in {
        "both_waits": ("STORE", "WAIT_STORE", "LOAD", "WAIT_LOAD", "KEEP"),
        "no_wait_for_the_store": ("STORE", "LOAD", "WAIT_LOAD", "KEEP"),
        "no_wait_for_the_load": ("STORE", "WAIT_STORE", "LOAD", "KEEP"),
        "stored_while_it_is_loaded": ("LOAD", "STORE", "WAIT_STORE", "WAIT_LOAD", "KEEP"),
    }.items()
)
KEPT = {
    "both_waits": (True, True),
    "no_wait_for_the_store": (True, False),
    "no_wait_for_the_load": (True, False),
    "stored_while_it_is_loaded": (False, True),
}
"""Whether each thread gets what it has stored, its number: where loads and stores are complete as
they are issued, and where they complete as late as they may. Columns are zero at first."""


@pytest.mark.parametrize(
    "engine", ["compiled", pytest.param("reference", marks=pytest.mark.nightly)]
)
def test_loads_and_stores_complete_late(engine: str) -> None:
    for schedule, place in (("converge", 0), ("adversarial", 1)):
        gpu = wl.Device(cc="10.3", engine=engine, schedule=schedule)
        module = gpu.compile(LATE, "ptx")
        for name, gets in KEPT.items():
            out = gpu.zeros(128, np.uint32)
            module[name][1, 128](out)
            right = out.copy_to_host() == np.arange(128)
            assert right[1:].all() if gets[place] else not right[1:].any(), (name, schedule)
