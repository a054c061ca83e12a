"""The explainer of 60 seconds: its numbers, worked out by hand from the kernels, stand in its texts
and beside them on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched
from claims_on_screen import wait_for_claim
from lesson_claims import EVEN, FULL, ODD, Claim

from warploom.observe.trace import Trace
from warploom.ui.explainer import explainer_show, recorded_explainer
from warploom.ui.page import BUNDLE, export
from warploom.ui.schema import Explainer

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

STOPS = (
    # 4 blocks of 256 threads are 1,024 threads, or 32 warps of 32.
    ("Warps", "1,024 threads form 32 warps", "32 warps; 32 of 32", Claim(lanes={"active": FULL})),
    # The last warp has threads 992 to 1023; n is 1000.
    ("Masks", "8 lanes", "8 of 32 lanes", Claim(lanes={"active": 0xFF})),
    (
        *("Divergence", "even and odd", "16 lanes jump, 16 continue"),
        Claim(lanes={"jumps": EVEN, "goes_on": ODD}),
    ),
    (
        *("Divergence", "half of its lanes", "16 of 32 lanes"),
        Claim(lanes={"active": ODD, "other_path": EVEN}),
    ),
    ("Reconvergence", "meet", "32 of 32 lanes", Claim(lanes={"active": FULL})),
    # 32 lanes of 4 bytes side by side are 128 bytes, or 4 sectors.
    (
        *("Coalescing", "4 sectors", "4 sectors: 128 bytes requested, 128 moved"),
        Claim(view=("4 transactions", "128 bytes requested, 128 moved")),
    ),
    # 32 bytes apart, each lane has a sector of its own: 32 of 32 bytes.
    (
        *("Coalescing", "eight words", "32 sectors: 128 bytes requested, 1,024 moved"),
        Claim(view=("32 transactions", "128 bytes requested, 1024 moved")),
    ),
    ("Latency", "a single warp", "1 warp:", Claim(view=("slot 0", "long scoreboard"))),
    ("Latency", "sixteen warps", "16 warps:", Claim(view=("slot 0", "long scoreboard"))),
)


@pytest.fixture(scope="module")
def recorded() -> tuple[Explainer, list[bytes]]:
    return recorded_explainer()


@pytest.fixture(scope="module")
def url(recorded: tuple[Explainer, list[bytes]], tmp_path_factory: pytest.TempPathFactory) -> str:
    explained, traces = recorded
    file = tmp_path_factory.mktemp("pages") / "simt.html"
    file.write_text(export(explainer_show(explained, watch=""), traces), "utf-8")
    assert file.stat().st_size < 1_000_000
    return file.as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def test_each_claim_stands_beside_its_number(
    chromium: Any, url: str, recorded: tuple[Explainer, list[bytes]]
) -> None:
    explained, _ = recorded
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_selector(".explainer")
    assert len(explained.stops) == len(STOPS)
    for number, (topic, said, counted, claim) in enumerate(STOPS):
        if number:
            page.keyboard.press("n")
        assert page.locator(".topics [aria-current]").inner_text() == topic
        assert said in page.locator(".caption p").first.inner_text()
        assert page.locator(".counted").inner_text().startswith(counted)
        wait_for_claim(page, claim, said)
        if topic == "Latency":
            cycles = page.locator(".counted").inner_text().split(": ")[1].split()[0]
            assert f"{cycles} cycles" in page.locator("#below").inner_text()
    page.close()


def test_a_load_takes_hundreds_of_cycles_and_sixteen_warps_hardly_longer(
    recorded: tuple[Explainer, list[bytes]],
) -> None:
    explained, traces = recorded
    alone, together = (
        Trace.from_bytes(traces[explained.stops[n].trace]).modelled for n in (-2, -1)
    )
    assert alone is not None
    assert together is not None
    # Eight loads, each of which needs the one before.
    assert alone.cycles / 8 > 100
    assert together.cycles < 1.1 * alone.cycles


def test_it_is_read_and_played_in_60_seconds(
    chromium: Any, url: str, recorded: tuple[Explainer, list[bytes]]
) -> None:
    page = chromium.new_page()
    page.goto(url)
    page.wait_for_selector(".explainer")
    shots = page.evaluate("warploomFilm.begin(true)")
    page.close()
    assert sum(shot["seconds"] for shot in shots) <= 60
    explained, _ = recorded
    stops = [shot["seconds"] for shot in shots if not shot["moves"]]
    for stop, seconds in zip(explained.stops, stops, strict=True):
        assert seconds >= 60 * len(stop.text.split()) / 160


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_for_everybody(chromium: Any, url: str, scheme: Any, width: int) -> None:
    """Nothing that axe finds, and nothing wider than the screen, at every stop."""
    page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 844})
    page.goto(url)
    page.wait_for_selector(".explainer")
    for _ in STOPS:
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wider) <= 0
        page.keyboard.press("n")
    page.keyboard.press("w")
    if AXE.exists():
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [(one["id"], one["nodes"][0]["target"]) for one in found] == []
    page.close()


def test_the_explainer_is_not_a_lesson_to_be_left(chromium: Any, url: str) -> None:
    """Playing it needs one key, and its end stops."""
    page = chromium.new_page()
    page.clock.install()
    page.goto(url)
    page.wait_for_selector(".explainer")
    page.keyboard.press("Space")
    page.clock.run_for(65_000)
    assert page.locator(".topics [aria-current]").inner_text() == "Latency"
    assert page.get_by_role("button", name="Watch").count() == 1
    page.close()
