"""Commands that analyze a launch take PyTorch's programs, and let one choose among the kernels of
Inductor and of Triton."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("profile", "Bound by"),
        ("time", "cycles, modelled"),
        ("sass", "registers per thread"),
        ("explore", "one result"),
        ("check", "ERROR SUMMARY: 0 errors"),
        ("tune --space block=128,256", "2 configurations"),
        ("view --export {page}", "added"),
    ],
)
@pytest.mark.parametrize("kernel", ["^add$", "fused"])
def test_a_command_takes_a_program(warploom, command, expected, kernel, tmp_path):
    chosen = () if command == "check" else ("--kernel", kernel)
    page = tmp_path / "page.html"
    run = warploom(*command.format(page=page).split(), *chosen, "programs/fused.py")
    assert page.exists() == command.startswith("view")
    assert run.returncode == 0, run.stderr
    assert expected in run.stdout + run.stderr
    assert "added" in run.stdout + run.stderr


def test_the_kernels_of_a_program_are_shown(warploom):
    run = warploom("profile", "programs/fused.py")
    shown = run.stdout + run.stderr
    assert "makes 2 launches" in shown
    assert "triton_poi_fused" in shown
