"""Matrix instructions on both engines, against NumPy: every form of mma, and wmma from CUDA C++."""

from __future__ import annotations

from itertools import product as combinations

import numpy as np
import numpy.typing as npt
import pytest
from matrix_products import ROUNDED, draw, moves, program, registers, values
from parts import some_now

import warploom as wl
from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import FORMS, OpSpec, decode

ENGINES = ("reference", "compiled")
KINDS = ("f16", "bf16 tf32", "e4m3 e5m2", "f64", "s8 u8", "s4 u4", "b1")
"""The types of A, by which the products are shared out over kernels."""


def test_every_product_is_of_some_kind() -> None:
    made = forms("mma") + forms("wmma")
    assert {product_of(decode(opcode)).a.type for opcode in made} == set(" ".join(KINDS).split())
    products = [spec for name in ("mma", "wmma") for spec in FORMS[name] if is_dense(spec)]
    assert {decode(opcode).spec for opcode in made} == set(products)


def is_dense(spec: OpSpec) -> bool:
    """Whether it multiplies, A has no metadata, and no kind is named (test_block_scales.py)."""
    return "ctype" in spec.syntax and not {"sparse", "kind"} & set(spec.syntax.split("."))


def forms(name: str) -> list[str]:
    """Every opcode of a product, each choice but satfinite (a test of its own)."""
    found: list[str] = []
    for spec in FORMS[name]:
        if is_dense(spec):
            # In a wmma the layouts say nothing about the fragments; for those once.
            layouts = 2 if name == "mma" else 1
            slots = [
                s.choices[:layouts] if "layout" in s.name else s.choices
                for s in spec.slots
                if not s.optional
            ]
            found += [".".join((name, *choice)) for choice in combinations(*slots)]
    return found


def kernel(opcodes: list[str]) -> str:
    """A kernel that reads A, B and C of each opcode at strides of 4096 bytes, and writes D."""
    body: list[str] = []
    for number, opcode in enumerate(opcodes):
        p, first = product_of(decode(opcode)), 4 * 4096 * number
        names: dict[str, list[str]] = {}
        for place, (role, f) in enumerate(zip("abcd", (p.a, p.b, p.c, p.d), strict=True)):
            bits = 64 if f.bits == 64 else 32
            names[role] = [f"%{role}{bits}_{i}" for i in range(f.registers)]
            body.append(f"mov.u32 %n, {f.registers * bits // 8};")
            body.append("mul.wide.u32 %at, %lane, %n; add.u64 %at, %at, %base;")
            if role == "d":
                vectors = {r: "{" + ", ".join(names[r]) + "}" for r in names}
                body.append(
                    f"{opcode} {vectors['d']}, {vectors['a']}, {vectors['b']}, {vectors['c']};"
                )
            body += moves(names[role], bits, first + 4096 * place, stores=role == "d")
    declared = "\n".join(
        f".reg .b{bits} {', '.join(f'%{r}{bits}_{i}' for i in range(8))};"
        for r in "abcd"
        for bits in (32, 64)
    )
    return program(declared, body)


def expected(p, a, b, c) -> npt.NDArray:
    if p.a.type == "b1":
        meet = np.bitwise_xor if p.logic == "xor" else np.bitwise_and
        return np.bitwise_count(meet(a[:, None, :], b[None, :, :])).sum(axis=2) + c
    return a @ b.T + c


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", some_now(KINDS, 3))
def test_every_mma_multiplies(kind: str, engine: str) -> None:
    opcodes = [
        o for o in forms("mma") + forms("wmma") if product_of(decode(o)).a.type in kind.split()
    ]
    rng = np.random.default_rng(7)
    data = np.zeros((len(opcodes), 4, 4096), np.uint8)
    matrices = []
    for opcode, place in zip(opcodes, data, strict=True):
        p = product_of(decode(opcode))
        drawn = [draw(f, rng) for f in (p.a, p.b, p.c)]
        for part, f, (bits, _) in zip(place, (p.a, p.b, p.c), drawn, strict=False):
            raw = registers(f, bits).tobytes()
            part[: len(raw)] = np.frombuffer(raw, np.uint8)
        matrices.append([value for _, value in drawn])
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(kernel(opcodes), "ptx")["k"][1, 32](data)
    for opcode, place, (a, b, c) in zip(opcodes, data, matrices, strict=True):
        p = product_of(decode(opcode))
        wide = np.uint64 if p.d.bits == 64 else np.uint32
        size = 32 * p.d.registers * np.dtype(wide).itemsize
        got = values(p.d, place[3][:size].view(wide).reshape(32, -1))
        want = expected(p, a, b, c)
        held = ~np.isnan(got)
        if p.d.type == "s32":
            assert np.array_equal(got[held], want[held]), opcode
        else:
            size = np.abs(a) @ np.abs(b).T + np.abs(c)
            assert np.all(np.abs(got - want)[held] <= (ROUNDED[p.d.type] * size)[held]), opcode
        assert held.sum() == len(p.d.holders)


WMMA = """#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, class T, class C, class LA, class LB>
__device__ void product(const T *a, const T *b, C *c)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc;
    const bool ra = std::is_same<LA, wmma::row_major>::value;
    const bool rb = std::is_same<LB, wmma::row_major>::value;
    wmma::fill_fragment(fc, C(1));
    wmma::load_matrix_sync(fa, a, ra ? K : M);
    wmma::load_matrix_sync(fb, b, rb ? N : K);
    for (int i = 0; i < fa.num_elements; i++)
        fa.x[i] = fa.x[i] + fa.x[i];
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
extern "C" __global__ void k(const TYPE *a, const TYPE *b, SUMS *c)
{
    __shared__ __align__(32) TYPE s[SIZE_M * SIZE_K];
    for (int i = threadIdx.x; i < SIZE_M * SIZE_K; i += 32) s[i] = a[i];
    __syncwarp();
    product<SIZE_M, SIZE_N, SIZE_K, TYPE, SUMS, wmma::LAYOUT_A, wmma::LAYOUT_B>(s, b, c);
}
""".replace("std::is_same", "cuda::std::is_same").replace(
    "#include <mma.h>", "#include <mma.h>\n#include <cuda/std/type_traits>"
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("shape", "types", "layouts"),
    [
        ((16, 16, 16), ("half", "float"), ("row", "col")),
        ((16, 16, 16), ("half", "half"), ("col", "row")),
        ((32, 8, 16), ("half", "float"), ("row", "row")),
        ((8, 32, 16), ("signed char", "int"), ("row", "col")),
        ((16, 16, 16), ("unsigned char", "int"), ("col", "row")),
        ((8, 8, 4), ("double", "double"), ("row", "col")),
    ],
)
def test_wmma_of_cuda(shape, types, layouts, engine: str) -> None:
    m, n, k = shape
    dtype = {
        "half": np.float16,
        "signed char": np.int8,
        "unsigned char": np.uint8,
        "double": np.float64,
    }[types[0]]
    sums = {"float": np.float32, "half": np.float16, "int": np.int32, "double": np.float64}[
        types[1]
    ]
    options = [f"-DSIZE_M={m}", f"-DSIZE_N={n}", f"-DSIZE_K={k}"]
    options += [f"-DTYPE={types[0]}", f"-DSUMS={types[1]}"]
    options += [f"-DLAYOUT_A={layouts[0]}_major", f"-DLAYOUT_B={layouts[1]}_major"]
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 5, (m, k)).astype(dtype), rng.integers(0, 5, (k, n)).astype(dtype)
    c = np.zeros((m, n), sums)
    stored = [(x if o == "row" else x.T).ravel() for x, o in zip((a, b), layouts, strict=True)]
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(WMMA, options=options)["k"][1, 32](*stored, c)
    assert np.array_equal(c, (2 * a.astype(np.int64) @ b.astype(np.int64) + 1).astype(sums))


MATRICES = """
extern "C" __global__ void k(const unsigned short *in, unsigned short *plain,
                             unsigned short *turned, unsigned *moved)
{
    __shared__ __align__(16) unsigned short s[3][256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) s[0][i] = in[i];
    __syncthreads();
    unsigned r[4], q, at = __cvta_generic_to_shared(s[0] + 8 * t);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(q) : "r"(r[1]));
    moved[t] = q;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
        :: "r"(at + 512), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
        : "=r"(r[0]), "=r"(r[1]) : "r"(at));
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
        :: "r"(at + 1024), "r"(r[1]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
        :: "r"(at + 1024 + 128), "r"(r[1]) : "memory");
    __syncthreads();
    for (int i = t; i < 256; i += 32) plain[i] = s[1][i];
    for (int i = t; i < 256; i += 32) turned[i] = s[2][i];
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_of_shared_memory(engine: str) -> None:
    start = np.arange(256, dtype=np.uint16) + 1000
    plain, turned = np.zeros(256, np.uint16), np.zeros(256, np.uint16)
    moved = np.zeros(32, np.uint32)
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(MATRICES)["k"][1, 32](start, plain, turned, moved)
    matrix = start.reshape(4, 8, 8)
    assert np.array_equal(plain, start)  # stored as loaded
    assert np.array_equal(turned.reshape(4, 8, 8)[0], matrix[1])  # transposed twice
    assert np.array_equal(turned.reshape(4, 8, 8)[1], matrix[1].T)
    assert np.array_equal(moved.view(np.uint16).reshape(8, 8), matrix[1].T)
