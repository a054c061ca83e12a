"""Writes `tensor_cores/` from a copy of the published data that `README.md` names.

    python validation/import_tensor_cores.py PATH_OF_THE_REPOSITORY COMMIT

Reads `model_validation/GPU/TYPE/ROLE_GPU_TYPE.txt`, in which a line is a dot product: eight
hexadecimal digits for each number of A and B, 32 binary digits for C and D, all in .f32.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tensor_cores import FOLDER, NUMPY_TYPES

COUNT = 1000
"""Dot products kept of each record; the source has 5,000."""

SOURCE = "https://github.com/north-numerical-computing/MATLAB-tensor-core"
PAPER = "F. A. Khattak, M. Mikaitis: Accurate Models of NVIDIA Tensor Cores, arXiv:2512.07004"

GPUS = {"V100": "7.0", "A100": "8.0", "A2": "8.6", "Ada": "8.9", "H100": "9.0", "H200": "9.0",
        "B200": "10.0"}  # fmt: skip
"""Compute capabilities. The source's Ada is an RTX 1000 Ada; its files of an L40S are the same."""

ALIGNED_BITS = {"7": 23, "8": 24, "9": 25, "10": 25}
"""Fraction bits after alignment, by major compute capability; see README.md."""

FP8_BITS = 13
"""The same for e4m3 and e5m2, by `mma` on 8.9 and `wgmma` on 9.0."""

FP8_BLOCKS = {"8.9": 16, "9.0": 32}

SHORTEST = 4
LENGTHS = {"V100": 4, "A100": 8, "A2": 8, "Ada": 8, "H100": 16, "H200": 16, "B200": 16}
"""Products of a dot product of f16 or bf16 in the source; one of tf32 has the fewest, four.
All of them are one block; the records do not show how many more the block might take."""


def described(gpu: str, input_type: str, sum_type: str) -> dict[str, object]:
    """Returns the entry of `records.json` but for the vectors."""
    cc, narrow = GPUS[gpu], input_type in ("e4m3", "e5m2")
    depth = {"tf32": 8, "e4m3": 32, "e5m2": 32}.get(input_type, 16)
    ends = f"{sum_type}.{input_type}.{input_type}.{sum_type}"
    if not narrow:
        types = f"{sum_type}.{sum_type}" if input_type == "f16" else ends
        instruction = f"wmma.mma.sync.aligned.row.col.m16n16k{depth}.{types}"
    elif cc == "9.0":
        instruction = f"wgmma.mma_async.sync.aligned.m64n8k32.{sum_type}.{input_type}.{input_type}"
    else:
        instruction = f"mma.sync.aligned.m16n8k{depth}.row.col.{ends}"
    bits = FP8_BITS if narrow else ALIGNED_BITS[cc.partition(".")[0]]
    block = FP8_BLOCKS[cc] if narrow else SHORTEST if input_type == "tf32" else LENGTHS[gpu]
    arithmetic = {"fraction_bits": bits, "block": block}
    if narrow and sum_type == "f32":
        arithmetic["kept_bits"] = FP8_BITS
    return {"gpu": gpu, "compute_capability": cc, "instruction": instruction,
            "input_type": input_type, "sum_type": sum_type, "arithmetic": arithmetic}  # fmt: skip


def recorded() -> Iterator[tuple[str, str, str]]:
    """Yields GPU, type of A and B, and type of D of each record taken over (README.md: which)."""
    for gpu in GPUS:
        yield gpu, "f16", "f32"
        yield gpu, "f16", "f16"
        if gpu != "V100":
            yield gpu, "bf16", "f32"
            yield gpu, "tf32", "f32"
        if gpu in ("Ada", "H100", "H200"):
            yield gpu, "e4m3", "f32"
            yield gpu, "e5m2", "f32"
        if gpu == "Ada":
            yield gpu, "e4m3", "f16"
            yield gpu, "e5m2", "f16"


class Vectors:
    """Collects arrays of bits, each once however many records have it."""

    def __init__(self) -> None:
        self.arrays: dict[str, npt.NDArray[np.unsignedinteger]] = {}
        self._names: dict[bytes, str] = {}

    def add(self, name: str, values: npt.NDArray[np.float32], type: str) -> str:
        """Returns the name under which numbers stand, stored in a type that holds them exactly."""
        stored = values.astype(NUMPY_TYPES[type])
        bits = stored.view(f"u{stored.dtype.itemsize}")
        known = self._names.setdefault(str(bits.dtype).encode() + bits.tobytes(), name)
        self.arrays[known] = bits
        return known


def numbers(path: Path, digits: Callable[[str], list[int]]) -> npt.NDArray[np.float32]:
    """Returns the .f32 numbers of the first lines of a file, a row for each line."""
    with path.open(encoding="utf-8") as file:
        rows = [digits(line) for line, _ in zip(file, range(COUNT), strict=False)]
    return np.array(rows, np.uint32).view(np.float32)


def hexadecimal(line: str) -> list[int]:
    return [int(word, 16) for word in line.split()]


def binary(line: str) -> list[int]:
    return [int(line, 2)]


def read(source: Path, entry: dict[str, object], vectors: Vectors) -> dict[str, object]:
    """Returns an entry with the names of its vectors, which are added to the others."""
    gpu, given, sums = (str(entry[key]) for key in ("gpu", "input_type", "sum_type"))
    folder = {"f16": "fp16", "e4m3": "E4M3", "e5m2": "E5M2"}.get(given, given)
    files, result = source / "model_validation" / gpu / folder, f"fp{sums[1:]}"
    a, b = (numbers(files / f"{role}_{gpu}_{folder}.txt", hexadecimal) for role in "ab")
    c = numbers(files / f"c_{gpu}_fp32.txt", binary).ravel()
    d = numbers(files / f"d_{gpu}_{result}.txt", binary).ravel()
    if str(entry["instruction"]).startswith("wgmma"):
        c = np.zeros_like(c)  # Validate_TC_models.m: "D = AB + D where D is zero"
    name = f"{gpu}-{given}-{sums}"
    matrices = {"a": (a, given), "b": (b, given), "c": (c, sums), "d": (d, sums)}
    for role, (values, type) in matrices.items():
        entry[role] = vectors.add(f"{name}-{role}", values, type)
        if role != "c" and not np.array_equal(values.astype(NUMPY_TYPES[type]), values):
            raise SystemExit(f"{name}: {role} has numbers that .{type} does not have")
    return entry


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tensor_cores/ from published data.")
    parser.add_argument("source", type=Path, help="a copy of the repository")
    parser.add_argument("commit", help="its commit, for the records")
    given = parser.parse_args()
    vectors = Vectors()
    records = [read(given.source, described(*names), vectors) for names in recorded()]
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(FOLDER / "vectors.npz", allow_pickle=False, **vectors.arrays)
    text = {"source": SOURCE, "commit": given.commit, "paper": PAPER, "records": records}
    (FOLDER / "records.json").write_text(json.dumps(text, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
