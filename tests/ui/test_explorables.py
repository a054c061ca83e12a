"""The explorables: what is counted for each value of a control follows from the kernel by hand, and
the page shows it at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.ui.explorables import (
    EXPLORABLES,
    explorable_of,
    explorable_show,
    read_explorable,
)
from warploom.ui.explorables.recorded import recorded_explorable
from warploom.ui.page import BUNDLE, export
from warploom.ui.schema import Explorable, Explored

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = pytest.mark.xdist_group("browser")
in_a_browser = pytest.mark.skipif(
    (not BROWSER or not BUNDLE.exists()) and not REQUIRED, reason=NO_BROWSER
)


@cache
def launches(name: str) -> list[Explored]:
    return recorded_explorable(name)


@cache
def explorable(name: str) -> Explorable:
    return explorable_of(name, launches(name))


def values(name: str, control: int = 0) -> list[int]:
    return [int(value) for value in read_explorable(name).controls[control].values]


def test_a_stride_costs_the_sectors_that_its_addresses_touch() -> None:
    touched = [len({4 * stride * lane // 32 for lane in range(32)}) for stride in values("stride")]
    assert explorable("stride").curve == tuple(map(float, touched))


def test_a_pitch_costs_its_common_divisor_with_the_banks() -> None:
    assert explorable("padding").curve == tuple(float(gcd(p, 32)) for p in values("padding"))


def test_a_block_costs_the_sectors_of_its_first_warp() -> None:
    expected: list[float] = []
    for shape in read_explorable("block-shape").controls[0].values:
        x, _ = map(int, shape.split(","))
        places = [(thread % x, thread // x) for thread in range(32)]
        expected.append(len({4 * (64 * row + column) // 32 for column, row in places}))
    assert explorable("block-shape").curve == tuple(expected)


def test_one_lane_on_the_other_side_costs_as_much_as_sixteen() -> None:
    """Two devices for each limit; 0 and 32 lanes agree."""
    issued = explorable("taken").curve
    mixed, alone = set(issued[2:-2]), {*issued[:2], *issued[-2:]}
    assert len(mixed) == 1
    assert max(alone) < 0.65 * min(mixed)


def test_warps_share_the_time_of_their_waits() -> None:
    each = explorable("warps").curve
    assert all(after < 0.6 * before for before, after in pairwise(each))


def test_the_order_of_warps_hardly_matters_where_memory_bounds() -> None:
    for warps in range(2):
        cycles = explorable("scheduler").curve[warps::2]
        assert max(cycles) < 1.01 * min(cycles)


def test_each_stage_removes_waiting_the_first_ones_most() -> None:
    cycles = explorable("stages").curve
    assert list(cycles) == sorted(cycles, reverse=True)
    assert cycles[0] - cycles[1] > cycles[1] - cycles[2]


def test_lanes_that_share_a_counter_take_turns() -> None:
    assert explorable("atomics").curve == tuple(32.0 / number for number in values("atomics"))


def test_there_are_eight_and_the_list_names_them() -> None:
    printed = CliRunner().invoke(app, ["learn"]).stdout
    assert len(EXPLORABLES) >= 8
    assert all(f"  {name} " in printed for name in EXPLORABLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


MOST_BYTES = 1_000_000


def opened(page: Any, folder: Path, name: str) -> None:
    """Open an explorable's exported page, when all of its launches have been read."""
    file = folder / f"{name}.html"
    if not file.exists():
        data = [launch.trace for launch in launches(name)]
        file.write_text(export(explorable_show(explorable(name)), data), "utf-8")
        assert file.stat().st_size < MOST_BYTES
    page.goto(file.as_uri())
    page.wait_for_selector(".explorable")
    page.wait_for_load_state("networkidle")


@in_a_browser
@pytest.mark.parametrize("name", EXPLORABLES)
def test_each_value_has_a_picture_of_its_own(chromium: Any, folder: Path, name: str) -> None:
    with page_in(chromium) as page:
        opened(page, folder, name)
        move_the_controls(page, explorable(name))


def move_the_controls(page: Any, found: Explorable) -> None:
    """Moves the controls to a launch in which something else was counted, and asserts that the page
    says so, and draws another picture."""
    for control in page.locator(".control input").all():
        control.press("Home")
    for buttons in page.locator(".control .choices").all():
        buttons.locator("button").first.click()
    counted = "document.querySelector('.counted').textContent"
    page.wait_for_function(f"{counted} === {found.figures[0]!r}")
    drawn = page.locator(".single").inner_text()
    # The first launch in which something else was counted, by the last control alone or the first.
    other = next(n for n, figure in enumerate(found.figures) if figure != found.figures[0])
    for number, control in reversed(list(enumerate(found.controls))):
        other, value = divmod(other, len(control.values))
        shown = page.locator(".control").nth(number)
        if control.buttons:
            shown.locator("button").nth(value).click()
        else:
            for _ in range(value):
                shown.locator("input").press("ArrowRight")
    page.wait_for_function(f"{counted} !== {found.figures[0]!r}")
    page.wait_for_timeout(100)
    assert page.locator(".single").inner_text() != drawn


@in_a_browser
@pytest.mark.parametrize("name", EXPLORABLES)
def test_it_is_for_everybody(chromium: Any, folder: Path, name: str) -> None:
    """Nothing that axe finds, light and dark, and nothing wider than a phone."""
    for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
        page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 844})
        opened(page, folder, name)
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wider) <= 0
        if AXE.exists():
            page.evaluate(AXE.read_text("utf-8"))
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            assert [(one["id"], one["nodes"][0]["target"]) for one in found] == []
        page.close()


@in_a_browser
def test_in_a_frame_the_slider_stands_beside_the_view(chromium: Any, folder: Path) -> None:
    with page_in(chromium, viewport={"width": 700, "height": 480}) as page:
        opened(page, folder, "stride")
        page.goto(f"{(folder / 'stride.html').as_uri()}?embed=1&pane=memory#values=12&step=9")
        page.get_by_text("stride: 12").wait_for()
        slider, view = (page.locator(one).bounding_box() for one in (".control", "#below"))
        assert slider["x"] + slider["width"] <= view["x"]
        assert view["height"] > 200
        assert not page.locator(".tabs").is_visible()


@in_a_browser
def test_a_printed_page_has_its_text(chromium: Any, folder: Path) -> None:
    with page_in(chromium) as page:
        opened(page, folder, "stride")
        page.emulate_media(media="print")
        assert page.get_by_text("Each of the 32 lanes of a warp reads a float").is_visible()
