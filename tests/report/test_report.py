"""Reports: every section has the numbers of the counters, and lines show their source."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.text import Text

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.cost.fields import CostRecord
from warploom.devices.catalog import find_device
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.isa.instruction import Space
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.report.console import terminal
from warploom.report.export import as_csv, as_json
from warploom.report.render import COSTLIEST, render_text
from warploom.report.sections import Facts, Report, make_report
from warploom.report.source import source_line, split_line
from warploom.report.terms import GLOSSARY, glossary_page, translator

SPEC = find_device("rtx-2080-ti")
DEMAND = Demand(64, 80, 1024)
FACTS = Facts(
    kernel="k",
    spec=SPEC,
    engine="compiled",
    grid=(2, 3, 1),
    block=(64, 1, 1),
    warps=12,
    registers=80,
    registers_from="estimate",
    spill_bytes=None,
    static_shared_bytes=1024,
    dynamic_shared_bytes=0,
    local_bytes=0,
    newer_target=None,
    compile_seconds=0.0,
    seconds=0.25,
)

SOURCE = ["// a kernel", "first = [1];", "second;", *(f"line {n}" for n in range(4, 30))]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """A load on line 2 (12 times, 2 sectors each), a move on line 3 and many on later lines."""
    file = tmp_path / "k.cu"
    file.write_text("\n".join(SOURCE), "utf-8")
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
    program = build(parse(text), "k")
    tally = Tally.empty(program, launched_warps=12)
    tally.warps[0], tally.warps[1] = 1200, 34
    tally.threads[0], tally.threads[1] = 1200 * 32, 34 * 16
    [row] = [i for i, row in enumerate(tally.access_records) if row.space is Space.GLOBAL]
    record = CostRecord(tally.records[row], 0)
    record.requests, record.lines = 1200, 1200
    record.sectors, record.transactions = 3000, 3000
    record.bytes_requested, record.bytes_moved = 153600, 96000
    counters = Counters(tally)
    return make_report(FACTS, program, counters, occupancy_of(SPEC, DEMAND), ())


def value(report: Report, title: str, name: str) -> object:
    [section] = [s for s in report.sections if s.title == title]
    [metric] = [m for m in section.metrics if m.name == name]
    return metric.value


def test_sections_hold_the_counters_and_the_launch(report: Report) -> None:
    assert value(report, "Launch Statistics", "Grid") == "(2, 3, 1)"
    assert value(report, "Launch Statistics", "Grid Size") == 6
    assert value(report, "Launch Statistics", "Threads") == 384
    assert value(report, "Instruction Statistics", "Warp Instructions") == 1234
    lanes = value(report, "Instruction Statistics", "Active Lanes Per Warp Instruction")
    assert lanes == pytest.approx((1200 * 32 + 34 * 16) / 1234)
    assert value(report, "Instruction Statistics", "Class memory") == 1200
    memory = "Memory Workload Analysis"
    assert value(report, memory, "Global Load Sectors Per Request") == 2.5
    assert value(report, memory, "Global Load Bytes Moved") == 96000


def test_occupancy_is_modelled_and_says_where_registers_come_from(report: Report) -> None:
    """80 registers are 2,560 a warp: 6 warps in each of 4 parts, 24 of 32, 12 blocks of two."""
    assert value(report, "Launch Statistics", "Registers Per Thread (estimate)") == 80
    assert value(report, "Occupancy", "Block Limit Registers") == 12
    assert value(report, "Occupancy", "Theoretical Occupancy") == 75.0
    assert value(report, "Occupancy", "Limited By") == "registers"
    assert value(report, "Launch Statistics", "Waves Per SM") == pytest.approx(6 / (68 * 12))


def test_every_number_says_of_what_kind_it_is(report: Report) -> None:
    kinds = {s.title: {metric.kind for metric in s.metrics} for s in report.sections}
    assert kinds == {
        "Launch Statistics": {"launch", "modelled"},
        "Occupancy": {"modelled"},
        "Instruction Statistics": {"counted"},
        "Memory Workload Analysis": {"counted"},
    }
    assert "modelled" in render_text(report)


def test_accesses_that_did_not_happen_are_left_out(report: Report) -> None:
    names = [metric.name for section in report.sections for metric in section.metrics]
    assert not [name for name in names if name.startswith(("Global Store", "Shared", "Local L"))]


def test_the_text_shows_the_costliest_lines_with_their_source(report: Report) -> None:
    text = render_text(report)
    lines = text[text.index("Source Counters") :].splitlines()
    [first] = [i for i, line in enumerate(lines) if "k.cu:2" in line]
    assert "1,200" in lines[first]
    below = lines[first + 1 : first + 4]
    assert any("first = [1];" in line for line in below)  # brackets are text, not markup
    [second] = [i for i, line in enumerate(lines) if "k.cu:3" in line]
    assert first < second <= first + 4
    assert f"{len(report.lines) - COSTLIEST} more lines not shown" in text
    assert max(map(len, lines)) <= 100
    assert "(compute capability 7.5), run by the compiled engine in 0.250 s" in text.replace(
        "\n", " "
    )


ATOMICS = """
extern "C" __global__ void count(int *total, int *out, const int *x) {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x & 3], 1);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, bins[0]);
    out[threadIdx.x] = bins[2];
}
"""


def test_atomics_of_each_memory_and_shared_words_are_distinguished() -> None:
    """One warp: 8 lanes for each of 4 bins are 8 passes; one lane adds to global memory. All lanes
    load one word: 128 bytes requested of 4 that are read."""
    out = np.zeros(32, np.int32)
    kernel = wl.Device("a100").compile(ATOMICS)["count"]
    run = kernel[1, 32](np.zeros(1, np.int32), out, np.zeros(1, np.int32))
    memory = "Memory Workload Analysis"
    assert value(run.summary, memory, "Shared Atomic Passes") == 8
    assert value(run.summary, memory, "Global Atomic Passes") == 1
    assert out.tolist() == [8] * 32
    assert "Shared Load Efficiency (lanes share words)" in run.report()


def test_columns_of_what_never_happened_are_left_out(report: Report) -> None:
    text = render_text(report)
    assert "Ld Sectors" in text
    assert "Conflicts  " not in text
    assert "Divergent  " not in text.split("Source Counters")[1]


def test_the_json_has_every_counter_of_kernel_and_lines(report: Report) -> None:
    output = json.loads(json.dumps(as_json(report)))
    assert output["counters"]["warp_instructions"] == 1234
    assert set(report.counters) <= set(output["counters"])
    assert sum(line["warp_instructions"] for line in output["lines"].values()) == 1234
    memory = output["sections"]["Memory Workload Analysis"]
    assert {metric["kind"] for metric in memory} == {"counted"}


def test_metrics_have_nsight_computes_names(report: Report) -> None:
    metrics = as_json(report)["metrics"]
    assert isinstance(metrics, dict)
    assert metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 3000
    assert metrics["launch__registers_per_thread"] == 80
    assert metrics["sm__maximum_warps_per_active_cycle_pct"] == 75.0


def test_the_csv_has_a_line_for_each_number(report: Report) -> None:
    rows = list(csv.DictReader(as_csv(report).splitlines()))
    assert len(rows) == sum(len(section.metrics) for section in report.sections)
    [row] = [r for r in rows if r["Metric Name"] == "Global Load Sectors"]
    assert row["Metric Value"] == "3000"
    assert row["Kind"] == "counted"
    assert row["Nsight Metric"] == "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def test_a_newer_target_is_reported(report: Report) -> None:
    newer = replace(report, facts=replace(FACTS, newer_target="sm_90"))
    assert "The PTX targets sm_90" in render_text(newer)
    assert "The PTX targets" not in render_text(report)


def test_lines_are_in_order_of_cost_and_say_why(report: Report) -> None:
    """The load costs a slot for each of its 1,200 instructions, and 1,800 sectors beyond one."""
    first = report.lines[0]
    assert first.cost == 1200 + 1800
    assert [line.cost for line in report.lines] == sorted(
        (line.cost for line in report.lines), reverse=True
    )
    assert first.why == "global: 2.5 transactions per request (optimal); 97 % of all instructions"


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ("cuda", ("Block Size", "Static Shared Memory Per Block", "Local Memory Per Thread")),
        (
            "opencl",
            (
                "Work-group Size",
                "Static Local Memory Per Work-group",
                "Private Memory Per Work-item",
            ),
        ),
        ("sycl", ("Work-group Size", "ND-range size", "Sub-group Instructions")),
        ("hip", ("Block Size", "Static Shared Memory (LDS) Per Block", "Wavefront Instructions")),
    ],
)
def test_reports_can_be_written_in_other_terms(
    report: Report, terms: str, said: tuple[str, ...]
) -> None:
    text = render_text(report, terms)
    assert all(words in text for words in said)


def test_code_keeps_its_own_words() -> None:
    say = translator("opencl")
    assert say("branch per warp (threadIdx.x / 32)") == "branch per sub-group (threadIdx.x / 32)"
    assert say("shared and local memory") == "local and private memory"
    assert say("__shared__ float a[32]") == "__shared__ float a[32]"


def test_the_glossary_page_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "glossary.md"
    assert page.read_text("utf-8") == glossary_page()
    assert {"warp", "block", "grid", "lane", "shared memory"} <= {e.cuda for e in GLOSSARY}


def test_unknown_terms_are_refused(report: Report) -> None:
    with pytest.raises(WarploomError, match="cuda, opencl, sycl, hip"):
        render_text(report, "vulkan")


def test_source_lines_that_cannot_be_read_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_text("one\n  two\n", "utf-8")
    assert source_line(str(file), 2) == "two"
    assert source_line(str(file), 3) == source_line(str(file), 0) == ""
    assert source_line(str(tmp_path / "gone.cu"), 1) == ""
    assert split_line("C:/a/b.cu:12") == ("C:/a/b.cu", 12)


def test_a_notebook_shows_the_text_of_a_report() -> None:
    from IPython.lib.pretty import pretty

    module = wl.Device("v100").compile(
        "template <int n> __global__ void k() {} template __global__ void k<3>();"
    )
    text = module[module.kernels[0]][1, 32]().report()
    assert pretty(text) == text
    assert text.startswith("k<3> on Tesla V100")


def test_nothing_is_bold_where_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = terminal()
    with plain.capture() as captured:
        plain.print(Text("bold", style="bold"))
    assert captured.get() == "bold\n"
    monkeypatch.delenv("NO_COLOR")
    assert terminal().color_system is not None
