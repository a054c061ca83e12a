"""Arrays of numbers in pure Python: contents in a `memoryview` (a list for objects), of which an
array shows a part by an offset and strides, counted in elements."""

from __future__ import annotations

import ctypes
import operator
from array import array as packed
from math import prod

from .dtypes import BOOL, FLOAT64, INT64, OBJECT, UINT64, dtype, promoted, with_scalar


def store(values, type):
    """Returns new contents with the values of a list, converted to a type."""
    if type.kind == "O":
        return values
    if type.kind == "b":
        return memoryview(bytearray(map(bool, values))).cast("?")
    if type.char == "e":
        return _halves(values, type)
    try:
        return memoryview(packed(type.char, values))
    except (OverflowError, TypeError, ValueError):
        return memoryview(packed(type.char, [type.convert(value) for value in values]))


def _halves(values, type):
    contents = memoryview(bytearray(2 * len(values))).cast("e")
    for place, value in enumerate(values):
        contents[place] = type.rounded(float(value))
    return contents


def c_strides(shape):
    """Returns the strides of an array whose elements are adjacent, the last axis first."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


class Flags:
    """The flags of an array, which nothing enforces."""

    writeable = True
    c_contiguous = True


class Address:
    """What `array.ctypes` offers."""

    def __init__(self, owner):
        self._owner = owner

    @property
    def data(self):
        one = self._owner
        contents = one._flat.cast("B")
        at = one._offset * one.dtype.itemsize
        if not len(contents):
            return 0
        if contents.readonly:
            return ctypes.cast(ctypes.c_char_p(bytes(contents)), ctypes.c_void_p).value
        return ctypes.addressof(ctypes.c_char.from_buffer(contents)) + at

    def data_as(self, type):
        return ctypes.cast(self.data, type)


class ndarray:
    """An array of elements of one type."""

    __array_priority__ = 1.0
    __hash__ = None

    def __init__(self, shape, dtype=FLOAT64, flat=None, offset=0, strides=None):
        self.dtype, self.shape, self._flat, self._offset = dtype, shape, flat, offset
        self._contiguous = strides is None
        self._strides = c_strides(shape) if strides is None else strides
        if not self._contiguous:
            self._contiguous = self._strides == c_strides(shape)

    # ---- what it is ---------------------------------------------------------------------------

    @property
    def size(self):
        return prod(self.shape)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    @property
    def strides(self):
        return tuple(step * self.dtype.itemsize for step in self._strides)

    @property
    def ctypes(self):
        return Address(self)

    @property
    def flags(self):
        return Flags()

    @property
    def flat(self):
        return iter(self._list())

    @property
    def T(self):
        return self.transpose()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    # ---- elements -----------------------------------------------------------------------------

    def _places(self):
        """Returns where its elements are in the contents, in order."""
        places = [self._offset]
        for length, step in zip(self.shape, self._strides):
            steps = range(0, length * step, step) if step else [0] * length
            places = [place + more for place in places for more in steps]
        return places

    def _contents(self):
        """Returns its elements as contents of their own, which may be those that it has."""
        if self._contiguous:
            return self._flat[self._offset : self._offset + self.size]
        flat = self._flat
        return store([flat[place] for place in self._places()], self.dtype)

    def _list(self):
        """Returns its elements in a list."""
        if self._contiguous:
            part = self._flat[self._offset : self._offset + self.size]
            return part if isinstance(part, list) else part.tolist()
        flat = self._flat
        return [flat[place] for place in self._places()]

    def tolist(self):
        return _nested(self._list(), self.shape) if self.shape else self._list()[0]

    def tobytes(self):
        return self._contents().tobytes()

    def item(self, *at):
        return self._list()[at[0] if at else 0]

    def __buffer__(self, flags):
        return self._contents().cast("B")

    def __iter__(self):
        if len(self.shape) == 1:
            return iter(self._list())
        return (self[number] for number in range(self.shape[0]))

    def __contains__(self, value):
        return value in self._list()

    def __bool__(self):
        if self.size > 1:
            raise ValueError("the truth value of an array with several elements is ambiguous")
        return bool(self._list()[0]) if self.size else False

    def __int__(self):
        return int(self._list()[0])

    __index__ = __int__

    def __float__(self):
        return float(self._list()[0])

    def __repr__(self):
        return f"array({self.tolist()}, dtype={self.dtype.name})"

    # ---- parts --------------------------------------------------------------------------------

    def __getitem__(self, key):
        if type(key) is int and len(self.shape) == 1:
            length = self.shape[0]
            if not -length <= key < length:
                raise IndexError(f"index {key} is out of bounds for {length} elements")
            return self._flat[self._offset + (key % length) * self._strides[0]]
        return self._get(key if isinstance(key, tuple) else (key,))

    def _get(self, key):
        if any(_selects(part) for part in key):
            places, shape = self._selected(key)
            flat = self._flat
            return ndarray(shape, self.dtype, store([flat[p] for p in places], self.dtype))
        offset, shape, strides = self._sliced(key)
        if not shape and Ellipsis not in key:
            return self._flat[offset]
        return ndarray(shape, self.dtype, self._flat, offset, strides)

    def __setitem__(self, key, value):
        if type(key) is int and len(self.shape) == 1 and not isinstance(value, (ndarray, list)):
            length = self.shape[0]
            if not -length <= key < length:
                raise IndexError(f"index {key} is out of bounds for {length} elements")
            self._put(self._offset + (key % length) * self._strides[0], value)
            return
        key = key if isinstance(key, tuple) else (key,)
        if any(_selects(part) for part in key):
            places, shape = self._selected(key)
            for place, one in zip(places, _spread(value, shape)):
                self._put(place, one)
            return
        offset, shape, strides = self._sliced(key)
        ndarray(shape, self.dtype, self._flat, offset, strides)._assign(value)

    def _assign(self, value):
        """Sets all elements to a number, or to those of an array."""
        if not self.shape:
            self._put(self._offset, value.item() if isinstance(value, ndarray) else value)
            return
        size = self.size
        if self._contiguous and self.dtype.kind != "O":
            same = isinstance(value, ndarray) and value.dtype is self.dtype
            if same and value.shape == self.shape:
                made = value._contents()
            elif isinstance(value, (int, float)):
                made = _repeated(value, size, self.dtype)
            else:
                made = store(_spread(value, self.shape), self.dtype)
            self._flat[self._offset : self._offset + size] = made
            return
        for place, one in zip(self._places(), _spread(value, self.shape)):
            self._put(place, one)

    def _put(self, place, value):
        try:
            self._flat[place] = value
        except (ValueError, TypeError, OverflowError):
            self._flat[place] = self.dtype.convert(value)

    def _expanded(self, key):
        """Returns an index with a part for each axis, and for each new one."""
        taken = sum(
            part.ndim if isinstance(part, ndarray) and part.dtype is BOOL else 1
            for part in key
            if part is not None and part is not Ellipsis
        )
        rest = (slice(None),) * (len(self.shape) - taken)
        if not any(part is Ellipsis for part in key):
            return key + rest
        at = next(number for number, part in enumerate(key) if part is Ellipsis)
        return key[:at] + rest + key[at + 1 :]

    def _sliced(self, key):
        """Returns the offset, shape and strides of the part that slices and integers select."""
        offset, shape, strides, axis = self._offset, [], [], 0
        for part in self._expanded(key):
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            length, step = self.shape[axis], self._strides[axis]
            axis += 1
            if isinstance(part, slice):
                chosen = range(*part.indices(length))
                offset += chosen.start * step if len(chosen) else 0
                shape.append(len(chosen))
                strides.append(chosen.step * step)
            else:
                number = operator.index(part)
                if not -length <= number < length:
                    raise IndexError(f"index {number} is out of bounds for {length} elements")
                offset += number % length * step
        return offset, tuple(shape), tuple(strides)

    def _selected(self, key):
        """Returns where the elements are that arrays of indices or predicates select, and their
        shape."""
        parts = []
        for part in self._expanded(key):
            one = asarray(part) if _selects(part) else part
            if isinstance(one, ndarray) and one.dtype is BOOL:
                parts += one.nonzero()
            else:
                parts.append(one)
        arrays = [one for one in parts if isinstance(one, ndarray)]
        common = broadcast_shapes(*(one.shape for one in arrays))
        sums = [0] * prod(common)
        axes, axis, place = [], 0, None
        for part in parts:
            if part is None:
                axes.append((1, [0]))
                continue
            length, step = self.shape[axis], self._strides[axis]
            axis += 1
            if isinstance(part, ndarray):
                for n, number in enumerate(_spread(part, common)):
                    if not -length <= number < length:
                        raise IndexError(f"index {number} is out of bounds for {length} elements")
                    sums[n] += number % length * step
                place = len(axes) if place is None else place
            elif isinstance(part, slice):
                chosen = range(*part.indices(length))
                axes.append((len(chosen), [number * step for number in chosen]))
            else:
                sums = [one + part % length * step for one in sums]
        axes.insert(place or 0, (common, sums))
        places, shape = [self._offset], []
        for length, more in axes:
            places = [base + one for base in places for one in more]
            shape += length if isinstance(length, tuple) else [length]
        return places, tuple(shape)

    # ---- other forms --------------------------------------------------------------------------

    def astype(self, given, copy=True):
        type = dtype(given)
        if type is self.dtype:
            return self.copy() if copy else self
        values = self._list()
        if type.kind == "O" and self.dtype.kind == "O":
            values = list(values)
        return ndarray(self.shape, type, store(values, type))

    def view(self, given=None):
        if given is None:
            return ndarray(self.shape, self.dtype, self._flat, self._offset, self._strides)
        type = dtype(given)
        if type is self.dtype:
            return self
        if type.itemsize == self.dtype.itemsize and len(self._flat):
            flat = self._flat.cast("B").cast(type.char)
            return ndarray(self.shape, type, flat, self._offset, self._strides)
        flat = self._contents().cast("B")
        if len(flat):
            flat = flat.cast(type.char)
        last = self.shape[-1] * self.dtype.itemsize // type.itemsize
        return ndarray((*self.shape[:-1], last), type, flat)

    def reshape(self, *shape):
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        given = tuple(given)
        if -1 in given:
            known = prod(length for length in given if length != -1)
            given = tuple(self.size // max(known, 1) if n == -1 else n for n in given)
        if self._contiguous:
            return ndarray(given, self.dtype, self._flat, self._offset)
        return ndarray(given, self.dtype, self._contents())

    def ravel(self):
        return self.reshape(-1)

    def flatten(self):
        return self.copy().reshape(-1)

    def copy(self):
        made = self._contents()
        made = list(made) if isinstance(made, list) else store(made.tolist(), self.dtype)
        return ndarray(self.shape, self.dtype, made)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def transpose(self, *axes):
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        axes = axes or tuple(reversed(range(self.ndim)))
        shape = tuple(self.shape[axis] for axis in axes)
        strides = tuple(self._strides[axis] for axis in axes)
        return ndarray(shape, self.dtype, self._flat, self._offset, strides)

    def fill(self, value):
        self[...] = value

    def nonzero(self):
        values = self._list()
        found = [number for number, value in enumerate(values) if value]
        made = []
        for length, step in zip(self.shape, c_strides(self.shape)):
            made.append(array([number // step % length for number in found], INT64))
        return tuple(made)

    def repeat(self, times):
        return array([value for value in self._list() for _ in range(times)], self.dtype)

    def sort(self):
        self[...] = array(sorted(self._list()), self.dtype)

    def argsort(self, kind=None):
        values = self._list()
        return array(sorted(range(len(values)), key=values.__getitem__), INT64)

    # ---- reductions ---------------------------------------------------------------------------

    def _reduced(self, function, axis, type):
        """Applies a function of a list along an axis, or to all elements."""
        if axis is None:
            value = function(self._list())
            return type.convert(value) if type is not None else value
        axis %= self.ndim
        moved = self.transpose(*(n for n in range(self.ndim) if n != axis), axis)
        values, length = moved._list(), self.shape[axis]
        parts = [function(values[i : i + length]) for i in range(0, len(values), length or 1)]
        return ndarray(moved.shape[:-1], type or self.dtype, store(parts, type or self.dtype))

    def sum(self, axis=None, dtype=None):
        wide = {"b": INT64, "i": INT64, "u": UINT64}.get(self.dtype.kind, self.dtype)
        return self._reduced(sum, axis, globals()["dtype"](dtype) if dtype else wide)

    def prod(self, axis=None):
        return self._reduced(prod, axis, None)

    def min(self, axis=None):
        return self._reduced(min, axis, None)

    def max(self, axis=None):
        return self._reduced(max, axis, None)

    def any(self, axis=None):
        return self._reduced(any, axis, BOOL)

    def all(self, axis=None):
        return self._reduced(all, axis, BOOL)

    def argmax(self, axis=None):
        return self._reduced(lambda part: part.index(max(part)), axis, INT64)

    def argmin(self, axis=None):
        return self._reduced(lambda part: part.index(min(part)), axis, INT64)

    def mean(self, axis=None):
        return self._reduced(lambda part: sum(part) / len(part), axis, FLOAT64)

    def cumsum(self, axis=None):
        total, sums = 0, []
        for value in self._list():
            total += value
            sums.append(total)
        return array(sums, self.sum(0).dtype if self.ndim > 1 else INT64)


def _nested(values, shape):
    """Returns a list of lists by the shape."""
    for length in reversed(shape[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)] if length else []
    return values


def _selects(part):
    """Returns whether a part of an index is an array of indices or of predicates."""
    return isinstance(part, list) or (isinstance(part, ndarray) and part.ndim > 0)


def _repeated(value, size, type):
    """Returns contents with one value in each element."""
    if type.kind == "b":
        return memoryview(bytearray([bool(value)]) * size).cast("?")
    one = store([value], type)
    return memoryview(bytearray(one.tobytes() * size)).cast(type.char)


def _spread(value, shape):
    """Returns the elements of a value that is broadcast to a shape, in a list."""
    if not isinstance(value, (ndarray, list, tuple)):
        return [value] * prod(shape)
    one = asarray(value)
    if one.shape == shape:
        return one._list()
    return broadcast_to(one, shape)._list()


def broadcast_shapes(*shapes):
    """Returns the common shape of arrays."""
    longest = max(map(len, shapes), default=0)
    common = [1] * longest
    for shape in shapes:
        for axis, length in enumerate(shape, longest - len(shape)):
            if length != 1:
                if common[axis] not in (1, length):
                    raise ValueError(f"the shapes {shapes} do not fit")
                common[axis] = length
    return tuple(common)


def broadcast_to(one, shape):
    """Returns an array with repeated axes."""
    missing = len(shape) - one.ndim
    strides = [0] * missing
    for axis, (length, step) in enumerate(zip(one.shape, one._strides)):
        if length not in (1, shape[missing + axis]):
            raise ValueError(f"an array of shape {one.shape} does not fit into {shape}")
        strides.append(0 if length == 1 and shape[missing + axis] != 1 else step)
    return ndarray(tuple(shape), one.dtype, one._flat, one._offset, tuple(strides))


def array(values, dtype=None, copy=True):
    """Returns a new array of numbers, of lists of them, or of another array."""
    type = globals()["dtype"](dtype) if dtype is not None else None
    if isinstance(values, ndarray):
        return values.astype(type or values.dtype)
    if isinstance(values, (int, float)):
        kind = type or (BOOL if values is True or values is False else _type_of([values]))
        return ndarray((), kind, store([values], kind))
    values = list(values) if not isinstance(values, list) else values
    shape, flat, found = (len(values),), values, None
    while flat and isinstance(flat[0], (list, tuple, ndarray)):
        rows = [one._list() if isinstance(one, ndarray) else list(one) for one in flat]
        if isinstance(flat[0], ndarray):
            shape, found = shape + flat[0].shape, flat[0].dtype
        else:
            shape += (len(rows[0]),)
        flat = [value for row in rows for value in row]
        if found is not None:
            break
    type = type or found or _type_of(flat)
    return ndarray(shape, type, store(list(flat) if type is OBJECT else flat, type))


def _type_of(values):
    """Returns the type of an array of Python numbers."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return BOOL
    if float in kinds or not kinds:
        return FLOAT64
    if kinds <= {int, bool}:
        return UINT64 if max(values) >> 63 else INT64
    return OBJECT


def asarray(values, dtype=None):
    """Returns an array, `values` itself where it is one of that type."""
    if isinstance(values, ndarray):
        return values if dtype is None else values.astype(dtype, copy=False)
    return array(values, dtype)


# ---- arithmetic ------------------------------------------------------------------------------


def binary(function, a, b, result=None):
    """Returns a function of two numbers, applied to the elements of two arrays or of one and a
    number."""
    if isinstance(a, ndarray):
        if isinstance(b, ndarray):
            type = promoted(a.dtype, b.dtype)
        elif isinstance(b, (int, float)):
            type = with_scalar(a.dtype, b)
        else:
            b = asarray(b)
            type = promoted(a.dtype, b.dtype)
    elif isinstance(b, ndarray) and isinstance(a, (int, float)):
        type = with_scalar(b.dtype, a)
    else:
        a, b = asarray(a), asarray(b)
        type = promoted(a.dtype, b.dtype)
    if not isinstance(b, ndarray):
        shape, left = a.shape, a._list()
        made = [function(value, b) for value in left]
    elif not isinstance(a, ndarray):
        shape = b.shape
        made = [function(a, value) for value in b._list()]
    elif a.shape == b.shape:
        shape = a.shape
        made = list(map(function, a._list(), b._list()))
    else:
        shape = broadcast_shapes(a.shape, b.shape)
        made = list(map(function, _spread(a, shape), _spread(b, shape)))
    type = result or type
    made = ndarray(shape, type, store(made, type))
    return made if shape else made.item()


def unary(function, a, result=None):
    """Returns a function applied to each element."""
    if not isinstance(a, ndarray):
        return function(a)
    type = result or a.dtype
    return ndarray(a.shape, type, store([function(value) for value in a._list()], type))


def _true_divide(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return float("nan")
        sign = (str(b)[0] == "-") != (a < 0)
        return float("-inf") if sign else float("inf")


def _floor_divide(a, b):
    return a // b if b else 0


def _modulo(a, b):
    return a % b if b else 0


def _divided(a, b):
    one = asarray(a) if not isinstance(a, ndarray) else a
    two = asarray(b) if not isinstance(b, ndarray) else b
    whole = one.dtype.kind in "biu" and two.dtype.kind in "biu"
    return binary(_true_divide, a, b, FLOAT64 if whole else None)


def _install():
    arithmetic = {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
        "lshift": operator.lshift,
        "rshift": operator.rshift,
        "floordiv": _floor_divide,
        "mod": _modulo,
        "pow": operator.pow,
    }
    for name, function in arithmetic.items():
        _method(name, lambda a, b, f=function: binary(f, a, b))
    _method("truediv", _divided)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        function = getattr(operator, name)
        setattr(ndarray, f"__{name}__", lambda a, b, f=function: binary(f, a, b, BOOL))


def _method(name, function):
    def inplace(self, other, f=function):
        self[...] = f(self, other)
        return self

    setattr(ndarray, f"__{name}__", function)
    setattr(ndarray, f"__r{name}__", lambda a, b, f=function: f(b, a))
    setattr(ndarray, f"__i{name}__", inplace)


_install()
ndarray.__neg__ = lambda a: unary(operator.neg, a)
ndarray.__invert__ = lambda a: (
    unary(operator.not_, a) if a.dtype is BOOL else unary(operator.invert, a)
)
ndarray.__abs__ = lambda a: unary(abs, a)
