"""`wgmma` on both engines, against NumPy: every shape, type, layout and kind of operand, and when
products are complete."""

from __future__ import annotations

from itertools import product as combinations

import numpy as np
import pytest
from parts import some_now
from warp_group_kernels import THREADS, Case, Data, arguments, kernel

import warploom as wl
from warploom.machine.reference import warp_group
from warploom.simt.product_groups import CAPACITY

ENGINES = ("reference", "compiled")
SWIZZLES = ("none", "32B", "64B", "128B")
FLOATS = [("f16", "f16", "f16"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16")]
FLOATS += [("f32", "tf32", "tf32"), ("f16", "e5m2", "e4m3"), ("f32", "e4m3", "e5m2")]
INTEGERS = [("s32", a, b) for a, b in combinations(("s8", "u8"), repeat=2)]
EVERY_N = range(8, 257, 8)
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


def every_shape() -> list[Case]:
    """Every n, with types in turn, A from registers and from shared memory, dense and sparse."""
    found: list[Case] = []
    for number, n in enumerate(EVERY_N):
        types = FLOATS[number % len(FLOATS)]
        a = ("registers", *SWIZZLES)[number % 5]
        sparse = number // len(FLOATS) % 2 == 1
        selector = number % 2 if sparse and types[1] in ("f16", "bf16", "tf32") else 0
        b = SWIZZLES[number // 2 % 4]
        if sparse and b == "32B":
            b = "64B"
        signs = (1 - 2 * (number % 2), 1 - 2 * (number // 2 % 2))
        found.append(Case(n, *types, a, b, sparse=sparse, selector=selector, signs=signs))
    for number, n in enumerate(INTEGER_N):
        types = [*INTEGERS, ("s32", "b1", "b1")][number % 5]
        a, b = ("registers", *SWIZZLES)[number // 2 % 5], SWIZZLES[number % 4]
        sparse = number % 3 == 1 and types[1] != "b1"
        if sparse and b == "32B":
            b = "128B"
        saturates = number % 2 == 1 and types[1] != "b1"
        found.append(Case(n, *types, a, b, sparse=sparse, saturates=saturates))
    return found


def every_layout() -> list[Case]:
    """Every swizzle and major dimension of A and of B, with and without gaps, for all widths."""
    kinds = list(combinations(SWIZZLES, (False, True)))
    found: list[Case] = []
    for sparse, types in ((False, FLOATS[1]), (True, FLOATS[2])):
        for number, (a, transposed_a) in enumerate(kinds):
            b, transposed_b = kinds[(3 * number + 1) % len(kinds)]
            if sparse and b == "32B" and not transposed_b:
                b = "128B"
            gap, start = 16 * (number % 2) if "none" in (a, b) else 0, 1024 * (number % 3)
            found.append(
                Case(72, *types, a, b, transposed_a, transposed_b, sparse, start=start, gap=gap)
            )
    for types in (FLOATS[3], FLOATS[5], INTEGERS[1], ("s32", "b1", "b1")):
        found += [Case(24, *types, a=s, b=s) for s in SWIZZLES]
    # Patterns that do not begin where 1024 divides the address: the base offset says where.
    found += [Case(16, *FLOATS[1], a=s, b=s, start=384) for s in SWIZZLES[1:]]
    return found


def run(cases: list[Case], engine: str, schedule: str = "converge") -> wl.Run:
    """One launch with one product after the other, each compared with NumPy."""
    datas = [Data(case, seed) for seed, case in enumerate(cases)]
    given = arguments(datas)
    gpu = wl.Device("h100", engine=engine, schedule=schedule)
    made = gpu.compile(kernel(cases), "ptx")["k"][1, THREADS](*given)
    for data, words in zip(datas, given[2], strict=True):
        data.assert_right(np.ascontiguousarray(words[:, : data.case.registers]))
    return made


PARTS = 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", some_now(range(PARTS), 4))
def test_every_shape(part: int, engine: str) -> None:
    run(every_shape()[part::PARTS], engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", some_now(range(PARTS), 4))
def test_every_layout(part: int, engine: str) -> None:
    run(every_layout()[part::PARTS], engine)


# ---- when products are complete -----------------------------------------------------------------

PLAIN = Case(8, *FLOATS[1], a="registers")
POLICIES = ("converge", "fair", "random", "adversarial")

EARLY = """
wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
mov.b32 %early, %f32_0;
wgmma.wait_group.sync.aligned 0;
mov.b32 %f32_0, %early;
"""
"""Reads an accumulator before it waits: what is there then is undefined."""

SPOILT_MEMORY = """
wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
bar.sync 0;
shl.b32 %n, %t, 4; add.u32 %n, %n, %tile;
mov.b32 %w, 0;
st.shared.v4.b32 [%n], {%w, %w, %w, %w};
bar.sync 0;
wgmma.wait_group.sync.aligned 0;
"""
"""Writes zeros over B before it waits."""

SPOILT_REGISTERS = """
wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;
bar.sync 0;
wgmma.wait_group.sync.aligned 0;
"""
"""Writes zeros over A before it waits."""

UNCOMMITTED = """
wgmma.fence.sync.aligned;
PRODUCT
wgmma.wait_group.sync.aligned 0;
"""
"""Waits for groups, and the product is in none."""


def outcome(case: Case, body: str, engine: str, policy: str, seed: int = 0) -> np.ndarray:
    """D as a kernel leaves it."""
    data = Data(case, 5)
    given = arguments([data])
    gpu = wl.Device("h100", engine=engine, schedule=policy, seed=seed)
    text = kernel([case], body, ".reg .b32 %early;")
    gpu.compile(text, "ptx")["k"][1, THREADS](*given)
    return data.matrix_of(np.ascontiguousarray(given[2][0, :, : case.registers]))


def results(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """D before and after the product."""
    data = Data(case, 5)
    return data.c, data.expected()[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
def test_products_that_are_waited_for_are_right(policy: str, engine: str) -> None:
    for a in ("registers", "128B"):
        run([Case(16, *FLOATS[1], a=a, b="64B", sparse=a == "registers")], engine, schedule=policy)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_accumulator_read_before_the_wait(engine: str) -> None:
    before, after = results(PLAIN)
    held = outcome(PLAIN, EARLY, engine, "converge")
    assert np.allclose(held, after, atol=1e-3)
    late = outcome(PLAIN, EARLY, engine, "adversarial")
    first = (np.arange(64) % 16 < 8)[:, None] & (np.arange(8) % 2 == 0)[None]  # those of %f32_0
    assert np.array_equal(late[first], before[first])
    assert np.allclose(late[~first], after[~first], atol=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", [SPOILT_MEMORY, SPOILT_REGISTERS])
def test_multiplicands_changed_before_the_wait(body: str, engine: str) -> None:
    before, after = results(PLAIN)
    assert np.allclose(outcome(PLAIN, body, engine, "converge"), after, atol=1e-3)
    assert np.array_equal(outcome(PLAIN, body, engine, "adversarial"), before)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_product_without_a_group_is_not_waited_for(engine: str) -> None:
    before, after = results(PLAIN)
    assert np.allclose(outcome(PLAIN, UNCOMMITTED, engine, "converge"), after, atol=1e-3)
    assert np.array_equal(outcome(PLAIN, UNCOMMITTED, engine, "adversarial"), before)


def test_a_seed_chooses_for_each_warp_on_both_engines() -> None:
    before, after = results(PLAIN)
    for seed in range(2):
        one, other = (outcome(PLAIN, SPOILT_REGISTERS, e, "random", seed) for e in ENGINES)
        assert np.array_equal(one, other)
        late = [np.array_equal(one[rows], before[rows]) for rows in np.arange(64).reshape(4, 16)]
        right = [np.allclose(one[r], after[r], atol=1e-3) for r in np.arange(64).reshape(4, 16)]
        assert late == [not each for each in right]
        assert sum(late) == 2


TWO_GROUPS = """
wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
PRODUCT
PRODUCT
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 1;
mov.b32 %early, %f32_0;
wgmma.wait_group.sync.aligned 0;
mov.b32 %f32_0, %early;
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wait_leaves_the_newest_groups(engine: str) -> None:
    """Three times A * B; after the first wait only the first of them must be there."""
    before, after = results(PLAIN)
    once = after - before
    late = outcome(PLAIN, TWO_GROUPS, engine, "adversarial")
    first = (np.arange(64) % 16 < 8)[:, None] & (np.arange(8) % 2 == 0)[None]
    assert np.allclose(late[first], after[first], atol=1e-3)
    assert np.allclose(late[~first], (before + 3 * once)[~first], atol=1e-3)
    at_once = outcome(PLAIN, TWO_GROUPS, engine, "converge")
    assert np.allclose(at_once, before + 3 * once, atol=1e-3)


LOOP = """
mov.u32 %i, 0;
again:
wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 1;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, COUNT;
@%p bra again;
wgmma.wait_group.sync.aligned 0;
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_that_leaves_one_group_in_flight(policy: str, engine: str) -> None:
    before, after = results(PLAIN)
    found = outcome(PLAIN, LOOP.replace("COUNT", "5"), engine, policy)
    assert np.allclose(found, before + 5 * (after - before), atol=1e-2)


@pytest.mark.parametrize("engine", ENGINES)
def test_too_many_products_in_flight_are_explained(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = LOOP.replace("wgmma.wait_group.sync.aligned 1;", "")
    count = CAPACITY + 1
    if engine == "reference":  # which would take minutes for so many
        monkeypatch.setattr(warp_group, "CAPACITY", 2)
        count = 3
    with pytest.raises(wl.DeviceTrap, match=r"while 256 products of the warp are in flight"):
        outcome(PLAIN, body.replace("COUNT", str(count)), engine, "adversarial")


# ---- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_descriptor_beyond_shared_memory(engine: str) -> None:
    data = Data(PLAIN, 0)
    given = arguments([data])
    given[3][0, 1] |= np.uint64(0x3F00)  # its start address
    gpu = wl.Device("h100", engine=engine)
    with pytest.raises(wl.MemoryFault, match=r"Invalid __shared__ read of size 16") as caught:
        gpu.compile(kernel([PLAIN]), "ptx")["k"][1, THREADS](*given)
    assert "matrix descriptor" in str(caught.value)
    assert caught.value.address == 0x3F00 * 16


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_without_a_whole_warp_group(engine: str) -> None:
    gpu = wl.Device("h100", engine=engine)
    with pytest.raises(wl.DeviceTrap, match=r"warpgroup that has fewer than 4 warps"):
        gpu.compile(kernel([PLAIN]), "ptx")["k"][1, 96](*arguments([Data(PLAIN, 0)]))


WRONG = {
    "sm_90a": ("sm_90", r"is only for \.target sm_90a"),
    "%scaled, 1, 1, 0;": ("%scaled, 1, 2, 0;", r"a constant for scale_b: 1 or -1"),
    "%scaled, 1, 1, 0; ": (
        "%scaled, 1, 1, 0, 0;",
        r"takes 1 transpose operand if A is in registers",
    ),
    "%f32_3}": ("%f32_3, %f32_0}", r"requires 4 elements"),
    "{%a0, %a1, %a2, %a3}, %db": ("{%a0, %a1}, %db", r"requires 4 elements"),
    "m64n8k16": ("m64n12k16", r"m64n12k16"),
    "8.6": ("7.8", r"requires PTX 8\.0"),
}


@pytest.mark.parametrize("written", WRONG)
def test_what_ptxas_refuses(written: str) -> None:
    instead, message = WRONG[written]
    text = kernel([PLAIN]).replace(written.strip(), instead)
    with pytest.raises(wl.PtxError, match=message):
        wl.Device("h100").compile(text, "ptx")


@pytest.mark.parametrize("device", ["a100", "b200"])
def test_only_compute_capability_9_0_has_it(device: str) -> None:
    text = kernel([PLAIN]).replace("fence.proxy.async;", "")
    launched = wl.Device(device).compile(text, "ptx")["k"][1, THREADS]
    with pytest.raises(wl.UnsupportedInstruction, match=r"wgmma"):
        launched(*arguments([Data(PLAIN, 0)]))


# ---- counts -------------------------------------------------------------------------------------


def test_both_engines_count_the_same() -> None:
    cases = every_layout()[::5]
    one, other = (run(cases, engine) for engine in ENGINES)
    assert one.counters == other.counters


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_and_conflicts_of_shared_memory(engine: str) -> None:
    """m64n64k16: each warp reads its 16 rows of A, 32 bytes each, in one request, and the 64
    columns of B in four. A row of 32 bytes at a distance of 32 fills two of 8 banks that units
    have twice in each eight; swizzled by 32 bytes, or side by side, they fill all of them: 4
    wavefronts for 512 bytes."""
    base = run([Case(64, *FLOATS[1], a="registers", b="none")], engine).counters
    more = run([Case(64, *FLOATS[1], a="none", b="none")], engine).counters
    assert base.shared_load_requests == 4 * 4
    assert more.shared_load_requests == 4 * 5
    assert base.shared_load_bank_conflicts == more.shared_load_bank_conflicts == 0
    assert base.shared_load_wavefronts == 4 * 4 * 4
    for swizzle in SWIZZLES[1:]:
        found = run([Case(64, *FLOATS[1], a="registers", b=swizzle)], engine).counters
        assert found.shared_load_bank_conflicts == 0
