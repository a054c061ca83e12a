"""Holds what is taken of mutated PTX of compilers against ptxas: what it refuses is an error."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from mutated_texts import mutated
from needs import NEEDS_PTXAS
from taken_modules import is_taken

from warploom.host.programs.ptxas import find_tool

SAMPLES = Path(__file__).parent / "samples"
PER_SAMPLE = 60
"""Mutations of a seed, of which ptxas refuses about three quarters."""

ON_PURPOSE = ("info_string", ".file")
"""Parts of lines that are taken and that ptxas refuses: debug information is skipped."""


@NEEDS_PTXAS
@pytest.mark.parametrize("seed", range(5))
def test_no_text_that_ptxas_refuses_is_taken(seed: int, tmp_path: Path) -> None:
    ptxas, file = find_tool("ptxas"), tmp_path / "mutated.ptx"
    assert ptxas is not None
    rng, refused = random.Random(seed), 0
    texts = [path.read_text("utf-8") for path in sorted(SAMPLES.glob("*.ptx"))]
    for _ in range(PER_SAMPLE):
        text, line = mutated(rng.choice(texts), rng)
        file.write_text(text, encoding="utf-8")
        command = [ptxas, "-arch", "sm_90", "-O0", file, "-o", tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        if done.returncode != 0 and not any(part in line for part in ON_PURPOSE):
            refused += 1
            assert not is_taken(text), (line, done.stderr)
    assert refused > PER_SAMPLE // 2
