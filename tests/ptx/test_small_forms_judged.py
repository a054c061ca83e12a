"""Holds what is taken of small random modules (`small_forms`) against ptxas."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
from needs import NEEDS_PTXAS
from small_forms import drawn, module
from taken_modules import is_taken

from warploom.host.programs.ptxas import find_tool

SAMPLES = 4
PER_SAMPLE = 40

KNOWN = re.compile(
    r"st\.f64 \[?(mine|block|own|table)|ld\.u32 r, \[?(mine|block|own)"  # generic, of other spaces
    r"|(64 a|64 \{r, b\}|u16 h, i|64 a, c), r \+ 1"  # sums of another width
    r"|(mov\.b16 h|mov\.u32 r|mov\.b32 b), [a-z]|, cell \+ 4"  # addresses in fewer bits
    r"|<3>|\[0\]|\{r, w\.y\}|(mov\.u32|add\.f32) _|\.extern.* cell|\.param.*\.v[24]"
)
"""What differs on purpose, or as yet."""


@NEEDS_PTXAS
@pytest.mark.parametrize("sample", range(SAMPLES))
def test_ptxas_takes_the_same_small_forms(sample: int, tmp_path: Path) -> None:
    ptxas = find_tool("ptxas")
    assert ptxas is not None
    rng = random.Random(sample)
    file = tmp_path / "form.ptx"
    taken = 0
    for _ in range(PER_SAMPLE):
        outside, inside = drawn(rng)
        if KNOWN.search(outside or inside):
            continue
        text = module(outside, inside)
        file.write_text(text, encoding="utf-8")
        command = [ptxas, "-arch", "sm_80", file, "-o", tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, check=False)
        assert is_taken(text) is (done.returncode == 0), text
        taken += done.returncode == 0
    assert 2 < taken < PER_SAMPLE
