"""Long kernels are optimised less: that changes how fast they run, and nothing that they do."""

from __future__ import annotations

import pytest
from test_machines_agree import agree_on_kernels

from warploom.analysis.build import build
from warploom.codegen import cache, emission, sizes
from warploom.codegen.sizes import BRANCHED, LONG, MANY_INSTRUCTIONS, MANY_PIECES, Effort, effort
from warploom.ptx.parser import parse


@pytest.mark.parametrize("chosen", Effort)
def test_every_effort_agrees(
    chosen: Effort, random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = cache.find
    monkeypatch.setattr(cache, "find", lambda k, key: None if k == "kernel" else find(k, key))
    monkeypatch.setattr(cache, "keep", lambda *_: None)
    for room in (emission, sizes):
        monkeypatch.setattr(room, "effort", lambda _: chosen)

    agree_on_kernels(random_examples // 4, [(2, 40)])


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
.reg .b32 %r<64>;
.reg .b64 %at;
.reg .pred %p;
ld.param.u64 %at, [buffer];
{chr(10).join(body)}
ret;
}}
"""
    assert effort(build(parse(text), "k")) is expected
