"""Whatever a PTX text says, loading and launching it ends: well, or with an error of Warploom's.

Programs that run are spoilt: tokens are dropped, doubled, changed for others of their kind."""

from __future__ import annotations

import contextlib

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from spoilt_programs import ALIKE, HEAD, PROGRAM, mutated

import warploom as wl
from warploom.core.errors import PtxError
from warploom.ptx.module import Module
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module

WORDS = [*ALIKE["directive"], *ALIKE["name"], *ALIKE["number"], *"{}()[]=,;"]
"""What a text of declarations may be made of."""


def changed(old: str, new: str) -> str:
    assert old in PROGRAM
    return PROGRAM.replace(old, new)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_every_program_ends(engine: str, random_examples: int) -> None:
    @settings(
        max_examples=random_examples if engine == "reference" else random_examples // 2,
    )
    @given(mutated())
    @example(PROGRAM)
    @example(changed("own[16]", "own[4294967295]"))
    @example(changed("[%d0], 4; cp", "[%d0], 4096; cp"))
    @example(changed("[%d0], 4; cp", "[%d0], %r0; cp"))
    @example(changed("{f, table}", "{constants, table}"))
    @example(changed("(a), kind;", "(a), ways;"))
    def ends(text: str) -> None:
        gpu = wl.Device("h100", engine=engine, output=lambda text: None)
        with contextlib.suppress(wl.WarploomError):
            module = gpu.compile(text, "ptx")
            for name in module.kernels:
                module[name][1, 40, 0, 64](gpu.zeros(64, np.uint32), max_instructions=800)

    ends()


@settings(max_examples=200)
@given(st.text(max_size=200) | st.lists(st.sampled_from(WORDS)).map(" ".join), st.booleans())
@example("", True)
@example(PROGRAM[len(HEAD) :], True)
def test_any_text_is_ptx_or_an_error_at_a_place_in_it(text: str, headed: bool) -> None:
    """What is PTX says the same when it is printed and read again."""
    whole = (HEAD if headed else "") + text
    module, error = compiled(whole)
    if module is not None:
        assert parse(print_module(module)) == module
    else:
        assert error is not None
        assert 1 <= error.span.line <= whole.count("\n") + 1
        assert error.span.text.content == whole.rstrip("\0")


def compiled(text: str) -> tuple[Module, None] | tuple[None, PtxError]:
    try:
        return wl.Device("a100").compile(text, "ptx").ir, None
    except PtxError as error:
        return None, error


def test_the_program_itself_runs() -> None:
    gpu = wl.Device("h100")
    out = gpu.zeros(64, np.uint32)
    gpu.compile(PROGRAM, "ptx")["k"][1, 40, 0, 64](out)
    assert out.copy_to_host()[39] == 4 ^ 39


def test_a_large_variable_with_few_values_is_loaded() -> None:
    """16 GiB, of which 16 bytes are given."""
    module = wl.Device("h100").compile(changed("table[4]", "table[4294967296]"), "ptx")
    assert module.kernels == ("k",)
