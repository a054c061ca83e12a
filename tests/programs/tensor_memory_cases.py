"""Products into tensor memory as NumPy states them, and a kernel that runs a list of them.

A case fills shared memory and tensor memory with random bytes, puts its matrices where the manual's
canonical layouts say, and says what tensor memory holds behind the product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

SHARED, COLUMNS, LANES, THREADS = 65536, 512, 128, 128
A_AT, B_AT = 0, 32768
D_COLUMN, A_COLUMN, META_COLUMN, SCALE_A_COLUMN, SCALE_B_COLUMN = 0, 256, 384, 400, 416

TYPES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "mxf4": {"e2m1": 1},
}
TYPES |= {"mxf8f6f4": TYPES["f8f6f4"], "mxf4nvf4": TYPES["mxf4"]}
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "e2m3": 6, "e3m2": 6, "e2m1": 4}
MODES = {"none": 0, "128B32": 1, "128B": 2, "64B": 4, "32B": 6}
SPANS = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B32": 128}

Numbers = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """One product; swizzles by name, `a_held`: A is in tensor memory; `scales` in a row of A."""

    kind: str
    m: int
    n: int
    a: str
    b: str
    d: str = "f32"
    swizzles: tuple[str, str] = ("none", "none")
    transposed: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)
    a_held: bool = False
    sparse: bool = False
    stationary: bool = False
    pair: bool = False
    adds: bool = True
    scale_d: int = 0
    scales: int = 0
    scale_type: str = "ue8m0"
    saturates: bool = False
    identifiers: tuple[int, int] = (0, 0)
    disabled: tuple[int, ...] = ()
    shifts: bool = False
    zeros: int = 0
    deep: bool = False
    """K of 96; of A and B the last third, or less, of 128 bytes lies in a second chunk."""
    skip: int = 0
    """Bytes from the begin of the lines of 128 bytes to A and B."""

    @property
    def depth(self) -> int:
        if self.deep:
            return 96
        return DEPTH[self.kind] * (2 if self.sparse else 1)

    @property
    def form(self) -> str:
        """The opcode."""
        ws, sp = ".ws" * self.stationary, ".sp" * self.sparse
        name = f"tcgen05.mma{ws}{sp}.cta_group::{2 if self.pair else 1}.kind::{self.kind}"
        name += ".ashift" * self.shifts
        if self.deep:
            return f"{name}.block_scale.block{96 // self.scales}"
        return f"{name}.block_scale.scale_vec::{self.scales}X" if self.scales else name

    @property
    def zero_columns(self) -> list[int]:
        """The columns of B that count as zero (PTX ISA, "Zero-Column Mask Descriptor"): the mask of
        each part is written out span by span, and its first columns are left out."""
        if not self.zeros >> 39 & 1:
            return []
        parts, found = 128 // self.m, []
        spans = (self.zeros >> 48 & 255) + 1, (self.zeros >> 40 & 255) + 1
        for part in range(parts):
            value, bits = self.zeros >> 32 + part & 1, ""
            while len(bits) < 1024:
                bits += str(value) * spans[value]
                value ^= 1
            mask = bits[self.zeros >> 8 * part & 255 :][: self.n // parts]
            found += [self.n // parts * part + i for i, bit in enumerate(mask) if bit == "1"]
        return found

    @property
    def descriptor(self) -> int:
        types = TYPES[self.kind]
        word = types[self.a] << 7 | types[self.b] << 10 | self.n >> 3 << 17 | self.m >> 4 << 24
        word |= self.negated[0] << 13 | self.negated[1] << 14
        word |= self.transposed[0] << 15 | self.transposed[1] << 16 | self.sparse << 2
        if self.scales:
            word |= self.identifiers[1] << 4 | self.identifiers[0] << 29
            return word | (self.scale_type == "ue8m0") << 23 | self.deep << 31
        return word | {"f16": 0, "f32": 1, "s32": 2}[self.d] << 4 | self.saturates << 3


@cache
def table(type: str) -> Numbers:
    """The number that each pattern of bits of a narrow type is."""
    exponent, fraction = {
        "e4m3": (4, 3), "e5m2": (5, 2), "e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1),
        "ue4m3": (4, 3),
    }[type]  # fmt: skip
    found = np.zeros(1 << (1 + exponent + fraction))
    for bits in range(len(found)):
        e, f = bits >> fraction & (1 << exponent) - 1, bits & (1 << fraction) - 1
        bias = (1 << exponent - 1) - 1
        size = f / (1 << fraction) * 2.0 ** (1 - bias)
        if e:
            size = (1 + f / (1 << fraction)) * 2.0 ** (e - bias)
        found[bits] = -size if bits >> (exponent + fraction) else size
    return found


def random_bits(
    rng: np.random.Generator, type: str, shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Bits of finite numbers of a type, of a size at which sums do not drown."""
    if type in ("f16", "bf16", "tf32"):
        words = rng.integers(-32, 33, shape).astype(np.float32) / 8
        if type == "f16":
            return words.astype(np.float16).view(np.uint16).astype(np.int64)
        bits = words.view(np.uint32).astype(np.int64)
        return bits >> 16 if type == "bf16" else bits | rng.integers(0, 1 << 13, shape)
    if type in ("u8", "s8"):
        return rng.integers(0, 256, shape)
    bits = rng.integers(0, 1 << WIDTH.get(type, 8), shape)
    if type in ("e4m3", "e5m2"):
        bits = bits & 0xBF  # no NaN, no infinity
    return bits


def values(bits: npt.NDArray[np.int64], type: str) -> Numbers:
    """The numbers that bits are."""
    if type == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if type in ("bf16", "tf32"):
        words = bits << 16 if type == "bf16" else bits & ~0x1FFF
        return words.astype(np.uint32).view(np.float32).astype(np.float64)
    if type in ("u8", "s8"):
        return bits.astype(np.uint8 if type == "u8" else np.int8).astype(np.float64)
    return table(type)[bits]


def swizzled(address: int, mode: str) -> int:
    """A byte's address in the swizzle's pattern (CUTLASS, Swizzle<3 2 1, 4, 3> and <2, 5, 2>)."""
    if mode == "128B32":
        return address ^ (address >> 2 & 0x60)
    masks = {"none": 0, "32B": 0x10, "64B": 0x30, "128B": 0x70}
    return address ^ (address >> 3 & masks[mode])


def put_shared(
    image: Image, at: int, bits: npt.NDArray[np.int64], kind: str, type: str, mode: str,
    transposed: bool,
) -> int:  # fmt: skip
    """Put a matrix (rows times k) into shared memory; returns its descriptor."""
    width = WIDTH.get(type, 8)
    unit = {"f16": 8, "tf32": 4, "mxf4": 32, "mxf4nvf4": 32}.get(kind, 16)
    rows, depth = bits.shape
    span = SPANS[mode] // 16
    group = 4 if mode == "128B32" else 8
    lines, along = (depth, rows // unit) if transposed else (rows, depth // unit)
    groups, atoms = -(-lines // group), -(-along // span)
    if mode == "none":
        # Core matrices of 8 lines; which distance is which depends on the major dimension.
        place, far = 128 * groups + 64, 128
        leading, stride = (far, place) if transposed else (place, far)
    else:
        far = 16 * span * group
        place = far * groups
        leading, stride = place, far
    for row in range(rows):
        for k in range(depth):
            line, major = (k, row) if transposed else (row, k)
            one, inside = divmod(major, unit)
            atom, slot = divmod(one, span)
            where = (line // group) * far + (line % group) * 16 * span + slot * 16 + atom * place
            first = inside * width
            byte = swizzled(at + where, mode) + first // 8
            word = int.from_bytes(image[byte : byte + 4].tobytes(), "little")
            shift, mask = first % 8, (1 << width) - 1
            word = word & ~(mask << shift) | int(bits[row, k]) << shift
            image[byte : byte + 4] = np.frombuffer(
                (word & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8
            )
    assert transposed or mode == "none" or atoms == 1
    low = at >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46
    return low | MODES[mode] << 61


def put_deep(image: Image, at: int, bits: npt.NDArray[np.int64], skip: int) -> int:
    """Put a matrix with 48 bytes along k into shared memory, in lines of 128 bytes with their
    swizzle, `skip` bytes from their begin on; what does not fit is in the lines of a second chunk.
    Returns its descriptor (PTX ISA, "Absolute address mode for K dimension being 48B")."""
    second = at + 128 * len(bits)
    for row, line in enumerate(bits):
        packed = line[0::2] | line[1::2] << 4
        for place, byte in enumerate(packed.tolist()):
            chunk, inside = divmod(skip + place, 128)
            image[swizzled((at, second)[chunk] + 128 * row + inside, "128B")] = byte
    low = (at + skip) >> 4 | second >> 4 << 16 | 1024 >> 4 << 32 | 1 << 46 | 1 << 52
    return low | MODES["128B"] << 61


def path(case: Case, row: int, column: int) -> tuple[int, int]:
    """The lane and the column of an element of D in one block (manual: Layouts A, B, D to G)."""
    rows = case.m // (2 if case.pair else 1)
    if rows == 128:
        return row, column
    if case.stationary or case.pair:
        wide = case.n // (128 // rows)
        return row + rows * (column // wide), column % wide
    return 32 * (row // 16) + row % 16, column


@dataclass
class Data:
    """A case with its numbers; for each block images of shared memory and of tensor memory before
    and behind the product."""

    case: Case
    seed: int
    shared: list[Image] = field(default_factory=list)
    before: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    behind: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    close: list[Numbers] = field(default_factory=list)
    a: int = 0
    b: int = 0

    def __post_init__(self) -> None:
        case, rng = self.case, np.random.default_rng(self.seed)
        blocks, depth = (2 if case.pair else 1), case.depth
        rows, stored = case.m // blocks, depth // 2 if case.sparse else depth
        shift = case.zeros >> 56 & 63
        b_bits = random_bits(rng, case.b, (case.n + shift, depth))
        b = values(b_bits[shift:], case.b) * (-1 if case.negated[1] else 1)
        for block in range(blocks):
            self.shared.append(rng.integers(0, 256, SHARED, np.uint8))
            words = rng.integers(-64, 64, (LANES, COLUMNS)).astype(np.float32).view(np.uint32)
            if case.d == "f16":
                halves = rng.integers(-64, 64, (LANES, COLUMNS)).astype(np.float16)
                words = halves.view(np.uint16).astype(np.uint32)
            if case.d == "s32":
                words = rng.integers(0, 1 << 32, (LANES, COLUMNS), np.uint64).astype(np.uint32)
            a_bits = random_bits(rng, case.a, (rows, stored))
            a = values(a_bits, case.a) * (-1 if case.negated[0] else 1)
            half = len(b_bits) // blocks
            self.b = put_shared(
                self.shared[block], B_AT, b_bits[block * half : (block + 1) * half], case.kind,
                case.b, case.swizzles[1], case.transposed[1],
            ) if not case.deep else put_deep(
                self.shared[block], B_AT, b_bits[block * half : (block + 1) * half], case.skip
            )  # fmt: skip
            if case.a_held:
                self.a = A_COLUMN
                self.hold(words, a_bits)
            else:
                self.a = put_shared(
                    self.shared[block], A_AT, a_bits, case.kind, case.a, case.swizzles[0],
                    case.transposed[0],
                ) if not case.deep else put_deep(
                    self.shared[block], A_AT, a_bits, case.skip
                )  # fmt: skip
            if case.sparse:
                a = self.spread(rng, words, a)
            if case.shifts:  # each row has that of the next lane, the last one its own
                assert rows == LANES
                a = np.concatenate([a[1:], a[-1:]])
            scaled_a, scaled_b = self.scaled(rng, words, a, b)
            scaled_b[case.zero_columns] = 0
            self.before.append(words.copy())
            self.expect(words, scaled_a, scaled_b, block)

    def hold(self, words: npt.NDArray[np.uint32], bits: npt.NDArray[np.int64]) -> None:
        """Put A into tensor memory: in each lane of D's data path the row that belongs to it."""
        case = self.case
        wide = {"f16": 16, "tf32": 32, "mxf4": 4, "mxf4nvf4": 4}.get(case.kind, 8)
        placed = bits << 2 if case.a == "e2m1" and wide == 8 else bits
        each = 32 // wide
        for row in range(len(bits)):
            line = [
                sum(int(placed[row, each * c + i]) << wide * i for i in range(each))
                for c in range(bits.shape[1] // each)
            ]
            for column in range(0, case.n, 8):
                lane, _ = path(case, row, column)
                words[lane, A_COLUMN : A_COLUMN + len(line)] = line

    def spread(
        self, rng: np.random.Generator, words: npt.NDArray[np.uint32], a: Numbers
    ) -> Numbers:
        """Choose the columns of a sparse A, put the choice into tensor memory, and return A with
        its zeros (metadata: CUTLASS, tmem_e_frg)."""
        case, (rows, stored) = self.case, a.shape
        full = np.zeros((rows, 2 * stored))
        pairs = 2 if case.kind in ("mxf4", "mxf4nvf4") else 1
        bits = np.zeros((rows, 64), np.uint64)
        for row in range(rows):
            if case.kind == "tf32":
                for group in range(stored):
                    kept = rng.integers(0, 2)
                    full[row, 2 * group + kept] = a[row, group]
                    bits[row, group] = 0xE if kept else 0x4
                continue
            for group in range(stored // (2 * pairs)):
                first, second = sorted(rng.choice(4, 2, replace=False))
                for number, kept in enumerate((first, second)):
                    for part in range(pairs):
                        at = 2 * pairs * group + pairs * number + part
                        full[row, 4 * pairs * group + pairs * kept + part] = a[row, at]
                bits[row, group] = first | second << 2
        bases = {
            (row, path(case, row, column)[0]) for row in range(rows) for column in range(case.n)
        }
        for row, base in bases:
            for group in range(16):
                lane, shift, column = base, 4 * group, META_COLUMN
                if case.kind in ("f16", "tf32"):
                    if group > 7:
                        break
                    lane = (base & ~15) + 8 * (group // 4) + row % 8
                    shift = 16 * (row // 8 % 2) + 4 * (group % 4)
                column, shift = column + shift // 32, shift % 32
                words[lane, column] &= np.uint32(~(15 << shift) & 0xFFFFFFFF)
                words[lane, column] |= np.uint32(int(bits[row, group]) << shift)
        return full

    def scaled(
        self, rng: np.random.Generator, words: npt.NDArray[np.uint32], a: Numbers, b: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Put random scales into tensor memory; returns the matrices times them."""
        case, found = self.case, list[Numbers]()
        for matrix, column, first in zip(
            (a, b), (SCALE_A_COLUMN, SCALE_B_COLUMN), case.identifiers, strict=True
        ):
            if not case.scales:
                found.append(matrix)
                continue
            # Of a pair both blocks have the same scales of B.
            seed = 7 if column == SCALE_B_COLUMN else int(rng.integers(1 << 30))
            source = np.random.default_rng(seed)
            low, high = (120, 132) if case.scale_type == "ue8m0" else (16, 72)
            bits = source.integers(low, high, (len(matrix), case.scales))
            numbers = 2.0 ** (bits - 127.0)
            if case.scale_type == "ue4m3":
                numbers = table("ue4m3")[bits]
            found.append(matrix * np.repeat(numbers, matrix.shape[1] // case.scales, axis=1))
            for row in range(len(matrix)):
                for block in range(case.scales):
                    # Four scales of 32 rows are a word; the next four lie 128 rows further on, or
                    # 256 of B where there are more than 128.
                    step = 8 if column == SCALE_B_COLUMN and len(matrix) > 128 else 4
                    shift = 8 * ((first + block) % 4)
                    at = column + row // 32 + step * ((first + block) // 4)
                    for quarter in range(4):
                        lane = 32 * quarter + row % 32
                        words[lane, at] &= np.uint32(~(255 << shift) & 0xFFFFFFFF)
                        words[lane, at] |= np.uint32(int(bits[row, block]) << shift)
        return found[0], found[1]

    def expect(self, words: npt.NDArray[np.uint32], a: Numbers, b: Numbers, block: int) -> None:
        """Compute what tensor memory holds then, and how close it has to be."""
        case = self.case
        behind, close = words.copy(), np.zeros((LANES, COLUMNS))
        sums, sizes = a @ b.T, np.abs(a) @ np.abs(b).T
        for row in range(len(a)):
            for column in range(case.n):
                lane, at = path(case, row, column)
                if lane + 128 * block in case.disabled:
                    continue
                word = words[lane, D_COLUMN + at : D_COLUMN + at + 1]
                total = sums[row, column]
                if case.d == "s32":
                    total += float(word.view(np.int32)[0]) if case.adds else 0
                    if case.saturates:
                        total = min(max(total, -(2**31)), 2**31 - 1)
                    behind[lane, D_COLUMN + at] = int(total) & 0xFFFFFFFF
                    continue
                half = word.astype(np.uint16).view(np.float16)[0]
                old = float(half if case.d == "f16" else word.view(np.float32)[0])
                total += old * 2.0**-case.scale_d if case.adds else 0
                kept = np.float16(total) if case.d == "f16" else np.float32(total)
                bits = kept.view(np.uint16 if case.d == "f16" else np.uint32)
                behind[lane, D_COLUMN + at] = bits
                unit = 2.0**-10 if case.d == "f16" else 2.0**-24
                close[lane, D_COLUMN + at] = 2.0**-24 * case.depth * (
                    sizes[row, column] + abs(old)
                ) + unit * abs(total)
        self.behind.append(behind)
        self.close.append(close)

    def assert_right(self, block: int, got: npt.NDArray[np.uint32]) -> None:
        """Compare what a launch left."""
        wanted, close = self.behind[block], self.close[block]
        floats = close > 0
        np.testing.assert_array_equal(got[~floats], wanted[~floats], str(self.case))
        if self.case.d == "f16":
            found, exact = (x.astype(np.uint16).view(np.float16) for x in (got, wanted))
        else:
            found, exact = (x.view(np.float32) for x in (got, wanted))
        error = np.abs(found[floats].astype(np.float64) - exact[floats].astype(np.float64))
        assert np.all(error <= close[floats]), self.case


# ---- the kernel ---------------------------------------------------------------------------------

WORDS = 16
"""Words of 64 bits that a case has in the table of operands."""


def operands(data: Data) -> list[int]:
    """D, A, B, descriptor, whether D is added, eight words of lanes that are left out."""
    case = data.case
    lanes = [sum(1 << lane % 32 for lane in case.disabled if lane // 32 == w) for w in range(8)]
    return [D_COLUMN, data.a, data.b, case.descriptor, int(case.adds), *lanes, 0, 0, 0]


def line(case: Case) -> str:
    """The instruction."""
    a = "[%ta]" if case.a_held else "%da"
    meta = "[%tm], " if case.sparse else ""
    text = f"{case.form} [%td], {a}, %db, {meta}%id"
    if case.scales:
        return f"{text}, [%sa], [%sb], %adds;"
    if case.disabled:
        count = 8 if case.pair else 4
        text += f", {{{', '.join(f'%off{n}' for n in range(count))}}}"
    last = case.scale_d or case.zeros
    return f"{text}, %adds{f', {last}' if last else ''};"


def kernel(text: str, count: int, group: int = 1, target: str = "sm_100a") -> str:
    """A kernel that runs an instruction `count` times, each from images of shared and tensor memory
    and with its own operands; by `group` blocks together."""
    values = ", ".join(f"%v{n}" for n in range(32))
    loads = "\n".join(f"ld.global.b32 %v{n}, [%p+{4 * n}];" for n in range(32))
    stores = "\n".join(f"st.global.b32 [%p+{4 * n}], %v{n};" for n in range(32))
    masks = "\n".join(f"ld.global.u32 %off{n}, [%p+{8 * (5 + n)}];" for n in range(8))
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if group == 2 else "bar.sync 0;"
    commit = f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster"
    both, own = f"{commit}.multicast::cluster.b64 [%bar], 3;", f"{commit}.b64 [%bar];"
    return f"""
.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 ptable, .param .u64 pshared, .param .u64 pmemory, .param .u64 pout)
.reqnctapercluster {group}
{{
.reg .b32 %v<32>, %off<8>; .reg .b32 %t, %i, %r, %c, %s, %td, %ta, %tm, %sa, %sb, %id, %bar;
.reg .b32 %lane, %w, %buf, %slot, %phase, %case, %rank, %n; .reg .b64 %p, %q, %da, %db, %out;
.reg .b64 %table, %shared, %memory, %x; .reg .pred %go, %adds, %first, %one, %lead;
.shared .align 1024 .b8 buf[{SHARED}];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 slot;
ld.param.u64 %table, [ptable]; ld.param.u64 %shared, [pshared];
ld.param.u64 %memory, [pmemory]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %buf, buf; mov.u32 %bar, bar; mov.u32 %slot, slot;
mov.u32 %rank, %ctaid.x;
setp.lt.u32 %first, %t, 32;
setp.eq.u32 %one, %t, 0;
setp.eq.and.u32 %lead, %rank, 0, %one;
@!%first bra allocated;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%slot], 512;
allocated:
@%one mbarrier.init.shared.b64 [%bar], 1;
{meet}
mov.u32 %phase, 0;
mov.u32 %case, 0;
each:
mad.lo.u32 %n, %case, {group}, %rank;
mul.wide.u32 %x, %n, {SHARED};
add.u64 %q, %shared, %x;
mul.lo.u32 %i, %t, 16;
fill:
cvt.u64.u32 %x, %i; add.u64 %p, %q, %x; add.u32 %r, %buf, %i;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%p]; st.shared.v4.b32 [%r], {{%v0, %v1, %v2, %v3}};
add.u32 %i, %i, {16 * THREADS};
setp.lt.u32 %go, %i, {SHARED};
@%go bra fill;
mul.wide.u32 %x, %n, {4 * LANES * COLUMNS};
add.u64 %q, %memory, %x; mul.wide.u32 %x, %t, {4 * COLUMNS}; add.u64 %p, %q, %x;
shr.u32 %lane, %t, 5; shl.b32 %lane, %lane, 21; mov.u32 %c, 0;
hold:
{loads}
or.b32 %w, %lane, %c;
tcgen05.st.sync.aligned.32x32b.x32.b32 [%w], {{{values}}};
add.u64 %p, %p, 128; add.u32 %c, %c, 32;
setp.lt.u32 %go, %c, {COLUMNS};
@%go bra hold;
tcgen05.wait::st.sync.aligned;
{meet}
mul.wide.u32 %x, %case, {8 * WORDS}; add.u64 %p, %table, %x;
ld.global.u32 %td, [%p]; ld.global.u32 %ta, [%p+8]; ld.global.u64 %da, [%p+8];
ld.global.u64 %db, [%p+16]; ld.global.u32 %id, [%p+24]; ld.global.u32 %r, [%p+32];
setp.ne.u32 %adds, %r, 0;
{masks}
mov.u32 %tm, {META_COLUMN}; mov.u32 %sa, {SCALE_A_COLUMN}; mov.u32 %sb, {SCALE_B_COLUMN};
@!%lead bra wait;
{text}
{both if group == 2 else own}
wait:
mbarrier.try_wait.parity.shared.b64 %go, [%bar], %phase;
@!%go bra wait;
xor.b32 %phase, %phase, 1;
mul.wide.u32 %x, %n, {4 * LANES * COLUMNS};
add.u64 %q, %out, %x; mul.wide.u32 %x, %t, {4 * COLUMNS}; add.u64 %p, %q, %x;
mov.u32 %c, 0;
keep:
or.b32 %w, %lane, %c;
tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{values}}}, [%w];
tcgen05.wait::ld.sync.aligned;
{stores}
add.u64 %p, %p, 128; add.u32 %c, %c, 32;
setp.lt.u32 %go, %c, {COLUMNS};
@%go bra keep;
{meet}
add.u32 %case, %case, 1;
setp.lt.u32 %go, %case, {count};
@%go bra each;
@!%first bra done;
mov.u32 %td, 0;
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %td, 512;
done:
ret;
}}
"""
