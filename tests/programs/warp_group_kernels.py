"""Products of a warp group for the tests: matrices in shared memory and registers as the manual
lays them out, and a kernel that multiplies them.

Written from the manual alone (PTX ISA, wgmma: "Register Fragments", "Shared Memory Matrix Layout",
"Strides", "Matrix Descriptor Format", "Sparse matrix storage"), as loops over elements. Matrices
have their rows along k; bits stand in words of 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np
import numpy.typing as npt

TYPES: dict[str, npt.DTypeLike] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32,
    "s8": np.int8,
    "u8": np.uint8,
    "b1": np.uint32,
}
MODES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}
WIDTHS = {"none": 16, "32B": 32, "64B": 64, "128B": 128}
"""Bytes along the major dimension of a layout's smallest part."""

THREADS = 128
TILE_BYTES = 48 * 1024
ROUNDED = {"f16": 2.0**-10, "f32": 2.0**-21}
"""Error allowed relative to the sum of absolute products: a few roundings of the accumulator."""


@dataclass(frozen=True)
class Layout:
    """A matrix in shared memory from byte `start` on; its pattern begins there. `leading` and
    `stride` are the byte offsets of the descriptor."""

    swizzle: str
    transposed: bool
    start: int
    leading: int
    stride: int

    @property
    def descriptor(self) -> int:
        fields = (self.start >> 4, self.leading >> 4 << 16, self.stride >> 4 << 32)
        base = 0 if self.swizzle == "none" else (self.start >> 7 & 7) << 49
        return sum(fields) | base | MODES[self.swizzle] << 62

    def address(self, line: int, byte: int) -> int:
        """The address of a byte of a line: of a row along k, or for a transposed matrix of one k
        along m or n."""
        width = WIDTHS[self.swizzle]
        (group, within), (atom, inside) = divmod(line, 8), divmod(byte, width)
        if self.swizzle == "none":
            far, near = (self.stride, self.leading)
            far, near = (near, far) if self.transposed else (far, near)
            return self.start + group * far + within * 16 + atom * near + inside
        between = self.leading if self.transposed else width
        offset = group * self.stride + within * width + atom * between + inside
        return self.start + (offset ^ (offset >> 7 & (width // 16 - 1)) << 4)

    def put(self, memory: npt.NDArray[np.uint8], matrix: npt.NDArray) -> None:
        """Store a matrix."""
        lines = np.ascontiguousarray(matrix.T if self.transposed else matrix)
        for line, row in enumerate(lines.view(np.uint8).reshape(len(lines), -1)):
            for byte in range(0, len(row), 16):
                at = self.address(line, byte)
                memory[at : at + 16] = row[byte : byte + 16]


def layout_of(
    swizzle: str, start: int, matrix: npt.NDArray, *, transposed: bool, gap: int = 0
) -> tuple[Layout, int]:
    """A layout for a matrix with gaps of so many bytes, and where it ends."""
    lines, bytes_ = matrix.shape[0], matrix.shape[1] * matrix.itemsize
    if transposed:
        lines, bytes_ = matrix.shape[1], matrix.shape[0] * matrix.itemsize
    width, groups = WIDTHS[swizzle], -(-lines // 8)
    atoms = -(-bytes_ // width)
    if transposed or swizzle == "none":
        near = 8 * width + gap  # from one atom to the next in a group of lines
        far = atoms * near + gap
        swaps = transposed == (swizzle == "none")
        leading, stride = (far, near) if swaps else (near, far)
    else:
        leading, stride = 16, 8 * atoms * width + gap
        far = stride
    return Layout(swizzle, transposed, start, leading, stride), start + groups * far


@dataclass(frozen=True)
class Case:
    """One product. `a` is the swizzle of A, or "registers"."""

    n: int
    dtype: str
    atype: str
    btype: str
    a: str = "none"
    b: str = "none"
    transposed_a: bool = False
    transposed_b: bool = False
    sparse: bool = False
    selector: int = 0
    signs: tuple[int, int] = (1, 1)
    scaled: bool = True
    saturates: bool = False
    start: int = 0
    gap: int = 0

    @property
    def itemsize(self) -> int:
        return np.dtype(TYPES[self.atype]).itemsize

    @property
    def stored(self) -> int:
        """Elements of a row of A in memory; words for bits."""
        return 32 // self.itemsize

    @property
    def depth(self) -> int:
        return 2 * self.stored if self.sparse else self.stored

    @property
    def registers(self) -> int:
        """Registers of D."""
        return self.n // (4 if self.dtype == "f16" else 2)

    @property
    def opcode(self) -> str:
        k = self.depth * (32 if self.atype == "b1" else 1)
        name = "wgmma.mma_async.sp" if self.sparse else "wgmma.mma_async"
        saturation = ".satfinite" if self.saturates else ""
        logic = ".and.popc" if self.atype == "b1" else ""
        types = f"{self.dtype}.{self.atype}.{self.btype}"
        return f"{name}.sync.aligned.m64n{self.n}k{k}{saturation}.{types}{logic}"

    @property
    def tail(self) -> str:
        """The operands behind B."""
        shown = [f"%e, {self.selector}"] if self.sparse else []
        shown.append("%scaled")
        if self.dtype != "s32":
            shown += map(str, self.signs)
        if self.atype in ("f16", "bf16"):
            shown += [] if self.a == "registers" else [str(int(self.transposed_a))]
            shown.append(str(int(self.transposed_b)))
        return ", ".join(shown)


class Data:
    """Random operands of a product, as registers and shared memory have them, and the result."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, rng = case, np.random.default_rng(seed)
        self.a = _drawn(rng, (64, case.stored), case.atype)
        self.b = _drawn(rng, (case.n, case.depth), case.btype)
        self.c = rng.standard_normal((64, case.n)).astype(np.float16).astype(np.float32)
        if case.dtype == "s32":
            high = 1 << 31 if case.saturates else 1000
            self.c = rng.integers(-high, high, (64, case.n)).astype(np.int32)
        self.places = np.zeros((64, case.stored), np.int64)
        """The column of A in which each stored element stands."""
        self.metadata = rng.integers(0, 1 << 32, THREADS, np.uint32)
        if case.sparse:
            self._choose(rng)
        self.memory = np.zeros(TILE_BYTES, np.uint8)
        end, first = case.start, 0
        if case.a != "registers":
            layout, end = layout_of(
                case.a, case.start, self.a, transposed=case.transposed_a, gap=case.gap
            )
            layout.put(self.memory, self.a)
            first = layout.descriptor
        start = -(-end // 1024) * 1024 + case.start
        layout, end = layout_of(case.b, start, self.b, transposed=case.transposed_b, gap=case.gap)
        assert end <= TILE_BYTES
        layout.put(self.memory, self.b)
        self.descriptors = np.array([first, layout.descriptor, -(-end // 4)], np.uint64)
        """Those of A and B, and the words of shared memory that they take."""

    def _choose(self, rng: np.random.Generator) -> None:
        """Draw which columns are stored, and write the metadata of the threads that have them."""
        case = self.case
        single = case.atype == "tf32"
        chunks = case.depth // (2 if single else 4)
        nibbles = np.zeros((64, chunks), np.uint32)
        for row, chunk in np.ndindex(64, chunks):
            if single:
                which = int(rng.integers(2))
                self.places[row, chunk] = 2 * chunk + which
                nibbles[row, chunk] = (0b0100, 0b1110)[which]
            else:
                first, second = sorted(rng.choice(4, 2, replace=False).tolist())
                self.places[row, 2 * chunk : 2 * chunk + 2] = 4 * chunk + first, 4 * chunk + second
                nibbles[row, chunk] = first | second << 2
        for thread in range(THREADS):
            row, quarter = thread // 32 * 16 + thread % 32 // 4, thread % 4
            if case.itemsize == 1:
                parts = nibbles[row + 8 * (quarter % 2), 8 * (quarter // 2) :][:8]
            elif quarter // 2 != case.selector:
                continue
            else:
                mine = slice(4 * (quarter % 2), 4 * (quarter % 2) + 4)
                parts = np.concatenate([nibbles[row, mine], nibbles[row + 8, mine]])
            self.metadata[thread] = sum(int(part) << 4 * i for i, part in enumerate(parts))

    @cached_property
    def registers_of_a(self) -> npt.NDArray[np.uint32]:
        """Each thread's four registers of A."""
        packed = 4 // self.case.itemsize
        words = self.a.view(np.uint32).reshape(64, 8)
        found = np.zeros((THREADS, 4), np.uint32)
        for thread, register in np.ndindex(THREADS, 4):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register % 2)
            column = packed * (thread % 4) + 4 * packed * (register // 2)
            found[thread, register] = words[row, column // packed]
        return found

    def places_of_d(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row and the column of each thread's elements of D."""
        thread, i = np.indices((THREADS, self.case.n // 2))
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
        return row, i // 4 * 8 + 2 * (thread % 4) + i % 2

    def registers_of_d(self, matrix: npt.NDArray) -> npt.NDArray[np.uint32]:
        """Each thread's registers of D where D is this matrix."""
        held = matrix[self.places_of_d()]
        type = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[self.case.dtype]
        return np.ascontiguousarray(held.astype(type)).view(np.uint32)

    def matrix_of(self, registers: npt.NDArray[np.uint32]) -> npt.NDArray:
        """D from the registers of the threads."""
        type = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[self.case.dtype]
        found = np.zeros((64, self.case.n), type)
        found[self.places_of_d()] = registers.view(type)
        return found

    def dense_a(self) -> npt.NDArray:
        """A with its zeros, as numbers."""
        if not self.case.sparse:
            return self.a.astype(np.float64)
        whole = np.zeros((64, self.case.depth))
        np.put_along_axis(whole, self.places, self.a.astype(np.float64), axis=1)
        return whole

    def expected(self) -> tuple[npt.NDArray, npt.NDArray]:
        """The result, and the sum of absolute products and C."""
        case, start = self.case, self.c * (1 if self.case.scaled else 0)
        if case.atype == "b1":
            met = np.bitwise_count(self.a[:, None] & self.b[None]).sum(axis=2, dtype=np.int64)
            return met + start, np.zeros_like(met)
        a, b = self.dense_a(), self.b.astype(np.float64)
        sign = case.signs[0] * case.signs[1]
        total = sign * (a @ b.T) + start
        if case.saturates:
            total = np.clip(total, -(2**31), 2**31 - 1)
        return total, np.abs(a) @ np.abs(b).T + np.abs(start)

    def assert_right(self, registers: npt.NDArray[np.uint32]) -> None:
        """Compare registers of D with the result."""
        got, (want, size) = self.matrix_of(registers).astype(np.float64), self.expected()
        if self.case.dtype == "s32":
            assert np.array_equal(got, want), self.case
        else:
            assert np.all(np.abs(got - want) <= ROUNDED[self.case.dtype] * size), self.case


def _drawn(rng: np.random.Generator, shape: tuple[int, int], type: str) -> npt.NDArray:
    dtype = np.dtype(TYPES[type])
    if type in ("s8", "u8", "b1"):
        raw = rng.integers(0, 256, (shape[0], shape[1] * dtype.itemsize), np.uint8)
        return raw.view(dtype)
    made = rng.standard_normal(shape).astype(dtype)
    if type == "tf32":
        made = (made.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return made


ORDERED = """wgmma.fence.sync.aligned;
PRODUCT
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;"""
"""A product as it should be issued."""

WORD_OF_D = {"f16": "b32", "f32": "f32", "s32": "s32"}


def kernel(cases: Sequence[Case], body: str = ORDERED, declared: str = "") -> str:
    """A kernel of one warp group that does one product after the other.

    For each, its memory goes to shared memory, a thread's registers of A and D come from `a` and
    `d`, and those of D go back. `body` is what is done, where PRODUCT is the product; %tile is
    where shared memory begins.
    """
    parts = [_part(number, case, body) for number, case in enumerate(cases)]
    most = max(case.registers for case in cases)
    kinds = {WORD_OF_D[case.dtype] for case in cases}
    named = "".join(f".reg .{kind} %{kind}_<{most}>;" for kind in sorted(kinds))
    return f"""
.version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 memory, .param .u64 a, .param .u64 d, .param .u64 descriptors,
                  .param .u64 metadata)
{{
    .reg .b64 %m, %pa, %pd, %pe, %px, %at, %da, %db;
    .reg .b32 %t, %i, %n, %w, %e, %tile, %words; .reg .pred %p, %scaled;
    .reg .b32 %a<4>; {named} {declared}
    .shared .align 1024 .b8 tile[{TILE_BYTES}];
    ld.param.u64 %m, [memory]; ld.param.u64 %pa, [a]; ld.param.u64 %pd, [d];
    ld.param.u64 %pe, [metadata]; ld.param.u64 %px, [descriptors];
    mov.u32 %t, %tid.x; mov.u32 %tile, tile;
    {"".join(parts)}
    ret;
}}
"""


def _part(number: int, case: Case, body: str) -> str:
    d = [f"%{WORD_OF_D[case.dtype]}_{i}" for i in range(case.registers)]
    a = "{%a0, %a1, %a2, %a3}" if case.a == "registers" else "%da"
    product = f"{case.opcode} {{{', '.join(d)}}}, {a}, %db, {case.tail};"
    loads = [f"ld.global.b32 {r}, [%at+{4 * i}];" for i, r in enumerate(d)]
    stores = [f"st.global.b32 [%at+{4 * i}], {r};" for i, r in enumerate(d)]
    return f"""
    ld.global.b64 %da, [%px+{24 * number}]; ld.global.b64 %db, [%px+{24 * number + 8}];
    ld.global.b32 %words, [%px+{24 * number + 16}];
    setp.ne.u32 %scaled, {int(case.scaled)}, 0;
    bar.sync 0;
    mov.u32 %i, %t;
copy_{number}:
    mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %m;
    ld.global.b32 %w, [%at+{number * TILE_BYTES}];
    shl.b32 %n, %i, 2; add.u32 %n, %n, %tile;
    st.shared.b32 [%n], %w;
    add.u32 %i, %i, {THREADS};
    setp.lt.u32 %p, %i, %words;
    @%p bra copy_{number};
    fence.proxy.async;
    bar.sync 0;
    mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %pe;
    ld.global.b32 %e, [%at+{number * THREADS * 4}];
    mul.wide.u32 %at, %t, 16; add.u64 %at, %at, %pa;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at+{number * THREADS * 16}];
    mul.wide.u32 %at, %t, 512; add.u64 %at, %at, %pd;
    add.u64 %at, %at, {number * THREADS * 512};
    {"".join(loads)}
    {body.replace("PRODUCT", product)}
    {"".join(stores)}
    """


def arguments(datas: Sequence[Data]) -> list[npt.NDArray]:
    """The arguments of such a kernel; the third holds D, and then the results."""
    d = np.zeros((len(datas), THREADS, 128), np.uint32)
    for buffer, data in zip(d, datas, strict=True):
        words = data.registers_of_d(data.c)
        buffer[:, : words.shape[1]] = words
    return [
        np.stack([data.memory for data in datas]),
        np.stack([data.registers_of_a for data in datas]),
        d,
        np.stack([data.descriptors for data in datas]),
        np.stack([data.metadata for data in datas]),
    ]
