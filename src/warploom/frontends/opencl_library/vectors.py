"""Built-in functions of whole vectors: geometric ones, choices, loads and stores, shuffles, and
copies by a work-group (OpenCL C 3.0, 6.15.5 to 6.15.7, 6.15.11, 6.15.13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from warploom.frontends.opencl_library.elements import (
    COMPONENTS,
    NUMBERS,
    POINTED,
    SIGNED,
    WIDTHS,
    each,
    signed_of,
    unsigned_of,
    vector,
)

Lines = Iterator[str]
READ_FROM = (*POINTED, "constant")
SHUFFLED = (2, 4, 8, 16)

# ---- geometric functions -------------------------------------------------------------------------

_SCALE = {"float": ("0x1p-100f", "0x1p86f"), "double": ("0x1p-960", "0x1p563")}


def _geometric(name: str) -> Lines:
    for element in ("float", "double"):
        small, up = _SCALE[element]
        for width in (1, 2, 3, 4):
            type, f = vector(element, width), "f" if element == "float" else ""
            dot = " + ".join(f"x{c} * y{c}" for c in _selectors(width))
            square = " + ".join(f"x{c} * x{c}" for c in _selectors(width))
            bodies = {
                "dot": f"return {dot};",
                # Squares that are too large or too small are taken of smaller or larger numbers.
                "length": (
                    f"{element} s = {square}; if (s < {small}) {{ x *= {up};"
                    f" return __builtin_sqrt{f}({square}) / {up}; }} if (s - s != 0) {{ x /= {up};"
                    f" return __builtin_sqrt{f}({square}) * {up}; }} return __builtin_sqrt{f}(s);"
                ),
                "distance": "return length(x - y);",
                "normalize": _normalized(element, width, square),
                "fast_length": f"return __nvvm_sqrt_approx_f({square});",
                "fast_distance": "return fast_length(x - y);",
                "fast_normalize": f"float s = {square}; return s == 0 ? x : x * __nv_rsqrtf(s);",
            }
            result = type if "normalize" in name else element
            two = name in ("dot", "distance", "fast_distance")
            if element == "float" or not name.startswith("fast_"):
                yield (
                    f"__cl_inline {result} {name}({type} x{f', {type} y' if two else ''})"
                    f" {{ {bodies[name]} }}"
                )


def _cross(name: str) -> Lines:
    for element in ("float", "double"):
        for width in (3, 4):
            type, last = vector(element, width), ", 0" if width == 4 else ""
            yield (
                f"__cl_inline {type} cross({type} x, {type} y) {{ return ({type})("
                "x.y * y.z - x.z * y.y, x.z * y.x - x.x * y.z, x.x * y.y - x.y * y.x"
                f"{last}); }}"
            )


def _selectors(width: int) -> list[str]:
    return [""] if width == 1 else [f".s{c}" for c in COMPONENTS[:width]]


def _normalized(element: str, width: int, square: str) -> str:
    """Returns the body of `normalize`: an infinite component leaves the directions of those that
    are."""
    small, up = _SCALE[element]
    f, type = "f" if element == "float" else "", vector(element, width)
    ones = each(width, f"__builtin_copysign{f}(x@ - x@ != 0 ? 1 : 0, x@)")
    largest = each(width, "x@")
    unknown = " || ".join(f"x{c} != x{c}" for c in _selectors(width))
    return (
        f'if ({unknown}) return ({type})(__builtin_nanf(""));'
        f" {element} s = {square}; if (s == 0 || s < {small}) {{ x *= {up}; s = {square}; }}"
        f" if (s - s != 0) {{ x /= {up}; s = {square};"
        f" if (s - s != 0) {{ x = ({type})({ones}); s = {square}; }} }}"
        f" return s == 0 ? ({type})({largest}) : x / __builtin_sqrt{f}(s);"
    )


# ---- choices -------------------------------------------------------------------------------------


def _select(name: str) -> Lines:
    for element, make in product(NUMBERS, (signed_of, unsigned_of)):
        chooser = make(element)
        yield (
            f"__cl_inline {element} select({element} x, {element} y, {chooser} c)"
            " { return c ? y : x; }"
        )
        for width in WIDTHS:
            type, which = vector(element, width), vector(signed_of(element), width)
            yield (
                f"__cl_inline {type} select({type} x, {type} y, {vector(chooser, width)} c)"
                f" {{ return __builtin_astype(c, {which}) < ({signed_of(element)})0 ? y : x; }}"
            )


def _any_or_all(name: str) -> Lines:
    sign = " | " if name == "any" else " & "
    for element, width in product(SIGNED, (1, *WIDTHS)):
        values = sign.join(f"x{c}" for c in _selectors(width))
        yield f"__cl_inline int {name}({vector(element, width)} x) {{ return ({values}) < 0; }}"


def _shuffle(name: str) -> Lines:
    for element, given, made in product(NUMBERS, SHUFFLED, SHUFFLED):
        source, mask = vector(element, given), vector(unsigned_of(element), made)
        result = vector(element, made)
        if name == "shuffle":
            values = each(made, f"x[m@ & {given - 1}]")
            head = f"__cl_inline {result} shuffle({source} x, {mask} m)"
            yield f"{head} {{ return ({result})({values}); }}"
        else:
            values = each(made, f"(m@ & {given} ? y[m@ & {given - 1}] : x[m@ & {given - 1}])")
            yield (
                f"__cl_inline {result} shuffle2({source} x, {source} y, {mask} m)"
                f" {{ return ({result})({values}); }}"
            )


# ---- loads and stores ----------------------------------------------------------------------------


# Component by component: vectors are aligned as their components are.


def _vload(name: str) -> Lines:
    width = int(name.removeprefix("vload"))
    for element, space in product(NUMBERS, READ_FROM):
        values = ", ".join(f"p[{width} * i + {n}]" for n in range(width))
        type = vector(element, width)
        yield (
            f"__cl_inline {type} {name}(size_t i, const {space} {element} *p)"
            f" {{ return ({type})({values}); }}"
        )


def _vstore(name: str) -> Lines:
    width = int(name.removeprefix("vstore"))
    for element, space in product(NUMBERS, POINTED):
        body = " ".join(f"p[{width} * i + {n}] = x{c};" for n, c in enumerate(_selectors(width)))
        yield (
            f"__cl_inline void {name}({vector(element, width)} x, size_t i, {space} {element} *p)"
            f" {{ {body} }}"
        )


def _step(name: str, width: int) -> int:
    """Returns the elements from one vector to the next: `vloada_half3` has four."""
    return 4 if width == 3 and name.startswith(("vloada", "vstorea")) else width


def _vload_half(name: str) -> Lines:
    width = int(name.partition("half")[2] or 1)
    at = f"p[{_step(name, width)} * i"
    for space in READ_FROM:
        values = ", ".join(f"(float){at} + {n}]" for n in range(width))
        type = vector("float", width)
        yield (
            f"__cl_inline {type} {name}(size_t i, const {space} half *p)"
            f" {{ return ({type})({values}); }}"
        )


def _vstore_half(name: str) -> Lines:
    base, _, mode = name.partition("_rt")
    width = int(base.partition("half")[2] or 1)
    way = {"": "rn", "e": "rn", "z": "rz", "p": "rp", "n": "rm"}[mode]
    at = f"p[{_step(name, width)} * i"
    for element, space in product(("float", "double"), POINTED):
        stores = " ".join(
            f"{at} + {n}] = __cl_half_{way}_{element}(x{c});"
            for n, c in enumerate(_selectors(width))
        )
        yield (
            f"__cl_inline void {name}({vector(element, width)} x, size_t i, {space} half *p)"
            f" {{ {stores} }}"
        )


# ---- copies by a work-group ----------------------------------------------------------------------

_INDEX = "__cl_local_index()"
_COUNT = "__cl_local_count()"


def _copies(name: str) -> Lines:
    strided = "strided" in name
    for element, width in product(NUMBERS, (1, *WIDTHS)):
        type = vector(element, width)
        for target, source in (("local", "global"), ("global", "local")):
            to = "i * step" if strided and target == "global" else "i"
            of = "i * step" if strided and source == "global" else "i"
            yield (
                f"__cl_inline event_t {name}({target} {type} *to, const {source} {type} *of,"
                f" size_t n, {'size_t step, ' if strided else ''}event_t event)"
                f" {{ for (size_t i = {_INDEX}; i < n; i += {_COUNT}) to[{to}] = of[{of}];"
                " return event; }"
            )


def _prefetch(name: str) -> Lines:
    for element, width in product(NUMBERS, (1, *WIDTHS)):
        yield f"__cl_inline void prefetch(const global {vector(element, width)} *p, size_t n) {{}}"


def _wait(name: str) -> Lines:
    for space in POINTED:
        yield f"__cl_inline void {name}(int n, {space} event_t *events) {{ __cl_barrier(); }}"


VECTOR_FUNCTIONS: Mapping[str, Callable[[str], Lines]] = {
    "cross": _cross,
    **dict.fromkeys(("dot", "length", "normalize"), _geometric),
    **dict.fromkeys(("distance", "fast_distance"), _geometric),
    **dict.fromkeys(("fast_length", "fast_normalize"), _geometric),
    "select": _select,
    **dict.fromkeys(("any", "all"), _any_or_all),
    **dict.fromkeys(("shuffle", "shuffle2"), _shuffle),
    **{f"vload{n}": _vload for n in WIDTHS},
    **{f"vstore{n}": _vstore for n in WIDTHS},
    **{f"vload{a}_half{n}": _vload_half for a in ("", "a") for n in ("", *WIDTHS) if n or not a},
    **{
        f"vstore{a}_half{n}{mode}": _vstore_half
        for a, n, mode in product(("", "a"), ("", *WIDTHS), ("", "_rte", "_rtz", "_rtp", "_rtn"))
        if n or not a
    },
    **dict.fromkeys(("async_work_group_copy", "async_work_group_strided_copy"), _copies),
    "wait_group_events": _wait,
    "prefetch": _prefetch,
}
NEEDS = {"distance": ("length",), "fast_distance": ("fast_length",)}
