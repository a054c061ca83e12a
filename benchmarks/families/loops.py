"""Native loops: some of the kernels' computations as plain loops for Numba's CPU compiler.

Each takes the arguments of its kernel, with arrays of the shapes that the problem has; one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(fastmath={"contract"})
def nine_point(image: Any, out: Any, width: int, height: int) -> None:
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            corners = (
                image[y - 1, x - 1]
                + image[y - 1, x + 1]
                + image[y + 1, x - 1]
                + image[y + 1, x + 1]
            )
            edges = image[y - 1, x] + image[y, x - 1] + image[y, x + 1] + image[y + 1, x]
            total = np.float32(4) * edges + corners - np.float32(20) * image[y, x]
            out[y, x] = total / np.float32(6)


@njit(fastmath={"contract"})
def heat(image: Any, out: Any, width: int, height: int, rate: float) -> None:
    for y in range(height):
        for x in range(width):
            centre = image[y, x]
            left = image[y, x - 1] if x > 0 else centre
            right = image[y, x + 1] if x < width - 1 else centre
            above = image[y - 1, x] if y > 0 else centre
            below = image[y + 1, x] if y < height - 1 else centre
            out[y, x] = centre + rate * (left + right + above + below - 4.0 * centre)


@njit
def life(cells: Any, out: Any, width: int, height: int) -> None:
    for y in range(height):
        up, down = (y + height - 1) % height, (y + 1) % height
        for x in range(width):
            left, right = (x + width - 1) % width, (x + 1) % width
            count = cells[up, left] + cells[up, x] + cells[up, right] + cells[y, left]
            count += cells[y, right] + cells[down, left] + cells[down, x] + cells[down, right]
            out[y, x] = count == 3 or (count == 2 and cells[y, x] != 0)


@njit(fastmath={"contract"})
def product(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> None:
    for i in range(m):
        for j in range(n):
            c[i, j] = 0
        for step in range(k):
            left = a[i, step]
            for j in range(n):
                c[i, j] += left * b[step, j]


@njit(fastmath={"contract"})
def jacobi(a: Any, b: Any, x: Any, out: Any, n: int) -> None:
    for i in range(n):
        total = b[i]
        for j in range(n):
            if j != i:
                total -= a[i, j] * x[j]
        out[i] = total / a[i, i]


@njit(fastmath={"contract"})
def csr_scalar(starts: Any, columns: Any, values: Any, x: Any, y: Any, rows: int) -> None:
    for row in range(rows):
        total = 0.0
        for i in range(starts[row], starts[row + 1]):
            total += values[i] * x[columns[i]]
        y[row] = total


@njit
def rank_sort(values: Any, out: Any, n: int) -> None:
    for i in range(n):
        own, rank = values[i], 0
        for j in range(n):
            if values[j] < own or (values[j] == own and j < i):
                rank += 1
        out[rank] = own


@njit
def crc32(records: Any, sums: Any, n: int, length: int) -> None:
    table = np.empty(256, np.uint32)
    for byte in range(256):
        crc = np.uint32(byte)
        for _ in range(8):
            odd = crc & np.uint32(1)
            crc >>= np.uint32(1)
            if odd:
                crc ^= np.uint32(0xEDB88320)
        table[byte] = crc
    for i in range(n):
        crc = np.uint32(0xFFFFFFFF)
        for k in range(length):
            at = (crc ^ records[i, k]) & np.uint32(255)
            crc = np.uint32((crc >> np.uint32(8)) ^ table[at])
        sums[i] = ~crc


@njit
def grey(rgb: Any, out: Any, width: int, height: int) -> None:
    for y in range(height):
        for x in range(width):
            red, green, blue = np.int32(rgb[y, x, 0]), np.int32(rgb[y, x, 1]), rgb[y, x, 2]
            total = np.int32(77) * red + np.int32(150) * green + np.int32(29) * np.int32(blue)
            out[y, x] = total >> np.int32(8)


@njit(fastmath={"contract"})
def mandelbrot(steps: Any, width: int, height: int, limit: int) -> None:
    for row in range(height):
        for column in range(width):
            cx, cy = -2.0 + 3.0 * column / width, -1.5 + 3.0 * row / height
            x, y, n = 0.0, 0.0, 0
            while n < limit and x * x + y * y < 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                n += 1
            steps[row, column] = n


@njit
def histogram(data: Any, bins: Any, n: int) -> None:
    for i in range(n):
        bins[data[i]] += 1


@njit(fastmath={"contract"})
def nearest(points: Any, centres: Any, labels: Any, n: int, count: int) -> None:
    for i in range(n):
        best, label = np.float32(np.inf), 0
        for c in range(count):
            distance = np.float32(0)
            for axis in range(6):
                delta = points[i, axis] - centres[c, axis]
                distance += delta * delta
            if distance < best:
                best, label = distance, c
        labels[i] = label


@njit
def lower_bound(ordered: Any, size: int, wanted: Any, places: Any, n: int) -> None:
    for i in range(n):
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        places[i] = low


@njit
def gather(values: Any, index: Any, out: Any, n: int) -> None:
    for i in range(n):
        out[i] = values[index[i]]
