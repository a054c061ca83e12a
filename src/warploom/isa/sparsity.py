"""Sparse A of `mma.sp`: half of its columns are stored, and metadata select which half.

Each chunk of a row has four bits of metadata, two indices of two bits: where in the chunk the first
and the second half of what is stored of it stand. Source: PTX ISA, "Sparse matrix storage", and the
metadata figures of "Matrix fragments for multiply-accumulate operation with sparse matrix A".

Checked against code that feeds real devices: NVIDIA's CUTLASS (`reorder_meta` in
tools/util/include/cutlass/util/host_reorder.h, which arranges metadata so that `ldmatrix` brings
each lane its own) for the deepest shape of every width; LLVM for 16 bits again
(mlir/test/Integration/GPU/CUDA/sm80-lt/sparse-mma-2-4-f16.mlir, which runs on a device) and for the
selectors (llvm/include/llvm/IR/IntrinsicsNVVM.td). The shapes of half that depth hold the first
half of the same words, as the manual's text has it: docs/decisions/0006.
"""

from __future__ import annotations

from dataclasses import dataclass

NIBBLE = 4
"""Bits of metadata for a chunk."""

THREADS = 4
"""Neighboring lanes that hold the metadata of a row between them."""

CHUNKS = {32: 2, 16: 4, 8: 4, 4: 8}
"""Columns of a chunk, by the width of an element."""


@dataclass(frozen=True)
class Sparsity:
    """The layout of A of 16 rows and `columns` columns, of elements of `bits` bits."""

    bits: int
    columns: int

    @property
    def chunk(self) -> int:
        """Returns the number of neighbors along k of which half are stored."""
        return CHUNKS[self.bits]

    @property
    def stored(self) -> int:
        """Returns the number of elements that are stored of a chunk."""
        return self.chunk // 2

    @property
    def run(self) -> int:
        """Returns the number of neighbors that one index places: 4-bit elements come in pairs."""
        return max(1, self.stored // 2)

    @property
    def choices(self) -> int:
        """Returns where in its chunk a run can stand."""
        return self.chunk // self.run

    @property
    def words(self) -> int:
        """Returns the number of lanes of each four that contribute metadata."""
        return self.columns // self.chunk // 4

    @property
    def selectors(self) -> int:
        """Returns how many values the sparsity selector has: which lanes contribute."""
        return THREADS // self.words

    def column(self, k: int, choice: int) -> int:
        """Returns the column of A in which the k-th stored element of a row stands."""
        return k // self.stored * self.chunk + choice * self.run + k % self.run

    def position(self, row: int, k: int) -> tuple[int, int]:
        """Returns which lane holds, from which bit on, the index of a stored element, with selector
        0.

        Elements of 16 bits and more: a word holds four chunks of row r, and above them those of
        r + 8. Narrower ones: it holds eight chunks of one row.
        """
        chunk, inside = divmod(k, self.stored)
        if self.bits >= 16:
            word, number = divmod(chunk, 4)
            number += 4 * (row // 8)
        else:
            word, number = divmod(chunk, 8)
            word = 2 * word + row // 8
        # An index of .tf32 counts halves of an element, so that its upper bit selects one.
        index = 1 if self.choices == 2 else 2 * (inside // self.run)
        return THREADS * (row % 8) + word, NIBBLE * number + index

    def contributor(self, lane: int, selector: int) -> int:
        """Returns the lane whose metadata stand where those of `lane` would with selector 0."""
        group_start = lane - lane % THREADS
        return group_start + (lane % THREADS + selector * self.words) % THREADS
