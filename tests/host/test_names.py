"""C++ names of kernels, by the mangling that GCC and NVRTC share."""

from __future__ import annotations

import pytest

from warploom.core.errors import LaunchError
from warploom.host.names import find_kernel, source_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("saxpy", "saxpy"),
        ("_Z5saxpyifPKfPf", "saxpy"),
        ("_ZN4math5saxpyEif", "math::saxpy"),
        ("_Z4copyIfEvPT_", "copy"),  # copy<float>
        ("_ZN12_GLOBAL__N_14tinyEv", "tiny"),  # in an anonymous namespace
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
    with pytest.raises(LaunchError, match=r"no kernel named other.*plain, copy \(_Z4copyIfEvPT_\)"):
        find_kernel("other", symbols, "m.cu")
    with pytest.raises(LaunchError, match="2 kernels named copy: _Z4copyIfEvPT_, _Z4copyIdEvPT_"):
        find_kernel("copy", symbols, "m.cu")
    with pytest.raises(LaunchError, match="it has none"):
        find_kernel("k", [], "m.cu")
