"""Tensor memory: its allocation, which words loads and stores access, copies and shifts; and what a
misuse of it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from parts import some_now
from tensor_memory_cases import COLUMNS, LANES, SHARED, THREADS, kernel, put_shared

import warploom as wl

Places = Callable[[int, int], tuple[int, int]]

SHAPES: dict[str, tuple[int, Places]] = {
    "32x32b": (1, lambda t, r: (t, r)),
    "16x64b": (1, lambda t, r: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r)),
    "16x128b": (2, lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2))),
    "16x256b": (4, lambda t, r: (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4))),
    "16x32bx2": (1, lambda t, r: (t % 16, r + 64 * (t // 16))),
}
"""Registers for each of `.num`, and the lane and column of each (CUTLASS,
copy_traits_sm100.hpp)."""

HEAD = """
.version 8.8
.target sm_103a
.address_size 64
.visible .entry k(.param .u64 pout)
{
.reg .b32 %v<130>, %t, %a, %b, %lane, %slot; .reg .b64 %out, %x; .reg .pred %first;
.shared .align 4 .b32 slot;
ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %slot, slot;
shr.u32 %lane, %t, 5; shl.b32 %lane, %lane, 21;
setp.lt.u32 %first, %t, 32;
@!%first bra allocated;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 256;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
bar.sync 0;
ld.shared.b32 %a, [%slot]; add.u32 %a, %a, %lane;
"""
TAIL = """
bar.sync 0;
@!%first bra done;
ld.shared.b32 %a, [%slot];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 256;
done:
ret;
}
"""


def registers(count: int) -> str:
    return "{" + ", ".join(f"%v{n}" for n in range(count)) + "}"


def numbered(columns: int) -> str:
    """Code that has each word of the first columns hold its lane times 65536 and its column."""
    lines = [f"shl.b32 %b, %t, 16; add.u32 %v{n}, %b, {n};" for n in range(128)]
    text = "\n".join(lines)
    text += f"\ntcgen05.st.sync.aligned.32x32b.x128.b32 [%a], {registers(128)};\n"
    return text + "tcgen05.wait::st.sync.aligned;\n"


def kept(count: int) -> str:
    """Code that stores registers."""
    rows = "\n".join(f"st.global.b32 [%x+{4 * n}], %v{n};" for n in range(count))
    return f"mul.wide.u32 %x, %t, {4 * count}; add.u64 %x, %x, %out;\n{rows}\n"


def launch(body: str, count: int, engine: str = "compiled") -> npt.NDArray[np.uint32]:
    """Run a block; returns what each thread has stored."""
    gpu = wl.Device(cc="10.3", engine=engine)
    out = gpu.zeros((THREADS, count), np.uint32)
    gpu.compile(HEAD + body + TAIL, "ptx")["k"][1, THREADS](out)
    return out.copy_to_host()


def cases() -> list[tuple[str, int, bool]]:
    return [
        (shape, num, packed)
        for shape, (each, _) in SHAPES.items()
        for num in (1, 4, 16)
        for packed in (False, True)
        if each * num * (1 + packed) <= 64
    ]


@pytest.mark.parametrize(("shape", "num", "packed"), [case for case in cases() if case[1] == 4])
def test_loads(shape: str, num: int, packed: bool) -> None:
    each, place = SHAPES[shape]
    count, split = each * num, ", 64" if shape == "16x32bx2" else ""
    text = f"tcgen05.ld.sync.aligned.{shape}.x{num}{'.pack::16b' if packed else ''}.b32"
    body = numbered(128) + f"{text} {registers(count)}, [%a]{split};\n" + kept(count)
    found = launch(body, count)
    for thread in range(THREADS):
        for register in range(count):
            lane, column = place(thread % 32, register)
            lane += thread & ~31
            wanted = lane << 16 | column
            if packed:
                half = column // 64 * 64 if split else 0
                first = 2 * (column - half) + half
                wanted = first & 0xFFFF | (first + 1) << 16
            assert found[thread, register] == wanted


@pytest.mark.parametrize("case", some_now(cases(), 9))
def test_stores(case: tuple[str, int, bool]) -> None:
    """A store writes its words, and nothing else has changed."""
    shape, num, packed = case
    each, place = SHAPES[shape]
    count, split = each * num, ", 64" if shape == "16x32bx2" else ""
    form = f"sync.aligned.{shape}.x{num}"
    sets = "\n".join(f"shl.b32 %v{n}, %t, 8; add.u32 %v{n}, %v{n}, {n}+7;" for n in range(count))
    unpack = ".unpack::16b" if packed else ""
    body = (
        f"{numbered(128)}{sets}\ntcgen05.st.{form}{unpack}.b32 [%a]{split}, {registers(count)};\n"
    )
    body += f"tcgen05.ld.sync.aligned.32x32b.x128.b32 {registers(128)}, [%a];\n" + kept(128)
    wanted = np.arange(LANES)[:, None] << 16 | np.arange(128)[None, :]
    for thread in range(THREADS):
        for register in range(count):
            lane, column = place(thread % 32, register)
            lane, word = lane + (thread & ~31), (thread << 8) + register + 7
            if packed:
                half = column // 64 * 64 if split else 0
                column = 2 * (column - half) + half
                wanted[lane, column + 1], word = word >> 16, word & 0xFFFF
            wanted[lane, column] = word
    np.testing.assert_array_equal(launch(body, 128), wanted)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_loads_that_reduce(engine: str) -> None:
    sets = "".join(f"mov.b32 %v{n}, {word};" for n, word in enumerate((5, 0xFFFFFFF0, 7, 1)))
    store = f"tcgen05.st.sync.aligned.32x32b.x4.b32 [%a], {registers(4)};\n"
    loads = [("min.u32", 1), ("max.u32", 0xFFFFFFF0), ("min.s32", 0xFFFFFFF0), ("max.s32", 7)]
    loads += [("max.f32", 7), ("max.NaN.f32", 0x7FFFFFFF), ("min.abs.f32", 1)]
    body = sets + store
    for number, (form, _) in enumerate(loads):
        where = registers(4).replace("%v", "%v1")
        body += f"tcgen05.ld.red.sync.aligned.32x32b.x4.{form} {where}, %v{20 + number}, [%a];\n"
    body += "".join(f"mov.b32 %v{n}, %v{20 + n};" for n in range(len(loads)))
    found = launch(body + kept(len(loads)), len(loads), engine)
    assert (found == np.array([word for _, word in loads], np.uint32)).all()


# ---- copies and shifts --------------------------------------------------------------------------

COPIES: dict[str, tuple[int, int, list[Callable[[int], int]]]] = {
    "128x256b": (128, 2, [lambda row: row]),
    "128x128b": (128, 1, [lambda row: row]),
    "4x256b": (4, 2, [lambda row: 32 * row]),
    "64x128b.warpx2::02_13": (64, 1, [lambda row: row, lambda row: row + 64]),
    "64x128b.warpx2::01_23": (
        64, 1,
        [lambda row: row % 32 + 64 * (row // 32), lambda row: row % 32 + 64 * (row // 32) + 32],
    ),
    "32x128b.warpx4": (32, 1, [lambda row, w=w: row + 32 * w for w in range(4)]),  # type: ignore[misc]
}  # fmt: skip
"""Rows, units of 16 bytes in each, and the lanes to which a row goes."""


def copied(
    text: str, shared: npt.NDArray[np.uint8], b: int, engine: str | None = None
) -> tuple[npt.NDArray[np.uint32], ...]:
    """Tensor memory before and behind an instruction."""
    gpu = wl.Device(cc="10.0", engine=engine)
    before = np.random.default_rng(1).integers(0, 1 << 32, (LANES, COLUMNS), np.uint32)
    table = np.zeros((1, 16), np.uint64)
    table[0, :3] = 12, 0, b
    out = gpu.zeros((LANES, COLUMNS), np.uint32)
    given = (gpu.to_device(each) for each in (table, shared, before))
    gpu.compile(kernel(text, 1), "ptx")["k"][1, THREADS](*given, out)
    return before, out.copy_to_host()


@pytest.mark.parametrize("format", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
@pytest.mark.parametrize("shape", some_now(COPIES, 3))
def test_copies(shape: str, format: str) -> None:
    rows, units, lanes = COPIES[shape]
    rng = np.random.default_rng(0)
    shared = rng.integers(0, 256, SHARED, np.uint8)
    type, bits = {"": ("u8", 8), ".b8x16.b6x16_p32": ("e3m2", 6)}.get(format, ("e2m1", 4))
    numbers = rng.integers(0, 1 << bits, (rows, 16 * units))
    b = put_shared(shared, 1024, numbers, "f8f6f4", type, "32B" if units == 2 else "none", False)
    before, behind = copied(f"tcgen05.cp.cta_group::1.{shape}{format} [%td], %db;", shared, b)
    wanted = (numbers << 2 if bits == 4 else numbers).astype(np.uint8).view(np.uint32)
    for row in range(rows):
        for lane in lanes:
            before[lane(row), 12 : 12 + 4 * units] = wanted[row]
    np.testing.assert_array_equal(behind, before)


@pytest.mark.parametrize("first", [0, 96])
def test_shifts(first: int) -> None:
    text = f"add.u32 %td, %td, {first << 16}; tcgen05.shift.cta_group::1.down [%td];"
    before, behind = copied(text, np.zeros(SHARED, np.uint8), 0)
    before[first : first + 31, 12:20] = before[first + 1 : first + 32, 12:20]
    np.testing.assert_array_equal(behind, before)


# ---- misuse -------------------------------------------------------------------------------------

ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot]"
MISUSES = {
    "out of tensor memory": f"@!%first bra x; {ALLOC}, 256; {ALLOC}, 256; {ALLOC}, 128; x:",
    "bad allocation": f"@!%first bra x; {ALLOC}, 48; x:",
    "not allocated": "add.u32 %a, %a, 250; tcgen05.ld.sync.aligned.32x32b.x8.b32"
    f" {registers(8)}, [%a];",
    "other lanes": "and.b32 %a, %a, 511;"
    f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {registers(8)}, [%a];",
    "bad deallocation": "@!%first bra x; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 128; x:",
    "still allocated": "exit;",
    "no such block": "@!%first bra x;tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; x:",
}


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("kind", MISUSES)
def test_misuse_is_a_fault(kind: str, engine: str) -> None:
    body = MISUSES[kind]
    gpu = wl.Device(cc="10.3", engine=engine)
    head = HEAD if kind == "not allocated" else HEAD.replace("tcgen05.relinquish", "// ")
    compiled = gpu.compile(head + body + TAIL, "ptx")["k"]
    with pytest.raises(wl.MemoryFault) as error:
        compiled[1, THREADS](gpu.zeros(4, np.uint32))
    assert error.value.kind == kind
    assert "PTX ISA" in str(error.value)


M128, IS_SPARSE = 1 << 4 | 64 >> 3 << 17 | 128 >> 4 << 24, 1 << 2
PRODUCT = "tcgen05.mma{}.cta_group::1.kind::f16 [%td], [%ta], %db,{} %id, %adds;"
BEYOND_LAST_LANE = {
    "shift": (97, "add.u32 %td, %td, {}; tcgen05.shift.cta_group::1.down [%td];"),
    "D": (1, f"mov.u32 %id, {M128}; add.u32 %td, %td, {{}}; {PRODUCT.format('', '')}"),
    "A": (1, f"mov.u32 %id, {M128}; add.u32 %ta, %ta, {{}}; {PRODUCT.format('', '')}"),
    "metadata": (
        1,
        f"mov.u32 %id, {M128 | IS_SPARSE}; add.u32 %tm, %tm, {{}};"
        f" {PRODUCT.format('.sp', ' [%tm],')}",
    ),
    "copy": (1, "add.u32 %td, %td, {}; tcgen05.cp.cta_group::1.128x256b [%td], %db;"),
}
"""By what leads beyond lane 127: the first lane, and the instruction. Rows of a product with M of
128 take a lane each, as do those of a sparse A's metadata."""


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("what", BEYOND_LAST_LANE)
def test_a_lane_beyond_the_last_is_a_fault(what: str, engine: str) -> None:
    first, text = BEYOND_LAST_LANE[what]
    shared = np.zeros(SHARED, np.uint8)
    b = put_shared(shared, 0, np.zeros((64, 32), np.int64), "f16", "f16", "none", False)
    with pytest.raises(wl.MemoryFault, match=r"lane 128 \(address 0x.* lanes 0 to 127") as error:
        copied(text.format(first << 16), shared, b, engine)
    assert error.value.kind == "no such lane"


@pytest.mark.parametrize(
    ("extra", "message"),
    [(".ashift", r"requires M = 128 or 256"), ("zeros", "mask is shifted too far")],
)
def test_what_is_not_supported_is_a_fault(extra: str, message: str) -> None:
    shared = np.zeros(SHARED, np.uint8)
    text = "tcgen05.mma.cta_group::1.kind::f16.ashift [%td], [%ta], %db, %id, %adds;"
    table = 1 << 4 | 64 >> 3 << 17 | 64 >> 4 << 24
    if extra == "zeros":  # M of 32 goes up to 16
        text = f"tcgen05.mma.ws.cta_group::1.kind::f16 [%td], [%ta], %db, %id, %adds, {17 << 56};"
        table = 1 << 4 | 64 >> 3 << 17 | 32 >> 4 << 24
    text = f"mov.u32 %id, {table}; {text}"
    b = put_shared(shared, 0, np.zeros((64, 16), np.int64), "f16", "f16", "none", False)
    with pytest.raises(wl.MemoryFault, match=message):
        copied(text.replace("mov", "@%lead mov").replace("tcgen05", "@%lead tcgen05"), shared, b)


def test_no_allocation_behind_a_given_up_permit() -> None:
    with pytest.raises(wl.MemoryFault, match="relinquished its permit"):
        launch(f"@!%first bra x; {ALLOC}, 32; x:", 1)
