"""A color has one meaning in all views: those of the machine's states differ visibly from each
other in both themes, and what is no state is grey."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web" / "src"
STYLE = (WEB / "style.css").read_text("utf-8")
STATES = ("active", "arithmetic", "memory", "shared", "control", "wait", "bad")
NEUTRAL = ("ground", "card", "ink", "soft", "faint", "line", "accent")

VISIBLE = 20.0
"""CIE 1976's color difference of small areas that are told apart at a glance; 2.3 is just
noticeable (Mahy et al., 1994)."""

GREY = 16
"""The greatest difference of two components of a color that is seen as grey."""


def palette(theme: str) -> dict[str, tuple[int, int, int]]:
    """The colors of a theme by their variables; dark ones replace some of the light theme."""
    light, dark = re.findall(r"^:root(?:\[data-theme=\"dark\"\])? \{\n(.*?)^\}", STYLE, re.M | re.S)
    found: dict[str, tuple[int, int, int]] = {}
    for block in (light,) if theme == "light" else (light, dark):
        for name, digits in re.findall(r"--([a-z-]+): #([0-9a-f]{6});", block):
            red, green, blue = bytes.fromhex(digits)
            found[name] = (red, green, blue)
    return found


def lab(colour: tuple[int, int, int]) -> tuple[float, float, float]:
    """A color of sRGB in CIE L*a*b* under D65 (IEC 61966-2-1, CIE 15)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (component / 255 for component in colour)
    )
    white = (0.95047, 1.0, 1.08883)
    x, y, z = (
        (t ** (1 / 3) if t > 216 / 24389 else t * 841 / 108 + 4 / 29)
        for t in (
            (0.4124 * red + 0.3576 * green + 0.1805 * blue) / white[0],
            (0.2126 * red + 0.7152 * green + 0.0722 * blue) / white[1],
            (0.0193 * red + 0.1192 * green + 0.9505 * blue) / white[2],
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(a: tuple[int, int, int], b: tuple[int, int, int]) -> float:
    return sum((p - q) ** 2 for p, q in zip(lab(a), lab(b), strict=True)) ** 0.5


def test_white_and_black_differ_by_the_scale() -> None:
    assert difference((255, 255, 255), (0, 0, 0)) == pytest.approx(100, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_states_differ(theme: str) -> None:
    colours = palette(theme)
    for a, b in itertools.combinations(STATES, 2):
        assert difference(colours[a], colours[b]) >= VISIBLE, (a, b)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_no_state_is_grey(theme: str) -> None:
    colours = palette(theme)
    for name in NEUTRAL:
        assert max(colours[name]) - min(colours[name]) <= GREY, name


def test_no_view_has_colours_of_its_own() -> None:
    own = re.compile(r"#[0-9a-fA-F]{6}\b|\b(?:rgba?|hsl)\(")
    for file in WEB.rglob("*.ts*"):
        assert not own.search(file.read_text("utf-8")), file.name
    rules = re.sub(r"^:root.*?^\}", "", STYLE, flags=re.M | re.S)
    assert own.findall(rules) == []
