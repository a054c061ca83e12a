"""Records of what tensor cores of real GPUs computed, and the arithmetic that reproduces them.

A record holds N dot products, one for each row of A and B: D = sum over k of A[:, k] * B[:, k] + C.
`README.md` beside this names the source of the records; `import_tensor_cores.py` writes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent / "tensor_cores"

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

NUMPY_TYPES: dict[str, npt.DTypeLike] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32,
    "f32": np.float32,
}

LEAST_EXPONENTS = {"f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "e4m3": -6, "e5m2": -14}
"""The exponent of the least normal number of each type; subnormal numbers have it, too."""

NO_EXPONENT = -10_000
"""Stands for the exponent of a zero, which takes no part in the alignment."""


@dataclass(frozen=True)
class Arithmetic:
    """The steps by which a tensor core adds products.

    The products of one block and the accumulator are aligned to the largest exponent among them,
    where a product's exponent is the sum of its factors' and its significand lies in [1, 4). Each
    is truncated to `fraction_bits` bits after the point; their sum is exact. Its rounding gives the
    accumulator of the next block: to nearest even for .f16, toward zero for .f32, of which only the
    upper `kept_bits` of 23 fraction bits are kept.
    """

    fraction_bits: int
    block: int
    kept_bits: int = 23


@dataclass(frozen=True)
class Record:
    """What one GPU computed by one instruction."""

    gpu: str
    compute_capability: str
    instruction: str
    input_type: str
    sum_type: str
    arithmetic: Arithmetic
    a: Floats
    b: Floats
    c: Floats
    d: Floats

    @property
    def title(self) -> str:
        """Returns a name that no other record has."""
        return f"{self.gpu}-{self.instruction.split('.')[0]}-{self.input_type}-{self.sum_type}"


def read_records() -> list[Record]:
    """Returns every record; A and B have a row for each dot product, C and D one number."""
    described = json.loads((FOLDER / "records.json").read_text("utf-8"))
    with np.load(FOLDER / "vectors.npz") as vectors:
        return [_record(entry, vectors) for entry in described["records"]]


def _record(
    entry: dict[str, object], vectors: dict[str, npt.NDArray[np.unsignedinteger]]
) -> Record:
    entry = dict(entry)
    types = {"a": entry["input_type"], "b": entry["input_type"]}
    matrices = {
        role: vectors[str(entry.pop(role))].view(
            NUMPY_TYPES[str(types.get(role, entry["sum_type"]))]
        )
        for role in "abcd"
    }
    arithmetic = Arithmetic(**entry.pop("arithmetic"))  # pyright: ignore[reportCallIssue]
    return Record(**entry, **matrices, arithmetic=arithmetic)  # pyright: ignore


def fused_sums(record: Record, arithmetic: Arithmetic) -> Floats:
    """Returns D of a record as that arithmetic computes it."""
    sums = record.c
    for first in range(0, record.a.shape[1], arithmetic.block):
        columns = slice(first, first + arithmetic.block)
        sums = _block_sums(record, arithmetic, columns, sums)
    return sums


def _block_sums(record: Record, arithmetic: Arithmetic, columns: slice, sums: Floats) -> Floats:
    """Returns the accumulator after one block of products."""
    a, a_exponents = _split(record.a[:, columns], LEAST_EXPONENTS[record.input_type])
    b, b_exponents = _split(record.b[:, columns], LEAST_EXPONENTS[record.input_type])
    c, c_exponents = _split(sums[:, None], LEAST_EXPONENTS[record.sum_type])
    terms = np.hstack([a * b, c])
    exponents = np.hstack([a_exponents + b_exponents, c_exponents])
    largest = np.where(terms == 0, NO_EXPONENT, exponents).max(axis=1, keepdims=True)
    # A double holds every step: 27 bits of a term, and six more for the sum of 33 terms.
    shift = np.clip(arithmetic.fraction_bits + exponents - largest, -60, 60)
    total = np.trunc(np.ldexp(terms, shift)).sum(axis=1)
    rounded = np.ldexp(total, largest[:, 0] - arithmetic.fraction_bits)
    if record.sum_type == "f16":
        return rounded.astype(np.float16)
    return _toward_zero(rounded, arithmetic.kept_bits)


def _split(values: Floats, least_exponent: int) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """Returns significands, in [1, 2) or below for subnormal numbers, and exponents."""
    wide = values.astype(np.float64)
    exponents = np.maximum(np.frexp(wide)[1].astype(np.int64) - 1, least_exponent)
    return np.ldexp(wide, -exponents), exponents


def _toward_zero(values: Doubles, kept_bits: int) -> npt.NDArray[np.float32]:
    """Returns numbers rounded toward zero to .f32, with zeros below the kept fraction bits."""
    nearest = values.astype(np.float32)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(values)
    inside = np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest)
    dropped = np.uint32((1 << (23 - kept_bits)) - 1)
    return (inside.view(np.uint32) & ~dropped).view(np.float32)
