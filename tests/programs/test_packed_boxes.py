"""Copies of boxes of packed elements of 4 and 6 bits (PTX ISA, "Padding and alignment of the
sub-byte types", "Restriction on Tensor Copy instructions"): NumPy packs numbers as that says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tensor_cases import CAPACITY, WORDS, Case, kernel

import warploom as wl
from warploom.asynchronous.records import MapWords
from warploom.asynchronous.tensors import maps

ENGINES = ("reference", "compiled")
GROUP = 16
BITS = {"b4x16": 4, "b4x16_p64": 4, "b6x16_p32": 6}
NEAR = {"b4x16": 8, "b4x16_p64": 16, "b6x16_p32": 16}
"""Bytes of a group of 16 in shared memory, with its gap."""


def pack(numbers: np.ndarray, bits: int) -> np.ndarray:
    """The bytes of numbers, the last axis side by side from the lowest bit on."""
    each = (numbers[..., None] >> np.arange(bits)) & 1
    return np.packbits(each.reshape(*numbers.shape[:-1], -1), axis=-1, bitorder="little")


@dataclass(frozen=True)
class Packed(Case):
    """A box of packed elements; `padding` in bytes is between the rows of the tensor."""

    @property
    def bits(self) -> int:
        return BITS[self.type]

    @property
    def row(self) -> int:
        """Bytes from row to row of the tensor."""
        return -(-self.dims[-1] * self.bits // 8 // 32) * 32 + self.padding

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between elements along every axis but the innermost, which has less than one."""
        return tuple(
            self.row * int(np.prod(self.dims[axis + 1 : -1])) for axis in range(self.rank - 1)
        )

    def numbers(self, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        return random.integers(1, 1 << self.bits, self.dims).astype(np.uint8)

    def memory(self, numbers: np.ndarray) -> np.ndarray:
        """The tensor in global memory, with 170 between its rows."""
        found = np.full((*self.dims[:-1], self.row), 170, np.uint8)
        packed = pack(numbers, self.bits)
        found[..., : packed.shape[-1]] = packed
        return found.reshape(-1)

    def map(self, gpu: wl.Device, buffer: wl.Buffer) -> wl.TensorMap:
        given: dict[str, Any] = {
            "shape": self.dims, "strides": self.strides, "element_strides": self.steps,
            "swizzle": self.swizzle, "type": self.type,
        }  # fmt: skip
        if self.pixels:
            return gpu.im2col_map(
                buffer, self.lower, self.upper, self.box[-1], self.pixels, **given
            )
        return gpu.tensor_map(buffer, self.box, **given)

    @property
    def output(self) -> int:
        """The bytes that the mbarrier expects: without gaps."""
        return len(self.rows()) * self.box[-1] * self.bits // 8

    def table(self) -> np.ndarray:
        row = np.zeros(WORDS, np.int32)
        row[:2] = self.rank + 8 * bool(self.pixels), self.output
        row[2 : 2 + self.rank] = self.start[::-1]
        row[7 : 7 + len(self.offsets)] = self.offsets[::-1]
        return row

    def after_load(self, numbers: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """Shared memory behind the load: gaps as they were."""
        found = shared.copy()
        flat = [at for row in self.places() for at in row]
        box = np.array([0 if at is None else numbers[at] for at in flat], np.uint8)
        packed = pack(box.reshape(-1, GROUP), self.bits)
        for group, content in enumerate(packed):
            for number, byte in enumerate(content):
                found[self.in_shared(group * NEAR[self.type] + number)] = byte
        return found

    def after_store(self, numbers: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """The tensor behind the store. Of 6 bits (b6p2x16) each stands in a byte of its own."""
        found = numbers.copy()
        flat = [at for row in self.places() for at in row]
        for number, at in enumerate(flat):
            if at is not None and self.bits == 6:
                found[at] = shared[self.in_shared(number)] & 63
            elif at is not None:
                found[at] = shared[self.in_shared(number // 2)] >> number % 2 * 4 & 15
        return found


class WithGaps(Packed):
    """A box whose kernel expects the bytes in shared memory."""

    @property
    def output(self) -> int:
        return len(self.rows()) * self.box[-1] * NEAR[self.type] // GROUP


PADDED = [
    Packed(type, (256,), (128,), (1,), (start,), swizzle)
    for type, start, swizzle in (
        ("b4x16_p64", 128, "none"),
        ("b4x16_p64", -128, "none"),
        ("b6x16_p32", 0, "128B"),
        ("b6x16_p32", 256, "none"),
    )
] + [
    Packed("b4x16_p64", (9, 256), (8, 128), (1, 1), (3, 128), "128B"),
    Packed("b4x16_p64", (5, 128), (12, 128), (3, 1), (-1, 0), "128B_atom_32B", padding=64),
    Packed("b6x16_p32", (11, 256), (9, 128), (1, 1), (-2, 128), "128B"),
    Packed(
        "b6x16_p32", (3, 5, 128), (2, 4, 128), (1, 2, 1), (1, 2, 0), "128B_atom_32B", padding=32,
    ),
    Packed(
        "b6x16_p32", (3, 5, 4, 128), (0, 0, 0, 128), (1, 1, 2, 1), (1, 0, -1, 0), "128B",
        lower=(0, -1), upper=(-1, 0), offsets=(1, 1), pixels=14,
    ),
]  # fmt: skip

DENSE = [
    Packed("b4x16", (300,), (96,), (1,), (250,)),
    Packed("b4x16", (100,), (64,), (1,), (-6,)),
    Packed("b4x16", (7, 90), (5, 64), (1, 1), (4, 46), "32B"),
    Packed("b4x16", (7, 200), (6, 96), (2, 1), (-1, 2), "64B", padding=16),
    Packed("b4x16", (3, 4, 512), (2, 3, 256), (1, 1, 1), (2, 1, 256), "128B"),
    Packed("b4x16", (3, 4, 128), (2, 3, 128), (1, 1, 1), (0, -1, -32), "128B_atom_32B_flip_8B"),
]

STORED = [
    replace(PADDED[2], start=(128,)),
    replace(PADDED[6], start=(4, 0)),
    replace(PADDED[7], swizzle="128B_atom_64B"),
    *(case for case in DENSE if min(case.start) >= 0),
]


Change = tuple[int, int, int]
"""What `tensormap.replace` would change in a map: field, axis, value."""


def run(
    cases: list[Packed], moves: str, engine: str, change: Change | None = None, **options: Any
) -> None:
    """Copy the boxes, one a block; compare shared memory and the tensors."""
    gpu = wl.Device("b200", engine=engine, **options)
    tensors = [case.numbers(seed) for seed, case in enumerate(cases)]
    buffers = [gpu.to_device(c.memory(n)) for c, n in zip(cases, tensors, strict=True)]
    made = [bytes(c.map(gpu, b)) for c, b in zip(cases, buffers, strict=True)]
    output = np.frombuffer(b"".join(made), np.int64).copy()
    if change is not None:
        maps.replace(MapWords(output, 0), *change)
    shared = np.random.default_rng(5).integers(0, 256, CAPACITY).astype(np.uint8)
    out = np.zeros((len(cases), CAPACITY), np.uint8)
    table = np.stack([case.table() for case in cases])
    text = kernel(moves, "sm_100a")
    gpu.compile(text, "ptx")["k"][len(cases), 32](output, table, shared, out)
    for case, numbers, buffer, found in zip(cases, tensors, buffers, out, strict=True):
        loads = moves == "load"
        expected = case.after_load(numbers, shared) if loads else shared
        tensor = numbers if loads else case.after_store(numbers, shared)
        np.testing.assert_array_equal(found, expected, str(case))
        np.testing.assert_array_equal(buffer.copy_to_host(), case.memory(tensor), str(case))


@pytest.mark.parametrize("engine", ENGINES)
def test_boxes_are_loaded_with_gaps_and_without(engine: str) -> None:
    """Each block waits for its mbarrier, which expects 4 or 6 bits an element. Under adversarial
    orders copies complete late, and would not be there where fewer bytes were expected."""
    schedule = "adversarial" if engine == "compiled" else "converge"
    run(PADDED + DENSE, "load", engine, schedule=schedule)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_mbarrier_expects_the_bytes_without_gaps(engine: str) -> None:
    """Who expects the bytes that the box takes in shared memory waits for ever."""
    with pytest.raises(wl.DeadlockError):
        run([WithGaps("b6x16_p32", (256,), (128,), (1,), (0,))], "load", engine)


BROKEN: list[tuple[Packed, str, Change | None, str]] = [
    (DENSE[2], "add", None, "b4x16: reductions do not support"),
    (PADDED[4], "store", None, "b4x16_p64: stores do not support"),
    (
        replace(PADDED[4], start=(3, 64)),
        "load",
        None,
        "the first coordinate must be a multiple of 128",
    ),
    (replace(DENSE[2], start=(4, 47)), "load", None, "or of 2 for b4x16"),
    (replace(STORED[1], start=(4, 16)), "store", None, "b6p2x16: the first"),
    (
        replace(PADDED[7], swizzle="128B_atom_64B"),
        "load",
        None,
        "b6x16_p32: the swizzle must be none",
    ),
    (PADDED[4], "load", (maps.SWIZZLE_MODE, 0, maps.SWIZZLE_64B), "the swizzle must be none"),
    (PADDED[4], "load", (maps.FILL_MODE, 0, maps.FILL_NANS), "filled with zeros"),
    (PADDED[4], "load", (maps.BOX_DIM, 0, 64), "a row of the box must have 128 elements"),
    (DENSE[2], "load", (maps.BOX_DIM, 0, 48), "a multiple of 32"),
    (PADDED[4], "load", (maps.GLOBAL_DIM, 0, 192), "innermost dimension of the tensor"),
    (
        PADDED[4],
        "load",
        (maps.GLOBAL_STRIDE, 0, 144),
        "the address and the strides of the tensor must be multiples of 32",
    ),
    (PADDED[6], "load", (maps.INTERLEAVE_LAYOUT, 0, maps.INTERLEAVE_16B), "interleaved"),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_that_break_a_rule_are_faults(engine: str) -> None:
    for case, moves, change, message in BROKEN:
        with pytest.raises(wl.MemoryFault, match=message):
            run([case], moves, engine, change)


def test_maps_of_packed_elements_that_are_refused() -> None:
    """The rules of cuTensorMapEncodeTiled (cuda.h)."""
    gpu = wl.Device("b200")
    data = gpu.zeros((8, 192), np.uint8)  # rows of 384 elements of 4, of 256 of 6 bits
    gpu.tensor_map(data, (4, 128), type="b6x16_p32", swizzle="128B_atom_64B")
    padded, six, dense = ({"type": type} for type in ("b4x16_p64", "b6x16_p32", "b4x16"))
    cases: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
        ((4, 64), padded, "64 elements of b4x16_p64, but must have 128 elements"),
        ((4, 48), dense, "must have a multiple of 32 elements"),
        ((4, 128), {**dense, "swizzle": "32B"}, "but at most 32 are allowed with swizzle 32B"),
        (
            (4, 128),
            {**padded, "shape": (8, 320), "strides": (192,)},
            "must be a multiple of 128, not 320",
        ),
        (
            (4, 128),
            {**dense, "shape": (8, 31), "strides": (192,)},
            "must be a multiple of 2, not 31",
        ),
        (
            (4, 128),
            {**six, "strides": (208,), "shape": (7, 256)},
            "must be a multiple of 32 bytes",
        ),
        ((4, 128), {**six, "offset": 16, "shape": (4, 256)}, "must be a multiple of 32"),
        ((4, 128), {**padded, "swizzle": "128B_atom_64B"}, "does not support swizzle"),
        ((4, 128), {**padded, "swizzle": "64B"}, "does not support swizzle"),
        ((4, 128), {**six, "swizzle": "128B_atom_32B_flip_8B"}, "does not support swizzle"),
        ((4, 128), {**dense, "fill": "nans"}, "elements of type b4x16 cannot be filled with NaNs"),
        (
            (1, 1, 128),
            {**six, "shape": (2, 4, 256), "interleave": "16B"},
            "b6x16_p32 does not support interleaving",
        ),
        ((4, 128), {**six, "shape": (9, 256)}, "extends past the end"),
    ]
    for box, options, message in cases:
        with pytest.raises(wl.WarploomError, match=message):
            gpu.tensor_map(data, box, **options)
    with pytest.raises(wl.WarploomError, match="of b6x16_p32, but must have 128 elements"):
        gpu.im2col_map(data, (0,), (0,), 64, 4, shape=(2, 4, 256), type="b6x16_p32")
