"""Tests the prediction of blocks for which a record has no space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import warploom as wl
from warploom.timing.record.predicted import alignment_period, with_predicted_blocks
from warploom.timing.record.record import Record

KERNEL = """
extern "C" __global__ void rows(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[blockIdx.y * n + i] = x[i] + 1;
}
"""


def recorded() -> Record:
    """Returns the record of 4 x 3 blocks of 64 threads."""
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(256, np.float32), gpu.zeros(3 * 256, np.float32)
    record = gpu.compile(KERNEL)["rows"][(4, 3), 64](x, y, 256).record
    assert record is not None
    return record


BYTES = """
extern "C" __global__ void bytes(const unsigned char *x, unsigned char *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i + 1];
}
"""


def recorded_bytes() -> Record:
    """Returns the record of 40 blocks of 24 threads, each of which accesses a byte."""
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(961, np.uint8), gpu.zeros(960, np.uint8)
    record = gpu.compile(BYTES)["bytes"][40, 24](x, y).record
    assert record is not None
    return record


def first_blocks(record: Record, count: int) -> Record:
    warps = count * record.launch.warps_per_block
    assert record.offsets is not None
    own = record.warps[:warps], record.poll_counts[:warps], record.offsets[:warps]
    return replace(record, blocks=count, warps=own[0], poll_counts=own[1], offsets=own[2])


def test_addresses_are_extrapolated_from_block_index() -> None:
    """Five of twelve blocks determine the strides along x and along y."""
    whole = recorded()
    part = with_predicted_blocks(first_blocks(whole, 5), 12)
    assert (part.blocks, part.predicted) == (12, 7)
    np.testing.assert_array_equal(part.warps, whole.warps)


def test_blocks_repeat_addresses_along_axes_without_stride() -> None:
    """Three blocks of the first row do not determine the stride along y: the fourth block follows
    along x, and later rows have the addresses of the first."""
    whole = recorded()
    part = with_predicted_blocks(first_blocks(whole, 3), 12)
    rows = part.warps.reshape(3, -1)
    np.testing.assert_array_equal(rows[0], whole.warps.reshape(3, -1)[0])
    np.testing.assert_array_equal(rows[1], rows[0])


def test_record_with_enough_blocks_is_unchanged() -> None:
    record = recorded()
    assert with_predicted_blocks(record, 12) is record


def test_alignment_period_of_narrow_blocks() -> None:
    """24 bytes a block are 3 lines of 128 after 16 blocks, and whole lines after no fewer."""
    assert alignment_period(first_blocks(recorded_bytes(), 2)) == 16


def test_blocks_are_predicted_from_equally_aligned_blocks() -> None:
    """The bases of the first five blocks are 0, and those of all 40 lie on eight lines."""
    whole = recorded_bytes()
    for count in (16, 21):
        part = with_predicted_blocks(first_blocks(whole, count), 40)
        np.testing.assert_array_equal(part.warps, whole.warps)
