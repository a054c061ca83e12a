"""Checks that LLVM's optimization level changes the speed of a kernel, but neither results nor
counts."""

from __future__ import annotations

import pytest
from test_machines_agree import agree_on_kernels

import warploom as wl
from warploom.llvm import disk_cache, opt_level
from warploom.llvm.opt_level import (
    BRANCHED,
    LEVELS,
    LONG,
    MANY_INSTRUCTIONS,
    MANY_PIECES,
    VARIABLE,
    Effort,
    chosen_effort,
    effort,
)
from warploom.program.build import build
from warploom.ptx.parser import parse


@pytest.mark.parametrize("level", LEVELS)
def test_every_effort_agrees(
    level: str, random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, level)
    agree_on_kernels(random_examples // 4, [(2, 40)])


def test_code_for_large_kernels_agrees(
    random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Treats every kernel as large; code of large kernels is emitted in another way."""
    find = disk_cache.find
    monkeypatch.setattr(disk_cache, "find", lambda k, key: None if k == "kernel" else find(k, key))
    monkeypatch.setattr(disk_cache, "store", lambda *_: None)
    monkeypatch.setattr(opt_level, "effort", lambda _: Effort.LEAST)
    agree_on_kernels(random_examples // 4, [(2, 40)])


EMPTY = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }"


def test_the_variable_lowers_the_effort_and_never_raises_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = build(parse(EMPTY), "k")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen_effort(program) is Effort.FULL
    monkeypatch.setenv(VARIABLE, "1")
    assert chosen_effort(program) is Effort.LESS
    monkeypatch.setattr(opt_level, "effort", lambda _: Effort.LEAST)
    assert chosen_effort(program) is Effort.LEAST
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(wl.WarploomError, match="WARPLOOM_OPT_LEVEL=2 is not an optimization level"):
        chosen_effort(program)


@pytest.mark.parametrize(
    ("adds", "loads", "forks", "expected"),
    [
        (MANY_INSTRUCTIONS - 10, 0, 0, Effort.FULL),
        (100, MANY_PIECES, 0, Effort.FULL),
        (MANY_INSTRUCTIONS, 0, 0, Effort.LESS),
        (MANY_INSTRUCTIONS, MANY_PIECES, 0, Effort.LEAST),
        (MANY_INSTRUCTIONS, 0, MANY_PIECES, Effort.LEAST),
        (0, 0, BRANCHED // 66 - 2, Effort.FULL),  # blocks times registers, of which there are 66
        (0, 0, BRANCHED // 66, Effort.LESS),
        (0, 0, LONG // 66, Effort.LEAST),
    ],
)
def test_the_effort_follows_from_the_size(
    adds: int, loads: int, forks: int, expected: Effort
) -> None:
    body = ["add.u32 %r0, %r0, %r1;"] * adds + ["ld.global.u32 %r0, [%at];"] * loads
    for number in range(forks):
        body += [f"@%p bra L{number};", f"L{number}:"]
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .b32 {", ".join(f"%r{n}" for n in range(64))};
.reg .b64 %at;
.reg .pred %p;
ld.param.u64 %at, [buffer];
{chr(10).join(body)}
ret;
}}
"""
    assert effort(build(parse(text), "k")) is expected
