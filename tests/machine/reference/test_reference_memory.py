"""Checks memory accesses of whole kernels: values, costs and faults."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import run

from warploom.core.errors import MemoryFault
from warploom.isa.instruction import Space


def test_neighbouring_words_cost_four_sectors_of_one_line() -> None:
    done = run("ld.global.u32 %v, [%mine]; ret;")
    cost = done.cost("ld.global.u32", Space.GLOBAL)
    wanted = {"requests": 1, "sectors": 4, "transactions": 4, "bytes_requested": 128}
    assert cost.items() >= (wanted | {"lines": 1, "bytes_moved": 128}).items()


def test_a_guarded_load_accesses_only_lanes_whose_guard_is_true() -> None:
    body = "setp.lt.u32 %p1, %t, {}; mov.u32 %v, 9; @%p1 ld.global.u32 %v, [%mine+512]; "
    body += "st.global.u32 [%mine], %v; ret;"
    start = np.arange(256, dtype=np.uint32)
    some = run(body.format(8), start=start)
    assert some.cost("ld.global.u32", Space.GLOBAL)["sectors"] == 1
    assert some.words[:32].tolist() == [*range(128, 136), *[9] * 24]
    none = run(body.format(0), start=start)
    assert none.cost("ld.global.u32", Space.GLOBAL) == {}
    assert none.tally.warps[none.of("ld.global.u32")] == 1


def test_vectors_are_one_access() -> None:
    """Loads 16 bytes in each of 32 lanes: 512 bytes in 16 sectors of 4 lines."""
    done = run(
        """
        mul.wide.u32 %d1, %t, 16;
        add.u64 %d1, %d1, %out;
        ld.global.v4.u32 {%r1, %r2, _, %r4}, [%d1];
        add.u32 %r1, %r1, %r4;
        st.global.v2.u32 [%d1], {%r2, %r1};
        ret;
        """,
        start=np.arange(128, dtype=np.uint32),
    )
    rows = done.words[:128].reshape(32, 4)
    assert rows[5].tolist() == [21, 20 + 23, 22, 23]
    cost = done.cost("ld.global.v4.u32", Space.GLOBAL)
    assert (cost["requests"], cost["sectors"], cost["lines"]) == (1, 16, 4)


def test_loads_extend_by_their_type_and_stores_cut() -> None:
    done = run(
        """
        ld.global.s8 %r1, [%out];
        ld.global.u8 %r2, [%out];
        ld.global.s16 %d1, [%out];
        st.global.u32 [%out+16], %r1;
        st.global.u32 [%out+20], %r2;
        st.global.u64 [%out+24], %d1;
        st.global.u8 [%out+32], %d1;
        ret;
        """,
        block=1,
        start=np.array([0x8081, *[0] * 31], np.uint32),
    )
    assert done.words[4:9].tolist() == [0xFFFFFF81, 0x81, 0xFFFF8081, 0xFFFFFFFF, 0x81]


def test_the_highest_lane_lasts() -> None:
    done = run("and.b32 %r1, %t, 1; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %out;"
               "st.global.u32 [%d1], %t; ret;")  # fmt: skip
    assert done.words[:2].tolist() == [30, 31]


def test_shared_memory_starts_at_zero_in_every_block_and_counts_conflicts() -> None:
    """Uses a stride of 2 words, which maps pairs of lanes to one bank: 2 wavefronts."""
    done = run(
        """
        .shared .align 4 .b8 room[256];
        shl.b32 %r1, %t, 3;
        ld.shared.u32 %r2, [%r1];
        add.u32 %r2, %r2, 1;
        st.shared.u32 [%r1], %r2;
        mov.u64 %d1, room;
        ld.shared.u32 %v, [%d1+8];
        st.global.u32 [%mine], %v;
        ret;
        """,
        grid=3,
    )
    assert set(done.words[:32].tolist()) == {1}
    cost = done.cost("st.shared.u32", Space.SHARED)
    assert (cost["requests"], cost["wavefronts"], cost["bank_conflicts"]) == (3, 6, 3)
    read = done.cost("ld.shared.u32", Space.SHARED, which=1)
    assert (read["wavefronts"], read.get("bank_conflicts", 0)) == (3, 0)


def test_dynamic_shared_memory_follows_the_static() -> None:
    done = run(
        """
        .shared .align 4 .b8 fixed[20];
        st.shared.u32 [fixed+16], 4;
        mov.u64 %d1, more;
        st.shared.u32 [%d1], 5;
        mov.u32 %r1, %dynamic_smem_size;
        mov.u32 %r2, %total_smem_size;
        st.global.u32 [%out], %d1;
        st.global.u32 [%out+4], %r1;
        st.global.u32 [%out+8], %r2;
        ret;
        """,
        module=".extern .shared .align 16 .b8 more[];\n",
        dynamic_shared=64,
    )
    assert done.words[:3].tolist() == [32, 64, 96]


def test_local_memory_is_each_threads_own_and_interleaved_by_words() -> None:
    """Expects 4 sectors for an access to one word: word w of all lanes is one line of 128 bytes."""
    done = run("""
        .local .align 4 .b8 own[64];
        mov.u64 %d1, own;
        st.local.u32 [own+4], %t;
        st.local.u8 [own+5], 1;
        ld.local.u32 %v, [%d1+4];
        st.global.u32 [%mine], %v;
        ret;
    """)
    assert done.words[:32].tolist() == [lane | 0x100 for lane in range(32)]
    cost = done.cost("st.local.u32", Space.LOCAL)
    assert (cost["requests"], cost["sectors"], cost["lines"]) == (1, 4, 1)


def test_generic_accesses_are_counted_by_space() -> None:
    done = run("""
        .shared .align 4 .b32 cell;
        .local .align 4 .b32 own;
        setp.lt.u32 %p1, %t, 8;
        setp.lt.u32 %p2, %t, 12;
        mov.u64 %d1, cell;
        mov.u64 %d2, own;
        cvta.shared.u64 %d1, %d1;
        cvta.local.u64 %d2, %d2;
        cvta.global.u64 %d3, %mine;
        selp.u64 %d4, %d2, %d3, %p2;
        selp.u64 %d4, %d1, %d4, %p1;
        add.u32 %v, %t, 1;
        st.u32 [%d4], %v;
        cvta.to.shared.u64 %d5, %d1;
        cvta.to.local.u64 %d6, %d2;
        ld.shared.u32 %r1, [%d5];
        ld.local.u32 %r2, [%d6];
        @%p2 mad.lo.u32 %r1, %r1, 100, %r2;
        @%p2 st.global.u32 [%mine], %r1;
        ret;
    """)
    low = [800] * 8  # lanes 0 to 7 wrote the cell, lane 7 last; their local word is 0
    middle = [800 + lane + 1 for lane in range(8, 12)]
    assert done.words[:32].tolist() == low + middle + [lane + 1 for lane in range(12, 32)]
    assert done.cost("st.u32", Space.SHARED)["requests"] == 1
    assert done.cost("st.u32", Space.LOCAL)["bytes_requested"] == 16
    assert done.cost("st.u32", Space.GLOBAL)["bytes_requested"] == 80


def test_constants_and_globals_of_the_module() -> None:
    done = run(
        """
        and.b32 %r1, %t, 3;
        mul.wide.u32 %d1, %r1, 4;
        mov.u64 %d2, table;
        add.u64 %d1, %d1, %d2;
        ld.const.u32 %v, [%d1];
        ld.global.u32 %r2, [seed+4];
        add.u32 %v, %v, %r2;
        st.global.u32 [%mine], %v;
        ret;
        """,
        module=".const .align 4 .b32 table[4] = {10, 20, 30, 40};\n"
        ".global .align 4 .b32 seed[2] = {1, 2};\n",
    )
    assert done.words[:4].tolist() == [12, 22, 32, 42]
    cost = done.cost("ld.const.u32", Space.CONST)
    assert (cost["requests"], cost["passes"]) == (1, 4)


def test_atomics_give_each_lane_the_value_before_its_own() -> None:
    done = run("""
        shr.u32 %r1, %t, 3;
        mul.wide.u32 %d1, %r1, 4;
        add.u64 %d1, %d1, %out;
        atom.global.add.u32 %v, [%d1+256], 10;
        st.global.u32 [%mine], %v;
        red.global.max.u32 [%out+512], %t;
        ret;
    """)
    assert done.words[:32].tolist() == [10 * (lane % 8) for lane in range(32)]
    assert done.words[64:68].tolist() == [80] * 4
    assert done.words[128] == 31
    cost = done.cost("atom.global.add.u32", Space.GLOBAL)
    assert (cost["requests"], cost["sectors"], cost["passes"]) == (1, 1, 8)
    assert done.cost("red.global.max.u32", Space.GLOBAL)["passes"] == 32


def test_compare_and_swap_lets_one_lane_win() -> None:
    done = run("""
        .shared .align 4 .b32 cell;
        add.u32 %r1, %t, 1;
        atom.shared.cas.b32 %v, [cell], 0, %r1;
        st.global.u32 [%mine], %v;
        ret;
    """)
    assert done.words[:32].tolist() == [0] + [1] * 31
    assert done.cost("atom.shared.cas.b32", Space.SHARED)["passes"] == 32


@pytest.mark.parametrize(
    ("body", "kind", "lane", "size"),
    [
        # 32 words: lane l wants word 4 + l.
        ("st.global.u32 [%mine+16], %t;", "out of bounds", 28, 4),
        # The last lane's word begins inside and ends outside.
        ("add.u64 %d1, %out, 126; st.global.u32 [%d1], %t;", "out of bounds", 0, 4),
        ("st.global.u32 [%mine+2], %t;", "misaligned", 0, 4),
        ("ld.global.v2.u32 {%r1, %r2}, [%mine];", "misaligned", 1, 8),
        ("setp.gt.u32 %p1, %t, 5; @%p1 ld.global.u32 %v, [8];", "out of bounds", 6, 4),
        ("st.global.u32 [table], %t;", "read only", 0, 4),
        ("atom.global.add.u32 %v, [table+4], 1;", "read only", 0, 4),
        ("shl.b32 %r1, %t, 2; ld.shared.u32 %v, [%r1+8];", "out of bounds", 30, 4),
        ("ld.local.u32 %v, [own+8];", "out of bounds", 0, 4),
        ("ld.param.u32 %v, [out+8];", "out of bounds", 0, 4),
    ],
)
def test_faults(body: str, kind: str, lane: int, size: int) -> None:
    with pytest.raises(MemoryFault) as caught:
        run(
            ".shared .align 4 .b8 room[128]; .local .align 4 .b8 own[8];"
            f"mov.u64 %d7, room; mov.u64 %d8, own; mov.u64 %d9, table; {body} ret;",
            module=".const .align 4 .b32 table[4] = {10, 20, 30, 40};\n",
            words=32,
        )
    fault = caught.value
    assert (fault.kind, fault.thread, fault.size) == (kind, (lane, 0, 0), size)


def test_a_fault_has_no_effect() -> None:
    """Expects no store of a faulting instruction: every lane is checked before the first writes."""
    memory_before = "st.global.u32 [%mine+4], %t;"
    with pytest.raises(MemoryFault) as caught:
        run(memory_before + "ret;", words=32)
    assert caught.value.nearest is not None
    assert caught.value.address == caught.value.nearest.address + 128


def test_out_of_bounds_comes_before_misaligned() -> None:
    with pytest.raises(MemoryFault) as caught:
        run("ld.global.u32 %v, [%out+127]; ret;", words=32)
    assert caught.value.kind == "out of bounds"
