"""Exported pages as parts of others: links to a state, frames, copies of links, sheets of paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, lanes_in, launched, page_in
from typer.testing import CliRunner

import warploom as wl
from warploom.cli.main import app
from warploom.ui.lessons import find_lesson, labels_of, requests_of
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.shows import exported_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

EVEN = 0x55555555
ODD_STEP = 16
"""A step at which the odd lanes of the lesson `branch` multiply."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    with page_in(chromium) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a lesson, and with its launch without the lesson."""
    made = tmp_path_factory.mktemp("pages")
    lesson = find_lesson("branch")
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    for name, taught in (("lesson", lesson), ("launch", None)):
        show = exported_show("branch", labels_of(lesson), lesson=taught)
        (made / f"{name}.html").write_text(export(show, traces), "utf-8")
    return made


def opened(page: Any, url: str) -> Any:
    page.goto(url)
    page.wait_for_selector(".tabs", state="attached")
    return page


@pytest.mark.parametrize("name", ["lesson", "launch"])
def test_a_copied_link_opens_the_same_step(chromium: Any, folder: Path, name: str) -> None:
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = opened(context.new_page(), (folder / f"{name}.html").as_uri())
    if name == "lesson":
        page.keyboard.press("n")
        page.keyboard.press("n")
    page.keyboard.press("4")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("The link was copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    other = opened(context.new_page(), link)
    for shown in (".when", ".single", ".lesson" if name == "lesson" else "h1"):
        assert other.locator(shown).inner_text() == page.locator(shown).inner_text()
    assert other.locator("[role=tab][aria-selected=true]").inner_text() == "Numbers"
    context.close()


@pytest.mark.parametrize(
    ("pane", "seen", "hidden"),
    [
        ("warp", ".lanes", "#below"),
        ("numbers", "#below", ".lanes"),
        ("code", ".source", ".right"),
    ],
)
def test_a_page_of_others_holds_one_view(
    page: Any, folder: Path, tmp_path: Path, pane: str, seen: str, hidden: str
) -> None:
    url = f"{(folder / 'launch.html').as_uri()}?embed=1&pane={pane}#step={ODD_STEP}"
    host = tmp_path / "host.html"
    host.write_text(
        f"<!doctype html><title>A page</title><p>Before</p>"
        f'<iframe id="w" src="{url}" width="600" height="420"></iframe>',
        "utf-8",
    )
    page.goto(host.as_uri())
    frame = page.frame_locator("#w")
    frame.locator(seen).first.wait_for()
    assert not frame.locator(hidden).first.is_visible()
    assert not frame.locator(".top").is_visible()
    assert not frame.locator(".tabs").is_visible()
    assert "17 of 90" in frame.locator(".when").inner_text()
    frame.get_by_role("button", name="Step", exact=True).click()
    assert "18 of 90" in frame.locator(".when").inner_text()
    inner = page.frames[1]
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert inner.evaluate(wider) <= 0


def test_an_export_opens_where_its_command_says(page: Any, tmp_path: Path) -> None:
    file, target = tmp_path / "k.cu", tmp_path / "k.html"
    lesson = find_lesson("branch")
    assert lesson is not None
    file.write_text(lesson.request.source, "utf-8")
    command = ["view", str(file), "--block", "32", "--arg", "out:i32[32]=zeros"]
    options = ["--device", "gtx-1080", "--step", str(ODD_STEP), "--export", str(target)]
    assert CliRunner().invoke(app, [*command, *options]).exit_code == 0
    opened(page, target.as_uri())
    assert "17 of 90" in page.locator(".when").inner_text()
    assert hex(lanes_in(page, "active")) == hex(0xFFFFFFFF & ~EVEN)


def test_a_notebook_opens_at_a_step(page: Any, tmp_path: Path) -> None:
    lesson = find_lesson("branch")
    assert lesson is not None
    trace = record(lesson.request)
    shown = wl.show(trace, step=ODD_STEP, view="numbers")
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>Cells</title>{shown._repr_html_()}", "utf-8")
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".tabs").wait_for()
    assert "17 of 90" in frame.locator(".when").inner_text()
    assert frame.locator("[role=tab][aria-selected=true]").inner_text() == "Numbers"
    assert frame.get_by_role("button", name="Copy link").count() == 0
    with pytest.raises(wl.WarploomError, match="there is no view 'number'"):
        wl.show(trace, view="number")


def test_a_lesson_is_printed_as_a_sheet(page: Any, folder: Path) -> None:
    """With the question, every caption and the task, and without what is for the screen."""
    lesson = find_lesson("branch")
    assert lesson is not None
    assert lesson.task is not None
    opened(page, (folder / "lesson.html").as_uri())
    page.keyboard.press("n")
    assert not page.locator(".printed").is_visible()
    page.emulate_media(media="print")
    sheet = page.locator(".printed").inner_text()
    for text in (lesson.question.ask, *(said.text for said in lesson.captions), lesson.task.ask):
        assert text in sheet
    assert lesson.question.because not in sheet
    assert page.locator(".lanes").is_visible()
    for hidden in (".transport", ".tabs", "aside.lesson", ".top .icon >> nth=0"):
        assert not page.locator(hidden).is_visible()
    assert page.pdf().startswith(b"%PDF")
