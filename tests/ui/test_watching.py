"""Lessons watched as films, in a real browser: how long each caption stays, what it stands beside,
and that the viewer can stop, answer, skip and go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in
from claims_on_screen import wait_for_claim
from lesson_claims import CLAIMS

from warploom.ui.lessons import ORDER, find_lesson, labels_of, requests_of
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import Lesson
from warploom.ui.shows import exported_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

WORDS_A_MINUTE = 160
"""The slower end of the rates that Ofcom and the BBC ask for in subtitles."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that fails its test where an error is thrown in it."""
    with page_in(chromium) as made:
        yield made


@cache
def lesson_named(name: str) -> Lesson:
    lesson = find_lesson(name)
    assert lesson is not None
    return lesson


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("films")


BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def open_stopped(page: Any, folder: Path, name: str, watch: str = "") -> Lesson:
    """Open a lesson's exported page in a browser whose clock stands still."""
    page.clock.install(time=BEGIN)
    lesson = open_film(page, folder, name, watch)
    page.clock.pause_at(BEGIN + timedelta(minutes=1))
    return lesson


def open_film(page: Any, folder: Path, name: str, watch: str = "") -> Lesson:
    """Open a lesson's exported page."""
    lesson = lesson_named(name)
    file = folder / f"{name}{watch}.html"
    if not file.exists():
        traces = [record(request).to_bytes() for request in requests_of(lesson)]
        show = exported_show(lesson.title, labels_of(lesson), lesson=lesson, watch=watch)
        file.write_text(export(show, traces), "utf-8")
        assert file.stat().st_size < 1_000_000
    page.goto(file.as_uri())
    page.wait_for_selector(".tabs")
    return lesson


def seconds_to_read(text: str) -> float:
    """The time that the words of a text take."""
    return 60 * sum(any(c.isalnum() for c in word) for word in text.split()) / WORDS_A_MINUTE


IN_SIGHT = """async (part) => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { top } = part.getBoundingClientRect();
  const view = part.closest(".single, .compare").getBoundingClientRect();
  return top >= view.top - 1 && top < view.bottom - 30;
}"""


@pytest.mark.parametrize("name", ORDER)
def test_each_caption_of_a_film_stands_beside_what_it_claims(
    page: Any, folder: Path, name: str
) -> None:
    lesson = open_film(page, folder, name)
    shots = page.evaluate("warploomFilm.begin(false)")
    stops = [(n, shot) for n, shot in enumerate(shots) if not shot["moves"]]
    assert [shot["number"] for _, shot in stops] == [-1, *range(-1, len(lesson.captions) + 1)]
    for (number, shot), said, claim in zip(stops[2:], lesson.captions, CLAIMS[name], strict=False):
        page.evaluate(f"warploomFilm.show({number})")
        assert page.locator(".caption p").inner_text() == said.text.replace("`", "")
        wait_for_claim(page, claim, said.text)
        if said.part:
            for part in page.locator(f"[data-part={said.part}]").all():
                assert part.evaluate(IN_SIGHT), said.text
        if said.array:
            shown = page.locator(".arrays button[aria-pressed=true]").all_inner_texts()
            assert set(shown) == {said.array}
        assert shot["seconds"] >= seconds_to_read(said.text)
    moving = [shot["seconds"] for shot in shots if shot["moves"]]
    assert len({round(seconds, 6) for seconds in moving}) <= 1, "steps play in even time"


@pytest.mark.parametrize("name", ORDER)
def test_a_cut_takes_at_most_60_seconds(page: Any, folder: Path, name: str) -> None:
    lesson = open_film(page, folder, name)
    shots = page.evaluate("warploomFilm.begin(true)")
    assert sum(shot["seconds"] for shot in shots) <= 60
    shown = [shot["number"] for shot in shots if not shot["moves"]]
    assert shown[0] == 0
    assert len(lesson.captions) - 1 in shown
    every = [shot["seconds"] for shot in shots if not shot["moves"]]
    texts = [*(said.text for said in lesson.captions), lesson.recap]
    for number, seconds in zip(shown, every, strict=True):
        assert seconds >= seconds_to_read(texts[number])


def caption(page: Any) -> str:
    """Return the text of the caption that is shown, empty for none."""
    return " ".join(page.locator(".caption p").all_inner_texts())


def test_playing_waits_for_an_answer_then_follows_the_captions(page: Any, folder: Path) -> None:
    lesson = open_stopped(page, folder, "branch")
    page.get_by_role("button", name="Watch").click()
    page.clock.run_for(120_000)
    assert page.locator(".question").count() == 1
    assert "Choose an answer" in page.locator(".watch [role=status]").inner_text()
    page.locator(".question fieldset button").nth(0).click()
    page.clock.run_for(1000)
    assert page.locator(".because").count() == 1
    page.clock.run_for(int(1000 * seconds_to_read(lesson.question.because)) - 1000)
    assert page.locator(".because").count() == 1, "the answer stays until it can have been read"
    for said, claim in zip(lesson.captions, CLAIMS["branch"], strict=True):
        for _ in range(1000):
            if caption(page) == said.text:
                break
            page.clock.run_for(100)
        assert caption(page) == said.text
        wait_for_claim(page, claim, said.text)
        page.clock.run_for(int(1000 * seconds_to_read(said.text)) - 300)
        assert caption(page) == said.text
        wait_for_claim(page, claim, said.text)
    page.clock.run_for(40_000)
    assert page.locator(".recap").inner_text() == lesson.recap.replace("`", "")
    assert page.get_by_role("button", name="Pause").count() == 0


def test_the_keyboard_skips_stops_and_goes_on(page: Any, folder: Path) -> None:
    lesson = open_stopped(page, folder, "branch")
    page.keyboard.press("Space")
    page.clock.run_for(60_000)
    page.keyboard.press("w")
    assert caption(page) == lesson.captions[0].text
    page.keyboard.press("n")
    page.clock.run_for(500)
    assert caption(page) == lesson.captions[1].text
    assert page.get_by_role("button", name="Pause").count() > 0
    # A viewer who steps takes the page into his own hands.
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("button", name="Pause").count() == 0
    page.clock.run_for(60_000)
    assert caption(page) == lesson.captions[1].text
    page.keyboard.press("Space")
    page.clock.run_for(int(1000 * seconds_to_read(lesson.captions[1].text)))
    assert caption(page) == lesson.captions[1].text
    slider = page.get_by_role("slider", name="Time of the film")
    slider.press("Home")
    assert page.locator(".question").count() == 1
    assert slider.get_attribute("aria-valuetext").startswith("0:00 of ")


def test_steps_between_captions_play_unless_less_motion_is_asked_for(
    chromium: Any, folder: Path
) -> None:
    seen: dict[str, set[str]] = {}
    for motion in ("no-preference", "reduce"):
        page = chromium.new_page(reduced_motion=motion)
        open_stopped(page, folder, "branch", "cut")
        seen[motion] = set()
        for _ in range(170):
            page.clock.run_for(300)
            seen[motion].add(page.locator(".when b").first.inner_text())
        page.close()
    # The captions are at steps 8, 12, 53, 86 and 90 of the warp.
    assert seen["reduce"] <= {"1", "8", "12", "53", "86", "90"}
    assert len(seen["no-preference"]) > len(seen["reduce"]) + 5


SPEECH = """
window.said = [];
window.speechSynthesis.speak = (one) => { window.said.push(one.text); window.talking = true; };
window.speechSynthesis.cancel = () => { window.talking = false; };
Object.defineProperty(window.speechSynthesis, "speaking", { get: () => window.talking });
"""


def test_captions_are_spoken_only_when_asked_and_wait_for_the_voice(
    page: Any, folder: Path
) -> None:
    page.add_init_script(SPEECH)
    lesson = open_stopped(page, folder, "branch", "cut")
    page.clock.run_for(3000)
    assert page.evaluate("said") == []
    page.keyboard.press("v")
    page.clock.run_for(1000)
    assert page.evaluate("said") == [lesson.captions[0].text]
    page.clock.run_for(int(1000 * seconds_to_read(lesson.captions[0].text)))
    assert caption(page) == lesson.captions[0].text, "the voice has not ended"
    page.evaluate("window.talking = false")
    page.clock.run_for(2000)
    assert page.evaluate("said") == [said.text for said in lesson.captions[:2]]
    page.keyboard.press("v")
    page.keyboard.press("w")
    page.evaluate("localStorage.clear()")


def test_on_a_small_screen_a_caption_about_the_warp_shows_the_warp(
    chromium: Any, folder: Path
) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    lesson = lesson_named("branch")
    open_film(page, folder, "branch")
    for said in lesson.captions[:4]:
        page.keyboard.press("n")
        assert caption(page) == said.text
        assert page.locator(".lane").first.is_visible()
    page.keyboard.press("n")
    assert page.locator("#below").is_visible()
    page.close()


def test_a_word_of_the_glossary_explains_itself_once_in_a_lesson(page: Any, folder: Path) -> None:
    """The lesson's first caption with "lanes" explains the word; later ones do not."""
    lesson = open_film(page, folder, "branch")
    page.keyboard.press("n")
    assert "lanes" in lesson.captions[0].text
    words = page.locator(".caption dfn")
    lanes = words.filter(has_text="lanes")
    assert lanes.count() == 1
    lanes.focus()
    tip = page.locator("[role=tooltip]")
    assert "a thread's position in its warp" in tip.inner_text()
    page.keyboard.press("n")
    assert "lanes" in lesson.captions[1].text
    assert words.filter(has_text="lanes").count() == 0
