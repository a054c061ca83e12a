"""Arguments are checked against what the C++ source declares: by the mangled name of the kernel, or
by its declaration."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.types import F32, U32, U64, ScalarType
from warploom.host.programs.cpp_types import Arithmetic, Class, CppType, read_type
from warploom.host.programs.signatures import Parameter, signature_of
from warploom.isa.instruction import Space
from warploom.ptx.module import Variable

FLOAT = Arithmetic(Class.FLOAT, 4)
SOURCE = """
template <typename T> __global__ void copy(const T *from, T *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
template __global__ void copy<float>(const float *, float *, int);
extern "C" __global__ void __launch_bounds__(256)
saxpy(int n, float a /* scale, of x */, const float *__restrict__ x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
struct Params { int n; float scale; };
__global__ void scaled(Params p, float4 *x) { x[threadIdx.x].x = p.n * p.scale; }
typedef double real;
extern "C" __global__ void own(real *x, unsigned n, bool flag, unsigned long long id) {
    x[0] = n + flag + id;
}
"""


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device()


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.compile(SOURCE)


def test_a_buffer_of_another_type_is_refused_by_the_parameter(
    gpu: wl.Device, module: wl.Module
) -> None:
    x, y = gpu.zeros(32, np.float32), gpu.zeros(32, np.float64)
    saxpy = module["saxpy"][1, 32]
    wrong = r"argument 3 of saxpy, `float \*y`: the buffer holds float64\. Convert it with"
    with pytest.raises(wl.LaunchError, match=wrong + r" \.astype\(np\.float32\), or .*strict=Fal"):
        saxpy(32, 2.0, x, y)
    with pytest.raises(wl.LaunchError, match=r"`const float \*__restrict__ x`: the array holds in"):
        saxpy(32, 2.0, np.arange(32), x)
    saxpy(32, 2.0, x, y, strict=False)
    with pytest.raises(wl.LaunchError, match="float64"):
        saxpy.trace(32, 2.0, x, y)
    with pytest.raises(wl.LaunchError, match="float64"):
        wl.explore(saxpy, 32, 2.0, x, y)


def test_a_device_can_leave_the_check_out() -> None:
    gpu = wl.Device(strict=False)
    x = gpu.zeros(32, np.int64)
    saxpy = gpu.compile(SOURCE)["saxpy"][1, 32]
    saxpy(32, 2.0, x, x)
    with pytest.raises(wl.LaunchError, match="int64"):
        saxpy(32, 2.0, x, x, strict=True)


def test_messages_have_the_names_of_the_source(gpu: wl.Device, module: wl.Module) -> None:
    x = gpu.zeros(32, np.float32)
    saxpy = module["saxpy"][1, 32]
    with pytest.raises(wl.LaunchError, match=r"argument 0 of saxpy is 2\.5 .*`int n` takes an int"):
        saxpy(2.5, 2.0, x, x)
    with pytest.raises(wl.LaunchError, match=r"`int n` takes integers from -2147483648 to 2147483"):
        saxpy(2**31, 2.0, x, x)
    with pytest.raises(
        wl.LaunchError, match=r"\(int n, float a, const float \*__restrict__ x, flo"
    ):
        saxpy(1)
    with pytest.raises(wl.LaunchError, match=r"`int n` takes a number, not a pointer"):
        saxpy(x, 1, x, x)
    saxpy(np.int8(32), 2, x, x)  # an integer for a float


def test_templates_are_checked_by_what_they_were_made_for(
    gpu: wl.Device, module: wl.Module
) -> None:
    copy = module["copy"][1, 32]
    with pytest.raises(wl.LaunchError, match=r"argument 1 of copy, `T \*to`: .* float64"):
        copy(gpu.zeros(32, np.float32), gpu.zeros(32, np.float64), 32)


def test_structures_and_vectors(gpu: wl.Device, module: wl.Module) -> None:
    x = gpu.zeros(4, np.float32)
    module["scaled"][1, 1](np.array([(2, 1.5)], "i4,f4")[0], x)
    assert x.copy_to_host()[0] == 3
    with pytest.raises(wl.LaunchError, match=r"`float4 \*x`: the buffer holds int32"):
        module["scaled"][1, 1](bytes(8), gpu.zeros(4, np.int32))


def test_what_cannot_be_read_is_not_checked(gpu: wl.Device, module: wl.Module) -> None:
    x = gpu.zeros(1, np.float64)
    own = module["own"][1, 1]
    own(x, 7, True, 2**64 - 1)  # `real` is a name of the program's own
    own(gpu.zeros(2, np.float32), 2**32 - 1, False, x)  # an address as a number
    with pytest.raises(wl.LaunchError, match="`unsigned n` takes integers from 0 to 4294967295"):
        own(x, -1, True, 0)
    with pytest.raises(wl.LaunchError, match="`bool flag` takes integers from 0 to 1"):
        own(x, 1, 2, 0)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("const float *", CppType(FLOAT, 1)),
        ("float const*", CppType(FLOAT, 1)),
        ("float", CppType(FLOAT)),
        ("float4 *", CppType(FLOAT, 1)),
        ("float **", CppType(FLOAT, 2)),
        ("unsigned", CppType(Arithmetic(Class.UNSIGNED, 4))),
        ("long unsigned long int *", CppType(Arithmetic(Class.UNSIGNED, 8), 1)),
        ("short int", CppType(Arithmetic(Class.SIGNED, 2))),
        ("std::uint16_t *", CppType(Arithmetic(Class.UNSIGNED, 2), 1)),
        ("ulonglong2 *", CppType(Arithmetic(Class.UNSIGNED, 8), 1)),
        ("double4_32a", CppType(Arithmetic(Class.FLOAT, 8))),
        ("Params", None),
        ("my::float4 *", None),
        ("float (*)(float)", None),
        ("vector<float> *", None),
        ("float &", None),
        ("", None),
    ],
)
def test_types_of_the_source(text: str, type: CppType | None) -> None:
    assert read_type(text) == type


@pytest.mark.parametrize(
    ("declared", "fits", "refused"),
    [
        ("float *", "f4 c8 u1 i1 ?", "f8 f2 i4 u4 i8 c16"),
        ("double *", "f8 c16 u1", "f4 i8"),
        ("int *", "i4 u4 i1", "i8 f4 i2 f8"),
        ("unsigned long long *", "u8 i8 m8[s]", "u4 f8"),
        ("const char *", "f8 i4 u1", ""),
        ("void *", "f8 i4 u1", ""),
        ("bool *", "? u1 i1", "f4"),
        ("const unsigned char *", "u1 i1 ?", "f4 i4 f8"),
        ("uint8_t *", "u1 i1 ?", "f4 i4 f8"),
        ("__half *", "f2 u2 i2", "f4 i4"),
        ("__nv_bfloat16 *", "u2 i2", "f2 f4"),
        ("float **", "u8 i8", "f4 f8 i4"),
    ],
)
def test_elements_that_fit_a_pointer(declared: str, fits: str, refused: str) -> None:
    type = read_type(declared)
    assert type is not None
    assert all(type.accepts(np.dtype(code)) for code in fits.split())
    assert not any(type.accepts(np.dtype(code)) for code in refused.split())
    assert type.accepts(np.dtype([("x", "f4"), ("y", "f4")]))


# ---- declarations -------------------------------------------------------------------------------


def variable(type: ScalarType) -> Variable:
    return Variable("p", Space.PARAM, type)


def texts(source: str, *types: ScalarType, symbol: str = "k") -> list[str]:
    return [p.text for p in signature_of(symbol, [variable(t) for t in types], source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__global__ void k(float *x, int n = 3);", ["float *x", "int n"]),
        (
            "void __global__ __launch_bounds__(MAX(2, 3), 1) k(float x[], int);",
            ["float x[]", "int"],
        ),
        (
            "// __global__ void k(int *y, int n)\n__global__ void\nk(A<B, C> *x, int n)",
            ["A<B, C> *x", "int n"],
        ),
        ("__global__ void other(float *x, int n); __global__ void k(int n);", ["", ""]),
        ("__global__ void k(float *x, int n); __global__ void k(int *x, int n);", ["", ""]),
        (
            "__global__ void k(float *x, int n); __global__ void k(float *x, int n) {}",
            ["float *x", "int n"],
        ),
        ('const char *s = "__global__ void k(int *a, int b)";', ["", ""]),
        ("__global__ void k(float *x, int", ["", ""]),
        ("__global__", ["", ""]),
    ],
)
def test_declarations_of_the_source(source: str, expected: list[str]) -> None:
    assert texts(source, U64, U32) == expected


def test_overloads_are_distinguished_by_their_mangled_names() -> None:
    source = "__global__ void k(float *x, int n) {} __global__ void k(int *x, float n) {}"
    assert texts(source, U64, U32, symbol="_Z1kPfi") == ["float *x", "int n"]
    assert texts(source, U64, F32, symbol="_Z1kPif") == ["int *x", "float n"]
    assert texts("", U64, F32, symbol="_Z1kPif") == ["int *", "float"]


def test_a_declaration_that_ptx_contradicts_has_no_type() -> None:
    source = "#define int float\n__global__ void k(int n);"
    assert signature_of("k", [variable(F32)], source) == (Parameter("int n", "n"),)
