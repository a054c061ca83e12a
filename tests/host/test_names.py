"""C++ names of kernels, by the mangling that GCC and NVRTC share."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import LaunchError, MemoryFault
from warploom.host.programs.names import find_kernel, source_name
from warploom.host.requests import only_kernel


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("saxpy", "saxpy"),
        ("_Z5saxpyifPKfPf", "saxpy"),
        ("_ZN4math5saxpyEif", "math::saxpy"),
        ("_Z4copyIfEvPT_", "copy"),  # copy<float>
        ("_ZN12_GLOBAL__N_14tinyEv", "tiny"),  # in an anonymous namespace
        ("_Z1k6Params", "k"),  # k(Params)
        ("_Z1k6ParamsPf", "k"),
        ("_Z5sizedILi2EEv3ArrIXmlT_Li2EEEPf", "sized"),  # sized<2>(Arr<N * 2>, float *)
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_Z3ab", "_Z3ab"),  # too short for what it says
    ],
)
def test_source_names(symbol: str, name: str) -> None:
    assert source_name(symbol) == name


def test_kernels_are_found_by_either_name() -> None:
    symbols = ["_ZN4math5saxpyEif", "plain", "_Z4copyIfEvPT_", "_Z4copyIdEvPT_"]
    assert find_kernel("plain", symbols, "m") == "plain"
    assert find_kernel("saxpy", symbols, "m") == "_ZN4math5saxpyEif"
    assert find_kernel("math::saxpy", symbols, "m") == "_ZN4math5saxpyEif"
    assert find_kernel("_Z4copyIdEvPT_", symbols, "m") == "_Z4copyIdEvPT_"


def test_what_is_missing_or_ambiguous_lists_what_there_is() -> None:
    symbols = ["plain", "_Z4copyIfEvPT_", "_Z4copyIdEvPT_"]
    with pytest.raises(
        LaunchError,
        match=r"no kernel named other.*plain, copy<float>\(float\*\) \(_Z4copyIfEvPT_\)",
    ):
        find_kernel("other", symbols, "m.cu")
    both = r"copy<float>\(float\*\) \(_Z4copyIfEvPT_\), copy<double>\(double\*\) \(_Z4copyIdEvPT_\)"
    with pytest.raises(LaunchError, match=f"2 kernels named copy: {both}"):
        find_kernel("copy", symbols, "m.cu")
    with pytest.raises(LaunchError, match="it has none"):
        find_kernel("k", [], "m.cu")


OVERLOADS = ["_Z1k6Params", "_Z1k6ParamsPf", "_Z4packIJifdEEvDpPT_", "_ZN1a4tmplIfLi3ELb1EEEvPT_i"]


@pytest.mark.parametrize(
    ("wanted", "symbol"),
    [
        ("k(Params)", "_Z1k6Params"),
        ("k(Params, float *)", "_Z1k6ParamsPf"),
        ("pack", "_Z4packIJifdEEvDpPT_"),
        ("pack(int*, float*, double*)", "_Z4packIJifdEEvDpPT_"),
        ("tmpl<float, 3, true>", "_ZN1a4tmplIfLi3ELb1EEEvPT_i"),
        ("a::tmpl<float,3,true>", "_ZN1a4tmplIfLi3ELb1EEEvPT_i"),
        ("a::tmpl", "_ZN1a4tmplIfLi3ELb1EEEvPT_i"),
    ],
)
def test_kernels_are_found_by_what_distinguishes_them(wanted: str, symbol: str) -> None:
    assert find_kernel(wanted, OVERLOADS, "m") == symbol


def test_overloads_are_shown_with_their_types() -> None:
    with pytest.raises(LaunchError, match=r"2 kernels named k: k\(Params\) .*k\(Params, float\*\)"):
        find_kernel("k", OVERLOADS, "m")


def test_a_name_that_is_close_is_proposed() -> None:
    with pytest.raises(LaunchError, match="Did you mean 'saxpy'"):
        find_kernel("saxpi", ["_Z5saxpyifPKfPf", "other"], "m")


def test_tags_of_the_abi_are_no_part_of_a_name() -> None:
    """As Numba mangles a function: its number in the process and a digest are tags."""
    assert source_name("_ZN4mine5scaleB2v1B3cw5Ei") == "mine::scale"


def test_a_fault_names_the_kernel_as_its_source_does() -> None:
    source = """
    template <class T> __global__ void put(T *to, int at) { to[at] = 1; }
    template __global__ void put<double>(double *, int);
    """
    gpu = wl.Device()
    with pytest.raises(MemoryFault, match=r"in kernel put<double>\(double\*, int\), by thread"):
        gpu.compile(source)["put"][1, 1](gpu.zeros(1, np.float64), 1 << 20)


def test_messages_name_kernels_as_the_source_does() -> None:
    module = wl.Device().compile(
        "template<class T> __global__ void scale(T *x) { *x *= 2; }"
        "template __global__ void scale<int>(int *); __global__ void other(int *x) { *x = 1; }",
        name="m.cu",
    )
    with pytest.raises(wl.WarploomError, match=r"scale<int>\(int\*\) \(_Z5scaleIiEvPT_\)"):
        only_kernel(module)
