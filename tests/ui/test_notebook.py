"""The view in a notebook."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

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
    assert html.unescape(found[1]) == shown.page
    shown.save(tmp_path / "k.html")
    assert (tmp_path / "k.html").read_text() == shown.page


def test_a_widget_holds_the_page(trace: wl.Trace) -> None:
    pytest.importorskip("anywidget")
    shown = wl.show(trace, trace, labels=("one", "other"), height=500)
    widget = shown.widget()
    assert (widget.page, widget.height) == (shown.page, 500)
    assert shown.page.count('id="warploom-trace') == 2


def test_three_traces_are_too_many(trace: wl.Trace) -> None:
    with pytest.raises(wl.WarploomError, match="not 3"):
        wl.show(trace, trace, trace)
