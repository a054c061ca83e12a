"""The page in the words of the source's language: OpenCL's for OpenCL C, and a Numba kernel under
the lines of its Python function. What OpenCL calls things is in docs/glossary.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.shows import exported_show

STATEMENTS = Path(__file__).parents[2] / "examples" / "statements"
BUFFERS = ("in:i32[128]=arange", "out:i32[128]=zeros")

CUDA_WORDS = re.compile(
    r"(?<![\w-])(threads?|warps?|blocks?|grid|shared|SMs?)(?!\w)", re.IGNORECASE
)

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium.new_page()


def shown(page: Any, address: str, view: str) -> str:
    """Returns what a view says, with its tips and labels, but for the code, and for the titles of
    sources, which are in quotation marks."""
    page.goto("about:blank")
    page.goto(f"{address}#view={view}&step=9")
    page.wait_for_selector(".lanes", state="attached")
    said = page.evaluate(
        """() => {
            document.querySelectorAll(".cm-editor").forEach((one) => one.remove());
            const told = [...document.querySelectorAll("#app *")].flatMap((one) =>
                ["data-tip", "aria-label", "title"].map((name) => one.getAttribute(name) ?? ""));
            return [document.querySelector("#app").innerText, ...told].join("\\n");
        }"""
    )
    return re.sub("“.*?”", "", said)


def export_of(file: Path, source: str, name: str) -> str:
    request = LaunchRequest(name=name, source=source, grid="2", block="64", args=BUFFERS)
    file.write_text(export(exported_show(name, (name,)), [record(request).to_bytes()]), "utf-8")
    return file.as_uri()


def test_an_opencl_kernel_is_shown_in_opencls_words(page: Any, tmp_path: Path) -> None:
    source = (STATEMENTS / "reverse.cl").read_text("utf-8")
    address = export_of(tmp_path / "cl.html", source, "reverse.cl")
    texts = {view: shown(page, address, view) for view in ("memory", "data", "machine", "numbers")}
    for view, text in texts.items():
        assert not CUDA_WORDS.findall(text), (view, CUDA_WORDS.findall(text))
    assert "sub-group 0" in texts["memory"]
    assert "tile of work-group 0" in texts["data"]
    assert "Work-items" in texts["machine"]
    assert "256 bytes of local memory per work-group" in texts["machine"]
    assert "Sub-group instructions" in texts["numbers"]


@pytest.mark.parametrize(("name", "row"), [("reverse.cl", "wg1 sg0"), ("copy.cu", "b1 w0")])
def test_rows_of_the_timeline_are_named_in_the_words_of_the_source(
    page: Any, tmp_path: Path, name: str, row: str
) -> None:
    """It is drawn on a canvas: two blocks of two warps."""
    copy = "__global__ void copy(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }"
    is_opencl = name.endswith(".cl")
    source = (STATEMENTS / name).read_text("utf-8") if is_opencl else copy
    address = export_of(tmp_path / "rows.html", source, name)
    context = page.context.browser.new_context()
    drawing = context.new_page()
    drawing.add_init_script(
        "window.drawn = []; const draw = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...at)"
        "{ window.drawn.push(text); return draw.call(this, text, ...at); };"
    )
    drawing.goto(f"{address}#step=5")
    drawing.wait_for_selector(".lanes", state="attached")
    drawing.wait_for_function(f"window.drawn.includes({row!r})", timeout=10_000)
    context.close()


def test_names_of_the_source_stay_as_they_are(page: Any, tmp_path: Path) -> None:
    source = "__kernel void warp(__global const int *in, __global int *out) { out[0] = in[0]; }"
    address = export_of(tmp_path / "name.html", source, "block.cl")
    shown(page, address, "memory")
    assert page.locator("h1").inner_text().startswith("warp")


def test_a_cuda_kernel_is_shown_in_cudas_words(page: Any, tmp_path: Path) -> None:
    source = "__global__ void copy(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }"
    address = export_of(tmp_path / "cu.html", source, "copy.cu")
    text = shown(page, address, "machine")
    assert "SMs with a resident block" in " ".join(text.split())
    assert "work-group" not in text


@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
def test_a_numba_kernel_is_shown_under_its_lines(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "numba.html"
    command = [sys.executable, "-m", "warploom.cli", "view", "--export", str(file)]
    command.append(str(STATEMENTS / "numba_saxpy.py"))
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    page.goto(f"{file.as_uri()}#step=5")
    page.wait_for_selector(".lanes", state="attached")
    page.locator(".cm-content", has_text="y[i] = a * x[i] + y[i]").first.wait_for()
    assert "numba_saxpy.py" in page.locator("#app").inner_text()
    assert re.search(r"line \d+", page.locator("#app").inner_text())
