"""Lines that were added to a kernel never fail a program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warploom.clients.source_lines import keep_numba_lines


class Dispatcher:
    """Compiles without lines only."""

    def __init__(self, **options: Any) -> None:
        self.targetoptions = options

    def compile(self, signature: str) -> str:
        if self.targetoptions.get("lineinfo"):
            raise ValueError("lines")
        if signature == "wrong":
            raise ValueError("signature")
        return signature


def decorators(*, as_decorator: bool) -> Any:
    """Returns a module like Numba's, whose `jit` makes a dispatcher, or a decorator that does."""
    made = type("CUDADispatcher", (Dispatcher,), {})

    def jit(**options: Any) -> Any:
        return (lambda: made(**options)) if as_decorator else made(**options)

    config = SimpleNamespace(CUDA_DEBUGINFO_DEFAULT=False)
    module = SimpleNamespace(CUDADispatcher=made, jit=jit, config=config)
    keep_numba_lines(module)
    return module


@pytest.mark.parametrize("as_decorator", [False, True])
def test_what_fails_with_added_lines_is_compiled_without(as_decorator: bool) -> None:
    made = decorators(as_decorator=as_decorator).jit()
    kernel = made() if as_decorator else made
    assert kernel.targetoptions == {"lineinfo": True}
    assert kernel.compile("void()") == "void()"
    assert kernel.targetoptions == {"lineinfo": False}


def test_the_first_error_is_that_of_the_program() -> None:
    kernel = decorators(as_decorator=False).jit()
    with pytest.raises(ValueError, match="lines"):
        kernel.compile("wrong")
    assert kernel.targetoptions == {"lineinfo": True}


def test_lines_that_the_program_asks_for_are_its_own() -> None:
    kernel = decorators(as_decorator=False).jit(lineinfo=True)
    with pytest.raises(ValueError, match="lines"):
        kernel.compile("void()")
