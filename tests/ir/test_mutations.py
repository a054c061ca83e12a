"""Tests that the Warp IR is what code is emitted from: whatever is changed in it changes the code,
or the verifier refuses the IR."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from families import CASES
from mutations import mutable_fields, mutant, nodes

import warploom as wl
from warploom.compilation.emission import emit_warp_ir
from warploom.ir.warp_ir import WarpIR
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.passes.verifier.kernel import verify

KERNELS = sorted({(case.path, case.kernel) for case in CASES})[::3]
BLOCKS = ((256, 1, 1), (24, 8, 1), (16, 16, 1))
OPTIONS = {"KernelVariant", "AccessRules"}
"""Nodes that choose among codes: each option is for some kernels."""


def irs() -> list[WarpIR]:
    """Returns the IRs of thirty kernels, each for one of three shapes of thread blocks, the
    shortest first, for each trial emits one."""
    made = list[WarpIR]()
    for number, (path, name) in enumerate(KERNELS[:30]):
        program = wl.Device("h100").load(Path(path))[name].program
        launch = Launch((1, 1, 1), BLOCKS[number % len(BLOCKS)], b"")
        made.append(CompiledEngine().warp_ir(program, launch))
    return sorted(made, key=lambda ir: len(ir.program.instructions))


def has_effect(ir: WarpIR, changed: WarpIR, text: str) -> bool:
    """Returns whether a changed IR is refused, or gives other code than `text`."""
    try:
        verify(changed)
    except wl.WarploomError:
        return True
    return emit_warp_ir(changed).text != text


def test_every_field_of_every_node_has_an_effect(request: pytest.FixtureRequest) -> None:
    """A field is tried on one node of its kind in each kernel, until it had an effect in two of
    them (with `--all`: in all of them)."""
    random, enough = Random(52), 30 if request.config.getoption("--all") else 2
    tried, effects = defaultdict[tuple[str, str], int](int), defaultdict[tuple[str, str], int](int)
    for ir in irs():
        text = emit_warp_ir(ir).text
        by_kind = defaultdict[str, list[tuple[tuple[tuple[str, object], ...], object]]](list)
        for path, node in nodes(ir):
            by_kind[type(node).__name__].append((path, node))
        for kind, found in by_kind.items():
            path, node = random.choice(found)
            for name in mutable_fields(node):
                if effects[kind, name] < enough:
                    tried[kind, name] += 1
                    changed = mutant(ir, path, name, random)
                    effects[kind, name] += has_effect(ir, changed, text)
    assert len(tried) > 60
    assert [key for key in tried if not effects[key]] == []
