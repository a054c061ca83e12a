"""What integer, logic and bit instructions give, written from the PTX manual in Python integers."""

from __future__ import annotations

from collections.abc import Callable

from manual_floats import Bits, Result

from warploom.isa.spec import Operation

NONE = 0xFFFFFFFF


def signed(bits: int, width: int) -> int:
    """The number that bits stand for in two's complement."""
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def ends(width: int, *, sign: bool) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if sign else (0, (1 << width) - 1)


def clamp(value: int, width: int, *, sign: bool) -> int:
    low, high = ends(width, sign=sign)
    return max(low, min(high, value))


def type_of(operation: Operation, slot: str = "type") -> tuple[str, int]:
    """The kind and the width of a type, "u" and 32."""
    name = operation.modifiers.text(slot, "b32")
    return ("b", 1) if name == "pred" else (name[0], int(name[1:].removesuffix("x2")))


def value_of(bits: int, kind: str, width: int) -> int:
    return signed(bits, width) if kind == "s" else bits & ((1 << width) - 1)


Compute = Callable[..., int]


def numeric(compute: Compute, *, wide: bool = False) -> Result:
    """Returns the function of an operation on numbers of its type, whose result is cut to it."""

    def result(operation: Operation, values: Bits) -> list[int]:
        kind, width = type_of(operation)
        packed = operation.modifiers.text("type", "").endswith("x2")
        numbers = [
            [value_of(v >> at, kind, width) for v in values] for at in (0, width)[: 1 + packed]
        ]
        if wide:
            numbers[0][2:] = [value_of(v, kind, 2 * width) for v in values[2:]]
        out = 2 * width if wide else width
        found = [compute(operation, width, *each) % (1 << out) for each in numbers]
        return [sum(part << width * place for place, part in enumerate(found))]

    return result


def product_part(operation: Operation, width: int, product: int) -> int:
    """The half of a product that `.lo` or `.hi` names; all of it with `.wide`."""
    low = product % (1 << width)
    m = operation.modifiers
    return product >> width if "hi" in m else product if "wide" in m else low


def multiplied(operation: Operation, width: int, a: int, b: int, c: int = 0) -> int:
    part = product_part(operation, width, a * b)
    if "sat" in operation.modifiers:
        return clamp(part + c, width, sign=True)
    return part + c


def low24(operation: Operation, width: int, a: int, b: int, c: int = 0) -> int:
    kind, _ = type_of(operation)
    product = value_of(a, kind, 24) * value_of(b, kind, 24)
    part = product >> 16 if "hi" in operation.modifiers else product
    total = value_of(part, kind, 32) + c
    return clamp(total, 32, sign=True) if "sat" in operation.modifiers else total


def quotient(a: int, b: int) -> int:
    """Rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divided(operation: Operation, values: Bits) -> list[int] | None:
    """Division by zero gives "an unspecified, machine-specific value"."""
    kind, width = type_of(operation)
    a, b = (value_of(v, kind, width) for v in values)
    if b == 0:
        return None
    found = quotient(a, b) if operation.name == "div" else a - quotient(a, b) * b
    return [found % (1 << width)]


def extreme(choose: Callable[[int, int], int]) -> Compute:
    def compute(operation: Operation, width: int, a: int, b: int) -> int:
        found = choose(a, b)
        return max(0, found) if "relu" in operation.modifiers else found

    return compute


def summed(operation: Operation, width: int, a: int, b: int) -> int:
    found = a + b if operation.name == "add" else a - b
    return clamp(found, width, sign=True) if "sat" in operation.modifiers else found


# ---- carries ------------------------------------------------------------------------------------


def carried(operation: Operation, values: Bits) -> list[int]:
    """Extended precision: a subtraction adds the complement, and the flag is the carry out."""
    m = operation.modifiers
    kind, width = type_of(operation)
    top = (1 << width) - 1
    name = operation.name
    takes = name in ("addc", "subc", "madc")
    numbers, flag = (values[:-1], values[-1]) if takes else (values, int(name == "sub"))
    if name.startswith("mad"):
        product = value_of(numbers[0], kind, width) * value_of(numbers[1], kind, width)
        first, second = product >> (width if m["half"] == "hi" else 0) & top, numbers[2]
    else:
        first, second = numbers[0], numbers[1] ^ (top if name.startswith("sub") else 0)
    total = first + second + flag
    return [total & top, total >> width] if "cc" in m else [total & top]


def with_carry(plain: Result) -> Result:
    """Returns the function of a name whose form with `.cc` writes the flag, too."""
    return lambda operation, values: (
        carried(operation, values) if "cc" in operation.modifiers else plain(operation, values)
    )


# ---- bits ---------------------------------------------------------------------------------------


def bfind(operation: Operation, values: Bits) -> list[int]:
    kind, width = type_of(operation)
    value = value_of(values[0], kind, width)
    place = (~value if value < 0 else value).bit_length() - 1
    if place < 0:
        return [NONE]
    return [width - 1 - place if "shiftamt" in operation.modifiers else place]


def bfe(operation: Operation, values: Bits) -> list[int]:
    """The manual's pseudo-code: bits beyond the operand are its sign."""
    kind, width = type_of(operation)
    a, position, length = values[0], values[1] & 0xFF, values[2] & 0xFF
    last = min(position + length - 1, width - 1)
    sign = 0 if kind == "u" or length == 0 else a >> last & 1
    bits = 0
    for i in range(width):
        bit = a >> (position + i) & 1 if i < length and position + i <= width - 1 else sign
        bits |= bit << i
    return [bits]


def bfi(operation: Operation, values: Bits) -> list[int]:
    _, width = type_of(operation)
    a, found, position, length = values[0], values[1], values[2] & 0xFF, values[3] & 0xFF
    for i in range(length):
        if position + i < width:
            found = found & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return [found]


def bmsk(operation: Operation, values: Bits) -> list[int]:
    first, count = (v % 32 if operation.modifiers["mode"] == "wrap" else v for v in values)
    return [sum(1 << i for i in range(min(first, 32), min(32, first + min(count, 32))))]


def szext(operation: Operation, values: Bits) -> list[int]:
    kind, _ = type_of(operation)
    count = values[1] % 32 if operation.modifiers["mode"] == "wrap" else min(values[1], 32)
    return [(value_of(values[0], kind, count) if count else 0) & NONE]


def fns(_: Operation, values: Bits) -> list[int] | None:
    mask, base, offset = values[0], values[1], signed(values[2], 32)
    if base > 31:
        return None
    if offset == 0:
        return [base if mask >> base & 1 else NONE]
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    ones = [p for p in places if mask >> p & 1]
    return [ones[abs(offset) - 1] if len(ones) >= abs(offset) else NONE]


def prmt(operation: Operation, values: Bits) -> list[int]:
    """Bytes 0 to 3 are those of a, 4 to 7 those of b; the table of each mode is the manual's."""
    a, b, c = values
    pool = [(a | b << 32) >> 8 * i & 0xFF for i in range(8)]
    mode, s = operation.modifiers["mode"], c & 3
    if mode is None:
        chosen = [c >> 4 * i & 0xF for i in range(4)]
        found = [pool[n & 7] if n < 8 else 0xFF * (pool[n & 7] >> 7) for n in chosen]
        return [sum(byte << 8 * i for i, byte in enumerate(found))]
    places = {
        "f4e": [s + i for i in range(4)],
        "b4e": [(s - i) % 8 for i in range(4)],
        "rc8": [s] * 4,
        "ecl": [max(i, s) for i in range(4)],
        "ecr": [min(i, s) for i in range(4)],
        "rc16": [0, 1, 0, 1] if s % 2 == 0 else [2, 3, 2, 3],
    }[mode]
    return [sum(pool[p] << 8 * i for i, p in enumerate(places))]


def shl(operation: Operation, values: Bits) -> list[int]:
    _, width = type_of(operation)
    return [values[0] << min(values[1], width) & ((1 << width) - 1)]


def shr(operation: Operation, values: Bits) -> list[int]:
    kind, width = type_of(operation)
    return [value_of(values[0], kind, width) >> min(values[1], width) & ((1 << width) - 1)]


def shf(operation: Operation, values: Bits) -> list[int]:
    """A funnel shift of {b, a}, a being its low word."""
    m = operation.modifiers
    n = min(values[2], 32) if m["mode"] == "clamp" else values[2] % 32
    both = values[1] << 32 | values[0]
    return [(both << n >> 32 if m["direction"] == "l" else both >> n) & NONE]


def lop3(operation: Operation, values: Bits) -> list[int]:
    a, b, c, table, *q = values
    d = sum(
        (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32)
    )
    if not q:
        return [d]
    joined = (d != 0) | q[0] if operation.modifiers["bool"] == "or" else (d != 0) & q[0]
    return [d, int(joined)]


def logic(compute: Callable[..., int]) -> Result:
    def result(operation: Operation, values: Bits) -> list[int]:
        _, width = type_of(operation)
        return [compute(*values) & ((1 << width) - 1)]

    return result


def brev(operation: Operation, values: Bits) -> list[int]:
    _, width = type_of(operation)
    return [int(f"{values[0]:0{width}b}"[::-1], 2)]


def clz(operation: Operation, values: Bits) -> list[int]:
    _, width = type_of(operation)
    return [width - values[0].bit_length()]


def dot(operation: Operation, values: Bits) -> list[int]:
    """dp4a and dp2a."""
    m = operation.modifiers
    a, b, c = values
    kinds = m.text("atype", "")[0], m.text("btype", "")[0]
    count = 4 if operation.name == "dp4a" else 2
    first = 2 if m["half"] == "hi" else 0
    width = 32 // count
    total = c
    for i in range(count):
        one = value_of(a >> width * i, kinds[0], width)
        total += one * value_of(b >> 8 * (i + first), kinds[1], 8)
    return [total & NONE]


RESULTS: dict[str, Result] = {
    "add": with_carry(numeric(summed)),
    "sub": with_carry(numeric(summed)),
    **dict.fromkeys(("addc", "subc", "madc"), carried),
    "mul": lambda o, v: numeric(multiplied, wide="wide" in o.modifiers)(o, v),
    "mad": with_carry(lambda o, v: numeric(multiplied, wide="wide" in o.modifiers)(o, v)),
    "mul24": numeric(low24),
    "mad24": numeric(low24),
    "sad": numeric(lambda o, n, a, b, c: c + abs(a - b)),
    "div": divided,
    "rem": divided,
    "abs": numeric(lambda o, n, a: abs(a)),
    "neg": numeric(lambda o, n, a: -a),
    "min": numeric(extreme(min)),
    "max": numeric(extreme(max)),
    "popc": lambda o, v: [v[0].bit_count()],
    "clz": clz,
    "bfind": bfind,
    "brev": brev,
    "bfe": bfe,
    "bfi": bfi,
    "bmsk": bmsk,
    "szext": szext,
    "fns": fns,
    "prmt": prmt,
    "mbarrier": lambda o, v: [v[0] & 0xFFFFF],  # pending_count: the token is the word (`mbarrier`)
    "dp4a": dot,
    "dp2a": dot,
}
LOGIC: dict[str, Result] = {
    "and": logic(lambda a, b: a & b),
    "or": logic(lambda a, b: a | b),
    "xor": logic(lambda a, b: a ^ b),
    "not": logic(lambda a: ~a),
    "cnot": logic(lambda a: int(a == 0)),
    "lop3": lop3,
    "shl": shl,
    "shr": shr,
    "shf": shf,
}
