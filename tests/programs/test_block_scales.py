"""`mma` with a kind on both engines against NumPy: narrow floats, and blocks with scales."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product as combinations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from matrix_products import ROUNDED, draw, moves, program, registers, values
from parts import some_now
from test_sparse_products import ORDERED, dense, metadata

import warploom as wl
from warploom.core.errors import PtxSyntaxError, UnsupportedInstruction
from warploom.isa.fragments import Product
from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import FORMS, decode

ENGINES = ("reference", "compiled")
SMALL = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
PAGE = 4096
PAGES = 7
"""Of a case: A, B, C, metadata, scales of A and of B, and D."""

SCALES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
DEFAULTS = {"mxf8f6f4": 1, "mxf4": 2}


@dataclass
class Case:
    """A product: its opcode, where its scales are, what the kernel reads, and the factors."""

    opcode: str
    at_a: tuple[int, int]
    at_b: tuple[int, int]
    pages: list[npt.NDArray] = field(default_factory=list)
    factors: tuple[npt.NDArray, ...] = ()

    @property
    def product(self) -> Product:
        return product_of(decode(self.opcode))

    @property
    def blocks(self) -> int:
        """How many blocks a row has along k (PTX ISA, mma: scale_vec_size); 0 without scales."""
        if "block_scale" not in self.opcode:
            return 0
        size = next((part for part in self.opcode.split(".") if part in COUNTS), None)
        kind = self.opcode.split("kind::")[1].split(".")[0]
        return COUNTS[size] if size else DEFAULTS[kind]


def opcodes() -> list[list[str]]:
    """Every opcode: those of bytes by the types of A and B, which share kernels by that of A."""
    found: list[list[str]] = []
    for a in SMALL:
        group: list[str] = []
        for b, sparse in combinations(SMALL, (False, True)):
            name = "mma.sp::ordered_metadata" if sparse else "mma"
            start = f"{name}.sync.aligned.{'m16n8k64' if sparse else 'm16n8k32'}.row.col"
            sums = "f16" if SMALL.index(b) % 2 else "f32"
            size = ".scale_vec::1X" if SMALL.index(b) % 2 else ""
            group.append(f"{start}.kind::f8f6f4.{sums}.{a}.{b}.{sums}")
            group.append(f"{start}.kind::mxf8f6f4.block_scale{size}.f32.{a}.{b}.f32.ue8m0")
        found.append(group)
    for sparse in (False, True):
        name = "mma.sp::ordered_metadata" if sparse else "mma"
        start = f"{name}.sync.aligned.{'m16n8k128' if sparse else 'm16n8k64'}.row.col"
        found.append([
            f"{start}.kind::{kind}.block_scale{size}.f32.e2m1.e2m1.f32.{scale}"
            for kind, size, scale in (
                ("mxf4", "", "ue8m0"),
                ("mxf4", ".scale_vec::2X", "ue8m0"),
                ("mxf4nvf4", ".scale_vec::2X", "ue8m0"),
                ("mxf4nvf4", ".scale_vec::4X", "ue8m0"),
                ("mxf4nvf4", ".scale_vec::4X", "ue4m3"),
            )
        ])  # fmt: skip
    return found


def test_every_form_is_among_them() -> None:
    """So that a form that is declared is multiplied below."""
    assert {decode(each).spec for group in opcodes() for each in group} == {
        spec for spec in FORMS["mma"] if "kind" in spec.syntax
    }


def kernel(cases: list[Case]) -> str:
    """A kernel that reads what each case has, a page for each, and writes D behind."""
    body: list[str] = []
    for number, case in enumerate(cases):
        p = case.product
        counts = [p.a.registers, p.b.registers, p.c.registers, 1, 1, 1, p.d.registers]
        names = [
            [f"%{role}{i}" for i in range(n)] for role, n in zip("abceuvd", counts, strict=True)
        ]
        for place, (count, held) in enumerate(zip(counts, names, strict=True)):
            body.append(f"mul.lo.u32 %n, %lane, {4 * count}; cvt.u64.u32 %at, %n;")
            body.append("add.u64 %at, %at, %base;")
            if held[0] == "%d0":
                a, b, c, _, _, _, d = ("{" + ", ".join(each) + "}" for each in names)
                operands = [d, a, b, c, *(["%e0", "0"] if p.sparsity else [])]
                if case.blocks:
                    body.append(f"mov.u16 %byte, {case.at_a[0]}; mov.u16 %thread, {case.at_b[1]};")
                    operands += ["%u0", f"{{%byte, {case.at_a[1]}}}"]
                    operands += ["%v0", f"{{{case.at_b[0]}, %thread}}"]
                body.append(f"{case.opcode} {', '.join(operands)};")
            body += moves(held, 32, PAGE * (PAGES * number + place), stores=held[0] == "%d0")
    declared = "\n".join(f".reg .b32 %{role}<8>;" for role in "abceuvd")
    return program(declared + ".reg .b16 %byte, %thread;", body, "sm_120a")


def scaled(case: Case, rng: np.random.Generator, side: str) -> tuple[npt.NDArray, npt.NDArray]:
    """Scales of rows of A or columns of B, by block, and the words of all lanes that hold them."""
    rows, (byte, thread) = (16, case.at_a) if side == "a" else (8, case.at_b)
    type = SCALES[case.opcode.rsplit(".", 1)[1]]
    numbers = 2.0 ** rng.integers(-6, 6, (rows, case.blocks))
    if case.opcode.endswith("ue4m3"):
        numbers = rng.uniform(0.1, 9, numbers.shape)
    held = numbers.astype(type)
    words = rng.integers(0, 1 << 32, 32, np.uint32)
    for row, block in np.ndindex(held.shape):
        # PTX ISA, "Block Scaling for mma.sync": of four lanes two hold rows r and r + 8 of A, and
        # one holds a column of B; a thread selector takes the next ones.
        lane = 4 * (row % 8) + (row // 8 + 2 * thread if side == "a" else thread)
        bits = int(held.view(np.uint8)[row, block]) << 8 * (byte + block)
        kept = 0xFFFFFFFF ^ 0xFF << 8 * (byte + block)
        words[lane] = np.uint32(int(words[lane]) & kept | bits)
    return held.astype(np.float64), words


def drawn(opcode: str, number: int, rng: np.random.Generator) -> Case:
    """A case with its matrices, where selectors go round what they can be."""
    case = Case(opcode, (0, 0), (0, 0))
    if case.blocks:
        bytes_ = range(0, 4, case.blocks)
        byte_a, byte_b = bytes_[number % len(bytes_)], bytes_[(number + 1) % len(bytes_)]
        case.at_a, case.at_b = (byte_a, number % 2), (byte_b, (number + 1) % 4)
    p = case.product
    matrices = [draw(f, rng) for f in (p.a, p.b, p.c)]
    case.pages = [
        registers(f, bits) for f, (bits, _) in zip((p.a, p.b, p.c), matrices, strict=True)
    ]
    a, b, c = (values_ for _, values_ in matrices)
    words = np.zeros(32, np.uint32)
    if p.sparsity is not None:
        nibbles = rng.choice(np.array(ORDERED), (16, p.b.columns // p.sparsity.chunk))
        a, words = dense(p, a, nibbles), metadata(p, 0, nibbles, rng)
    case.pages.append(words)
    for side in "ab" if case.blocks else "":
        scales, words = scaled(case, rng, side)
        case.pages.append(words)
        spread = np.repeat(scales, p.b.columns // case.blocks, axis=1)
        a, b = (a * spread, b) if side == "a" else (a, b * spread)
    case.factors = a, b, c
    return case


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("group", some_now(range(7), 6))
def test_every_kind_multiplies(group: int, engine: str) -> None:
    rng = np.random.default_rng(3)
    cases = [drawn(opcode, number, rng) for number, opcode in enumerate(opcodes()[group])]
    data = np.zeros((len(cases), PAGES, PAGE), np.uint8)
    for case, place in zip(cases, data, strict=True):
        for page, words in zip(place, case.pages, strict=False):
            page[: words.nbytes] = np.frombuffer(words.tobytes(), np.uint8)
    gpu = wl.Device("rtx-5090", engine=engine)
    gpu.compile(kernel(cases), "ptx")["k"][1, 32](data)
    for case, place in zip(cases, data, strict=True):
        p, (a, b, c) = case.product, case.factors
        got = values(p.d, place[6][: 128 * p.d.registers].view(np.uint32).reshape(32, -1))
        size = np.abs(a) @ np.abs(b).T + np.abs(c)
        wrong = np.abs(got - (a @ b.T + c)) > 2 * ROUNDED[p.d.type] * size
        assert not wrong.any(), case.opcode


SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("at_a", "at_b", "message"),
    [
        ("{1, 0}", "{0, 0}", "the byte of the scales must be one of 0, 2"),
        ("{0, 2}", "{0, 0}", "the thread of the scales must be one of 0, 1,"),
        ("{0, 0}", "{0, 4}", "the thread of the scales must be one of 0, 1, 2, 3"),
        ("{0, %n}", "{0, 0}", "or a 16-bit register"),
        ("0", "{0, 0}", "requires the position of the scales here: {byte, thread}"),
    ],
)
def test_selectors_name_bytes_and_lanes_that_there_are(at_a, at_b, message: str) -> None:
    text = kernel([Case(SCALED, (0, 0), (0, 0))])
    text = text.replace("{%byte, 0}", at_a).replace("{0, %thread}", at_b)
    with pytest.raises(PtxSyntaxError, match=message):
        wl.Device("rtx-5090").compile(text, "ptx")


def test_only_some_architectures_have_kinds() -> None:
    text = kernel([Case(SCALED, (0, 0), (0, 0))])
    with pytest.raises(UnsupportedInstruction, match=r"compute capability 12\.0"):
        wl.Device("b200").compile(text, "ptx")["k"][1, 32](np.zeros(PAGES * PAGE, np.uint8))
    with pytest.raises(PtxSyntaxError, match=r"only for \.target sm_120a or sm_121a"):
        wl.Device("rtx-5090").compile(text.replace("sm_120a", "sm_120"), "ptx")
