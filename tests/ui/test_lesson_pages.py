"""Every lesson in a real browser: each caption's claim is on the screen, the kernel that its task
begins with fails the task, and the solution passes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched
from claims_on_screen import wait_for_claim
from lesson_claims import CLAIMS
from run_here import run_here

from warploom.ui import server
from warploom.ui.lessons import ORDER, find_lesson, requests_of
from warploom.ui.page import BUNDLE
from warploom.ui.progress import read_progress
from warploom.ui.record import record
from warploom.ui.schema import Lesson
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import live_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

PATIENCE, MEASURING = 10_000, 90_000


@pytest.fixture(scope="module")
def static_schedule(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page of a server with all lessons."""
    patch = pytest.MonkeyPatch()
    patch.setattr(server, "run", run_here)
    patch.setenv("WARPLOOM_DATA_DIR", str(tmp_path_factory.mktemp("data")))
    lesson = find_lesson(ORDER[0])
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    viewer = Viewer(live_show("course", 1, request=lesson.request, lesson=lesson), traces)
    urls: list[str] = []
    ready = threading.Event()

    def opened(url: str) -> None:
        urls.append(url)
        ready.set()

    threading.Thread(target=serve, args=(viewer, opened), daemon=True).start()
    assert ready.wait(10)
    with launched() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE)
        page.goto(urls[0])
        page.wait_for_selector(".lanes")
        yield page
    patch.undo()


def test_every_lesson_has_claims_to_be_tested() -> None:
    assert set(CLAIMS) == set(ORDER)
    for name, claims in CLAIMS.items():
        lesson = find_lesson(name)
        assert lesson is not None
        assert len(claims) == len(lesson.captions), name


@pytest.mark.parametrize("name", ORDER)
def test_a_lesson_shows_what_it_says_and_judges_its_task(name: str, static_schedule: Any) -> None:
    lesson = find_lesson(name)
    assert lesson is not None
    open_lesson(static_schedule, lesson)
    answer_question(static_schedule, lesson)
    for caption, claim in zip(lesson.captions, CLAIMS[name], strict=True):
        static_schedule.keyboard.press("n")
        shown = static_schedule.locator(".caption p").inner_text()
        assert shown == caption.text.replace("`", "")
        assert static_schedule.locator("[data-missing=yes]").count() == 0, caption.text
        wait_for_claim(static_schedule, claim, caption.text)
    static_schedule.keyboard.press("n")
    assert static_schedule.locator(".recap").inner_text() == lesson.recap.replace("`", "")
    assert_whole(static_schedule)
    do_task(static_schedule, lesson)
    assert read_progress()[name] == "done"


def open_lesson(page: Any, lesson: Lesson) -> None:
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    with page.expect_response(f"**/lesson/{lesson.id}"):
        page.locator(f"[data-lesson={lesson.id}]").click()
    page.wait_for_selector(".trouble.calm", state="detached")
    page.locator(".lesson h2", has_text=lesson.title).wait_for()
    page.locator(".question").wait_for()


def answer_question(page: Any, lesson: Lesson) -> None:
    """A wrong answer is marked, and the right one with its reason."""
    buttons = page.locator(".question fieldset button")
    wrong = (lesson.question.answer + 1) % len(lesson.question.choices)
    buttons.nth(wrong).click()
    assert page.locator(".question .wrong").count() == 1
    right = lesson.question.choices[lesson.question.answer]
    assert right in page.locator(".question .right").inner_text()
    assert page.locator(".because").inner_text() == lesson.question.because


def do_task(page: Any, lesson: Lesson) -> None:
    """The kernel that the task begins with does not pass; the solution does."""
    assert lesson.task is not None
    design = lesson.task.design
    name = f"Write the {design.part}" if design else "Edit the kernel"
    page.get_by_role("button", name=name).click()
    editor = page.locator(".source .cm-content[contenteditable=true]")
    editor.wait_for()
    assert_whole(page)
    assert "`" not in page.locator("aside.lesson").inner_text()
    assert judged(page) is False
    if design:  # what is typed is indented, what is pasted is not
        set_text(page, lesson.task.solution)
    else:
        editor.fill(lesson.task.solution)
    assert judged(page) is True
    assert page.locator(".task .done").count() == 1
    if design:
        first = page.locator(".ranking tbody tr").first
        assert first.get_attribute("class") == "mine"
        assert first.inner_text().startswith("1. yours")


def set_text(page: Any, text: str) -> None:
    """Replaces the text of the design's editor."""
    page.evaluate(
        """text => {
            const view = document.querySelector(".policy .cm-content").cmTile.view;
            view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
        }""",
        text,
    )


def assert_whole(page: Any) -> None:
    """The lesson's panel is in sight to its end, with the task's buttons."""
    hidden = "panel => panel.scrollHeight - panel.clientHeight"
    assert page.locator("aside.lesson").evaluate(hidden) == 0


LEAST_TYPE = 9
"""Letters of a drawing are no smaller on the screen, in pixels."""


def test_letters_of_compared_drawings_can_be_read(static_schedule: Any) -> None:
    """A comparison at 1280 x 800 draws half as wide as a single run."""
    lesson = find_lesson("lock")
    assert lesson is not None
    open_lesson(static_schedule, lesson)
    static_schedule.keyboard.press("n")
    static_schedule.wait_for_selector(".compare .picture text")
    sizes = static_schedule.locator(".compare .picture text").evaluate_all(
        """texts => texts.filter(text => getComputedStyle(text).display !== "none").map(text =>
          parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
    )
    assert sizes
    assert min(sizes) >= LEAST_TYPE
    values = static_schedule.locator(".compare .lane b")
    assert max(values.evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")) <= 0


def judged(page: Any) -> bool:
    """Presses the button that checks the kernel; returns whether it passed."""
    page.locator(".task").get_by_role("button", name="Check").click()
    page.wait_for_function(
        "() => !document.querySelector('.task')?.textContent.includes('Checking')",
        timeout=MEASURING,
    )
    if page.locator(".trouble[role=alert]").count():
        page.locator(".trouble[role=alert] button").click()
        return False
    return page.locator("[aria-label=Verdict]").get_attribute("data-passed") == "yes"


WRONG = "__global__ void mine(int *lock, int *total) { if (threadIdx.x == 0) *total = 3; }"
ENDLESS = """__global__ void stuck(int *lock, int *total) {
    while (*(volatile int *)lock == 0) {}
    *total = 4;
}"""


def test_a_check_shows_the_run_of_the_kernel_that_it_judged(static_schedule: Any) -> None:
    page, lesson = static_schedule, find_lesson("lock")
    assert lesson is not None
    assert lesson.task is not None
    open_lesson(page, lesson)
    for _ in range(len(lesson.captions) + 1):
        page.keyboard.press("n")
    page.get_by_role("button", name="Edit the kernel").click()
    editor = page.locator(".source .cm-content[contenteditable=true]")
    for source, name in ((WRONG, "mine"), (ENDLESS, "stuck")):
        editor.fill(source)
        assert judged(page) is False
        assert page.locator("header.top h1").inner_text().startswith(name)
        assert editor.inner_text().startswith(source[:30])
    # The launch that ended in a deadlock met no check, and its error is in sight.
    assert page.locator("[aria-label=Verdict] li.ill").count() == len(lesson.task.checks)
    assert "deadlock" in page.locator("[aria-label=Error] summary").inner_text().lower()


def test_a_lesson_of_one_file_opens_and_is_graded(tmp_path: Path) -> None:
    """A teacher's own lesson, from a file."""
    from warploom.ui.grading import grade
    from warploom.ui.lessons import read_lesson

    file = tmp_path / "mine.toml"
    file.write_text(
        """
title = "Mine"
summary = "A lesson of one file."
label = "one warp"
recap = "Done."
captions = []
source = "__global__ void k(int *out) { out[threadIdx.x] = 1; }"
[launch]
args = ["out:i32[32]=zeros"]
[question]
ask = "?"
choices = ["a", "b"]
answer = 0
because = "."
[task]
ask = "Write 2."
solution = "__global__ void k(int *out) { out[threadIdx.x] = 2; }"
[[task.checks]]
label = "out is 2"
results = ["out"]
""",
        "utf-8",
    )
    lesson = read_lesson(file)
    assert not grade(lesson, lesson.request.source).passed
    verdict = grade(lesson, "__global__ void other(int *p) { p[threadIdx.x] = 1 + 1; }")
    assert verdict.passed
    broken = grade(lesson, "__global__ void k(int *out) { out = ; }")
    assert not broken.passed
    assert [one.line for one in broken.errors] == [1]
