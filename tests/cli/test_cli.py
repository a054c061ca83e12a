"""The command line: what the verbs print, and their exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import llvmlite.binding as llvm
import numpy as np
import pytest
from needs import NEEDS_PTXAS

from warploom.cli import progress
from warploom.cli.main import main
from warploom.ir.parser import parse_warp_ir
from warploom.passes.pipeline import PIPELINE
from warploom.passes.verifier.kernel import verify
from warploom.shapes.warp_layout import WarpLayout

KERNEL = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u32 n, .param .u64 x)
{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<5>;
  .loc 1 1 1
  ld.param.u32 %r1, [n];
  ld.param.u64 %rd1, [x];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p bra DONE;
  .loc 1 2 1
  mul.wide.s32 %rd2, %r5, 4;
  add.s64 %rd2, %rd1, %rd2;
  ld.global.u32 %r6, [%rd2];
  mul.lo.s32 %r6, %r6, 3;
  st.global.u32 [%rd2], %r6;
DONE:
  ret;
  .file 1 "scale.cu"
}
"""


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    file = tmp_path / "scale.ptx"
    file.write_text(KERNEL, "utf-8")
    (tmp_path / "scale.cu").write_text("int i = index();\nx[i] *= 3;\n", "utf-8")
    return file


@pytest.fixture
def warploom(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["warploom", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return call


def test_run_prints_buffers_and_report_and_saves(warploom, ptx: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.npy"
    ended = warploom(
        *("run", ptx, "--grid", "4", "--block", "32", "--device", "t4"),
        *("--arg", 100, "--arg", "x:i32[100]=arange", "--save", f"x={target}"),
    )
    assert ended.code == 0
    assert "x: int32[100] = [ 0,  3,  6,  9, 12, 15, 18, 21, ...]" in ended.out
    assert "scale on Tesla T4, run by the compiled engine in " in ended.out
    assert "\nBound by " in ended.out
    assert (
        f"\nNext: warploom time {ptx} --grid 4 --block 32 --device t4 --arg 100 --arg" in ended.out
    )
    assert "Divergent Branches" not in ended.out
    assert np.load(target).tolist() == list(range(0, 300, 3))


def test_the_next_command_has_the_launch_of_one_block(warploom, ptx: Path) -> None:
    """1 is the default, which a reader of the line alone does not know."""
    ended = warploom("run", ptx, "--grid", 1, "--arg", 32, "--arg", "i32[32]=arange")
    assert ended.code == 0
    assert f"\nNext: warploom time {ptx} --grid 1 --block " in ended.out


@pytest.mark.parametrize("verb", ["run", "profile"])
def test_wavefronts_of_64_lanes(warploom, ptx: Path, verb: str) -> None:
    """Of 100 threads in a block of 128, the first wavefront has all and the second 36: its guard
    diverges, and 100 words are read by two requests and two more."""
    words = ("--block", 128, "--arg", 100, "--arg", "x:i32[100]=arange", "--json")
    ended = warploom(verb, ptx, "--warp-size", 64, *words)
    assert ended.code == 0
    counters = json.loads(ended.out)["counters"]
    assert counters["divergent_branches"] == 1
    assert counters["global_load_requests"] == 4
    ended = warploom(verb, ptx, "--warp-size", 64, "--engine", "compiled", *words)
    assert ended.code != 0
    assert "the compiled engine requires warps of 32 lanes" in ended.err


CLUSTERS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out) {
  .reg .u64 %out; .reg .u32 %rank, %block;
  ld.param.u64 %out, [out];
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %block, %ctaid.x;
  mad.wide.u32 %out, %block, 4, %out;
  st.global.u32 [%out], %rank;
  ret;
}
"""


@pytest.mark.parametrize("verb", ["run", "check", "explore"])
def test_clusters_are_asked_for(warploom, tmp_path: Path, verb: str) -> None:
    file = tmp_path / "ranks.ptx"
    file.write_text(CLUSTERS, "utf-8")
    asked = [str(file), "--grid", "4", "--arg", "out:i32[4]=zeros", "--cluster-dims"]
    ended = warploom(verb, *asked, "2")
    assert ended.code == 0, ended.err
    assert verb != "run" or "out: int32[4] = [0, 1, 0, 1]" in ended.out
    assert "cannot be divided into clusters" in warploom(verb, *asked, "3").err
    assert "is not valid" in warploom(verb, *asked, "two").err


def test_run_prints_json(warploom, ptx: Path) -> None:
    ended = warploom("run", ptx, "--arg", 32, "--arg", "i32[32]=ones", "--json")
    output = json.loads(ended.out)
    assert output["counters"]["global_load_sectors"] == 4
    assert output["device"] == "H100 (SXM5)"
    assert output["buffers"]["1"] == {"dtype": "int32", "shape": [32], "first": [3] * 8}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "PTX", "--bogus"], 2, "No such option"),
        (["run", "PTX", "--report", "all"], 2, "programs have it: see `warploom run-program"),
        (["run", "--section", "launch", "a.py"], 2, "launches of a kernel have it: see"),
        (["run", "PTX", "--grid", "x"], 2, "--grid 'x' is not valid"),
        (["run", "PTX", "--arg", "huh"], 2, "neither a number nor a buffer"),
        (["run", "PTX", "--save", "x=a.npy"], 2, "one of this launch's buffers"),
        (["run", "PTX", "--device", "h101"], 2, "Did you mean h100"),
        (["run", "PTX", "--engine", "warp"], 2, "engine takes one of 'compiled', 'reference'"),
        (["run", "gone.ptx"], 2, "No such file"),
        (["run", "CUT"], 3, "is the text cut off?"),
        (["run", "BINARY"], 3, "contains binary data, not text"),
        (["run", "PTX", "--kernel", "nope"], 4, "no kernel named nope. Its kernels: scale"),
        (["run", "PTX", "--arg", "1"], 4, "takes 2 arguments"),
        (["run", "PTX", "--arg", "1", "--arg", "2.5"], 4, "takes a Buffer"),
        (
            ["run", "PTX", "--block", "1025", "--arg", "1", "--arg", "0"],
            4,
            "its x dimension is 1025",
        ),
        (["run", "PTX", "--grid", "0", "--arg", "1", "--arg", "0"], 4, "grid of 0"),
        (["run", "PTX", "--arg", "32", "--arg", "y:i32[31]=ones"], 5, "the nearest allocation, y"),
        (
            ["run", "PTX", "--arg", "1", "--arg", "i32[1]=ones", "--max-instructions", "3"],
            5,
            "instructions",
        ),
    ],
)
def test_mistakes_have_their_exit_code_and_say_what_is_wrong(
    warploom, ptx: Path, arguments: list[str], code: int, message: str
) -> None:
    (ptx.parent / "cut.ptx").write_text(KERNEL[: KERNEL.index("mad.lo")], "utf-8")
    (ptx.parent / "binary.ptx").write_bytes(bytes(range(256)))
    files = {
        "PTX": str(ptx),
        "CUT": str(ptx.parent / "cut.ptx"),
        "BINARY": str(ptx.parent / "binary.ptx"),
    }
    ended = warploom(*(files.get(a, a) for a in arguments))
    assert ended.code == code
    assert message in ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_a_source_that_does_not_compile(warploom, tmp_path: Path) -> None:
    file = tmp_path / "bad.cu"
    file.write_text('extern "C" __global__ void k(int *x)\n{\n  x[0] = y;\n}\n', "utf-8")
    ended = warploom("run", file)
    assert ended.code == 3
    assert 'bad.cu(3): error: identifier "y" is undefined' in ended.err


def test_ptx_shows_source_lines_above_their_instructions(warploom, ptx: Path) -> None:
    file = ptx.parent / "twice.cu"
    file.write_text('extern "C" __global__ void k(int *x)\n{\n  x[0] *= 2;\n}\n', "utf-8")
    lines = warploom("ptx", file).out.splitlines()
    comment = lines.index("// twice.cu:3  x[0] *= 2;")
    assert any("ld.global" in line for line in lines[comment:])
    assert not any(".loc" in line for line in lines)
    assert "\t.loc\t" in warploom("ptx", file, "--no-source").out


def test_ptx_prints_the_llvm_ir_of_a_kernel(warploom, ptx: Path) -> None:
    printed: list[str] = []
    for options in ((), ("--baseline",)):
        ended = warploom("ptx", ptx, "--llvm", "--block", "8,8", *options)
        assert ended.code == 0
        module = llvm.parse_assembly(ended.out)
        module.verify()
        assert {"warp", "run"} <= {function.name for function in module.functions}
        printed.append(ended.out)
    optimised, baseline = printed
    assert '@"operation.' in baseline
    assert '@"operation.' not in optimised
    refused = warploom("ptx", ptx, "--block", "8")
    assert refused.code == 2
    assert (
        "require one of --llvm, --ir, --passes and --plan: add one of these, or omit --kernel and "
        "--block"
    ) in refused.err


def test_ptx_prints_what_passes_find_of_a_kernel(warploom, ptx: Path) -> None:
    ended = warploom("ptx", ptx, "--ir", "--block", "8,8")
    assert ended.code == 0
    ir = parse_warp_ir(ended.out)
    assert ir.variant.warp_layout is WarpLayout.WHOLE_ROWS_OF_8
    assert len(ir.program.instructions) == 14
    verify(ir)
    each = warploom("ptx", ptx, "--passes", "--block", "8,8").out.split("# after ")[1:]
    assert [text.partition("\n")[0] for text in each] == [one.name for one in PIPELINE]
    assert parse_warp_ir("# " + each[-1]) == ir
    refused = warploom("ptx", ptx, "--ir", "--plan")
    assert refused.code == 2
    assert "use only one" in refused.err


def test_types_of_arguments_are_checked_unless_asked_not_to(warploom, tmp_path: Path) -> None:
    file = tmp_path / "ones.cu"
    file.write_text(
        'extern "C" __global__ void k(float *x)\n{\n  x[threadIdx.x] = 1;\n}\n', "utf-8"
    )
    command = "run", file, "--device", "t4", "--arg", "i32[32]=zeros"
    refused = warploom(*command)
    assert refused.code != 0
    assert "(--no-strict)" in refused.err
    assert warploom(*command, "--no-strict").code == 0


@pytest.mark.parametrize(
    ("device", "facts"),
    [
        ("h100", ("132 multi", "4 schedulers", "128 cores", "64 warps", "270,336 resident")),
        ("8800-gtx", ("16 multi", "1 scheduler,", "8 cores", "24 warps", "12,288 resident")),
        ("k40", ("15 multi", "4 schedulers", "192 cores", "64 warps", "30,720 resident")),
    ],
)
def test_a_device_is_described_by_its_multiprocessors(
    warploom, device: str, facts: tuple[str, ...]
) -> None:
    """Cores by generation: 8 (Tesla), 192 (Kepler), 128 (Hopper); an H100 has 132 * 2,048
    threads."""
    first = warploom("devices", device).out.partition("\n")[0]
    assert all(fact in first for fact in facts), first


def test_devices_lists_and_details(warploom) -> None:
    entries = warploom("devices").out
    assert "rtx-2080-ti" in entries
    assert "gb10" in entries
    one = warploom("devices", "rtx-2080-ti").out
    assert "65,536" in one
    assert "(unverified)" in one
    output = json.loads(warploom("devices", "v100", "--json").out)
    assert output["v100"]["compute_capability"] == "7.0"
    assert output["v100"]["sms"] == 80


def test_help_says_it_all(warploom) -> None:
    output = " ".join(warploom("--help").out.split())
    for part in (
        "0 success",
        "1 results differ (explore), errors found (check)",
        "(litmus); 2 invalid usage",
    ):
        assert part in output
    output = warploom("run", "--help").out
    for option in ("--kernel", "--grid", "--shared", "--arg", "--save", "--max-instructions"):
        assert option in output
    assert "Example: " in output


def test_the_progress_line_waits_for_a_slow_run_and_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "REFRESH", 0.01)
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.ProgressLine("quick"):
        pass
    assert capsys.readouterr().err == ""
    with progress.ProgressLine("slow") as line:
        line(3, 1200)
        line._ended.wait(0.3)  # pyright: ignore[reportPrivateUsage]
    shown = capsys.readouterr().err
    assert "slow: 0 s, 3 of 1,200 blocks" in shown
    assert shown.endswith("\r\033[K")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with progress.ProgressLine("piped") as line:
        line._ended.wait(0.2)  # pyright: ignore[reportPrivateUsage]
    assert capsys.readouterr().err == ""


def test_importing_warploom_does_not_import_compilers() -> None:
    code = (
        "import sys, warploom; heavy = {'numba', 'llvmlite', 'cuda', 'rich', 'typer'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---- profile ------------------------------------------------------------------------------------

PROFILE = ("--grid", "2", "--block", "64", "--arg", "100", "--arg", "i32[128]=arange")


def test_profile_prints_sections_and_advice(ptx: Path, warploom) -> None:
    ended = warploom("profile", str(ptx), *PROFILE)
    assert ended.code == 0
    for text in ("Launch Statistics", "Occupancy", "Memory Workload Analysis", "small grid"):
        assert text in ended.out


def test_run_prints_tables_where_they_are_wanted(warploom, ptx: Path) -> None:
    launch = ("run", ptx, "--arg", 100, "--arg", "i32[100]=arange")
    whole = warploom(*launch, "--details").out
    assert "Divergent Branches" in whole
    assert "Launch Statistics" in whole
    alone = warploom(*launch, "--section", "instruction").out
    assert alone.startswith("Instruction Statistics")
    assert "Launch Statistics" not in alone
    wrong = warploom(*launch, "--section", "cache")
    assert wrong.code == 2
    assert "Its sections are Launch Statistics, Occupancy" in wrong.err


def test_profile_speaks_opencl(ptx: Path, warploom) -> None:
    ended = warploom("profile", str(ptx), *PROFILE, "--terms", "opencl")
    assert "Work-group Size" in ended.out
    assert "Block Size" not in ended.out
    assert warploom("profile", str(ptx), *PROFILE, "--terms", "vulkan").code == 2


def test_profile_as_json_and_csv(ptx: Path, warploom) -> None:
    output = json.loads(warploom("profile", str(ptx), *PROFILE, "--json").out)
    assert output["metrics"]["launch__block_size"] == 64
    assert output["counters"]["global_load_requests"] == 4
    assert {"rule", "line", "evidence", "advice"} <= set(output["advice"][0])
    rows = warploom("profile", str(ptx), *PROFILE, "--csv").out.splitlines()
    assert rows[0].startswith("Kernel Name,Device,Section Name")
    assert any(",Block Size,thread,64,launch,launch__block_size" in row for row in rows)


def test_profile_models_the_time_too(ptx: Path, warploom) -> None:
    """Its sections join the others, each number marked; schedulers' cycles are an issue or lost."""
    output = json.loads(warploom("profile", str(ptx), *PROFILE, "--time", "--json").out)
    sections = output["sections"]
    for title in ("GPU Speed Of Light Throughput", "Scheduler Statistics", "Warp State Statistics"):
        assert {metric["kind"] for metric in sections[title]} == {"modelled"}
    shares = {m["name"]: m["value"] for m in sections["Scheduler Statistics"]}
    lost = sum(value for name, value in shares.items() if name.startswith("No Issue"))
    assert lost + shares["Cycles With An Issue"] == pytest.approx(100)
    assert output["advice"][0]["rule"] == "Bottleneck (modelled)"
    assert output["metrics"]["sm__warps_active.avg.pct_of_peak_sustained_active"] > 0
    assert "modelled" in warploom("profile", str(ptx), *PROFILE, "--time").out
    plain = json.loads(warploom("profile", str(ptx), *PROFILE, "--json").out)
    assert "Scheduler Statistics" not in plain["sections"]


def test_json_has_no_bare_nan(ptx: Path, warploom, tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.array([np.nan, np.inf, 1.0], np.float32))
    ended = warploom(*("run", str(ptx), "--arg", "0", "--arg", str(tmp_path / "nan.npy"), "--json"))
    output = json.loads(ended.out, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert output["buffers"]["1"]["first"] == ["nan", "inf", 1.0]


def test_strict_target_refuses_what_is_newer(ptx: Path, warploom) -> None:
    ended = warploom("run", str(ptx), *PROFILE, "--device", "p100", "--strict-target")
    assert ended.code == 3
    assert "sm_75" in ended.err
    lenient = warploom("run", str(ptx), *PROFILE, "--device", "p100")
    assert lenient.code == 0
    assert "The PTX targets sm_75" in lenient.out


# ---- occupancy ----------------------------------------------------------------------------------


def test_occupancy_of_a_file(ptx: Path, warploom) -> None:
    ended = warploom("occupancy", str(ptx), "--block", "256", "--device", "t4")
    assert ended.code == 0
    assert "4 blocks, 32 of 32 warps per SM: 100.0 %, limited by warps" in ended.out
    assert "(estimate)" in ended.out or "(ptxas)" in ended.out


def test_a_block_of_occupancy_has_a_shape(ptx: Path, warploom) -> None:
    flat, shaped = (warploom("occupancy", str(ptx), "--block", b) for b in ("256", "16x16"))
    assert (shaped.code, shaped.out) == (0, flat.out)
    refused = warploom("occupancy", str(ptx), "--block", "33x32")
    assert refused.code == 4
    assert "a block of 33 x 32 x 1 = 1056 threads is too large" in refused.err


def test_occupancy_with_registers_of_ones_own(ptx: Path, warploom) -> None:
    """64 registers: 1,024 of 2,048 threads on a V100. 56 are 1,792 a warp: 9 warps in each quarter,
    36, no more than four blocks of 8; 48 are 1,536: 10 in each quarter, five blocks."""
    options = ("--block", "256", "--registers", "64", "--device", "v100")
    output = json.loads(warploom("occupancy", str(ptx), *options, "--json").out)
    assert (output["active_warps"], output["fraction"], output["limiters"]) == (
        32,
        0.5,
        ["registers"],
    )
    assert output["registers_from"] == "given"
    [gain] = [g for g in output["gains"] if g["resource"] == "registers"]
    assert (gain["after"], gain["fraction"]) == (48, 40 / 64)


def test_a_block_that_cannot_fit_is_refused(ptx: Path, warploom) -> None:
    ended = warploom("occupancy", str(ptx), "--block", "1024", "--registers", "128")
    assert ended.code == 4
    assert "131,072 registers" in ended.err


def test_the_sweep_is_drawn(ptx: Path, warploom, tmp_path: Path) -> None:
    svg = tmp_path / "sweep.svg"
    ended = warploom("occupancy", str(ptx), "--sweep", "--svg", str(svg))
    for title in ("Block Size", "Registers Per Thread", "Shared Memory Per Block"):
        assert f"{title} -> active warps per SM" in ended.out
    root = ElementTree.fromstring(svg.read_text("utf-8"))
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{*}path")) == 3


def test_caches_and_l1_can_be_asked_for(warploom, ptx: Path) -> None:
    """One warp loads 128 bytes: 4 sectors, which miss L1, or L2 alone, or are not looked up."""
    asked = ("profile", str(ptx), "--arg", "32", "--arg", "i32[32]=ones", "--json", "--caches")

    def misses(*options: str) -> tuple[int, int]:
        counters = json.loads(warploom(*asked, *options).out)["counters"]
        return counters["global_load_l1_misses"], counters["global_load_l2_misses"]

    assert misses("--device", "k40") == (0, 4)
    assert misses("--device", "k40", "--l1") == (4, 4)
    assert misses("--device", "gtx-480", "--no-l1") == (0, 4)
    assert misses("--device", "8800-gtx") == (0, 0)
    assert warploom(*asked, "--device", "h100", "--bank-bytes", "8").code == 2


def test_time_reports_cycles_and_what_bounds_the_kernel(warploom, ptx: Path) -> None:
    """Two blocks of 64 threads: each of their four warps loads 128 bytes and stores them."""
    given = ("time", str(ptx), "--grid", "2", "--block", "64", "--device", "v100")
    more = ("--arg", "128", "--arg", "i32[128]=arange")
    text = warploom(*given, *more)
    assert text.code == 0
    for part in ("Speed Of Light", "Scheduler Statistics", "Warp State Statistics", "modelled"):
        assert part in text.out
    found = json.loads(warploom(*given, *more, "--scheduler", "gto", "--json").out)
    assert found["scheduler"] == "gto"
    assert found["kind"] == "modelled"
    assert found["cycles"] > 436  # what a load from DRAM takes, by gpu-benches
    assert found["sections"]["Memory Workload Analysis (modelled)"]["DRAM Bytes Read"] == 512


def test_time_names_the_schedulers_that_there_are(warploom, ptx: Path) -> None:
    made = warploom("time", str(ptx), "--arg", "1", "--arg", "i32[1]=ones", "--scheduler", "fair")
    assert made.code == 2
    assert "scheduler takes one of 'lrr', 'gto', 'two-level', 'oldest'" in made.err


@NEEDS_PTXAS
def test_sass_shows_source_ptx_and_machine_code(warploom, tmp_path: Path) -> None:
    """Two warps scale numbers: what each does once is counted twice."""
    source = tmp_path / "scale.cu"
    source.write_text(
        'extern "C" __global__ void scale(float *x, float a) {\n  x[threadIdx.x] *= a;\n}\n',
        "utf-8",
    )
    given = ("sass", str(source), "--block", "64", "--device", "t4", "--arg", "f32[64]=ones")
    made = warploom(*given, "--arg", "2.0")
    assert made.code == 0, made.err
    assert "x[threadIdx.x] *= a;" in made.out
    [row] = [line for line in made.out.splitlines() if "ld.global.f32" in line]
    assert row.split()[0] == "2"
    assert re.search(r" 2 +0\w+ +\S+ +LDG\.E\.SYS", made.out)
    output = json.loads(warploom(*given, "--arg", "2.0", "--json").out)
    rows = [row for line in output["lines"] for row in line["rows"]]
    assert (
        sum(one["executed"] for row in rows for one in row["machine"])
        == (output["machine_instructions"])
    )
    assert output["by_opcode"]["LDG"] == output["by_opcode"]["STG"] == 2


def test_sass_says_why_there_is_no_machine_code(warploom, ptx: Path) -> None:
    made = warploom("sass", str(ptx), "--arg", "1", "--arg", "i32[1]=ones", "--device", "gtx-1080")
    assert made.code == 2
    assert "CUDA 13's ptxas does not support compute capability 6.1" in made.err
