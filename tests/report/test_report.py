"""Reports: every section has the numbers of the counters, and lines show their source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warploom.analysis.build import build
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.ptx.ir import Space
from warploom.ptx.parser import parse
from warploom.report.render import COSTLIEST, render_text
from warploom.report.sections import Facts, Report, as_json, make_report
from warploom.report.source import source_line, split_line
from warploom.rules.fields import BYTES_MOVED, BYTES_REQUESTED, LINES, REQUESTS, SECTORS

FACTS = Facts(
    kernel="k",
    device="GeForce RTX 2080 Ti",
    compute_capability="7.5",
    engine="compiled",
    grid=(2, 3, 1),
    block=(64, 1, 1),
    warps=12,
    static_shared_bytes=1024,
    dynamic_shared_bytes=0,
    local_bytes=0,
    seconds=0.25,
)

SOURCE = ["// a kernel", "first = [1];", "second;", *(f"line {n}" for n in range(4, 30))]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """A load on line 2 (12 times, 2 sectors each), a move on line 3 and many on later lines."""
    file = tmp_path / "k.cu"
    file.write_text("\n".join(SOURCE))
    later = "\n".join(f".loc 1 {n} 1\nmov.u32 %r1, 1;" for n in range(4, 4 + COSTLIEST))
    text = f"""
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{{
  .reg .b32 %r<9>; .reg .b64 %rd<9>;
  .loc 1 2 1
  ld.global.u32 %r1, [%rd1];
  .loc 1 3 1
  mov.u32 %r2, %r1;
  {later}
  ret;
  .file 1 "{file}"
}}
"""
    tally = Tally.empty(build(parse(text), "k"), launched_warps=12)
    tally.warps[0], tally.warps[1] = 1200, 34
    tally.threads[0], tally.threads[1] = 1200 * 32, 34 * 16
    [row] = [i for i, row in enumerate(tally.rows) if row.space is Space.GLOBAL]
    for field, value in (
        (REQUESTS, 1200),
        (SECTORS, 3000),
        (LINES, 1200),
        (BYTES_REQUESTED, 153600),
        (BYTES_MOVED, 96000),
    ):
        tally.accesses[row, field] = value
    return make_report(FACTS, Counters(tally))


def value(report: Report, title: str, name: str) -> object:
    [section] = [s for s in report.sections if s.title == title]
    [metric] = [m for m in section.metrics if m.name == name]
    return metric.value


def test_sections_hold_the_counters_and_the_launch(report: Report) -> None:
    assert value(report, "Launch Statistics", "Grid Size") == "(2, 3, 1)"
    assert value(report, "Launch Statistics", "Blocks") == 6
    assert value(report, "Launch Statistics", "Threads") == 384
    assert value(report, "Instruction Statistics", "Warp Instructions") == 1234
    lanes = value(report, "Instruction Statistics", "Active Lanes Per Warp Instruction")
    assert lanes == pytest.approx((1200 * 32 + 34 * 16) / 1234)
    assert value(report, "Instruction Statistics", "Class memory") == 1200
    memory = "Memory Workload Analysis"
    assert value(report, memory, "Global Load Sectors Per Request") == 2.5
    assert value(report, memory, "Global Load Bytes Moved") == 96000


def test_what_was_counted_and_what_was_launched_say_so(report: Report) -> None:
    kinds = {section.title: section.kind for section in report.sections}
    assert kinds.pop("Launch Statistics") == "launch"
    assert set(kinds.values()) == {"counted"}


def test_accesses_that_did_not_happen_are_left_out(report: Report) -> None:
    names = [metric.name for section in report.sections for metric in section.metrics]
    assert not [name for name in names if name.startswith(("Global Store", "Shared", "Local L"))]


def test_the_text_shows_the_costliest_lines_with_their_source(report: Report) -> None:
    text = render_text(report)
    lines = text.splitlines()
    [first] = [i for i, line in enumerate(lines) if "k.cu:2" in line]
    assert "first = [1];" in lines[first]  # brackets are text, not markup
    assert "1,200" in lines[first]
    assert "k.cu:3" in lines[first + 1]
    assert f"{len(report.lines) - COSTLIEST} more lines not shown" in text
    assert max(map(len, lines)) <= 100
    assert "(compute capability 7.5), by the compiled engine in 0.250 s" in text.replace("\n", " ")


def test_columns_of_what_never_happened_are_left_out(report: Report) -> None:
    text = render_text(report)
    assert "Ld Sectors" in text
    assert "Bank Conflicts" not in text
    assert "Divergent  " not in text.split("Source Counters")[1]


def test_the_json_has_every_counter_of_kernel_and_lines(report: Report) -> None:
    told = json.loads(json.dumps(as_json(report)))
    assert told["counters"]["warp_instructions"] == 1234
    assert set(report.counters) <= set(told["counters"])
    assert sum(line["warp_instructions"] for line in told["lines"].values()) == 1234
    assert told["sections"]["Memory Workload Analysis"]["kind"] == "counted"


def test_source_lines_that_cannot_be_read_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_text("one\n  two\n")
    assert source_line(str(file), 2) == "two"
    assert source_line(str(file), 3) == source_line(str(file), 0) == ""
    assert source_line(str(tmp_path / "gone.cu"), 1) == ""
    assert split_line("C:/a/b.cu:12") == ("C:/a/b.cu", 12)
