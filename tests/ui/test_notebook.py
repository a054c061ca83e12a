"""The view in a notebook."""

from __future__ import annotations

import base64
import gzip
import html
import re
from pathlib import Path

import pytest
from browser import BROWSER, NO_BROWSER, launched

import warploom as wl
from warploom.ui.page import BUNDLE

pytestmark = pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")


@pytest.fixture(scope="module")
def trace() -> wl.Trace:
    return wl.Device("v100").compile("__global__ void k() {}")["k"][1, 32].trace()


def test_a_notebook_shows_the_page_in_a_frame(trace: wl.Trace, tmp_path: Path) -> None:
    shown = wl.show(trace)
    text = shown._repr_html_()
    found = re.fullmatch(r'<iframe [^<>]*sandbox="allow-scripts"[^<>]*srcdoc="([^"<>]*)"></iframe>',
                         text)  # fmt: skip
    assert found
    packed = re.search(r'atob\("([^"]*)"\)', html.unescape(found[1]))
    assert packed
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == shown.page
    assert len(text) < 400_000
    shown.save(tmp_path / "k.html")
    assert (tmp_path / "k.html").read_text("utf-8") == shown.page


def test_the_frame_unpacks_the_page(trace: wl.Trace, tmp_path: Path) -> None:
    """As a browser shows the output of a cell."""
    if not BROWSER:
        pytest.skip(NO_BROWSER)
    file = tmp_path / "cell.html"
    file.write_text(wl.show(trace)._repr_html_(), "utf-8")
    with launched() as browser:
        page = browser.new_page()
        page.goto(file.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator(".lanes").wait_for(timeout=10_000)
        assert frame.locator("h1").inner_text().startswith("k⟨")


def test_a_widget_holds_the_page(trace: wl.Trace) -> None:
    pytest.importorskip("anywidget")
    shown = wl.show(trace, trace, labels=("one", "other"), height=500)
    widget = shown.widget()
    assert (widget.page, widget.height) == (shown.page, 500)
    assert shown.page.count('id="warploom-trace') == 2


def test_three_traces_are_too_many(trace: wl.Trace) -> None:
    with pytest.raises(wl.WarploomError, match="not 3"):
        wl.show(trace, trace, trace)
