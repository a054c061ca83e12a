"""Holds the claims of a caption against what the page shows."""

from __future__ import annotations

from typing import Any

from browser import lanes_in
from lesson_claims import Claim

DRAWINGS = 10
"""How often the page is looked at until it has been drawn."""


def wait_for_claim(page: Any, claim: Claim, said: str) -> None:
    """Everything that a claim names is on the screen, now or when the page has been drawn."""
    for _ in range(DRAWINGS):
        try:
            return check_claim(page, claim, said)
        except AssertionError:
            page.wait_for_timeout(50)
    return check_claim(page, claim, said)


def check_claim(page: Any, claim: Claim, said: str) -> None:
    """Everything that a claim names is on the screen."""
    for side, lanes in ((0, claim.lanes), (1, claim.right_lanes)):
        for state, mask in lanes.items():
            assert hex(lanes_in(page, state, side)) == hex(mask), (said, state, side)
    for side, code, values in (
        (0, claim.code, claim.values),
        (1, claim.right_code, claim.right_values),
    ):
        warp = page.locator("section.warp").nth(side)
        if code:
            assert warp.locator(".now code").inner_text().startswith(code), (said, code, side)
        for lane, value in values.items():
            shown = warp.locator(".lane").nth(lane).locator("b").inner_text()
            assert shown == value, (said, lane, side)
    if claim.active is not None:
        assert lanes_in(page, "active").bit_count() == claim.active, said
    views = page.locator(".side") if page.locator(".compare").count() else page.locator("#below")
    for side, texts in ((0, claim.view), (1, claim.right)):
        if texts:
            shown = " ".join(views.nth(side).inner_text().replace("\t", " ").split())
            for text in texts:
                assert " ".join(text.split()) in shown, (said, text, shown)
    everything = " ".join(page.locator("#app").inner_text().split())
    for text in claim.anywhere:
        assert text in everything, (said, text)
    if claim.tree:
        assert claim.tree in page.locator(".tree").first.inner_text()
    for side, cells in ((0, claim.cells), (1, claim.right_cells)):
        for (array, element), text in cells.items():
            view = page.locator(".data").nth(side)
            chosen = view.locator(".arrays button", has_text=array)
            if chosen.first.get_attribute("aria-pressed") != "true":
                chosen.first.click()
            view.locator(".cell input").fill(str(element))
            page.evaluate("document.activeElement.blur()")
            assert text in view.locator(".cell output").inner_text() + " ", said
