"""The cell magic of notebooks: in a shell that has what IPython's has, and in Jupyter if that is
installed; a launch in a notebook and the same in a frame of a plain page show the same step."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import BROWSER, NO_BROWSER, launched, page_in

import warploom as wl
from warploom.ui.notebook import Shown
from warploom.ui.page import BUNDLE

pytestmark = pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")

SOURCE = """__global__ void scale(int n, float a, const float *x, float *y)
{
    int i = threadIdx.x;
    if (i % 2)
        y[i] = a * x[i] + n;
}
"""


class Shell:
    """What the magic uses of IPython's shell."""

    def __init__(self, **variables: Any) -> None:
        self.user_ns = variables
        self.magics: dict[str, Callable[[str, str], Shown | None]] = {}
        wl.load_ipython_extension(self)  # pyright: ignore[reportAttributeAccessIssue]

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        assert magic_kind == "cell"
        self.magics[magic_name] = func

    def run(self, line: str, cell: str = SOURCE) -> Shown | None:
        return self.magics["warploom"](line, cell)


def test_a_cell_runs_on_the_variables_of_the_notebook() -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    shell = Shell(x=x, y=y, count=3)
    shown = shell.run("count -2.5 x y --block 32 --device v100 --step 4 --view memory --name trace")
    assert shown is not None
    assert shown.place == "step=4&warp=0&view=memory"
    expected = np.where(np.arange(32) % 2, -2.5 * x + 3, 0)
    np.testing.assert_array_equal(y, expected)
    trace = shell.user_ns["trace"]
    assert (trace.launch.name, trace.device.name) == ("scale", "v100")
    assert [one.name for one in trace.allocations] == ["x", "y"]


def test_arguments_are_those_of_the_command_line_too() -> None:
    shown = Shell().run("7 1.5 x:f32[32]=ones f32[32]=zeros --device v100")
    assert shown is not None
    [trace] = shown.traces
    assert [one.name for one in trace.allocations] == ["x", "argument 3"]


def test_a_cell_of_ptx_is_recognized() -> None:
    ptx = wl.Device("v100").compile("__global__ void alone() {}").ptx
    shown = Shell().run("--device v100", ptx)
    assert shown is not None
    assert "alone" in shown.traces[0].launch.name


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        (
            "--grid",
            SOURCE,
            "%%warploom: argument --grid: expected one argument. Options: --grid, --block",
        ),
        ("--nothing 3", SOURCE, "unrecognized arguments: --nothing"),
        ("1 2 x y", SOURCE, "--arg 'x' cannot be read"),
        ("'1", SOURCE, "%%warploom: No closing quotation"),
        ("", "__global__ void k() { int i = ; }", "expected an expression"),
        ("--device v1000", SOURCE, "v1000"),
        ("1 2 f32[32]=ones f32[8]=ones --view maps", SOURCE, "there is no view 'maps'"),
        ("", "__global__ void a() {} __global__ void b() {}", "choose the kernel"),
    ],
)
def test_what_is_wrong_is_printed(
    line: str, cell: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Shell().run(line, cell) is None
    assert message in capsys.readouterr().err


def test_a_notebook_and_a_plain_page_show_the_same_step(tmp_path: Path) -> None:
    """In Jupyter, the cell's view opens at the step that a link to the page opens at, at which the
    odd lanes are active."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    nbconvert = pytest.importorskip("nbconvert")
    pytest.importorskip("ipykernel")
    if not BROWSER:
        pytest.skip(NO_BROWSER)
    shown = Shell().run("3 2.0 x:f32[32]=arange y:f32[32]=zeros --device v100")
    assert shown is not None
    [trace] = shown.traces
    step = next(one.time for one in trace.warp(0, 0).steps if one.active == 0xAAAAAAAA)
    shown.save(tmp_path / "launch.html")
    link = f"launch.html?embed=1#step={step}&warp=0&view=warp"
    frame = f'<iframe src="{link}" width="900" height="700"></iframe>'
    (tmp_path / "plain.html").write_text(f"<!doctype html><title>A page</title>{frame}", "utf-8")
    magic = (
        f"%%warploom 3 2.0 x:f32[32]=arange y:f32[32]=zeros --device v100 --step {step} --view warp"
    )
    cells = [
        nbformat.v4.new_code_cell("%load_ext warploom"),
        nbformat.v4.new_code_cell(f"{magic}\n{SOURCE}"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    exporter = nbconvert.HTMLExporter(sanitize_html=False)
    html, _ = exporter.from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(html, "utf-8")
    seen: list[str] = []
    with launched() as browser:
        for name in ("plain", "notebook"):
            with page_in(browser, viewport={"width": 1280, "height": 900}) as page:
                page.goto((tmp_path / f"{name}.html").as_uri())
                inside = page.frame_locator("iframe").last
                inside.locator(".lanes").wait_for(timeout=30_000)
                lanes = inside.locator(".lane").evaluate_all("all => all.map(one => one.className)")
                active = [n for n, one in enumerate(lanes) if "is-active" in one.split()]
                assert active == list(range(1, 32, 2)), name
                text = inside.locator("section.bottom").inner_text()
                found = re.search(r"step\s+(\d+)\s+of", text)
                assert found is not None, text
                seen.append(found[1])
    assert seen[0] == seen[1]
