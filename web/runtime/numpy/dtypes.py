"""Types of elements, and the scalar types that NumPy names them by."""

from __future__ import annotations


class generic:
    """A scalar type. Calling one returns a Python number, rounded or wrapped to the type."""

    kind, char, itemsize = "", "", 0

    def __new__(cls, value=0):
        return dtype(cls).convert(value)

    def __class_getitem__(cls, item):
        return cls


class number(generic):
    pass


class integer(number):
    pass


class signedinteger(integer):
    pass


class unsignedinteger(integer):
    pass


class floating(number):
    pass


class bool_(generic):
    kind, char, itemsize = "b", "?", 1


class object_(generic):
    kind, char, itemsize = "O", "", 8


class void(generic):
    kind, char, itemsize = "V", "", 0


class int8(signedinteger):
    kind, char, itemsize = "i", "b", 1


class int16(signedinteger):
    kind, char, itemsize = "i", "h", 2


class int32(signedinteger):
    kind, char, itemsize = "i", "i", 4


class int64(signedinteger):
    kind, char, itemsize = "i", "q", 8


class uint8(unsignedinteger):
    kind, char, itemsize = "u", "B", 1


class uint16(unsignedinteger):
    kind, char, itemsize = "u", "H", 2


class uint32(unsignedinteger):
    kind, char, itemsize = "u", "I", 4


class uint64(unsignedinteger):
    kind, char, itemsize = "u", "Q", 8


class float16(floating):
    kind, char, itemsize = "f", "e", 2


class float32(floating):
    kind, char, itemsize = "f", "f", 4


class float64(floating):
    kind, char, itemsize = "f", "d", 8


TYPES = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float16, float32, float64, object_),
)


class dtype:
    """A type of elements. There is one object for each, so that they compare by identity."""

    _known = {}

    def __new__(cls, given):
        return given if type(given) is dtype else cls._known[given]

    @classmethod
    def _of(cls, type):
        made = object.__new__(cls)
        made.type, made.kind, made.char, made.itemsize = type, type.kind, type.char, type.itemsize
        made.name = type.__name__.rstrip("_")
        made.isnative, made.fields = True, None
        made.bits, made.hasobject = 8 * type.itemsize, type.kind == "O"
        made.str = ("|" if type.itemsize == 1 else "<") + f"{type.kind}{type.itemsize}"
        made.low = -(1 << made.bits - 1) if type.kind == "i" else 0
        return made

    def __eq__(self, other):
        if isinstance(other, dtype):
            return self is other
        return other.__hash__ is not None and self is dtype._known.get(other)

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"dtype('{self.name}')"

    def newbyteorder(self, order="<"):
        return self

    def wrap(self, value):
        """Returns an integer modulo 2^bits, in the type's range."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.low and value >> self.bits - 1 else value

    def convert(self, value):
        """Returns a Python number as an element of the type."""
        if self.kind == "O":
            return value
        if self.kind == "b":
            return bool(value)
        if self.kind == "f":
            return float(value) if self.char == "d" else self.rounded(float(value))
        if value != value or value in (float("inf"), float("-inf")):
            return self.low
        return self.wrap(int(value))

    def rounded(self, value):
        """Returns a float rounded to the type."""
        buffer = memoryview(bytearray(self.itemsize)).cast(self.char)
        try:
            buffer[0] = value
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
        return buffer[0]


for _type in TYPES:
    _made = dtype._of(_type)
    for _key in (_type, _made, _made.name, _type.__name__, _made.str, _made.str[1:]):
        dtype._known[_key] = _made
    if _type.itemsize == 1 and _type.kind != "O":
        dtype._known["<" + _made.str[1:]] = _made
for _key, _type in ((int, int64), (float, float64), (bool, bool_), (object, object_)):
    dtype._known[_key] = dtype._known[_type]
dtype._known[None] = dtype._known[float64]

BOOL, INT64, UINT64, FLOAT64 = (dtype(t) for t in (bool_, int64, uint64, float64))
FLOAT32, OBJECT = dtype(float32), dtype(object_)


def promoted(a, b):
    """Returns the type of the result of an operation on two types."""
    if a is b:
        return a
    if OBJECT in (a, b):
        return OBJECT
    if a.kind == "b":
        return b
    if b.kind == "b":
        return a
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    if a.kind == "f" or b.kind == "f":
        real, whole = (a, b) if a.kind == "f" else (b, a)
        return real if whole.itemsize < real.itemsize else FLOAT64
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return FLOAT64 if unsigned.itemsize == 8 else dtype(f"i{2 * unsigned.itemsize}")


def with_scalar(a, value):
    """Returns the type of the result of an operation on an array's type and a Python number."""
    if a.kind == "O" or isinstance(value, bool):
        return a
    if isinstance(value, int):
        return INT64 if a.kind == "b" else a
    return a if a.kind == "f" else FLOAT64
