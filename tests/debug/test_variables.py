"""Variables show what the kernel itself prints of them: thirty kernels, with -G and -lineinfo."""

from __future__ import annotations

import numpy as np
import pytest
from sessions import Talk

import warploom as wl
from warploom.debug.attaching import AttachedDebugger
from warploom.debug.session import Session
from warploom.host.debugging import attach
from warploom.host.module import Module

PRELUDE = """
struct Pair { int a; float b; };
struct Nest { Pair pair; short s[3]; double d; };
struct Bits { unsigned low : 3; int mid : 5; unsigned high : 8; };
struct Base { int base; };
struct Derived : Base { float own; };
namespace geo { template <typename T> struct Point { T x, y; }; }
enum Color { RED = 1, BLUE = 4 };
enum class Level : unsigned char { LOW = 2, HIGH = 7 };
__device__ int square(int v) { int r = v * v; return r; }
template <typename T> __device__ __noinline__ T most(T a, T b) { T m = a > b ? a : b; return m; }
"""

BODIES = {
    "int v = i * 3 - 7;": {"v": "%d"},
    "unsigned v = 4000000000u + i;": {"v": "%u"},
    "long long v = (1LL << 40) * (i + 1);": {"v": "%lld"},
    "unsigned long long v = ~0ull - i;": {"v": "%llu"},
    "short v = -300 - i;": {"v": "%d"},
    "unsigned short v = 65000 + i;": {"v": "%u"},
    "signed char v = -3 - i;": {"v": "%d"},
    "unsigned char v = 250 + i;": {"v": "%u"},
    "bool v[2] = {(bool)(i & 1), true};": {"v[0]": "%d", "v[1]": "%d"},
    "float v = f * i + 0.25f;": {"v": "%.9g"},
    "double v = f * 1.5 + i * 1e-3;": {"v": "%.17g"},
    "float v = x[i] * 2;": {"v": "%.9g"},
    "float v[4]; for (int j = 0; j < 4; j++) v[j] = j * f + i;": {"v[1]": "%.9g", "v[3]": "%.9g"},
    "int v[2][3]; for (int j = 0; j < 6; j++) v[j / 3][j % 3] = j + i;": {"v[1][2]": "%d"},
    "Pair v = {i, f};": {"v.a": "%d", "v.b": "%.9g"},
    "Nest v = {{i, f}, {1, (short)-i, 3}, f * 0.1};": {
        "v.pair.a": "%d", "v.s[1]": "%d", "v.d": "%.17g"
    },
    "Bits v = {(unsigned)i & 7u, -9 + i, 200u};": {"v.low": "%u", "v.mid": "%d", "v.high": "%u"},
    "Derived v; v.base = i + 1; v.own = f;": {"v.base": "%d", "v.own": "%.9g"},
    "geo::Point<double> v = {f * 1.0, i * 2.0};": {"v.x": "%.17g", "v.y": "%.17g"},
    "Pair p = {i, f}; Pair *v = &p; v->a += 5;": {"v->a": "%d", "p.b": "%.9g"},
    "int t = i + 4; int &v = t; v *= 2;": {"v": "%d", "t": "%d"},
    "int v = square(i) + 1;": {"v": "%d"},
    "float v = most(f, (float)i); int w = most(i, 2);": {"v": "%.9g", "w": "%d"},
    "int v = 0; for (int j = 0; j <= i; j++) v += j;": {"v": "%d"},
    "int v; if (i & 1) { v = 10 * i; } else { v = -i; }": {"v": "%d"},
    "__shared__ int v[8]; v[i] = 3 * i; __syncthreads();": {"v[1]": "%d", "v[7]": "%d"},
    "__shared__ Pair v; if (i == 0) { v.a = 5; v.b = f; } __syncthreads();": {"y[0]": "%.9g"},
    "uint4 v = make_uint4(i, 2, 3, 4); float2 w = make_float2(f, i);": {
        "v.x": "%u", "w.y": "%.9g"
    },
    "Color v = i & 1 ? BLUE : RED; int w = v;": {"w": "%d"},
    "Level v = i & 1 ? Level::HIGH : Level::LOW; int w = (int)v;": {"w": "%d"},
    "int v = 1; { int v = i + 50; y[i] = v; } v += i;": {"v": "%d"},
    "const float *v = x + i; float w = *v;": {"w": "%.9g", "v[1]": "%.9g"},
}  # fmt: skip
"""Bodies of kernels, and how each thread prints expressions behind them; each is a line."""

PARAMETERS = {
    "n": "%d",
    "f": "%.9g",
    "big": "%lld",
    "x[1]": "%.9g",
    "y[2]": "%.9g",
    "given.a": "%d",
    "given.b": "%.9g",
}

NAMES = ("n", "f", "big", "given", "x", "y")
"""The parameters themselves."""


def kernels(*, locals: bool) -> str:
    """A source with a kernel for each body."""
    parts = [PRELUDE]
    for number, (body, shown) in enumerate(BODIES.items()):
        every = {**PARAMETERS, **(shown if locals else {})}
        formats, values = "|".join(every.values()), ", ".join(every)
        parts.append(
            f'extern "C" __global__ void k{number}(int n, float f, long long big, Pair given,'
            f" const float *x, float *y)\n{{\n    int i = threadIdx.x;\n    {body}\n"
            f'    printf("{formats}\\n", {values}); // {number}\n    y[i] = n;\n}}\n'
        )
    return "\n".join(parts)


def compiled(options: list[str], *, locals: bool) -> tuple[wl.Device, Module, str]:
    gpu = wl.Device(output=lambda _: None)
    source = kernels(locals=locals)
    return gpu, gpu.compile(source, options=options, name="kernel.cu"), source


def printed_and_shown(built: tuple[wl.Device, Module, str], number: int, names: list[str]) -> None:
    """Launches a kernel up to its printf; what it then prints in lane 3 is what was shown."""
    gpu, module, source = built
    line = 1 + source.split("\n").index(
        next(each for each in source.split("\n") if each.endswith(f"// {number}"))
    )
    shown: list[str] = []
    texts: list[str] = []

    def face(session: Session) -> bool:
        session.target.output.write = texts.append
        talk = Talk(session)
        talk.say(f"break {line} if threadIdx.x == 3")
        talk.say("run")
        assert talk.line() == line
        shown.extend(talk.value(name) for name in names)
        talk.say("continue")
        return False

    attach(AttachedDebugger(face))
    given = np.array([(7, 2.5)], np.dtype([("a", np.int32), ("b", np.float32)]))
    x = gpu.to_device(np.linspace(1, 2, 16).astype(np.float32), "x")
    try:
        module[f"k{number}"][1, 8](42, 1.75, 1 << 50, given, x, gpu.zeros(8, np.float32))
    finally:
        attach(None)
    printed = "".join(texts).split("\n")[3].split("|")[: len(names)]
    assert [*map(_single, shown)] == [*map(_single, printed)]


def _single(text: str) -> object:
    """The number that a value is written as, of characters their code; fractions as `float`, for
    `printf` writes more digits of one than distinguish it."""
    words = {"true": 1.0, "false": 0.0}
    number = words[text] if text in words else float(text.split(" ")[0])
    return number if number.is_integer() else np.float32(number)


@pytest.fixture(scope="module")
def with_debug_information() -> tuple[wl.Device, Module, str]:
    return compiled(["-G"], locals=True)


@pytest.fixture(scope="module")
def with_lines() -> tuple[wl.Device, Module, str]:
    return compiled(["-lineinfo"], locals=False)


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_locals_and_parameters_of_debug_builds(
    number: int, with_debug_information: tuple[wl.Device, Module, str]
) -> None:
    names = [*PARAMETERS, *list(BODIES.values())[number]]
    printed_and_shown(with_debug_information, number, names)


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_parameters_of_builds_with_lines(
    number: int, with_lines: tuple[wl.Device, Module, str]
) -> None:
    printed_and_shown(with_lines, number, [name for name in PARAMETERS if "." not in name])


def test_what_builds_with_lines_do_not_describe_is_said(
    with_lines: tuple[wl.Device, Module, str],
) -> None:
    """Of 32 kernels with local variables, only parameters and shared variables are shown."""
    gpu, module, _ = with_lines
    shown: list[list[str]] = []

    def face(session: Session) -> bool:
        talk = Talk(session)
        talk.say("start")
        shown.append([name for name, _ in session.variables()])
        if shown[-1] == [*NAMES]:
            assert "compile with -G to see" in talk.say("print v")
        return True

    attach(AttachedDebugger(face))
    given = np.array([(7, 2.5)], np.dtype([("a", np.int32), ("b", np.float32)]))
    x = gpu.to_device(np.ones(16, np.float32), "x")
    try:
        for number in range(len(BODIES)):
            arguments = 42, 1.75, 1 << 50, given, x, gpu.zeros(8, np.float32)
            module[f"k{number}"][1, 8](*arguments)
    finally:
        attach(None)
    shared = ["__shared__" in body for body in BODIES]
    for names, declares in zip(shown, shared, strict=True):
        assert names == [*NAMES] or (declares and names == [*NAMES, "v"])
