"""The part of NumPy that the reference machine uses, in pure Python.

The machine in the page runs in Pyodide. NumPy for it is on no package index, and a warp's arrays of
32 lanes are so short that Python's own loops take about twice the time of NumPy's calls. Scalars
are Python numbers. `tests/ui/test_page_machine.py` holds the traces of all lessons against those
with NumPy."""

from __future__ import annotations

import math
import operator
from contextlib import contextmanager

from . import arrays, dtypes
from .arrays import (
    array,
    asarray,
    binary,
    broadcast_shapes,
    broadcast_to,
    ndarray,
    store,
    unary,
)
from .dtypes import *  # noqa: F403
from .dtypes import BOOL, FLOAT64, INT64, OBJECT, dtype, promoted, with_scalar  # noqa: F401

__version__ = "2.1.0"
nan, inf, pi, newaxis = math.nan, math.inf, math.pi, None
bool = dtypes.bool_
intp, uintp, longlong = dtypes.int64, dtypes.uint64, dtypes.int64


class random:
    Generator = object

    @staticmethod
    def default_rng(seed=None):
        raise NotImplementedError("random arguments need a server")


class ctypeslib:
    @staticmethod
    def as_array(given):
        return frombuffer(memoryview(given).cast("B"), dtypes.uint8)


@contextmanager
def errstate(**_):
    yield


def _shape(given):
    return (given,) if isinstance(given, int) else tuple(given)


def zeros(shape, dtype=None):
    shape, type = _shape(shape), dtypes.dtype(dtype)
    count = math.prod(shape)
    if type is OBJECT:
        return ndarray(shape, type, [0] * count)
    flat = memoryview(bytearray(count * type.itemsize))
    return ndarray(shape, type, flat.cast(type.char) if count else store([], type))


empty = zeros


def full(shape, value, dtype=None):
    type = array(value).dtype if dtype is None else dtypes.dtype(dtype)
    made = zeros(shape, type)
    made[...] = value
    return made


def ones(shape, dtype=None):
    return full(shape, 1, dtypes.dtype(dtype))


def zeros_like(given, dtype=None):
    return zeros(given.shape, dtype or given.dtype)


empty_like = zeros_like


def full_like(given, value, dtype=None):
    return full(given.shape, value, dtype or given.dtype)


def arange(*given, dtype=None):
    if all(isinstance(one, int) for one in given):
        return array(list(range(*given)), dtype or INT64)
    start, stop, step = (0.0, *given, 1.0)[:3] if len(given) == 1 else (*given, 1.0)[:3]
    count = max(0, math.ceil((stop - start) / step))
    return array([start + step * n for n in range(count)], dtype or FLOAT64)


def frombuffer(buffer, dtype=None, count=-1, offset=0):
    type = dtypes.dtype(dtype)
    raw = memoryview(buffer).cast("B")[offset:]
    count = len(raw) // type.itemsize if count < 0 else count
    raw = raw[: count * type.itemsize]
    return ndarray((count,), type, raw.cast(type.char) if len(raw) else store([], type))


def fromiter(values, dtype, count=-1):
    return array(list(values), dtype)


def ascontiguousarray(given, dtype=None):
    one = asarray(given, dtype)
    return one if one._contiguous else one.copy()


def concatenate(parts, axis=0):
    parts = [asarray(part) for part in parts]
    type = parts[0].dtype
    for part in parts:
        type = promoted(type, part.dtype)
    if axis == 0:
        flat = [value for part in parts for value in part._list()]
        return ndarray((sum(map(len, parts)), *parts[0].shape[1:]), type, store(flat, type))
    return concatenate([part.T for part in parts]).T


def stack(parts, axis=0):
    made = array([asarray(part) for part in parts])
    return (
        made if axis == 0 else made.transpose(*range(1, axis + 1), 0, *range(axis + 1, made.ndim))
    )


def column_stack(parts):
    return concatenate([p if p.ndim > 1 else p.reshape(-1, 1) for p in map(asarray, parts)], 1)


def where(condition, *sides):
    if not sides:
        return asarray(condition).nonzero()
    a, b = sides
    if isinstance(a, ndarray) and isinstance(b, ndarray):
        type = promoted(a.dtype, b.dtype)
    elif isinstance(a, ndarray):
        type = with_scalar(a.dtype, b)
    else:
        type = with_scalar(b.dtype, a) if isinstance(b, ndarray) else array([a, b]).dtype
    condition = asarray(condition)
    shape = broadcast_shapes(*(asarray(one).shape for one in (condition, a, b)))
    rows = zip(*(arrays._spread(one, shape) for one in (condition, a, b)))
    return ndarray(shape, type, store([x if c else y for c, x, y in rows], type))


def flatnonzero(given):
    return array([n for n, value in enumerate(asarray(given)._list()) if value], INT64)


def nonzero(given):
    return asarray(given).nonzero()


def count_nonzero(given):
    return sum(1 for value in asarray(given)._list() if value)


def unique(given, return_index=False, return_inverse=False, return_counts=False, axis=None):
    one = asarray(given)
    rows = [tuple(row) for row in one.tolist()] if axis == 0 else one._list()
    first, counts = {}, {}
    for number, row in enumerate(rows):
        first.setdefault(row, number)
        counts[row] = counts.get(row, 0) + 1
    order = sorted(first)
    numbers = {row: number for number, row in enumerate(order)}
    shape = (len(order), *one.shape[1:]) if axis == 0 else (len(order),)
    flat = [value for row in order for value in row] if axis == 0 else order
    made = [ndarray(shape, one.dtype, store(flat, one.dtype))]
    if return_index:
        made.append(array([first[row] for row in order], INT64))
    if return_inverse:
        made.append(array([numbers[row] for row in rows], INT64))
    if return_counts:
        made.append(array([counts[row] for row in order], INT64))
    return tuple(made) if len(made) > 1 else made[0]


def bincount(given, weights=None, minlength=0):
    values = asarray(given)._list()
    counts = [0] * max(minlength, max(values, default=-1) + 1)
    for n, value in enumerate(values):
        counts[value] += 1 if weights is None else weights[n]
    return array(counts, INT64 if weights is None else FLOAT64)


def repeat(given, times, axis=None):
    values, times = asarray(given)._list(), arrays._spread(times, (len(asarray(given)),))
    return array([v for v, n in zip(values, times) for _ in range(n)], asarray(given).dtype)


def lexsort(keys):
    keys = [asarray(key)._list() for key in reversed(list(keys))]
    return array(sorted(range(len(keys[0])), key=lambda n: [key[n] for key in keys]), INT64)


def argsort(given, kind=None):
    return asarray(given).argsort()


def sort(given):
    made = asarray(given).copy()
    made.sort()
    return made


def searchsorted(given, value, side="left"):
    from bisect import bisect_left, bisect_right

    find = bisect_left if side == "left" else bisect_right
    values = asarray(given)._list()
    if isinstance(value, (ndarray, list)):
        return array([find(values, one) for one in asarray(value)._list()], INT64)
    return find(values, value)


def isin(given, among):
    known = set(asarray(among)._list())
    return unary(known.__contains__, asarray(given), BOOL)


def array_equal(a, b):
    a, b = asarray(a), asarray(b)
    return a.shape == b.shape and a._list() == b._list()


def clip(given, low, high):
    return minimum(maximum(given, low), high)


def packbits(given, bitorder="big"):
    bits = [1 if value else 0 for value in asarray(given)._list()]
    bits += [0] * (-len(bits) % 8)
    number = int("".join(map(str, reversed(bits))) or "0", 2)
    data = number.to_bytes(len(bits) // 8, "little")
    if bitorder == "big":
        data = bytes(int(f"{byte:08b}"[::-1], 2) for byte in data)
    return frombuffer(bytearray(data), dtypes.uint8)


def unpackbits(given, bitorder="big"):
    order = range(8) if bitorder == "little" else range(7, -1, -1)
    return array([byte >> bit & 1 for byte in asarray(given)._list() for bit in order], "uint8")


def ndindex(*shape):
    from itertools import product

    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return product(*map(range, shape))


def broadcast_arrays(*given):
    shape = broadcast_shapes(*(one.shape for one in given))
    return tuple(broadcast_to(one, shape) for one in given)


def split(given, where):
    cuts = [0, *asarray(where)._list(), len(given)]
    return [given[a:b] for a, b in zip(cuts, cuts[1:])]  # noqa: RUF007


class iinfo:
    def __init__(self, given):
        type = dtypes.dtype(given)
        self.bits, self.min = type.bits, type.low
        self.max = (1 << type.bits - (type.low != 0)) - 1


class finfo:
    def __init__(self, given):
        bits = {"e": 10, "f": 23, "d": 52}[dtypes.dtype(given).char]
        self.eps, self.nmant = 2.0**-bits, bits


# ---- functions of each element -----------------------------------------------------------------


def _float_function(function):
    def applied(given):
        if not isinstance(given, ndarray):
            return function(given)
        return unary(function, given, None if given.dtype.kind == "f" else FLOAT64)

    return applied


def _integral(function):
    def rounded(value):
        if value != value or math.isinf(value):
            return value
        return math.copysign(float(function(value)), value)

    return _float_function(rounded)


rint, trunc = _integral(round), _integral(math.trunc)
floor, ceil = _integral(math.floor), _integral(math.ceil)
sqrt = _float_function(lambda x: math.nan if x < 0 else math.sqrt(x))
log2 = _float_function(lambda x: math.log2(x) if x > 0 else (-math.inf if x == 0 else math.nan))


def _test(function):
    return lambda given: (
        unary(function, given, BOOL) if isinstance(given, ndarray) else function(given)
    )


isnan, isfinite, isinf = _test(math.isnan), _test(math.isfinite), _test(math.isinf)
signbit = _test(lambda x: math.copysign(1.0, x) < 0)


def bitwise_count(given):
    return unary(int.bit_count, asarray(given), dtypes.dtype("uint8"))


def _least(a, b):
    return a if a != a or a <= b else b


def _greatest(a, b):
    return a if a != a or a >= b else b


def _ufunc(function, initial=None):
    def applied(a, b):
        return function(a, b)

    def reduce(given, axis=0):
        rows = asarray(given)
        parts = list(rows.T if axis else rows)
        made = parts[0]
        for part in parts[1:]:
            made = function(made, part)
        return made

    def at(target, where, values):
        places = asarray(where)._list()
        for place, value in zip(places, arrays._spread(values, (len(places),))):
            target[place] = function(target[place], value)

    applied.reduce, applied.at = reduce, at
    return applied


minimum = _ufunc(lambda a, b: binary(_least, a, b) if _any(a, b) else _least(a, b))
maximum = _ufunc(lambda a, b: binary(_greatest, a, b) if _any(a, b) else _greatest(a, b))
add, subtract, multiply = map(_ufunc, (operator.add, operator.sub, operator.mul))
bitwise_and, bitwise_or, bitwise_xor = map(_ufunc, (operator.and_, operator.or_, operator.xor))
left_shift, right_shift = _ufunc(operator.lshift), _ufunc(operator.rshift)
equal, less, less_equal = map(_ufunc, (operator.eq, operator.lt, operator.le))
not_equal, greater, greater_equal = map(_ufunc, (operator.ne, operator.gt, operator.ge))
divide = _ufunc(lambda a, b: a / b if _any(a, b) else arrays._true_divide(a, b))
floor_divide, remainder = _ufunc(operator.floordiv), _ufunc(operator.mod)


def _any(a, b):
    return isinstance(a, ndarray) or isinstance(b, ndarray)


def invert(given):
    return ~given


def negative(given):
    return -given


def absolute(given):
    return abs(given)


def any(given, axis=None):
    return asarray(given).any(axis)


def all(given, axis=None):
    return asarray(given).all(axis)


def cumsum(given, dtype=None):
    return asarray(given).cumsum()


def prod(given):
    return asarray(given).prod()


__builtins_sum = sum


def sum(given, axis=None):
    return asarray(given).sum(axis) if isinstance(given, (ndarray, list)) else __builtins_sum(given)
