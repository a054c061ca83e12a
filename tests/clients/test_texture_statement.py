"""The example that shows the texture unit (row M6 of docs/model.md): values by the formulas of the
CUDA guide, "Texture Fetching": a linear filter at x takes T[i] and T[i+1] with i = floor(x - 0.5),
weighted by the fraction a of x - 0.5; address modes replace an index outside of the four texels."""

from __future__ import annotations

import os
import subprocess
import sys
from math import floor
from pathlib import Path

import pytest

from warploom.clients.nvcc import real_nvcc

EXAMPLE = Path(__file__).parents[2] / "examples" / "statements" / "texture.cu"

BY_HAND = {
    "x": [-1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5],
    "wrap, point": [40, 40, 10, 10, 20, 20, 30, 30, 40, 40, 10, 10, 20],
    "wrap, linear": [35, 40, 25, 10, 15, 20, 25, 30, 35, 40, 25, 10, 15],
    "mirror, linear": [15, 10, 10, 10, 15, 20, 25, 30, 35, 40, 40, 40, 35],
    "clamp, linear": [10, 10, 10, 10, 15, 20, 25, 30, 35, 40, 40, 40, 40],
    "border, linear": [0, 0, 5, 10, 15, 20, 25, 30, 35, 40, 20, 0, 0],
}


def test_the_list_follows_the_formulas() -> None:
    """Checks the list above, not Warploom: by the texel that each mode has at an index."""
    texels = [10, 20, 30, 40]
    modes = {
        "wrap": lambda i: texels[i % 4],
        "mirror": lambda i: (texels + texels[::-1])[i % 8],
        "clamp": lambda i: texels[min(max(i, 0), 3)],
        "border": lambda i: texels[i] if 0 <= i < 4 else 0,
    }
    for mode, texel in modes.items():
        found: list[float] = []
        for x in BY_HAND["x"]:
            i, a = floor(x - 0.5), x - 0.5 - floor(x - 0.5)
            found.append((1 - a) * texel(i) + a * texel(i + 1))
        assert found == BY_HAND[f"{mode}, linear"]
    assert [modes["wrap"](floor(x)) for x in BY_HAND["x"]] == BY_HAND["wrap, point"]


def _shown(verb: str) -> str:
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")
    command = [sys.executable, "-m", "warploom.cli", verb, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=120)
    return done.stdout


def test_one_command_shows_address_modes_and_the_linear_filter() -> None:
    lines = {line[:14].rstrip(): line[14:].split() for line in _shown("run").splitlines()}
    assert {name: [float(one) for one in lines[name]] for name in BY_HAND} == BY_HAND


def test_a_profile_counts_what_goes_through_the_texture_unit() -> None:
    """A warp of 13 threads, of 4 bytes each; all texels lie in one sector."""
    shown = " ".join(_shown("profile").split())
    assert "Texture Load Requests request 1 counted" in shown
    assert "Texture Load Sectors sector 1 counted" in shown
    assert "Texture Load Bytes Requested byte 52 counted" in shown
