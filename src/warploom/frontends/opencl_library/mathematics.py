"""Mathematical functions (OpenCL C 3.0, 6.15.2), by NVIDIA's libdevice where that has them. The
notation is that of `elementwise`."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.frontends.opencl_library.elements import FLOATS
from warploom.frontends.opencl_library.elementwise import Elementwise

_OF_ONE = (
    "acos acosh asin asinh atan atanh cbrt cos cosh cospi erf erfc exp exp2 exp10 expm1 lgamma log"
    " log10 log1p log2 logb rsqrt sin sinh sinpi tan tanh tgamma rint round"
)
_OF_TWO = "atan2 fdim fmod hypot nextafter pow remainder"
_OTHERWISE = ("fmod", "nextafter", "remainder")
"""Functions that are not libdevice's for each type."""
_OF_SMALL = """{
    // libdevice's function of `float` divides by numbers that are not normal as by 0.
    if (__builtin_fabsf(y) >= FLT_MIN) return __nv_NAMEf(x, y);
    return (float)__nv_NAME((double)x, (double)y);
}"""
_ONE_OVER_PI = "($T)0.31830988618379067154"


def _libdevice(names: str, form: str, result: str = "g") -> Iterator[Elementwise]:
    arguments = ", ".join("xyz"[: len(form)])
    for name in names.split():
        yield Elementwise(name, result, (form,), FLOATS, f"__nv_{name}$f({arguments})")


def _builtin(names: str, form: str) -> Iterator[Elementwise]:
    arguments = ", ".join("xyz"[: len(form)])
    for name in names.split():
        yield Elementwise(name, "g", (form,), FLOATS, f"__builtin_{name}$f({arguments})")


_FRACT = """{
    $T whole = __builtin_floor$f(x), part = x - whole, most = 1 - EPSILON;
    *y = whole;
    return x != x ? x : whole == x ? __builtin_copysign$f(0, x) : part > most ? most : part;
}"""
_FRACT_OF_HALF = """{
    float whole = __builtin_floorf((float)x);
    half part = (half)((float)x - whole), most = __builtin_astype(($U)0x3bff, half);
    *y = (half)whole;
    if (x != x || whole == (float)x) return x != x ? x : (half)__builtin_copysignf(0, (float)x);
    return part > most ? most : part; // just below 1, which the part would be rounded to
}"""
_NEXT_HALF = """{
    $U bits = __builtin_astype(x, $U), sign = __builtin_astype(y, $U) & 0x8000;
    if (x != x || y != y) return x + y;
    if (x == y) return y;
    $U next = (x < y) == (x > 0) ? bits + 1 : bits - 1;
    if (x == 0) next = sign | 1;
    return __builtin_astype(next, half);
}"""
_MODF = """{
    $T whole = __builtin_trunc$f(x);
    *y = whole;
    return __builtin_copysign$f(x == whole ? 0 : x - whole, x);
}"""
_LGAMMA_R = """{
    $T whole = __builtin_floor$f(x), pairs = __builtin_floor$f(whole / 2) * 2;
    *y = x > 0 ? 1 : whole == x ? 0 : whole == pairs ? 1 : -1;
    return __nv_lgamma$f(x);
}"""
_MAXMAG = """{
    $T a = __builtin_fabs$f(x), b = __builtin_fabs$f(y);
    return a FIRST b ? x : b FIRST a ? y : __nv_ELSE$f(x, y);
}"""
_POWR = """{
    int undefined = x < 0 || x != x || y != y || (y == 0 && (x == 0 || x - x != 0))
        || (x == 1 && y - y != 0);
    return undefined ? ($T)__builtin_nanf("") : __nv_pow$f(__builtin_fabs$f(x), y);
}"""
_POWN_OF_FLOAT = """{
    if (y > -(1 << 24) && y < 1 << 24) return __nv_powf(x, (float)y);
    int low = y % 4096; // the rest has no more bits than a float
    return __nv_powf(x, (float)(y - low)) * __nv_powf(x, (float)low);
}"""
_ROOTN = """{
    int odd = y & 1;
    if (y == 0 || x != x || (x < 0 && !odd)) return __builtin_nanf("");
    $T size = __builtin_fabs$f(x), by = 1 / ($T)y, rest = __builtin_fma$f(-by, ($T)y, 1) * by;
    $T root = __nv_pow$f(size, by);
    if (size > 0 && size - size == 0) // the part of 1 / y that `by` has not
        root += root * (rest * __nv_log$f(size));
    return odd ? __builtin_copysign$f(root, x) : root;
}"""
_REMQUO = """{
    $T size = __builtin_fabs$f(x), by = __builtin_fabs$f(y);
    *z = 0;
    if (!(by > 0) || size - size != 0) return __builtin_nanf("");
    $T rest = fmod(size, 128 * by);
    int count = 0;
    for (int bit = 64; bit; bit >>= 1)
        if (rest >= bit * by) { rest -= bit * by; count += bit; }
    if (rest + rest > by || (rest + rest == by && count & 1)) { rest -= by; count++; }
    count &= 127;
    *z = __builtin_signbit(x) != __builtin_signbit(y) ? -count : count;
    return rest == 0 ? __builtin_copysign$f(0, x) : __builtin_signbit(x) ? -rest : rest;
}"""
_NAN = {"float": "0x7fc00000", "double": "0x7ff8000000000000", "half": "0x7e00"}
_EPSILON = {"float": "0x1p-24f", "double": "0x1p-53"}

MATHEMATICS = (
    *_libdevice(_OF_ONE, "g"),
    *(one for one in _libdevice(_OF_TWO, "gg") if one.name not in _OTHERWISE),
    *(
        Elementwise(name, "g", ("gg",), types, body.replace("NAME", name))
        for name in ("fmod", "remainder")
        for types, body in ((("float", "half"), _OF_SMALL), (("double",), "__nv_NAME(x, y)"))
    ),
    Elementwise("nextafter", "g", ("gg",), ("float", "double"), "__nv_nextafter$f(x, y)"),
    *_builtin("ceil fabs floor sqrt trunc", "g"),
    *_builtin("copysign", "gg"),
    *_builtin("fma", "ggg"),
    *(
        Elementwise(name, "g", ("gg", "gs"), FLOATS, f"__nv_{name}$f(x, y)")
        for name in ("fmax", "fmin")
    ),
    *(
        Elementwise(f"{name}pi", "g", ("g",), FLOATS, f"__nv_{name}$f(x) * {_ONE_OVER_PI}")
        for name in ("acos", "asin", "atan")
    ),
    Elementwise("atan2pi", "g", ("gg",), FLOATS, f"__nv_atan2$f(x, y) * {_ONE_OVER_PI}"),
    Elementwise("tanpi", "g", ("g",), FLOATS, "__nv_sinpi$f(x) / __nv_cospi$f(x)"),
    *(
        Elementwise("fract", "g", ("gp",), (element,), _FRACT.replace("EPSILON", epsilon))
        for element, epsilon in _EPSILON.items()
    ),
    Elementwise("fract", "g", ("gp",), ("half",), _FRACT_OF_HALF),
    Elementwise("nextafter", "g", ("gg",), ("half",), _NEXT_HALF),
    Elementwise(
        *("frexp", "g", ("gq",), FLOATS),
        "{ private int n; $T part = __nv_frexp$f(x, &n); *y = n; return part; }",
    ),
    Elementwise("ilogb", "n", ("g",), FLOATS, "__nv_ilogb$f(x)"),
    Elementwise("ldexp", "g", ("gn", "gm"), FLOATS, "__nv_ldexp$f(x, y)"),
    Elementwise("lgamma_r", "g", ("gq",), FLOATS, _LGAMMA_R),
    Elementwise("mad", "g", ("ggg",), FLOATS, "x * y + z"),
    *(
        Elementwise(name, "g", ("gg",), FLOATS, _MAXMAG.replace("FIRST", sign).replace("ELSE", nv))
        for name, sign, nv in (("maxmag", ">", "fmax"), ("minmag", "<", "fmin"))
    ),
    Elementwise("modf", "g", ("gp",), FLOATS, _MODF),
    *(
        Elementwise("nan", "g", ("u",), (element,), f"__builtin_astype(($U)({bits} | x), $T)")
        for element, bits in _NAN.items()
    ),
    Elementwise("pown", "g", ("gn",), ("float", "half"), _POWN_OF_FLOAT),
    Elementwise("pown", "g", ("gn",), ("double",), "__nv_pow(x, (double)y)"),
    Elementwise("powr", "g", ("gg",), FLOATS, _POWR),
    Elementwise("remquo", "g", ("ggq",), FLOATS, _REMQUO, ("fmod",)),
    Elementwise("rootn", "g", ("gn",), FLOATS, _ROOTN),
    Elementwise("sincos", "g", ("gp",), FLOATS, "(*y = __nv_cos$f(x), __nv_sin$f(x))"),
)

# ---- functions that may be wrong -----------------------------------------------------------------

_FAST = {
    "sin": "__nv_fast_sinf(x)",
    "cos": "__nv_fast_cosf(x)",
    "tan": "__nv_fast_tanf(x)",
    "exp": "__nv_fast_expf(x)",
    "exp2": "__nv_exp2f(x)",
    "exp10": "__nv_fast_exp10f(x)",
    "log": "__nv_fast_logf(x)",
    "log2": "__nv_fast_log2f(x)",
    "log10": "__nv_fast_log10f(x)",
    "rsqrt": "__nv_rsqrtf(x)",
    "sqrt": "__nvvm_sqrt_approx_f(x)",
    "recip": "__nvvm_rcp_approx_ftz_f(x)",
}
_FAST_OF_TWO = {"powr": "__nv_fast_powf(x, y)", "divide": "__nv_fast_fdividef(x, y)"}
_EXACT = {"recip": "1 / x", "rsqrt": "__nv_rsqrtf(x)", "sqrt": "__builtin_sqrtf(x)"}
"""Where the function has another name in libdevice."""

IMPRECISE = (
    *(Elementwise(f"native_{n}", "g", ("g",), ("float",), body) for n, body in _FAST.items()),
    *(
        Elementwise(f"native_{n}", "g", ("gg",), ("float",), body)
        for n, body in _FAST_OF_TWO.items()
    ),
    # CUDA's fast functions are absolutely, not relatively, as exact as `half_` ones are to be.
    *(
        Elementwise(f"half_{n}", "g", ("g",), ("float",), _EXACT.get(n, f"__nv_{n}f(x)"))
        for n in _FAST
    ),
    Elementwise("half_divide", "g", ("gg",), ("float",), "x / y"),
    Elementwise("half_powr", "g", ("gg",), ("float",), _POWR),
)
"""`native_` functions are CUDA's fast ones, `half_` ones those of `float`."""

LIBDEVICE = {
    **dict.fromkeys(_OF_ONE.split(), "$T($T)"),
    **dict.fromkeys((*_OF_TWO.split(), "fmax", "fmin"), "$T($T, $T)"),
    "frexp": "$T($T, int *)",
    "ilogb": "int($T)",
    "ldexp": "$T($T, int)",
}
"""The functions of libdevice that are there for `float` and `double`, by their types."""


def declarations() -> Iterator[str]:
    """Yields the declarations of libdevice's functions."""
    for name, type in LIBDEVICE.items():
        result, parameters = type[:-1].split("(")
        for element, letter in (("float", "f"), ("double", "")):
            line = f"{result} __nv_{name}{letter}({parameters});"
            yield line.replace("$T", element)
    for name in ("sin", "cos", "tan", "exp", "exp10", "log", "log2", "log10"):
        yield f"float __nv_fast_{name}f(float);"
    yield "float __nv_fast_powf(float, float); float __nv_fast_fdividef(float, float);"
    yield "long __nv_mul64hi(long, long); ulong __nv_umul64hi(ulong, ulong);"
