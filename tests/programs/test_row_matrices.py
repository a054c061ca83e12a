"""`ldmatrix` and `stmatrix` of bytes and of packed numbers, against NumPy, on both engines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from matrix_products import program

import warploom as wl
from warploom.core.errors import MemoryFault, UnsupportedInstruction
from warploom.isa.spec import FORMS, decode

ENGINES = ("reference", "compiled")

LOADS = {
    **{f"m16n16.{n}.trans.shared.{f}": (16 * int(n[1]), 2 * int(n[1]), f)
       for n in ("x1", "x2") for f in ("b8", "b8x16.b6x16_p32", "b8x16.b4x16_p64")},
    **{f"m8n16.{n}.shared.{f}": (8 * int(n[1]), int(n[1]), f)
       for n in ("x1", "x2", "x4") for f in ("b8x16.b6x16_p32", "b8x16.b4x16_p64")},
}  # fmt: skip
"""Shapes and formats with the lanes that point at rows, and the registers of a lane."""

STORES = {f"m16n8.{n}.trans.shared.b8": int(n[1]) for n in ("x1", "x2", "x4")}
PAGE = 512


def bytes_of_rows(rows: npt.NDArray, format: str) -> npt.NDArray:
    """16 bytes a row: the numbers that are packed from its first bit on (PTX ISA, ldmatrix)."""
    if format == "b8":
        return rows
    width = 6 if "b6x16" in format else 4
    bits = np.unpackbits(rows, axis=1, bitorder="little")[:, : 16 * width]
    weights = 1 << np.arange(width)
    return (bits.reshape(len(rows), 16, width) * weights).sum(axis=2).astype(np.uint8)


def loaded(shape: str, rows: npt.NDArray) -> npt.NDArray:
    """Bytes by lane and register: the figures of PTX ISA, ldmatrix.

    A lane of 16x16 has four bytes of column lane / 4 in its first register and of column lane / 4 +
    8 in its second; one of 8x16 has four neighbors of row lane / 4.
    """
    lanes = []
    for lane in range(32):
        group, place = divmod(lane, 4)
        if shape.startswith("m16n16"):
            matrices = rows.reshape(-1, 16, 16)[:, 4 * place : 4 * place + 4]
            lanes.append(
                [matrix[:, column] for matrix in matrices for column in (group, group + 8)]
            )
        else:
            matrices = rows.reshape(-1, 8, 16)
            lanes.append([matrix[group, 4 * place : 4 * place + 4] for matrix in matrices])
    return np.array(lanes)


def stored(words: npt.NDArray) -> npt.NDArray:
    """The rows that lanes with these bytes by register write: as sums of m16n8 stand in registers,
    row lane / 4 (and 8 below), columns 2 * (lane % 4) and the next, transposed."""
    rows = np.zeros((words.shape[1], 8, 16), np.uint8)
    for lane, register, byte in np.ndindex(words.shape):
        column = 2 * (lane % 4) + byte % 2
        rows[register, column, lane // 4 + 8 * (byte // 2)] = words[lane, register, byte]
    return rows.reshape(-1, 16)


def kernel() -> str:
    """Each load of the rows of shared memory at which lanes point, and each store to them."""
    body = [
        "mad.lo.u32 %n, %lane, 16, %s; mul.wide.u32 %at, %lane, 16; add.u64 %at, %at, %base;",
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%at];",
        "st.shared.v4.b32 [%n], {%r0, %r1, %r2, %r3};",
        "bar.sync 0; mul.wide.u32 %own, %lane, 4; add.u64 %own, %own, %base;",
        f"ld.global.b32 %to, [%own+{PAGE}]; add.u32 %to, %to, %s;",
    ]
    page = 2
    for form, (_, count, _) in LOADS.items():
        held = ", ".join(f"%r{n}" for n in range(count))
        body.append(f"ldmatrix.sync.aligned.{form} {{{held}}}, [%to];")
        body += [f"st.global.b32 [%own+{PAGE * page + 128 * n}], %r{n};" for n in range(count)]
        page += 1
    for form, count in STORES.items():
        names = [f"%r{n}" for n in range(count)]
        body += [f"ld.global.b32 %r{n}, [%own+{PAGE * page + 128 * n}];" for n in range(count)]
        body.append("st.shared.v4.b32 [%n], {0, 0, 0, 0}; bar.sync 0;")
        body.append(f"stmatrix.sync.aligned.{form} [%to], {{{', '.join(names)}}}; bar.sync 0;")
        body.append("ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%n];")
        body.append(f"st.global.v4.b32 [%at+{PAGE * (page + 1)}], {{%r0, %r1, %r2, %r3}};")
        page += 2
    declared = ".reg .b32 %r<4>, %to, %s; .reg .b64 %own; .shared .align 128 .b8 rows[512];"
    return program(declared, ["mov.u32 %s, rows;", *body], "sm_120a")


def test_every_form_is_there() -> None:
    named = {decode(f"ldmatrix.sync.aligned.{form}").spec for form in LOADS}
    named |= {decode(f"stmatrix.sync.aligned.{form}").spec for form in STORES}
    assert named == {
        spec
        for spec in (*FORMS["ldmatrix"], *FORMS["stmatrix"])
        if spec.slots[2].choices != ("m8n8",)
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_bytes_and_packed_numbers(engine: str) -> None:
    rng = np.random.default_rng(11)
    pages = 2 + len(LOADS) + 2 * len(STORES)
    data = rng.integers(0, 256, (pages, PAGE), np.uint8)
    offsets = 16 * rng.permutation(32).astype(np.uint32)
    data[1, :128] = offsets.view(np.uint8)
    before = data.copy()
    wl.Device("rtx-5090", engine=engine).compile(kernel(), "ptx")["k"][1, 32](data)
    rows = before[0].reshape(32, 16)[offsets // 16]
    for page, (form, (pointing, count, format)) in enumerate(LOADS.items(), 2):
        got = data[page].reshape(4, 32, 4)[:count].transpose(1, 0, 2)
        want = loaded(form, bytes_of_rows(rows[:pointing], format))
        assert np.array_equal(got, want), form
    first = 2 + len(LOADS)
    for number, (form, count) in enumerate(STORES.items()):
        words = before[first + 2 * number].reshape(4, 32, 4)[:count].transpose(1, 0, 2)
        want = np.zeros((32, 16), np.uint8)
        want[offsets[: 8 * count] // 16] = stored(words)
        assert np.array_equal(data[first + 2 * number + 1].reshape(32, 16), want), form


def test_a_row_that_is_not_aligned_is_a_fault() -> None:
    """PTX ISA, ldmatrix: the addresses of rows are naturally aligned."""
    text = program(
        ".reg .b32 %r<4>, %s; .shared .align 128 .b8 rows[512];",
        ["mov.u32 %s, rows; mad.lo.u32 %n, %lane, 16, %s; add.u32 %n, %n, 8;",
         "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%r0, %r1}, [%n];"],
        "sm_100a",
    )  # fmt: skip
    gpu = wl.Device("b200")
    with pytest.raises(MemoryFault, match="Misaligned __shared__ read of size 16"):
        gpu.compile(text, "ptx")["k"][1, 32](np.zeros(4, np.uint32))


def test_shapes_that_come_transposed_only() -> None:
    for form in ("ldmatrix.sync.aligned.m16n16.x1.shared.b8", "stmatrix.sync.aligned.m16n8.x1.b8"):
        with pytest.raises(UnsupportedInstruction, match=r"valid here: \.trans"):
            wl.Device("b200").compile(program("", [f"{form} {{%n}}, [%at];"], "sm_100a"), "ptx")
