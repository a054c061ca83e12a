"""Findings of the sanitizers in a trace: their bytes, their threads, and the steps of these."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.observe.trace import Trace
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest

REVERSE = """
__global__ void reverse(const int *in, int *out)
{
    __shared__ int kept[64];
    kept[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = kept[63 - threadIdx.x];
}
"""

BETWEEN_BLOCKS = """
__global__ void last(int *out) { out[1] = blockIdx.x; }
"""


def test_the_steps_of_a_race_are_those_of_its_accesses() -> None:
    """Warp 0 reads kept[32], at byte 128, before warp 1 writes it."""
    args = ("in:i32[64]=arange", "out:i32[64]=zeros")
    trace = record(
        LaunchRequest(name="k.cu", source=REVERSE, block="64", args=args, sanitize=("race",))
    )
    [found] = trace.findings
    assert (found.kind, found.space, found.offset, found.size) == ("race", "shared", 128, 4)
    later, earlier = found.parties
    assert (later.block, later.warp, later.lane) == (0, 1, 0)
    assert (earlier.block, earlier.warp, earlier.lane) == (0, 0, 31)
    assert earlier.step < later.step
    assert trace.code[later.instruction].text.startswith("st.shared")
    assert trace.code[earlier.instruction].text.startswith("ld.shared")
    assert int(trace.columns["instruction"][later.step]) == later.instruction


def test_a_finding_in_global_memory_is_at_the_byte_of_its_buffer() -> None:
    args = ("out:i32[4]=zeros",)
    request = LaunchRequest(
        name="k.cu", source=BETWEEN_BLOCKS, grid="2", args=args, sanitize=("race",)
    )
    found = next(one for one in record(request).findings if one.kind == "race")
    assert (found.buffer, found.offset) == ("out", 4)
    assert sorted(one.block for one in found.parties) == [0, 1]


def test_threads_that_are_not_recorded_have_no_step() -> None:
    args = ("out:i32[4]=zeros",)
    request = LaunchRequest(
        name="k.cu",
        source=BETWEEN_BLOCKS,
        grid="2",
        args=args,
        sanitize=("race",),
        trace_blocks=(0,),
    )
    found = next(one for one in record(request).findings if one.kind == "race")
    assert {one.block: one.step >= 0 for one in found.parties} == {0: True, 1: False}


def test_a_launch_without_races_has_no_findings() -> None:
    source = REVERSE.replace("    out[", "    __syncthreads();\n    out[")
    args = ("in:i32[64]=arange", "out:i32[64]=zeros")
    request = LaunchRequest(name="k.cu", source=source, block="64", args=args, sanitize=("race",))
    assert record(request).findings == ()


def test_the_commands_write_a_page_with_the_findings(tmp_path: Path) -> None:
    file, trace = tmp_path / "reverse.cu", tmp_path / "trace.wl"
    file.write_text(REVERSE, "utf-8")
    launch = [str(file), "--block", "64", "--arg", "i32[64]=arange", "--arg", "o:i32[64]=zeros"]
    pages = [tmp_path / "check.html", tmp_path / "view.html"]
    checked = CliRunner().invoke(app, ["check", *launch, "--export", str(pages[0])])
    assert checked.exit_code == 1
    assert "Race reported" in checked.output
    saved = ["--check", "--save", str(trace), "--export", str(pages[1])]
    assert CliRunner().invoke(app, ["view", *launch, *saved]).exit_code == 0
    assert [one.kind for one in Trace.from_bytes(trace.read_bytes()).findings] == ["race"]
    assert all(page.stat().st_size > 100_000 for page in pages)
