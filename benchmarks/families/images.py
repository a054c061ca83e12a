"""Images: conversion, resizing, convolution, edges, histograms, the Mandelbrot set."""

from __future__ import annotations

import numpy as np

from families import loops
from families.base import (
    LINE,
    LINEAR,
    PLANE,
    WIDE,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def grey(shape: LaunchShape) -> Problem:
    width, height = 900 + shape.excess, 900 + shape.excess
    rgb = integers(np.uint8, 0, 256, height, width, 3)
    expected = (rgb.astype(np.int32) @ np.array([77, 150, 29]) >> 8).astype(np.uint8)
    arguments = (rgb, np.zeros_like(expected), width, height)
    return Problem(cover(shape.block, width, height), arguments, {1: expected})


def resize(shape: LaunchShape) -> Problem:
    height, width, high, wide = 300, 400, 550 + shape.excess, 700 + shape.excess
    image = uniform(np.float32, height, width)
    u = ((np.arange(wide) + 0.5) * width / wide - 0.5).clip(0, width - 1)
    v = ((np.arange(high) + 0.5) * height / high - 0.5).clip(0, height - 1)
    left, top = u.astype(int), v.astype(int)
    right, bottom = (left + 1).clip(max=width - 1), (top + 1).clip(max=height - 1)
    a, b = u - left, (v - top)[:, None]
    above = image[top][:, left] * (1 - a) + image[top][:, right] * a
    below = image[bottom][:, left] * (1 - a) + image[bottom][:, right] * a
    expected = above * (1 - b) + below * b
    arguments = (image, width, height, np.zeros((high, wide), np.float32), wide, high)
    return Problem(cover(shape.block, wide, high), arguments, {3: expected})


def convolve(shape: LaunchShape) -> Problem:
    height, width = 300 + shape.excess, 400 + shape.excess
    image = uniform(np.float32, height, width)
    padded, weights = np.pad(image.astype(np.float64), 2), np.array([1, 4, 6, 4, 1]) / 16
    across = sum(w * padded[:, i : i + width] for i, w in enumerate(weights))
    expected = sum(w * np.asarray(across)[i : i + height] for i, w in enumerate(weights))
    arguments = (image, np.zeros_like(image), width, height)
    return Problem(cover(shape.block, width, height), arguments, {1: np.asarray(expected)})


def mandelbrot(shape: LaunchShape) -> Problem:
    width, height, limit = 500 + shape.excess, 500 + shape.excess, 100
    cx = -2 + 3 * np.arange(width) / width
    cy = (-1.5 + 3 * np.arange(height) / height)[:, None]
    x, y = np.zeros((2, height, width))
    steps, inside = np.zeros((height, width), np.int32), np.ones((height, width), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(limit):
            inside &= x * x + y * y < 4
            steps += inside
            x, y = x * x - y * y + cx, 2 * x * y + cy
    arguments = (np.zeros_like(steps), width, height, limit)
    return Problem(cover(shape.block, width, height), arguments, {0: steps})


def histogram(shape: LaunchShape) -> Problem:
    n = 2_000_000 + shape.excess
    data = integers(np.uint8, 0, 256, n)
    counts = np.bincount(data, minlength=256).astype(np.uint32)
    return Problem((60,), (data, np.zeros_like(counts), n), {1: counts})


def histogram_global(shape: LaunchShape) -> Problem:
    n, count = 400_000 + shape.excess, 1000
    data = uniform(np.float32, n) ** 2
    bins = (data * np.float32(count)).astype(np.int32).clip(max=count - 1)
    counts = np.bincount(bins, minlength=count).astype(np.int32)
    return Problem(cover(shape.block, n), (data, np.zeros_like(counts), n, count), {1: counts})


def edges(shape: LaunchShape) -> Problem:
    height, width = 700 + shape.excess, 800 + shape.excess
    image = integers(np.uint8, 0, 256, height, width)
    wide, smooth = image.astype(np.int32), np.array([1, 2, 1])
    sides, rows = wide[:, 2:] - wide[:, :-2], wide[2:] - wide[:-2]
    gx = sum(weight * sides[i : height - 2 + i] for i, weight in enumerate(smooth))
    gy = sum(weight * rows[:, i : width - 2 + i] for i, weight in enumerate(smooth))
    expected = np.zeros_like(image)
    expected[1:-1, 1:-1] = (np.abs(gx) + np.abs(gy)).clip(max=255)
    arguments = (image, np.zeros_like(image), width, height)
    return Problem(cover(shape.block, width, height), arguments, {1: expected})


CASES = (
    Case("grey of RGB bytes", "images.cu", "grey", WIDE, grey, native=loops.grey),
    Case("bilinear resizing", "images.cu", "resize", PLANE, resize, 1e-3),
    Case("5x5 convolution", "images.cu", "convolve", PLANE, convolve, 1e-5),
    # Where a step is rounded in another way, a point may leave earlier or later.
    Case("Mandelbrot, doubles", "images.cu", "mandelbrot", PLANE, mandelbrot, differing=0.01,
           native=loops.mandelbrot),
    Case("histogram, shared", "images.cu", "histogram", LINEAR, histogram, in_place=True,
           native=loops.histogram),
    Case("histogram, global", "images.cu", "histogram_global", LINE, histogram_global,
           in_place=True),
    Case("Sobel, bytes", "images.cu", "edges", WIDE, edges),
)  # fmt: skip
