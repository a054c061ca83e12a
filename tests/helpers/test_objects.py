"""Checks where the machine code of helpers comes from: shipped with the package, else cached on
disk, else compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from warploom.core.errors import WarploomError
from warploom.helpers import objects
from warploom.helpers.objects import HelperObject
from warploom.helpers.table import load_separately
from warploom.llvm import disk_cache
from warploom.llvm.target import VARIABLE, Processor, levels


def add(first: int, second: int) -> int:
    return first + second


class Functions:
    """Imports the helper `add`, and counts the imports, one for each compilation."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Mapping[str, Callable[..., object]]:
        self.times += 1
        return {"add": add}


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Functions:
    """Returns the functions of a helper, with an empty cache and a package that ships nothing."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "SHIPPED", tmp_path / "shipped")
    return Functions()


def helper(functions: Functions, sources: tuple[str, ...] = ("cost",)) -> HelperObject:
    return HelperObject("sums", (("add", "int64(int64, int64)"),), functions, sources)


def shipped_for(functions: Functions, level: Processor) -> list[Path]:
    return helper(functions).ship([level], objects.SHIPPED)


def test_code_is_compiled_once_and_kept(functions: Functions) -> None:
    assert load_separately(helper(functions))["add"](20, 22) == 42
    assert load_separately(helper(functions))["add"](1, -3) == -2
    assert functions.times == 1


@pytest.mark.skipif(not levels(), reason="no code is shipped for this kind of processor")
def test_shipped_code_is_used_and_nothing_is_compiled_or_kept(functions: Functions) -> None:
    shipped_for(functions, levels()[-1])
    assert load_separately(helper(functions))["add"](20, 22) == 42
    assert functions.times == 1  # to ship it
    assert not disk_cache.cache_directory().exists()


@pytest.mark.skipif(not levels(), reason="no code is shipped for this kind of processor")
def test_shipped_code_of_other_sources_is_not_used(functions: Functions) -> None:
    shipped_for(functions, levels()[0])
    load_separately(helper(functions, ("cost", "timing")))
    assert functions.times == 2


def test_shipped_code_for_more_than_this_computer_has_is_not_used(functions: Functions) -> None:
    [path] = shipped_for(functions, Processor("generic"))
    path.rename(path.with_name(path.name.replace("generic", "x86-64-v5")))
    helper(functions).code()
    assert functions.times == 2


@pytest.mark.skipif(
    not llvm.get_host_cpu_features().get("avx2", False), reason="no processor of x86-64-v3"
)
def test_the_requested_level_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "x86-64-v3")
    assert levels() == [Processor("x86-64-v3")]
    monkeypatch.setenv(VARIABLE, "x86-64-v2")
    assert levels() == []


def test_shipping_again_leaves_no_code_of_old_sources(functions: Functions) -> None:
    old = HelperObject("sums", (("add", "int64(int64, int64)"),), functions, ("timing",))
    old.ship([Processor("generic")], objects.SHIPPED)
    [new] = shipped_for(functions, Processor("generic"))
    assert [*objects.SHIPPED.iterdir()] == [new]


def test_the_first_launch_reports_compilation_to_a_terminal(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    class Terminal:
        write = staticmethod(written.append)

        def __init__(self, here: bool) -> None:
            self.isatty = lambda: here

    for here, sources in ((False, ("cost",)), (True, ("timing",)), (True, ("timing",))):
        monkeypatch.setattr(sys, "stderr", Terminal(here))
        helper(functions, sources).code()  # the third finds what the second kept
    [line] = written
    assert line.startswith("warploom: compiling helper functions for this processor. ")
    assert str(disk_cache.cache_directory()) in line


def test_a_helper_that_needs_numba_when_it_runs_is_refused(functions: Functions) -> None:
    def length(size: int, least: int) -> int:
        return len(np.zeros(size)) + least

    wanted = HelperObject("arrays", (("add", "int64(int64, int64)"),), lambda: {"add": length})
    with pytest.raises(WarploomError, match=r"calls undefined functions: .*NRT_"):
        wanted.code()
