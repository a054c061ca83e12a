"""Checks the processor that code is compiled for."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from warploom.core.errors import WarploomError
from warploom.llvm.target import VARIABLE, processor


def test_code_is_for_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert processor()[0] == llvm.get_host_cpu_name()


def test_what_is_no_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "pentium")
    with pytest.raises(WarploomError, match="pentium is not one of x86-64-v2"):
        processor()


@pytest.mark.skipif(
    not llvm.get_host_cpu_features().get("sse4.2", False), reason="no processor of x86-64-v2"
)
def test_a_level_is_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "x86-64-v2")
    assert processor() == ("x86-64-v2", "")
