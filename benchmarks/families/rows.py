"""Rows of a matrix and signals: softmax, layer normalisation, Fourier transforms, filters."""

from __future__ import annotations

import numpy as np

from families.base import (
    LINE,
    LINEAR,
    WARPS,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    uniform,
)


def softmax(shape: LaunchShape) -> Problem:
    rows, columns = 4_000 + shape.excess, 200
    values = uniform(np.float32, rows, columns) * np.float32(8)
    powers = np.exp(values.astype(np.float64) - values.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    arguments = (values, np.zeros_like(values), rows, columns)
    return Problem(cover((shape.threads,), 32 * rows), arguments, {1: expected})


def layer_norm(shape: LaunchShape) -> Problem:
    rows, columns = 800, 768 + shape.excess
    values, bias = uniform(np.float32, rows, columns), uniform(np.float32, columns, seed=1)
    gain = uniform(np.float32, columns, seed=2)
    wide = values.astype(np.float64)
    deviation = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = (wide - wide.mean(1, keepdims=True)) / deviation * gain + bias
    arguments = (values, gain, bias, np.zeros_like(values), columns)
    return Problem((rows,), arguments, {3: expected})


def _pairs(values: Array) -> Array:
    """Returns complex numbers as real and imaginary parts, along one more axis."""
    return values.view(np.float64).reshape(*values.shape, 2)


def fft(shape: LaunchShape) -> Problem:
    rows, bits = 80, 9
    signals = uniform(np.float32, rows, 1 << bits, 2) - np.float32(0.5)
    points = signals.astype(np.float64).view(np.complex128)[..., 0]
    expected = _pairs(np.fft.fft(points))
    arguments = (signals, np.zeros_like(signals), 1 << bits, bits)
    return Problem((rows,), arguments, {1: expected}, 8 << bits)


def complex_product(shape: LaunchShape) -> Problem:
    n = 600_000 + shape.excess
    a, b = uniform(np.float64, n, 2), uniform(np.float64, n, 2, seed=1)
    products = _pairs(a.view(np.complex128)[:, 0] * b.view(np.complex128)[:, 0])
    return Problem(cover(shape.block, n), (a, b, np.zeros_like(a), n), {2: products})


def filtered(shape: LaunchShape) -> Problem:
    n, count = 100_000 + shape.excess, 40
    signal, taps = uniform(np.float32, n), uniform(np.float32, count, seed=1)
    padded = np.pad(signal.astype(np.float64), (0, count - 1))
    expected = np.correlate(padded, taps.astype(np.float64), "valid")
    arguments = (signal, taps, np.zeros_like(signal), n, count)
    return Problem(cover(shape.block, n), arguments, {2: expected})


CASES = (
    Case("softmax by shuffles", "rows.cu", "softmax", WARPS, softmax, 1e-4),
    Case("layer norm by shuffles", "rows.cu", "layer_norm", WARPS, layer_norm, 1e-3),
    Case("FFT in shared memory", "rows.cu", "fft", LINEAR, fft, 1e-3),
    Case("complex product, double2", "rows.cu", "complex_product", LINE, complex_product, 1e-12),
    Case("filter of 40 taps", "rows.cu", "filter", LINE, filtered, 1e-4),
)
