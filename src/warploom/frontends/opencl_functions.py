"""OpenCL's mathematical functions as functions of libdevice: a text that is compiled before a
program.

Built-in functions take vectors, too, so each is defined for them component by component. Names
become macros with arguments, so that programs may use them for variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

WIDTHS = (2, 3, 4, 8, 16)
COMPONENTS = "0123456789abcdef"

UNARY = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt"),
    *("erf", "erfc", "tgamma", "lgamma", "sinpi", "cospi"),
)
BINARY = ("pow", "atan2", "hypot", "fmod", "remainder")
"""Functions of `float` and `double`: libdevice's are called `__nv_sinf` and `__nv_sin`."""

NATIVE = {
    "native_sin": "__nv_fast_sinf",
    "native_cos": "__nv_fast_cosf",
    "native_tan": "__nv_fast_tanf",
    "native_exp": "__nv_fast_expf",
    "native_exp2": "__nv_exp2f",
    "native_exp10": "__nv_fast_exp10f",
    "native_log": "__nv_fast_logf",
    "native_log2": "__nv_fast_log2f",
    "native_log10": "__nv_fast_log10f",
    "native_rsqrt": "__nv_rsqrtf",
    "native_sqrt": "__nvvm_sqrt_approx_f",
    "native_recip": "__nvvm_rcp_approx_ftz_f",
}
NATIVE_BINARY = {"native_powr": "__nv_fast_powf", "native_divide": "__nv_fast_fdividef"}
"""Functions of `float` that may be as fast and as wrong as CUDA's intrinsics are."""

POWERS = {"powr": "pow"}


WORK_ITEMS = (
    "uint __attribute__((overloadable, always_inline, internal_linkage)) __cl_get_work_dim(void)"
    " { return get_global_size(2) > 1 ? 3 : get_global_size(1) > 1 ? 2 : 1; }",
    "#ifndef __WARPLOOM_ND_RANGE",
    "#define get_work_dim() __cl_get_work_dim()",
    "#define get_global_offset(dimension) ((size_t)0)",
    "#else",
    "#define __cl_inlined __attribute__((overloadable, always_inline, internal_linkage))",
    "#define __cl_word(name, n) uint __cl_inlined name(void)"
    ' { uint v; __asm__("mov.u32 %0, %%envreg" #n ";" : "=r"(v)); return v; }',
    "__cl_word(__cl_x, 3) __cl_word(__cl_y, 4) __cl_word(__cl_z, 5) __cl_word(__cl_dims, 6)",
    "uint __cl_inlined __cl_stated_work_dim(void)"
    " { uint n = __cl_dims(); return n ? n : __cl_get_work_dim(); }",
    "size_t __cl_inlined __cl_offset(uint d)"
    " { return d == 0 ? __cl_x() : d == 1 ? __cl_y() : d == 2 ? __cl_z() : 0; }",
    "size_t __cl_inlined __cl_id(uint d) { return get_global_id(d) + __cl_offset(d); }",
    "size_t __cl_inlined __cl_linear(void) { return get_global_id(0) + get_global_size(0)"
    " * (get_global_id(1) + get_global_size(1) * get_global_id(2)); }",
    "#define get_work_dim() __cl_stated_work_dim()",
    "#define get_global_offset(dimension) __cl_offset(dimension)",
    "#define get_global_linear_id() __cl_linear()",
    "#define get_global_id(dimension) __cl_id(dimension)",
    "#endif",
)
"""A launch has no offset, and as many dimensions as it has sizes other than 1; but one of the host
API, whose programs read both from the environment registers (`warploom.isa.special`)."""

INTEGERS = ("#define mad_hi(a, b, c) (mul_hi(a, b) + (c))",)


@cache
def functions_text() -> str:
    """Returns the text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
    for name, count in (*((n, 1) for n in UNARY), *((n, 2) for n in BINARY)):
        for type, ending in (("float", "f"), ("double", "")):
            yield from _defined(name, f"__nv_{name}{ending}", type, count)
        yield f"#define {name}(...) __cl_{name}(__VA_ARGS__)"
    for native, count in ((NATIVE, 1), (NATIVE_BINARY, 2)):
        for name, function in native.items():
            yield from _defined(name, function, "float", count)
            yield f"#define {name}(...) __cl_{name}(__VA_ARGS__)"
    for name, other in POWERS.items():
        yield f"#define {name}(...) __cl_{other}(__VA_ARGS__)"
    yield from (*WORK_ITEMS, *INTEGERS)


def _defined(name: str, function: str, type: str, count: int) -> Iterator[str]:
    """Yields the definitions of a function for one type and its vectors."""
    head = "__attribute__((overloadable, always_inline, internal_linkage))"
    letters = "xy"[:count]
    if function.startswith("__nv_"):
        yield f"{type} {function}({', '.join([type] * count)});"
    taken = ", ".join(f"{type} {letter}" for letter in letters)
    yield f"{head} {type} __cl_{name}({taken}) {{ return {function}({', '.join(letters)}); }}"
    for width in WIDTHS:
        vector = f"{type}{width}"
        taken = ", ".join(f"{vector} {letter}" for letter in letters)
        parts = ", ".join(
            f"{function}({', '.join(f'{letter}.s{part}' for letter in letters)})"
            for part in COMPONENTS[:width]
        )
        yield f"{head} {vector} __cl_{name}({taken}) {{ return ({vector})({parts}); }}"
