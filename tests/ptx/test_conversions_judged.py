"""Holds which conversions are taken against ptxas: pairs of types, roundings and modifiers drawn of
all combinations."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

from needs import NEEDS_PTXAS
from taken_modules import is_taken

from warploom.host.programs.ptxas import find_tool

REGISTERS = {
    **dict.fromkeys(("u8", "s8", "u16", "s16", "f16", "bf16"), "%h"),
    **dict.fromkeys(("u32", "s32"), "%r"),
    **dict.fromkeys(("u64", "s64"), "%d"),
    "f32": "%f",
    "f64": "%g",
}
ROUNDINGS = ("", ".rn", ".rz", ".rm", ".rp", ".rna", ".rni", ".rzi", ".rmi", ".rpi")
MODIFIERS = ("", ".ftz", ".sat", ".relu", ".satfinite", ".ftz.sat")
LIKELY, UNLIKELY = 60, 20
"""Forms that are drawn without other modifiers than a rounding, and with any."""

MODULE = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k() {{
.reg .b16 %h<2>; .reg .b32 %r<2>; .reg .b64 %d<2>; .reg .f32 %f<2>; .reg .f64 %g<2>;
cvt{line}.{to}.{of} {target}0, {source}1;
ret; }}
"""


def drawn() -> list[str]:
    """Returns modules with a conversion each."""
    rng = random.Random(1)
    pairs = list(itertools.product(REGISTERS, REGISTERS))
    halves = [pair for pair in pairs if {"f16", "bf16"} & {*pair}]
    lines = [rng.choice(ROUNDINGS) for _ in range(LIKELY)]
    lines += [rng.choice(ROUNDINGS) + rng.choice(MODIFIERS) for _ in range(UNLIKELY)]
    modules = list[str]()
    for line in lines:
        to, of = rng.choice(rng.choice((pairs, halves)))
        names = {"target": REGISTERS[to], "source": REGISTERS[of]}
        modules.append(MODULE.format(line=line, to=to, of=of, **names))
    return modules


@NEEDS_PTXAS
def test_ptxas_takes_the_same_conversions(tmp_path: Path) -> None:
    ptxas = find_tool("ptxas")
    assert ptxas is not None
    file = tmp_path / "form.ptx"
    taken = 0
    for text in drawn():
        file.write_text(text, encoding="utf-8")
        command = [ptxas, "-arch", "sm_90", "-O0", file, "-o", tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, check=False)
        assert is_taken(text) is (done.returncode == 0), text
        taken += done.returncode == 0
    assert 4 < taken < LIKELY
