"""Misuse of mbarriers and asynchronous copies that the PTX ISA leaves undefined is a fault at its
line, and what it allows runs; on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b32 %t, %r<8>; .reg .b64 %d<4>, %s<4>, %a, %g;
.shared .align 16 .b64 pad[2];
.shared .align 16 .b64 bar;
.shared .align 16 .b8 box[256];
ld.param.u64 %a, [p]; mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0; setp.ne.u32 %p1, %t, 0;
cvta.shared.u64 %g, bar; st.shared.b64 [pad], %a;
"""
START = "@%p0 mbarrier.init.shared.b64 [bar], 100; bar.sync 0;"
END = "bar.sync 0; @%p0 mbarrier.inval.shared.b64 [bar]; bar.sync 0;"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


def run(body: str, engine: str, before: str = "") -> None:
    """Run `body`, which begins at line 100 of the program, with a buffer of 256 bytes at %a."""
    text = f"{HEAD}{before}"
    text += "\n" * (99 - text.count("\n")) + f"{body}\nret;\n}}\n"
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(text, "ptx", name="k.ptx")["k"][1, 32](gpu.zeros(256, np.uint8))


def fault(body: str, engine: str, before: str = "") -> wl.MemoryFault:
    """The fault at line 100."""
    with pytest.raises(wl.MemoryFault) as caught:
        run(body, engine, before)
    assert caught.value.line == "k.ptx:100"
    return caught.value


TX = "mbarrier::complete_tx::bytes"
ON_BARRIERS = {
    "arrive": "mbarrier.arrive.shared.b64 %s1, [bar];",
    "arrive of more": "mbarrier.arrive.shared.b64 %s1, [bar], 2;",
    "arrive by a generic address": "mbarrier.arrive.b64 %s1, [%g];",
    "arrive of a cluster": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [bar];",
    "arrive that completes nothing": "mbarrier.arrive.noComplete.shared.b64 %s1, [bar], 1;",
    "drop": "mbarrier.arrive_drop.shared.b64 %s1, [bar];",
    "arrive and expect": "mbarrier.arrive.expect_tx.shared.b64 %s1, [bar], 16;",
    "expect": "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 16;",
    "complete": "mbarrier.complete_tx.shared.b64 [bar], 16;",
    "test a token": "mbarrier.test_wait.shared.b64 %p2, [bar], %s1;",
    "test a parity": "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;",
    "try a token": "mbarrier.try_wait.shared.b64 %p2, [bar], %s1;",
    "try a parity": "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1;",
    "arrive behind copies": "cp.async.mbarrier.arrive.shared.b64 [bar];",
    "expected behind copies": "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
    "bulk copy": f"cp.async.bulk.shared::cluster.global.{TX} [box], [%a], 16, [bar];",
    "store": f"st.async.shared::cluster.{TX}.b32 [box], %t, [bar];",
    "reduction": f"red.async.relaxed.cluster.shared::cluster.{TX}.add.u32 [box], %t, [bar];",
    "invalidate": "@%p0 mbarrier.inval.shared.b64 [bar];",
}


@pytest.mark.parametrize("before", ["", START + END], ids=["never", "no longer"])
@pytest.mark.parametrize("operation", ON_BARRIERS.values(), ids=ON_BARRIERS)
def test_an_mbarrier_is_initialised_first(operation: str, before: str, engine: str) -> None:
    found = fault(operation, engine, before)
    assert (found.kind, found.address, found.size) == ("invalid mbarrier", 16, 8)
    assert found.thread == (0, 0, 0)
    opcode = operation.removeprefix("@%p0 ").split()[0]
    title, _, rule, remedy = str(found).split("\n")
    assert title == f"{opcode} on an uninitialized mbarrier, at shared address 0x10"
    assert 'PTX ISA, "mbarrier.inval"' in rule
    assert "mbarrier.init" in remedy


@pytest.mark.parametrize("before", [START, START + END + START], ids=["first", "again"])
def test_an_initialised_mbarrier_takes_all_of_them(before: str, engine: str) -> None:
    last = ON_BARRIERS["invalidate"]
    others = [text for text in ON_BARRIERS.values() if text != last]
    run("\n".join([*others, "bar.sync 0;", last]), engine, before)


def test_an_mbarrier_that_all_have_left_is_still_one(engine: str) -> None:
    """Its later phases expect no arrivals; over eight of them the phase number repeats."""
    left = "@%p0 mbarrier.init.shared.b64 [bar], 1; @%p0 mbarrier.arrive_drop.shared.b64 _, [bar];"
    phases = "@%p0 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 4;"
    phases += "@%p0 mbarrier.complete_tx.shared.b64 [bar], 4;"
    run("mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;" + 9 * phases + END, engine, left)


def test_lanes_that_are_off_misuse_nothing(engine: str) -> None:
    run("setp.gt.u32 %p3, %t, 99; @%p3 mbarrier.arrive.shared.b64 %s1, [bar];", engine)
    run("@!%p1 mbarrier.init.shared.b64 [bar], 5; @%p1 bra E; bra F;\nE: F:", engine)


@pytest.mark.parametrize("count", [0, 1 << 20, (1 << 32) - 1])
def test_an_mbarrier_awaits_some_arrivals(count: int, engine: str) -> None:
    """A count is from 1 to 2^20 - 1 (PTX ISA, "mbarrier.init")."""
    text = "@%p1 bra E; mbarrier.init.shared.b64 [bar], %r1;\nE:"
    found = fault(text, engine, f"mov.u32 %r1, {count};")
    assert (found.kind, found.address) == ("bad count", 16)
    assert str(found).startswith(f"mbarrier.init.shared.b64 with a count of {count}\n")
    assert "from 1 to 2^20 - 1" in str(found)


@pytest.mark.parametrize("count", [1, (1 << 20) - 1])
def test_the_least_and_the_most_arrivals(count: int, engine: str) -> None:
    run(f"@%p0 mbarrier.init.shared.b64 [bar], {count};", engine)


BULK = {
    "in": f"cp.async.bulk.shared::cta.global.{TX} [{{shared}}], [{{there}}], {{size}}, [bar];",
    "out": "cp.async.bulk.global.shared::cta.bulk_group [{there}], [{shared}], {size};",
    "prefetch": "cp.async.bulk.prefetch.L2.global [{there}], {size};",
}


def bulk(way: str, shared: str = "box", there: str = "%a", size: int = 32) -> str:
    return BULK[way].format(shared=shared, there=there, size=size)


@pytest.mark.parametrize("size", [1, 8, 15, 24, 33])
@pytest.mark.parametrize("way", BULK)
def test_bulk_copies_are_of_16_bytes_each(way: str, size: int, engine: str) -> None:
    found = fault(bulk(way, size=size), engine, START)
    assert (found.kind, found.size) == ("bad size", size)
    assert f" of {size} bytes\n" in str(found)
    assert "multiple of 16" in str(found)


@pytest.mark.parametrize("size", [0, 16])
@pytest.mark.parametrize("off", [4, 8])
@pytest.mark.parametrize("way", BULK)
def test_bulk_copies_are_aligned_to_16_bytes(way: str, off: int, size: int, engine: str) -> None:
    found = fault(bulk(way, there=f"%a+{off}", size=size), engine, START)
    assert (found.kind, found.address % 16) == ("misaligned", off)
    assert f"{'to' if way == 'out' else 'from'} address {found.address:#x}\n" in str(found)
    if way != "prefetch":
        found = fault(bulk(way, shared=f"box+{off}", size=size), engine, START)
        assert (found.kind, found.address) == ("misaligned", 32 + off)
        assert "multiple of 16" in str(found)


@pytest.mark.parametrize("way", BULK)
def test_bulk_copies_that_keep_the_rules(way: str, engine: str) -> None:
    whole = [bulk(way, size=size) for size in (0, 16, 256)]
    run(" ".join([*whole, bulk(way, "box+16", "%a+48", 208)]), engine, START)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_copy_reads_no_more_than_it_writes(size: int, engine: str) -> None:
    text = f"cp.async.ca.shared.global [box], [%a], {size}, %r1;"
    found = fault(text, engine, f"add.u32 %r1, %t, {size - 2};")
    assert (found.kind, found.size, found.thread) == ("bad size", size + 1, (3, 0, 0))
    assert f"with {size + 1} source bytes, which is more than it copies" in str(found)
    run(text, engine, f"min.u32 %r1, %t, {size};")


@pytest.mark.parametrize("read", [1, 3, 4])
def test_a_copy_of_a_part_is_aligned_as_the_whole(read: int, engine: str) -> None:
    text = f"cp.async.ca.shared.global [box], [%a+4], 8, {read};"
    found = fault(text, engine)
    assert (found.kind, found.address % 8) == ("misaligned", 4)
    assert "cp-size" in str(found)


def test_a_copy_that_reads_nothing_may_point_anywhere(engine: str) -> None:
    run("mov.u64 %d1, 5; cp.async.ca.shared.global [box], [%d1], 8, 0;", engine)
    run("mov.u64 %d1, 5; setp.lt.u32 %p2, %t, 99;"
        " cp.async.ca.shared.global [box], [%d1], 8, %p2;", engine)  # fmt: skip


def test_a_hint_is_no_size(engine: str) -> None:
    """The last operand is a cache policy, whatever its value."""
    text = "cp.async.ca.shared.global.L2::cache_hint [box], [%a], 8, %d1;"
    run(text, engine, "mov.u64 %d1, 99;")
