"""Holds modelled chains of dependent instructions against what an H100 took for them, and the
instructions that are timed against those that are counted."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.host.module import Module
from warploom.host.run import Run

FOLDER = Path(__file__).parents[2] / "validation" / "hardware"
ROUNDS = 3
"""Chains that a probe executes one after the other (probes.cu); the record has one."""

CLOSE = 0.1
"""The share by which the model may differ from the record."""

CHAINS = (
    *("fma_f32", "add_f32", "add_s32", "mad_s32", "add_u64", "shf_b32", "prmt_b32", "max_s32"),
    *("popc_b32", "brev_b32", "clz_b32", "dp4a_s32", "fma_f64", "add_f64", "ex2_f32", "rsqrt_f32"),
    *("shfl_b32", "cvt_and_back", "cvt_f16_and_back", "cvt_f64_and_back", "setp_selp", "vote"),
    "bar_sync",
)
FLOATS = ("_f32", "_f64", "cvt")


@lru_cache(maxsize=1)
def record() -> dict[tuple[str, int], int]:
    """Returns the cycles of an H100 by probe and threads, of one block without shared memory."""
    rows = json.loads((FOLDER / "h100_probes.json").read_text("utf-8"))
    return {(row[0], row[2]): row[6] for row in rows if row[1] == 1 and row[3] == 0}


@lru_cache(maxsize=1)
def probes() -> tuple[wl.Device, Module]:
    gpu = wl.Device("h100", record=True)
    return gpu, gpu.compile((FOLDER / "probes.cu").read_text("utf-8"))


@lru_cache
def launched(name: str, threads: int) -> Run:
    gpu, module = probes()
    values = (1.0, 0.5) if any(part in name for part in FLOATS) else (3, 5)
    return module[name][1, threads](gpu.zeros(1 << 10, np.uint32), *values)


@NEEDS_PTXAS
@pytest.mark.parametrize("threads", [32, 1024])
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_takes_as_long_as_on_an_h100(name: str, threads: int) -> None:
    cycles = launched(name, threads).time().cycles - launched("empty", threads).time().cycles
    assert cycles / ROUNDS == pytest.approx(record()[name, threads], rel=CLOSE)


@NEEDS_PTXAS
@pytest.mark.parametrize("name", ["vote", "branch", "bar_sync", "fma_f32"])
def test_long_blocks_are_timed_as_often_as_they_are_executed(name: str) -> None:
    """A chain of votes is 128 blocks of PTX and one of machine code, three times."""
    run = launched(name, 32)
    assert run.time().warp_states["selected"] == run.machine.instructions
