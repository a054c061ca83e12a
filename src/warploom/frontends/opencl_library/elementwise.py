"""Built-in functions that compute each component of a vector from those of their arguments
(OpenCL C 3.0, 6.15.2 to 6.15.4 and 6.15.6).

A row states the parameters by letters, the element types, and the scalar function in C:

    g: the type itself         s: its element, also where the others are vectors
    i, u: the signed and the unsigned integer of the element's size     n, m: int, a scalar int
    p, q: a pointer to the type, and to int; results are written to *p

In the body, `x`, `y`, `z` are the arguments; $T is the element, $S and $U the integers of its
size, $W that of twice its size, $bits its size, $f the letter with which libdevice and clang mark
a function of `float`, and $c a constant's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import Template

from warploom.frontends.opencl_library.elements import (
    BITS,
    COMPONENTS,
    FLOATS,
    INTEGERS,
    POINTED,
    SIGNED,
    SIZES,
    UNSIGNED,
    WIDTHS,
    WORDS,
    each,
    signed_of,
    unsigned_of,
    vector,
)

POINTERS = {"p": "g", "q": "n"}
LETTERS = "xyz"


@dataclass(frozen=True)
class Elementwise:
    """A built-in function: the letter of its result and those of its parameters, one word for each
    form that it has; its element types; its body, an expression or statements in braces; the
    functions whose scalar forms the body calls."""

    name: str
    result: str
    forms: tuple[str, ...]
    types: tuple[str, ...]
    body: str
    needs: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yields the definitions of all overloads."""
        for element in self.types:
            yield from _scalar(self, element)
            for form in self.forms:
                for width in WIDTHS:
                    yield from _vector(self, form, element, width)


def _named(letter: str, element: str, width: int) -> str:
    if letter == "n":
        return vector("int", width)
    if letter == "m":
        return "int"
    if letter == "r":  # of relations: `int`, and for vectors an integer of the element's size
        return "int" if width == 1 else vector(signed_of(element), width)
    if letter == "w":
        return vector(wide_of(element), width)
    named = {"s": element, "g": element, "i": signed_of(element), "u": unsigned_of(element)}
    return vector(named[letter], 1 if letter == "s" else width)


def wide_of(element: str) -> str:
    """Returns the integer of twice the size; the type itself for one of 64 bits."""
    family = UNSIGNED if element in UNSIGNED else SIGNED
    return family[min(SIZES.index(BITS[element]) + 1, 3)]


def filled(body: str, element: str) -> str:
    """Returns a body for an element type."""
    letter = {"float": "f", "double": ""}.get(element, "")
    return Template(body).substitute(
        T=element,
        S=signed_of(element),
        U=unsigned_of(element),
        W=wide_of(element),
        bits=BITS[element],
        f=letter,
        c={"float": "f", "half": "h"}.get(element, ""),
    )


def _parameters(form: str, element: str, width: int, space: str) -> str:
    items: list[str] = []
    for letter, name in zip(form, LETTERS, strict=False):
        pointed = POINTERS.get(letter)
        type = _named(pointed or letter, element, width)
        items.append(f"{space} {type} *{name}" if pointed else f"{type} {name}")
    return ", ".join(items)


def _spaces(form: str) -> tuple[str, ...]:
    return POINTED if set(form) & set(POINTERS) else ("",)


def _scalar(row: Elementwise, element: str) -> Iterator[str]:
    """Yields the scalar functions. Those of `half` are computed as `float`, but those of its bits
    and relations (`body` uses $S or $U, or the result is an integer)."""
    result = _named(row.result, element, 1)
    form = row.forms[0]
    by_float = element == "half" and "$S" not in row.body and "$U" not in row.body
    for space in _spaces(form):
        head = f"__cl_inline {result} {row.name}({_parameters(form, element, 1, space)})"
        if by_float:
            yield f"{head} {_by_float(row, form)}"
        elif row.body.startswith("{"):
            yield f"{head} {filled(row.body, element)}"
        else:
            yield f"{head} {{ return ({result})({filled(row.body, element)}); }}"


def _by_float(row: Elementwise, form: str) -> str:
    """Returns the body of a function of `half`: the function of `float`, and rounded."""
    given, after, before = list[str](), "", ""
    for letter, name in zip(form, LETTERS, strict=False):
        if letter == "p":
            before, after = f"float part = 0; {before}", f"*{name} = (half)part;"
            given.append("&part")
        else:
            given.append(f"(float){name}" if letter == "g" else name)
    call = f"{row.name}({', '.join(given)})"
    if row.result != "g":
        return f"{{ return {call}; }}"
    return f"{{ {before}float value = {call}; {after} return (half)value; }}"


def _vector(row: Elementwise, form: str, element: str, width: int) -> Iterator[str]:
    result = _named(row.result, element, width)
    for space in _spaces(form):
        head = f"__cl_inline {result} {row.name}({_parameters(form, element, width, space)})"
        pointers = [n for letter, n in zip(form, LETTERS, strict=False) if letter in POINTERS]
        call = ", ".join(
            _argument(letter, name) for letter, name in zip(form, LETTERS, strict=False)
        )
        of_relation = "-" if row.result == "r" else ""
        value = each(width, f"{of_relation}{row.name}({call})")
        if not pointers:
            yield f"{head} {{ return ({result})({value}); }}"
            continue
        [pointer] = pointers
        kind = _named(POINTERS[next(letter for letter in form if letter in POINTERS)], element, 1)
        parts = ", ".join(f"part[{n}]" for n in range(width))
        for n, component in enumerate(COMPONENTS[:width]):
            value = value.replace(f"&part.s{component}", f"&part[{n}]")
        yield (
            f"{head} {{ private {kind} part[{width}]; {result} value = ({result})({value});"
            f" *{pointer} = ({vector(kind, width)})({parts}); return value; }}"
        )


def _argument(letter: str, name: str) -> str:
    if letter in POINTERS:
        return "&part@"
    return name if letter in "sm" else f"{name}@"


# ---- integer functions (6.15.3) ------------------------------------------------------------------

_LEAST = "(($T)-1 < 0 ? ($T)(($U)1 << ($bits - 1)) : ($T)0)"
_MOST = "($T)~$_LEAST".replace("$_LEAST", _LEAST)
_MUL_HI = """{
    if ($bits < 64) return ($T)((($W)x * ($W)y) >> ($bits & 63));
    return ($T)-1 < 0 ? ($T)__nv_mul64hi((long)x, (long)y) : ($T)__nv_umul64hi((ulong)x, (ulong)y);
}"""
_MAD_SAT = """{
    $T high = mul_hi(x, y), low = ($T)(($U)x * ($U)y);
    $U sum = ($U)low + ($U)z;
    int carry = sum < ($U)low;
    $T top = ($T)(high + carry + (z < 0 ? -1 : 0));
    if (($T)-1 > 0) return top ? ($T)-1 : ($T)sum;
    if (top == (($T)sum < 0 ? ($T)-1 : ($T)0)) return ($T)sum;
    return top < 0 ? ($T)LEAST : ($T)MOST;
}"""
_ADD_SAT = """{
    $T sum = ($T)(($U)x + ($U)y);
    if (($T)-1 > 0) return sum < x ? ($T)-1 : sum;
    return ((x ^ sum) & (y ^ sum)) < 0 ? (x < 0 ? LEAST : MOST) : sum;
}"""
_SUB_SAT = """{
    $T less = ($T)(($U)x - ($U)y);
    if (($T)-1 > 0) return x < y ? ($T)0 : less;
    return ((x ^ y) & (x ^ less)) < 0 ? (x < 0 ? LEAST : MOST) : less;
}"""


def _limits(body: str) -> str:
    return body.replace("LEAST", _LEAST).replace("MOST", _MOST)


INTEGER_FUNCTIONS = (
    Elementwise("abs", "u", ("g",), INTEGERS, "x < 0 ? ($U)0 - ($U)x : ($U)x"),
    Elementwise("abs_diff", "u", ("gg",), INTEGERS, "x > y ? ($U)x - ($U)y : ($U)y - ($U)x"),
    Elementwise("add_sat", "g", ("gg",), INTEGERS, _limits(_ADD_SAT)),
    Elementwise("sub_sat", "g", ("gg",), INTEGERS, _limits(_SUB_SAT)),
    Elementwise("hadd", "g", ("gg",), INTEGERS, "(x >> 1) + (y >> 1) + (x & y & 1)"),
    Elementwise("rhadd", "g", ("gg",), INTEGERS, "(x >> 1) + (y >> 1) + ((x | y) & 1)"),
    Elementwise(
        *("clz", "g", ("g",), INTEGERS),
        "!x ? $bits : $bits > 32 ? __builtin_clzl((ulong)($U)x)"
        " : __builtin_clz((uint)($U)x) - (32 - $bits)",
    ),
    Elementwise(
        *("ctz", "g", ("g",), INTEGERS),
        "!x ? $bits : $bits > 32 ? __builtin_ctzl((ulong)($U)x) : __builtin_ctz((uint)($U)x)",
    ),
    Elementwise("mul_hi", "g", ("gg",), INTEGERS, _MUL_HI),
    Elementwise("mad_hi", "g", ("ggg",), INTEGERS, "mul_hi(x, y) + z", ("mul_hi",)),
    Elementwise("mad_sat", "g", ("ggg",), INTEGERS, _limits(_MAD_SAT), ("mul_hi",)),
    Elementwise("mul24", "g", ("gg",), WORDS, "((x << 8) >> 8) * ((y << 8) >> 8)"),
    Elementwise("mad24", "g", ("ggg",), WORDS, "((x << 8) >> 8) * ((y << 8) >> 8) + z"),
    Elementwise(
        *("popcount", "g", ("g",), INTEGERS),
        "$bits > 32 ? __builtin_popcountl((ulong)($U)x) : __builtin_popcount((uint)($U)x)",
    ),
    Elementwise(
        *("rotate", "g", ("gg",), INTEGERS),
        "(($U)x << (y & ($bits - 1))) | (($U)x >> (-y & ($bits - 1)))",
    ),
    Elementwise(
        *("upsample", "w", ("gu",), INTEGERS[:6]),
        "(($W)x << $bits) | ($W)y",
    ),
)

# ---- functions of integers and floats ------------------------------------------------------------

ORDERED_FUNCTIONS = (
    Elementwise("max", "g", ("gg", "gs"), (*INTEGERS, *FLOATS), "x < y ? y : x"),
    Elementwise("min", "g", ("gg", "gs"), (*INTEGERS, *FLOATS), "y < x ? y : x"),
    Elementwise(
        *("clamp", "g", ("ggg", "gss"), INTEGERS),
        "z < (x < y ? y : x) ? z : x < y ? y : x",
    ),
)

# ---- common functions (6.15.4) -------------------------------------------------------------------

_SMOOTH = """{
    $T t = (z - x) / (y - x);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3 - 2 * t);
}"""

COMMON_FUNCTIONS = (
    Elementwise(
        *("clamp", "g", ("ggg", "gss"), FLOATS),
        "__nv_fmin$f(__nv_fmax$f(x, y), z)",
    ),
    Elementwise("degrees", "g", ("g",), FLOATS, "x * ($T)57.295779513082320877"),
    Elementwise("radians", "g", ("g",), FLOATS, "x * ($T)0.017453292519943295769"),
    Elementwise("mix", "g", ("ggg", "ggs"), FLOATS, "x + (y - x) * z"),
    Elementwise("step", "g", ("gg", "sg"), FLOATS, "y < x ? 0 : 1"),
    Elementwise("smoothstep", "g", ("ggg", "ssg"), FLOATS, _SMOOTH),
    Elementwise("sign", "g", ("g",), FLOATS, "x > 0 ? 1 : x < 0 ? -1 : x == 0 ? x : 0"),
)

# ---- relational functions (6.15.6) ---------------------------------------------------------------

RELATIONS = {
    "isequal": "x == y",
    "isnotequal": "x != y",
    "isgreater": "x > y",
    "isgreaterequal": "x >= y",
    "isless": "x < y",
    "islessequal": "x <= y",
    "islessgreater": "x < y || x > y",
    "isordered": "x == x && y == y",
    "isunordered": "x != x || y != y",
}
_EXPONENT = {"float": ("8", "23"), "double": ("11", "52"), "half": ("5", "10")}
CLASSES = {
    "isfinite": "exponent != most",
    "isinf": "exponent == most && !fraction",
    "isnan": "exponent == most && fraction",
    "isnormal": "exponent && exponent != most",
}


def _classified(condition: str, element: str) -> str:
    width, fraction = _EXPONENT[element]
    return (
        f"{{ $U bits = __builtin_astype(x, $U), most = (($U)1 << {width}) - 1;"
        f" $U exponent = (bits >> {fraction}) & most,"
        f" fraction = bits & ((($U)1 << {fraction}) - 1);"
        f" return {condition}; }}"
    )


RELATIONAL_FUNCTIONS = (
    *(Elementwise(name, "r", ("gg",), FLOATS, body) for name, body in RELATIONS.items()),
    *(
        Elementwise(name, "r", ("g",), (element,), _classified(condition, element))
        for name, condition in CLASSES.items()
        for element in FLOATS
    ),
    Elementwise("signbit", "r", ("g",), FLOATS, "__builtin_astype(x, $S) < 0"),
    *(
        Elementwise(
            *("bitselect", "g", ("ggg",), types),
            "__builtin_astype(($U)((__builtin_astype(x, $U) & ~__builtin_astype(z, $U))"
            " | (__builtin_astype(y, $U) & __builtin_astype(z, $U))), $T)",
        )
        for types in (INTEGERS, FLOATS)
    ),
)
