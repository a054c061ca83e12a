"""Boxes of tensors for tests: random cases, what NumPy says of them, and kernels that copy them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

import warploom as wl

TYPES = {
    "u8": np.uint8,
    "u16": np.uint16,
    "s32": np.int32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
FLOATS = ("f16", "bf16", "f32", "f64")
SPANS = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
SPANS |= dict.fromkeys(("128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"), 128)
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "": lambda old, new: new,
    "add": lambda old, new: old + new,
    "min": min,
    "max": max,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "inc": lambda old, new: 0 if old >= new else old + 1,
    "dec": lambda old, new: new if old == 0 or old > new else old - 1,
}

CAPACITY = 8192
"""Bytes of shared memory for a box."""


@dataclass(frozen=True)
class Case:
    """A box: axes begin with the outermost. `lower`, `upper`, `offsets`, `pixels` are of im2col,
    which has no `box` but in its innermost axis (the channels)."""

    type: str
    dims: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    start: tuple[int, ...]
    swizzle: str = "none"
    fill: str = "zeros"
    padding: int = 0
    """Bytes between the rows of the tensor."""
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    pixels: int = 0

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(TYPES[self.type])

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between elements along every axis."""
        size = self.dtype.itemsize
        row = -(-(self.dims[-1] * size) // 16) * 16 + self.padding
        found = [size]
        for axis in range(self.rank - 1, 0, -1):
            found.append(row if axis == self.rank - 1 else found[-1] * self.dims[axis])
        return tuple(reversed(found))

    @property
    def bytes(self) -> int:
        """Bytes of the tensor in global memory."""
        return self.strides[0] * self.dims[0] if self.rank > 1 else self.dims[0] * self.strides[0]

    def content(self, seed: int) -> np.ndarray:
        """Bytes of the tensor with its gaps: small numbers of the type."""
        random = np.random.default_rng(seed)
        count = self.bytes // self.dtype.itemsize
        return random.integers(0, 100, count).astype(self.dtype)

    def tensor(self, content: np.ndarray) -> np.ndarray:
        """A view of the elements of the tensor."""
        return np.lib.stride_tricks.as_strided(content, self.dims, self.strides)

    def rows(self) -> list[tuple[int, ...]]:
        """Where the rows of the box begin, in elements of the tensor."""
        if self.pixels:
            return self._pixels()
        counts = [-(-n // s) for n, s in zip(self.box[:-1], self.steps[:-1], strict=True)]
        found: list[tuple[int, ...]] = []
        for place in product(*map(range, counts)):
            steps = zip(self.start[:-1], place, self.steps[:-1], strict=True)
            found.append((*(a + b * s for a, b, s in steps), self.start[-1]))
        return found

    def _pixels(self) -> list[tuple[int, ...]]:
        """The walk through the bounding box: along W first, then H, then D, then to the next
        image."""
        upper = [n - 1 + u for n, u in zip(self.dims[1:-1], self.upper, strict=True)]
        at, found = list(self.start[:-1]), list[tuple[int, ...]]()
        for _ in range(self.pixels):
            moved = [a + o for a, o in zip(at[1:], self.offsets, strict=True)]
            found.append((at[0], *moved, self.start[-1]))
            for axis in range(len(at) - 1, 0, -1):
                at[axis] += self.steps[axis]
                if at[axis] <= upper[axis - 1]:
                    break
                at[axis] = self.lower[axis - 1]
            else:
                at[0] += 1
        return found

    def places(self) -> list[list[tuple[int, ...] | None]]:
        """For every row of the box, the element of the tensor at each place; None out of bounds."""
        found: list[list[tuple[int, ...] | None]] = []
        for row in self.rows():
            line: list[tuple[int, ...] | None] = []
            for n in range(self.box[-1]):
                at = (*row[:-1], row[-1] + n)
                inside = all(0 <= a < d for a, d in zip(at, self.dims, strict=True))
                line.append(at if inside else None)
            found.append(line)
        return found

    def in_shared(self, offset: int) -> int:
        """Where a byte goes by the swizzle: chunks of a span change places by the span's number."""
        row = offset // 128
        chunk = {"128B_atom_32B": 32, "128B_atom_32B_flip_8B": 32, "128B_atom_64B": 64}
        size = chunk.get(self.swizzle, 16)
        count = SPANS[self.swizzle] // size
        if not count:
            return offset
        span, inside = divmod(offset, size * count)
        number, rest = divmod(inside, size)
        if self.swizzle.endswith("flip_8B") and row % 2:
            rest = rest // 16 * 16 + (rest + 8) % 16
        return span * size * count + (number ^ (row % count)) * size + rest

    def expected(self, content: np.ndarray) -> np.ndarray:
        """The elements of the box in order, as it is loaded."""
        tensor, outside = self.tensor(content), np.nan if self.fill == "nans" else 0
        flat = [place for row in self.places() for place in row]
        values = [outside if place is None else tensor[place] for place in flat]
        return np.array(values).astype(self.dtype)

    def stored(self, content: np.ndarray, elements: np.ndarray, op: str = "") -> np.ndarray:
        """The content of the tensor after the box was stored, or reduced by `op`."""
        found = content.copy()
        tensor = self.tensor(found)
        flat = [place for row in self.places() for place in row]
        for place, element in zip(flat, elements, strict=True):
            if place is not None:
                tensor[place] = REDUCTIONS[op](tensor[place], element)
        return found

    def elements(self, shared: np.ndarray) -> np.ndarray:
        """The elements of the box that stand in shared memory, in order."""
        return shared[self.order()].view(self.dtype)

    def order(self) -> np.ndarray:
        """Where each byte of the box stands in shared memory."""
        count = len(self.rows()) * self.box[-1] * self.dtype.itemsize
        return np.array([self.in_shared(offset) for offset in range(count)])


def random_case(seed: int, rank: int, swizzle: str) -> Case:
    """A box that extends over the edges of its tensor."""
    random = np.random.default_rng(seed)
    type = list(TYPES)[seed % len(TYPES)]
    size = np.dtype(TYPES[type]).itemsize
    most = (SPANS[swizzle] or 64) // 16
    inner = 16 * int(random.integers(1, most + 1)) // size
    outer, steps = [], []
    capacity = CAPACITY // (inner * size)
    for _ in range(rank - 1):
        step, count = int(random.integers(1, 4)), int(random.integers(1, min(5, capacity) + 1))
        capacity //= count
        steps.append(step)
        outer.append(max(1, count * step - int(random.integers(0, step))))
    dims = tuple(int(n) for n in random.integers(2, 9, rank - 1))
    last = int(random.integers(1, 2 * inner + 1))
    start = tuple(int(random.integers(-2, n)) for n in (*dims, last))
    fill = "nans" if type in FLOATS and seed % 3 else "zeros"
    box, every = (*outer, inner), (*steps, 1)
    padding = 16 * int(random.integers(0, 3))
    return Case(type, (*dims, last), box, every, start, swizzle, fill, padding)


def random_columns(seed: int, rank: int, swizzle: str) -> Case:
    """A column of pixels, as a convolution loads it."""
    random = np.random.default_rng(seed)
    type = list(TYPES)[seed % len(TYPES)]
    size = np.dtype(TYPES[type]).itemsize
    channels = 16 * int(random.integers(1, (SPANS[swizzle] or 64) // 16 + 1)) // size
    sizes = tuple(int(n) for n in random.integers(3, 7, rank - 2))
    lower = tuple(int(n) for n in random.integers(-1, 1, rank - 2))
    upper = tuple(int(n) for n in random.integers(-2, 1, rank - 2))
    steps = (1, *(int(n) for n in random.integers(1, 3, rank - 2)), 1)
    offsets = tuple(int(n) for n in random.integers(0, 3, rank - 2))
    start = tuple(
        low + s * int(random.integers(0, 2)) for low, s in zip(lower, steps[1:-1], strict=True)
    )
    dims = (3, *sizes, int(random.integers(1, 2 * channels)))
    pixels = int(random.integers(2, 30))
    return Case(
        type,
        dims,
        (0,) * (rank - 1) + (channels,),
        steps,
        (int(random.integers(0, 2)), *start, int(random.integers(-1, 2))),
        swizzle,
        "zeros",
        lower=lower,
        upper=upper,
        offsets=offsets,
        pixels=pixels,
    )


def map_of(gpu: wl.Device, case: Case, buffer: wl.Buffer) -> wl.TensorMap:
    """The tensor map of a case, over a buffer with its content."""
    if case.pixels:
        return gpu.im2col_map(
            buffer,
            case.lower,
            case.upper,
            case.box[-1],
            case.pixels,
            shape=case.dims,
            strides=case.strides[:-1],
            element_strides=case.steps,
            swizzle=case.swizzle,
            fill=case.fill,
        )
    return gpu.tensor_map(
        buffer,
        case.box,
        shape=case.dims,
        strides=case.strides[:-1],
        element_strides=case.steps,
        swizzle=case.swizzle,
        fill=case.fill,
    )


WORDS = 16
"""Words of a case in the table of a kernel: kind, bytes, five coordinates, three offsets."""


def table(cases: list[Case]) -> np.ndarray:
    """Encodes cases for a kernel: for each its kind (the rank, with 8 more of im2col), the
    bytes of its box, its coordinates and its offsets."""
    found = np.zeros((len(cases), WORDS), np.int32)
    for row, case in zip(found, cases, strict=True):
        row[:2] = case.rank + 8 * bool(case.pixels), len(case.order())
        row[2 : 2 + case.rank] = case.start[::-1]
        row[7 : 7 + len(case.offsets)] = case.offsets[::-1]
    return found


def kernel(moves: str, target: str = "sm_90a") -> str:
    """A kernel whose block i fills its shared memory with the bytes of `content`; loads box i into
    it (`moves`: "load"), or stores it ("store") or reduces it by that operation from there; and
    copies shared memory to row i of `out`."""
    kinds = [*range(1, 6), *((11, 12, 13) if moves in ("load", "store") else ())]
    ways = "".join(f"setp.eq.u32 %p, %kind, {k}; @%p bra kind{k};" for k in kinds)
    moved = "".join(f"kind{k}: {_move(k, moves)} bra moved;" for k in kinds)
    words = "".join(f"ld.global.u32 %c{i}, [%a+{4 * i + 8}];" for i in range(5))
    words += "".join(f"ld.global.u16 %o{i}, [%a+{4 * i + 28}];" for i in range(3))
    return f"""
.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 maps, .param .u64 table, .param .u64 content, .param .u64 out)
{{
    .reg .b64 %map, %table, %content, %out, %a, %b;
    .reg .b32 %t, %case, %buf, %bar, %i, %s, %v, %kind, %bytes, %c<5>;
    .reg .b16 %o<3>;
    .reg .pred %first, %p;
    .shared .align 1024 .b8 buf[{CAPACITY}];
    .shared .align 8 .b64 bar;
    ld.param.u64 %map, [maps];
    ld.param.u64 %table, [table];
    ld.param.u64 %content, [content];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %case, %ctaid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %buf, buf;
    mov.u32 %bar, bar;
    mad.wide.u32 %map, %case, 128, %map;
    mad.wide.u32 %out, %case, {CAPACITY}, %out;
    mad.wide.u32 %a, %case, {4 * WORDS}, %table;
    ld.global.u32 %kind, [%a];
    ld.global.u32 %bytes, [%a+4];
    {words}
    @%first mbarrier.init.shared::cta.b64 [%bar], 1;
    {_every_word("fill", "ld.global.u32 %v, [%a]; st.shared.u32 [%s], %v;")}
    fence.proxy.async.shared::cta;
    @!%first bra waits;
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %bytes;" if moves == "load" else ""}
    {ways}
    {moved}
moved:
    {"" if moves == "load" else "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"}
waits:
    {WAIT if moves == "load" else ""}
    bar.sync 0;
    {_every_word("show", "ld.shared.u32 %v, [%s]; st.global.u32 [%b], %v;")}
    ret;
}}
"""


WAIT = """
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
    @!%p bra waits;
"""


def _every_word(label: str, each: str) -> str:
    """Code that goes through the words of shared memory, at %s and at %a and %b in global
    memory."""
    return f"""
    mul.lo.u32 %i, %t, 4;
{label}:
    add.u32 %s, %buf, %i;
    cvt.u64.u32 %a, %i;
    add.u64 %b, %out, %a;
    add.u64 %a, %content, %a;
    {each}
    add.u32 %i, %i, 128;
    setp.lt.u32 %p, %i, {CAPACITY};
    @%p bra {label};
    bar.sync 0;
"""


def _move(kind: int, moves: str) -> str:
    rank, columns = kind % 8, kind > 8
    place = "{" + ", ".join(f"%c{i}" for i in range(rank)) + "}"
    offsets = ", {" + ", ".join(f"%o{i}" for i in range(rank - 2)) + "}" if columns else ""
    if moves == "load":
        mode = ".im2col" if columns else ".tile"
        return (
            f"cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}"
            f".mbarrier::complete_tx::bytes [%buf], [%map, {place}], [%bar]{offsets};"
        )
    name = "cp.async.bulk.tensor" if moves == "store" else "cp.reduce.async.bulk.tensor"
    op = "" if moves == "store" else f".{moves}"
    mode = ".im2col_no_offs" if columns else ""
    return f"{name}.{rank}d.global.shared::cta{op}{mode}.bulk_group [%map, {place}], [%buf];"
