"""Exported pages that run kernels: the reference machine in a Python without LLVM, Numba and NumPy,
edited numbers and edited PTX in a browser, and the limits and messages there."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in
from msgspec.structs import replace
from needs import NEEDS_NVRTC
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.core.errors import CompileError, WarploomError
from warploom.devices.catalog import find_device
from warploom.host.programs import ptxas
from warploom.host.programs.sources import LANGUAGES, compiled
from warploom.host.values import written_out
from warploom.observe.trace import Trace
from warploom.ui.edited_numbers import compiled_kernel, literals_of, values_for
from warploom.ui.lessons import ORDER, find_lesson, labels_of, lessons, requests_of
from warploom.ui.page import BUNDLE, export
from warploom.ui.page_machine import kernels_of, with_machine
from warploom.ui.record import record
from warploom.ui.schema import CompiledKernel, LaunchRequest
from warploom.ui.shows import exported_show

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "web" / "runtime"

pytestmark = pytest.mark.skipif(not RUNTIME.exists(), reason="an installation without web/")
with_browser = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

ANSWERING = """
import struct, sys
sys.path[:0] = sys.argv[1:]
import machine, numpy
from warploom.devices.catalog import find_device
from warploom.host.programs import ptxas
from warploom.host.programs.sources import LANGUAGES, compiled
ptxas.find_tool = lambda name: None  # a browser has none
assert numpy.__file__.startswith(sys.argv[1]), numpy.__file__
for line in sys.stdin:
    answer = machine.answer(line)
    sys.stdout.buffer.write(struct.pack("<q", len(answer)) + answer)
"""


def answers(requests: list[LaunchRequest]) -> Iterator[bytes]:
    """Yields what the machine of a page answers to requests, in a process of this Python that has
    the page's stand-ins for NumPy, Numba and LLVM."""
    given = b"".join(msgspec.json.encode(request) + b"\n" for request in requests)
    command = [sys.executable, "-c", ANSWERING, str(RUNTIME), str(ROOT / "src")]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    at = 0
    while at < len(done.stdout):
        (length,) = struct.unpack_from("<q", done.stdout, at)
        yield done.stdout[at + 8 : at + 8 + length]
        at += 8 + length


def self_contained(request: LaunchRequest) -> LaunchRequest:
    """Returns a launch as a page runs it: with its PTX, and with its numbers written out."""
    language = LANGUAGES.get(Path(request.name).suffix, "cuda")
    capability = find_device(request.device).compute_capability
    ptx = request.ptx or compiled(request.source, language, request.name, capability)[0]
    return replace(request, ptx=ptx, args=written_out(request.args), timed=False)


def comparable(trace: Trace) -> Any:
    """Returns a trace as plain data, with addresses relative to that of the first allocation."""
    data = msgspec.to_builtins(trace, builtin_types=(bytes,))
    base = min(one["address"] for one in data["allocations"])

    def relative(column: bytes) -> list[int]:
        words = struct.unpack(f"<{len(column) // 8}Q", column)
        return [word - base if base <= word < base + (64 << 20) else word for word in words]

    for one in data["allocations"]:
        one["address"] -= base
    data["accesses"]["base"] = relative(data["accesses"]["base"])
    data["writes"]["wide"] = relative(data["writes"]["wide"])
    data["changes"]["values"] = [value.hex() for value in data["changes"]["values"]]
    data["error"] = re.sub("0x[0-9a-f]+", "ADDRESS", data["error"] or "")
    # Registers may have been counted by ptxas in this process, and are estimated in a page.
    del data["occupancy"]
    if data["fault"]:
        data["fault"] = None
    return data


@pytest.fixture
def no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the registers of kernels from the estimate, as in a page, which has no ptxas."""
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)


def compared(names: tuple[str, ...]) -> None:
    """Holds the traces of lessons in the page's Python against those with NumPy, all of them."""
    taken = [one for one in lessons() if not names or one.id in names]
    requests = [self_contained(request) for one in taken for request in requests_of(one)]
    if sys.version_info < (3, 12):  # its memoryview has no halves; that of the page is 3.14's
        requests = [one for one in requests if not any("f16" in arg for arg in one.args)]
    found = list(answers(requests))
    assert len(found) == len(requests) >= len(names)
    for request, answer in zip(requests, found, strict=True):
        assert answer[:1] == b"T", (request.name, answer[:300])
        here = comparable(record(replace(request, engine="reference")))
        there = comparable(Trace.from_bytes(answer[1:]))
        different = [key for key in here if here[key] != there[key]]
        assert different == [], request.name


@pytest.mark.usefixtures("no_ptxas")
def test_without_numpy_the_machine_records_the_same() -> None:
    """Divergence, shared memory and its banks, atomics, shuffles, a deadlock, and copies."""
    compared(("saxpy", "branch", "banks", "coalescing", "lock", "shuffle", "async-copy"))


@pytest.mark.nightly
@pytest.mark.usefixtures("no_ptxas")
def test_without_numpy_the_machine_records_the_same_of_every_lesson() -> None:
    compared(())


def test_what_needs_llvm_is_refused() -> None:
    request = self_contained(lessons()[0].request)
    asked = [
        replace(request, timed=True),
        replace(request, sanitize=("race",)),
        replace(request, engine="compiled"),
        replace(request, ptx="hello"),
    ]
    found = list(answers(asked))
    assert all(answer[:1] == b"R" for answer in found)
    assert all(b"has no LLVM" in answer for answer in found[:3])
    assert b"saxpy.cu.ptx:1:1" in found[3]


# ---- numbers in sources --------------------------------------------------------------------------

SOURCE = """#include <cuda_fp16.h>  // 7
__global__ void k(float *out) {  /* 8 */
    out[threadIdx.x * 2u] = 0x10 + 1.5f + x2;  // 9
    printf("10");
}
"""


def test_the_numbers_of_a_source_are_those_of_its_code() -> None:
    found = list(literals_of(SOURCE))
    assert [(one.text, one.real) for one in found] == [("2", False), ("0x10", False), ("1.5", True)]
    assert all(SOURCE[one.start : one.end] == one.text for one in found)
    two = values_for(found[0])
    assert {"0", "1", "3", "4", "32", "33"} <= set(two)
    assert "2" not in two
    assert {"0.0", "3.0", "0.75"} <= set(values_for(found[2]))
    assert "17" in values_for(found[1])


def rebuilt(kernel: CompiledKernel, number: int) -> str:
    """Returns the PTX that changes make, as the page does."""
    made: list[int] = []
    at = 0
    for start, end, lines in kernel.changes[number]:
        made += [*kernel.ptx[at:start], *lines]
        at = end
    made += kernel.ptx[at:]
    return "\n".join(kernel.lines[line] for line in made)


def test_changes_make_what_the_compiler_made() -> None:
    """A compiler in whose texts values add and remove lines, and which refuses 13."""

    def compile_text(text: str) -> str:
        value = int(text.split()[-1])
        if value == 13:
            raise CompileError("13 is refused")
        return "\n".join(["begin", *(f"line {n % 3}" for n in range(value)), "end"])

    kernel = compiled_kernel("h100", "x = 5", compile_text)
    (number,) = kernel.numbers
    assert "13" not in number.values
    assert len(number.values) > 30
    for value, changes in number.values.items():
        assert rebuilt(kernel, changes) == compile_text(f"x = {value}")


def test_arguments_are_written_out() -> None:
    """The first two numbers of NumPy's generator with seed 0 are 0.6369616873214543 and
    0.2697867137638703, as its documentation shows."""
    short = ("42", "x:f32[8]=arange", "f32[4]=1", "f32[2]=1,2")
    assert written_out(short) == short
    (made,) = written_out(("y:f64[2]=random",))
    assert made == "y:f64[2]=0.6369616873214543,0.2697867137638703"
    with pytest.raises(WarploomError, match=r"nothing\.npy cannot be loaded"):
        written_out(("nothing.npy",))


# ---- in a browser --------------------------------------------------------------------------------

LESSON = """
title = "Neighbors"
summary = "Which words does a warp read?"
label = "one warp"
recap = "Neighboring lanes should read neighboring words."
source = '''
__global__ void copy(const float *in, float *out)
{
    out[threadIdx.x] = in[2 * threadIdx.x];
}
'''
[launch]
args = ["in:f32[64]=random:1", "out:f32[32]=zeros"]
device = "v100"
[question]
ask = "How many sectors of 32 bytes does the load touch?"
choices = ["4", "8"]
answer = 1
because = "The lanes read every second word of 64: 256 bytes."
[[captions]]
at = { ptx = "ld.global" }
look = "memory"
text = "Eight sectors; half of each is used."
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lesson's page and the machine's script beside it."""
    sys.path.insert(0, str(ROOT / "tools"))
    from build_machine import build_machine

    made = tmp_path_factory.mktemp("machine")
    try:
        build_machine(made)
    except (subprocess.CalledProcessError, OSError, SystemExit) as error:
        if REQUIRED:
            raise
        pytest.skip(f"Pyodide is installed from npm and PyPI: {error}")
    (made / "neighbours.toml").write_text(LESSON, "utf-8")
    command = ["learn", str(made / "neighbours.toml"), "--export", str(made / "page.html")]
    done = CliRunner().invoke(app, [*command, "--machine", "machine.js"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def edit(page: Any, editor: str, old: str, new: str) -> None:
    """Replaces the only `old` of an editor by `new`, as a change that its user makes."""
    page.wait_for_selector(f"{editor} [contenteditable=true]")
    page.evaluate(
        """([editor, old, add]) => {
            const view = document.querySelector(`${editor} .cm-content`).cmTile.view;
            const text = view.state.doc.toString();
            const from = text.indexOf(old);
            if (from < 0 || text.indexOf(old, from + 1) >= 0) throw new Error(`not one ${old}`);
            view.dispatch({ changes: { from, to: from + old.length, insert: add } });
        }""",
        [editor, old, new],
    )


def run(page: Any) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def sectors(page: Any) -> str:
    """Returns the sectors per request in the margin of the line that reads and writes."""
    cells = page.locator(".source .c-sectors .cm-gutterElement").all_inner_texts()
    return next(cell for cell in cells[1:] if cell.strip())


@NEEDS_NVRTC
@pytest.mark.heavy
class TestInBrowser:
    pytestmark = with_browser

    def test_a_file_runs_an_edited_kernel(self, folder: Path, chromium: Any) -> None:
        """A load of every second word touches 8 sectors, of every word 4, of every eighth 32; its
        store always 4: 6, 4, and 18 a request on average. Below 1 MB, and nothing is fetched."""
        file = folder / "page.html"
        assert file.stat().st_size < 1_000_000
        with page_in(chromium) as page:
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            page.goto(file.as_uri())
            page.wait_for_selector(".tabs", state="attached")
            assert sectors(page) == "6"
            page.get_by_role("button", name="Edit", exact=True).click()
            assert page.locator(".changeable").all_inner_texts() == ["2"]
            assert "3 to 17, 20" in (page.locator(".changeable").get_attribute("title") or "")
            edit(page, ".source", "2 *", "1 *")
            page.locator(".source .cm-content").press("Control+Enter")
            page.wait_for_selector(".took", timeout=120_000)
            assert re.search(
                r"in [\d.]+ s, after a startup time of [\d.]+ s", page.inner_text(".took")
            )
            assert sectors(page) == "4"
            assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}

            page.get_by_role("button", name="Edit", exact=True).click()
            edit(page, ".source", "1 *", "123 *")
            run(page)
            wrong = page.wait_for_selector(".trouble[role=alert]")
            assert "2 can be changed to 0, 1, 3 to 17" in wrong.inner_text()
            assert "but not to 123" in wrong.inner_text()
            edit(page, ".source", "out[threadIdx.x]", "out[0]")
            run(page)
            page.wait_for_selector(".trouble >> text=has no compiler for CUDA C++")

    def test_edited_ptx_runs(self, folder: Path, chromium: Any) -> None:
        """`ld.global` with its address 4 bytes further back is out of bounds in lane 0; an
        instruction that does not exist is named with its line."""
        with page_in(chromium) as page:
            page.goto((folder / "page.html").as_uri())
            page.wait_for_selector(".tabs", state="attached")
            page.keyboard.press("x")
            page.get_by_role("button", name="Edit PTX").click()
            load = re.compile(r"ld\.global\.\S+\s+%f1, \[(%rd\d+)\]")
            text = page.inner_text(".ptx .cm-content")
            found = load.search(text)
            assert found is not None, text
            edit(page, ".ptx", f"[{found[1]}]", f"[{found[1]}+-4]")
            run(page)
            page.wait_for_selector(".trouble.ended", timeout=120_000)
            assert "read of size 4 bytes" in page.inner_text(".trouble.ended")
            page.get_by_role("button", name="Edit PTX").click()
            edit(page, ".ptx", "ld.global", "lad.global")
            run(page)
            wrong = page.wait_for_selector(".trouble[role=alert]").inner_text()
            assert "lad.global" in wrong
            assert page.locator(".ptx .is-wrong").count() == 1

    def test_a_kernel_that_does_not_end_is_ended(self, folder: Path, chromium: Any) -> None:
        """A branch to itself: after the time limit the worker is ended, and the next run works."""
        with page_in(chromium) as page:
            page.clock.install()
            page.goto((folder / "page.html").as_uri())
            page.wait_for_selector(".tabs", state="attached")
            page.keyboard.press("x")
            page.get_by_role("button", name="Edit PTX").click()
            edit(page, ".ptx", "ret;", "again: add.u64 %rd1, %rd1, 1; bra again;")
            run(page)
            page.wait_for_selector("text=Running the kernel", timeout=120_000)
            page.clock.fast_forward(31_000)
            wrong = page.wait_for_selector(".trouble[role=alert]")
            assert "stopped after 30 seconds" in wrong.inner_text()
            page.get_by_role("button", name="Back to the source").click()
            page.keyboard.press("Control+Enter")
            page.wait_for_selector(".took", timeout=120_000)

    def test_a_missing_script_is_named(self, folder: Path, chromium: Any, tmp_path: Path) -> None:
        alone = tmp_path / "page.html"
        alone.write_text((folder / "page.html").read_text("utf-8"), "utf-8")
        with page_in(chromium) as page:
            page.goto(alone.as_uri())
            page.wait_for_selector(".tabs", state="attached")
            page.get_by_role("button", name="Edit", exact=True).click()
            run(page)
            wrong = page.wait_for_selector(".trouble[role=alert]")
            assert "machine.js. `python tools/build_machine.py" in wrong.inner_text()


@NEEDS_NVRTC
@pytest.mark.nightly
@pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")
@pytest.mark.parametrize("name", ORDER)
def test_the_page_of_each_lesson_stays_below_1_mb(name: str) -> None:
    lesson = find_lesson(name)
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    show = with_machine(exported_show(lesson.title, labels_of(lesson), lesson=lesson), "machine.js")
    assert len(export(show, traces, kernels_of(lesson)).encode()) < 1_000_000


def test_a_machine_is_for_exports() -> None:
    done = CliRunner().invoke(app, ["learn", "branch", "--machine", "machine.js"])
    assert done.exit_code != 0
    assert "--machine requires --export" in str(done.exception or done.output)
