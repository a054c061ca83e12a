"""Registers: from ptxas' messages, else estimated; and launches that have too many."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.host.programs import ptxas
from warploom.host.programs.assembly import NoAssembly
from warploom.host.programs.ptxas import Assembled, read_messages
from warploom.llvm import disk_cache
from warploom.program.build import build
from warploom.program.pressure import RESERVED, estimated_registers
from warploom.ptx.parser import parse

MESSAGES = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'tiled' for 'sm_90'
ptxas info    : Function properties for tiled
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 28 registers, used 1 barriers, 4096 bytes smem
ptxas info    : Compile time = 2.404 ms
ptxas info    : Compiling entry function 'naive' for 'sm_90'
ptxas info    : Function properties for naive
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers
"""

KERNEL = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out) DIRECTIVES
{
  .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd1, %rd2;
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
"""


def test_messages_of_ptxas_are_read() -> None:
    assert dict(read_messages(MESSAGES)) == {
        "tiled": Assembled(registers=28, barriers=1, stack=16, spill_stores=12, spill_loads=8),
        "naive": Assembled(registers=20, barriers=0, stack=0, spill_stores=0, spill_loads=0),
    }


def test_the_estimate_is_what_is_live_at_once() -> None:
    """Before %rd2 is written: %rd1 (two), %r1, %r2, and %rd2 takes two more after: six."""
    program = build(parse(KERNEL.replace("DIRECTIVES", "")), "k")
    assert estimated_registers(program) == RESERVED + 6


def test_maxnreg_caps_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ptxas(monkeypatch)
    kernel = wl.Device("t4").compile(KERNEL.replace("DIRECTIVES", ".maxnreg 8"), "ptx")["k"]
    assert (kernel.resources.registers, kernel.resources.source) == (8, "estimate")


def without_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find_tool", lambda _: None)
    ptxas.assemble.cache_clear()


def fake_ptxas(monkeypatch: pytest.MonkeyPatch, folder: Path, registers: int) -> None:
    """A program that says what ptxas would."""
    script = folder / "ptxas"
    said = f"Compiling entry function 'k' for 'sm_75'\\nUsed {registers} registers, used 1 barriers"
    script.write_text(f'#!/bin/sh\nprintf "{said}\\n" >&2\n', "utf-8")
    script.chmod(0o755)
    monkeypatch.setattr(ptxas, "find_tool", lambda _: str(script))
    ptxas.assemble.cache_clear()


def test_ptxas_is_believed_where_it_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_ptxas(monkeypatch, tmp_path, 128)
    gpu = wl.Device("t4")
    kernel = gpu.compile(KERNEL.replace("DIRECTIVES", ""), "ptx")["k"]
    out = gpu.zeros(1024, np.uint32)
    run = kernel[1, 512](out)
    assert run.occupancy.active_warps == 16  # 128 registers: 512 threads an SM
    assert "Registers Per Thread (ptxas)" in run.report()
    with pytest.raises(wl.LaunchError, match="1024 threads with 128 registers") as caught:
        kernel[1, 1024](out)
    error = caught.value
    assert (error.resource, error.requested, error.limit) == ("registers", 131072, 65536)


@pytest.mark.parametrize(
    ("target", "architecture"),
    [
        ("sm_90", "sm_90"),
        ("sm_90a", "sm_90a"),
        ("sm_52, debug", "sm_90"),
        ("sm_90a, debug", "sm_90a"),
    ],
)
def test_targets_with_features_of_their_own_are_assembled_for_these(
    target: str, architecture: str
) -> None:
    ptx = f".version 8.0\n.target {target}\n.address_size 64\n"
    assert ptxas.architecture_of(ptx, (9, 0)) == architecture


@pytest.mark.parametrize("status", [0, 1])
def test_ptxas_is_asked_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int
) -> None:
    """Whether it takes the module or refuses it; another ptxas is asked anew."""
    monkeypatch.setattr(disk_cache, "cache_directory", lambda: tmp_path / "cache")
    fake_ptxas(monkeypatch, tmp_path, 40)
    script, asked = tmp_path / "ptxas", tmp_path / "asked"
    script.write_text(f"{script.read_text('utf-8')}echo asked >> {asked}\nexit {status}\n", "utf-8")
    first = ptxas.assemble("the module", (7, 5))
    assert [one.registers for one in first.values()] == [40] * (status == 0)
    for _ in range(2):  # as another process, that remembers nothing
        ptxas.assemble.cache_clear()
        assert ptxas.assemble("the module", (7, 5)) == first
    assert asked.read_text("utf-8").count("asked") == 1
    script.write_text(f"{script.read_text('utf-8')}# a later release\n", "utf-8")
    ptxas.assemble.cache_clear()
    ptxas.assemble("the module", (7, 5))
    assert asked.read_text("utf-8").count("asked") == 2


def test_an_estimate_refuses_no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ptxas(monkeypatch)
    gpu = wl.Device("t4")
    kernel = gpu.compile(KERNEL.replace("DIRECTIVES", ""), "ptx")["k"]
    kernel[1, 1024](gpu.zeros(1024, np.uint32))
    assert kernel.resources.source == "estimate"
    assert kernel.resources.spill_bytes is None


def test_occupancy_takes_names_devices_and_specs() -> None:
    gpu = wl.Device("v100")
    found = wl.occupancy(gpu, 256, registers_per_thread=64)
    assert (found.active_blocks, found.active_warps, found.fraction) == (4, 32, 0.5)
    assert found.limiters == ("registers",)
    assert wl.occupancy("v100", 256, 64) == found == wl.occupancy(gpu.spec, 256, 64)
    assert wl.occupancy("v100", 1025).active_blocks == 0
    with pytest.raises(wl.LaunchError, match="invalid block of"):
        wl.occupancy("v100", 0)


@NEEDS_PTXAS
def test_ptxas_runs_once_for_resources_and_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the only kernel of a text."""
    asked: list[str] = []
    run = subprocess.run

    def counted(command: list[str], **options: Any) -> Any:
        asked.append(Path(command[0]).name)
        return run(command, **options)

    monkeypatch.setattr(disk_cache, "find", lambda kind, key: None)
    monkeypatch.setattr(subprocess, "run", counted)
    ptxas.assemble.cache_clear()
    ptxas.run_ptxas.cache_clear()
    kernel = wl.Device("t4").compile(KERNEL.replace("DIRECTIVES", ""), "ptx")["k"]
    assert kernel.resources.source == "ptxas"
    assert not isinstance(kernel.assembly, NoAssembly)
    assert sorted(asked) == ["nvdisasm", "ptxas"]
