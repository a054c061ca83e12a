"""Exploring the undefined: which kernels depend on an order, where, and because of which lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.cli.main import main
from warploom.host.exploration.explore import Exploration

SOURCE = Path(__file__).with_name("explored.cu")
DIVERGENCE = SOURCE.parent.parent / "programs" / "divergence.cu"


def line_of(text: str, source: Path = SOURCE) -> str:
    """`file:line` of the line of a source that holds a text."""
    [number] = [
        n for n, line in enumerate(source.read_text("utf-8").splitlines(), 1) if text in line
    ]
    return f"{source}:{number}"


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device("v100")


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.load(SOURCE)


def lines(found: Exploration) -> set[str]:
    return {line for cause in found.causes for line in cause.lines if line}


def test_the_store_that_lasts_is_anybodys(module: wl.Module) -> None:
    found = wl.explore(module["last_store"][2, 32], runs=8)
    assert found.differs
    assert found.difference is not None
    assert found.difference.buffer == "winner"
    assert lines(found) == {line_of("winner = blockIdx")}


def test_the_order_of_atomics_matters_to_floats_only(gpu: wl.Device, module: wl.Module) -> None:
    # 1e8 swallows each 1 that is added to it, but not their sum.
    host = np.ones(64, np.float32)
    host[0] = 1e8
    total = gpu.zeros(1, np.float32)
    found = wl.explore(module["float_sum"][2, 32], gpu.to_device(host), total, runs=8)
    assert found.difference is not None
    assert (found.difference.buffer, found.difference.index) == (total.name, (0,))
    assert lines(found) == {line_of("atomicAdd(total, x")}
    assert total.copy_to_host()[0] == 0  # the caller's buffers stay as they are
    same = wl.explore(module["integer_sum"][2, 32], gpu.zeros(1, np.int32), runs=8)
    assert not same.differs
    assert same.results == 1


def test_a_missing_barrier_is_found_with_its_lines(gpu: wl.Device, module: wl.Module) -> None:
    arguments = np.arange(1, 65, dtype=np.int32), np.zeros(64, np.int32)
    found = wl.explore(module["reversed"][1, 64], *arguments, runs=8)
    assert found.differs
    readers = {cause.reader.line for cause in found.causes if cause.reader}
    writers = {s.line for cause in found.causes for s in (cause.first, cause.second) if s}
    assert (readers, writers) == ({line_of("sees it or not")}, {line_of("early or late")})
    assert not wl.explore(module["reversed_after_barrier"][1, 64], *arguments, runs=8).differs


def test_one_lane_too_fast_makes_a_lockstep_sum_wrong(gpu: wl.Device) -> None:
    module = gpu.load(DIVERGENCE)
    arguments = np.arange(32, dtype=np.int32), np.zeros(1, np.int32)
    found = wl.explore(module["sum_lockstep"][1, 32], *arguments, runs=4)
    assert found.differs
    assert found.second is not None
    assert found.second.order.schedule == "adversarial"
    readers = {cause.reader.line for cause in found.causes if cause.reader}
    assert readers == {line_of("part[t] += part[t + d];", DIVERGENCE)}
    assert not wl.explore(module["sum_synchronised"][1, 32], *arguments, runs=8).differs


def test_an_order_that_fails_is_a_result_of_its_own(module: wl.Module, gpu: wl.Device) -> None:
    # A warp instruction limit between the shortest and the longest order.
    launcher = module["in_order"][2, 1]
    found = wl.explore(launcher, np.zeros(1, np.int32), runs=4, max_instructions=60)
    errors = [outcome.error for outcome in found.outcomes]
    assert errors[0] == ""
    assert any("max_instructions" in error or "deadlock" in error for error in errors[1:])
    assert found.differs


def test_processes_find_what_one_finds(module: wl.Module) -> None:
    launcher = module["last_store"][2, 32]
    alone = wl.explore(launcher, runs=6, workers=1)
    shared = wl.explore(launcher, runs=6, workers=2)
    assert [(o.order, o.result) for o in shared.outcomes] == [
        (o.order, o.result) for o in alone.outcomes
    ]


def test_a_cluster_finds_what_one_process_finds(module: wl.Module) -> None:
    from distributed import LocalCluster

    launcher = module["last_store"][2, 32]
    alone = wl.explore(launcher, runs=6, workers=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        far = wl.explore(launcher, runs=6, cluster=cluster.scheduler_address)
    assert [(o.order, o.result) for o in far.outcomes] == [
        (o.order, o.result) for o in alone.outcomes
    ]


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["warploom", "explore", str(SOURCE), *words])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_verb_reports_where_and_why(monkeypatch, capsys) -> None:
    words = "--kernel reversed --block 64 --arg i32[64]=arange --arg out:i32[64]=zeros --runs 4"
    assert run_main(monkeypatch, *words.split()) == 1
    text = capsys.readouterr().out
    assert "out[0] is" in text
    assert line_of("sees it or not") in text
    assert "--schedule adversarial --seed 0" in text
    assert run_main(monkeypatch, *words.split(), "--json") == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["orders"], output["differs"]) == (4, True)
    assert output["difference"]["buffer"] == "out"


def test_the_verb_is_content_with_a_kernel_that_is(monkeypatch, capsys) -> None:
    words = "--kernel integer_sum --arg total:i32[1]=zeros --runs 4"
    assert run_main(monkeypatch, *words.split()) == 0
    assert capsys.readouterr().out == "4 orders, one result.\n"


def test_the_verb_runs_wavefronts(monkeypatch, capsys) -> None:
    """64 lanes that go together read what each of them has written: what was a race of two warps
    is an order before 7.0."""
    words = "--kernel reversed --block 64 --arg i32[64]=arange --arg out:i32[64]=zeros --runs 4"
    device = ("--device", "gtx-1080")
    assert run_main(monkeypatch, *words.split(), *device) == 1
    assert run_main(monkeypatch, *words.split(), *device, "--warp-size", "64") == 0
    assert "4 orders, one result." in capsys.readouterr().out


def test_the_mask_of_active_lanes_is_named_as_the_cause(gpu: wl.Device) -> None:
    """`activemask` returns the lanes that happen to run together (PTX ISA, "activemask"), so that
    no order of accesses makes the difference."""
    source = """__global__ void count(int *total)
{
    int lanes = __popc(__activemask());
    if (threadIdx.x == 0) *total = lanes;
}"""
    launcher = gpu.compile(source, name="count.cu")["count"][1, 32]
    found = wl.explore(launcher, np.zeros(1, np.int32), runs=4)
    assert found.differs
    assert found.causes == ()
    assert "count.cu:3 reads the mask of active lanes" in found.note
