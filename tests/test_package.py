"""What `import warploom` gives, and what it does not take time for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import warploom as wl


@pytest.mark.parametrize("name", wl.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(wl, name) is not None
    assert name in dir(wl)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'devise'"):
        wl.devise  # noqa: B018


def test_the_package_alone_imports_nothing_large() -> None:
    """NumPy, LLVM and the machine come with the first name that needs them."""
    told = "import sys, warploom; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "warploom" in loaded
    assert not {"numpy", "llvmlite", "numba", "msgspec"} & set(loaded)
