"""The local server: whom it refuses, what it gives, and how it ends runs that do not end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx
import msgspec
import pytest

from warploom.host.programs.confinement import Confinement
from warploom.observe.trace import Trace
from warploom.ui import runner, server
from warploom.ui.lessons import find_lesson
from warploom.ui.page import export, live_page
from warploom.ui.progress import note_progress, read_progress
from warploom.ui.runner import Limits, run
from warploom.ui.schema import (
    Assignment,
    CheckRequest,
    LaunchRequest,
    ProgressNote,
    Refusal,
    Show,
    Verdict,
)
from warploom.ui.server import Viewer
from warploom.ui.shows import live_show

PORT = 4711
HERE = f"http://127.0.0.1:{PORT}"
KERNEL = "__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }"


def request(source: str = KERNEL, **more: object) -> LaunchRequest:
    given = {"name": "k.cu", "source": source, "args": ("i32[32]=zeros",), "device": "v100"}
    return LaunchRequest(**{**given, **more})  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def viewer() -> Viewer:
    return Viewer(live_show("k.cu", 1, request=request()), [b"trace"], token="right")


def ask(viewer: Viewer, path: str, method: str = "GET", **given: object) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=viewer.app(PORT))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.request(method, path, **given)  # pyright: ignore[reportArgumentType]

    return asyncio.run(asked())


def test_a_token_is_needed_for_everything(viewer: Viewer) -> None:
    for path in ("/", "/trace/0", "/lesson/saxpy", "/run"):
        assert ask(viewer, path).status_code == 403
        assert ask(viewer, f"{path}?token=wrong").status_code == 403
        wrong = {"X-Warploom-Token": "wrong"}
        assert ask(viewer, path, headers=wrong).status_code == 403
    assert ask(viewer, "/?token=right").status_code == 200
    assert ask(viewer, "/trace/0", headers={"X-Warploom-Token": "right"}).content == b"trace"
    assert ask(viewer, "/trace/1?token=right").status_code == 404


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:80"])
def test_pages_of_other_origins_are_refused(viewer: Viewer, origin: str) -> None:
    answer = ask(viewer, "/trace/0?token=right", headers={"Origin": origin})
    assert answer.status_code == 403
    assert ask(viewer, "/trace/0?token=right", headers={"Origin": HERE}).status_code == 200


def test_a_name_that_was_made_to_point_here_is_refused(viewer: Viewer) -> None:
    answer = ask(viewer, "/?token=right", headers={"Host": f"evil.example:{PORT}"})
    assert answer.status_code == 403


def test_what_is_no_request_is_refused_in_words(viewer: Viewer) -> None:
    answer = ask(viewer, "/run?token=right", "POST", content=b'{"name": 1}')
    assert answer.status_code == 422
    assert "cannot be read" in answer.json()["message"]
    huge = b'"' + b"x" * (5 << 20) + b'"'
    answer = ask(viewer, "/run?token=right", "POST", content=huge)
    assert "too long" in answer.json()["message"]


def outcome(asked: LaunchRequest, limits: Limits | None = None) -> bytes | Refusal:
    return asyncio.run(run(asked, limits or Limits()))


def test_a_run_gives_its_trace() -> None:
    given = outcome(request())
    assert isinstance(given, bytes)
    trace = Trace.from_bytes(given)
    assert trace.launch.name == "k"
    assert trace.sources[0].text == KERNEL


def test_what_the_compiler_says_stands_at_its_line() -> None:
    given = outcome(request("__global__ void k(int *out)\n{\n    out[0] = nothing;\n}\n"))
    assert isinstance(given, Refusal)
    assert given.kind == "compile"
    assert [error.line for error in given.errors] == [3]
    assert "nothing" in given.errors[0].message


def test_a_launch_that_makes_no_sense_is_refused() -> None:
    given = outcome(request(block="2048"))
    assert isinstance(given, Refusal)
    assert given.kind == "launch"


def test_a_kernel_that_never_ends_is_stopped() -> None:
    endless = "__global__ void k(int *out) { while (true) atomicAdd(out, 1); }"
    given = outcome(request(endless), Limits(seconds=3))
    assert isinstance(given, Refusal)
    assert given.kind == "time"
    assert "stopped after 3 seconds" in given.message


def test_a_trace_that_is_too_long_is_refused() -> None:
    given = outcome(request(), Limits(output=100))
    assert isinstance(given, Refusal)
    assert given.kind == "output"
    assert "Record fewer" in given.message


def test_a_run_has_so_much_memory_and_no_more() -> None:
    given = outcome(request(args=("f64[4000000000]=zeros",)), Limits(memory=1 << 30))
    assert isinstance(given, Refusal)
    assert given.kind == "memory"


def test_the_text_of_a_kernel_is_never_markup() -> None:
    evil = "// </script><script>alert(1)</script><img src=x onerror=alert(2)>\n" + KERNEL
    page = live_page(live_show(evil, 1, request=request(evil)))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    exported = export(Show(title=evil, live=False, traces=1), [b"</script><script>alert(1)"])
    assert "<script>alert" not in exported


def test_requests_survive_their_journey() -> None:
    asked = request(options=("-DN=4",), seed=7)
    data = msgspec.json.encode(asked)
    assert msgspec.json.decode(data, type=LaunchRequest) == asked


def test_a_run_can_be_timed() -> None:
    trace = outcome(request(timed=True), Limits(seconds=300))
    assert isinstance(trace, bytes)
    output = Trace.from_bytes(trace).modelled
    assert output is not None
    assert (output.blocks, output.sms) == (1, 1)
    refused = outcome(request(timed=True, sm=1), Limits(seconds=300))
    assert isinstance(refused, Refusal)
    assert "SM 1 had no blocks: only SM 0 had blocks" in refused.message


def test_the_page_stands_in_no_frame_and_loads_nothing_from_elsewhere(viewer: Viewer) -> None:
    headers = ask(viewer, "/?token=right").headers
    policy = dict(part.split(maxsplit=1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert headers["x-frame-options"] == "DENY"


def test_more_runs_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three requests at once two run; when they have ended another can run."""

    async def slow(asked: LaunchRequest, limits: Limits, confinement: Confinement) -> bytes:
        await asyncio.sleep(0.2)
        return b"trace"

    monkeypatch.setattr(server, "run", slow)
    viewer = Viewer(live_show("k.cu", 1, request=request()), [], Limits(runs=2), token="right")
    body = msgspec.json.encode(request())

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=viewer.app(PORT))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            posts = [client.post("/run?token=right", content=body) for _ in range(3)]
            together = await asyncio.gather(*posts)
            return [*together, await client.post("/run?token=right", content=body)]

    *together, last = asyncio.run(asked())
    assert sorted(answer.status_code for answer in together) == [200, 200, 429]
    [refused] = [answer for answer in together if answer.status_code == 429]
    assert (refused.json()["kind"], last.status_code) == ("busy", 200)


def test_device_memory_is_within_the_limit() -> None:
    """2.5 GB of the device for a run that may have 512 MiB."""
    given = outcome(request(args=("u8[2500000000]=zeros",)), Limits(memory=512 << 20))
    assert isinstance(given, Refusal)
    assert given.kind == "memory"
    assert "--memory" in given.message


def test_a_run_that_fills_more_memory_than_allowed_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "OWN_RESIDENT", 0)
    given = outcome(request(), Limits(memory=1 << 20))
    assert isinstance(given, Refusal)
    assert given.kind == "memory"


def test_physical_memory_is_watched() -> None:
    async def larger_than(most: int) -> bool:
        watching = asyncio.create_task(runner.too_large(os.getpid(), most))
        done, _ = await asyncio.wait((watching,), timeout=0.1)
        watching.cancel()
        return bool(done)

    assert asyncio.run(larger_than(1 << 20))
    assert not asyncio.run(larger_than(1 << 50))


def graded(source: str, name: str = "structures") -> Verdict:
    """Returns the verdict of a process of its own on a kernel."""
    lesson = find_lesson(name)
    assert lesson is not None
    answer = asyncio.run(run(Assignment(lesson, source), Limits()))
    assert isinstance(answer, bytes)
    return msgspec.json.decode(answer, type=Verdict)


def test_a_task_is_graded_in_a_process_of_its_own() -> None:
    lesson = find_lesson("structures")
    assert lesson is not None
    assert lesson.task is not None
    assert graded(lesson.task.solution).passed
    begun = graded(lesson.task.source)
    assert [one.passed for one in begun.checks] == [True, False]
    # Four requests of 16 sectors each, against four that touch 4.
    assert begun.checks[1].measured == "64 global load sectors; required: at most 16"


def test_a_kernel_that_does_not_end_is_not_passed() -> None:
    verdict = graded("__global__ void k(const float *p, float *out) { while (true) out[0] += 1; }")
    assert not verdict.passed
    assert verdict.error


def test_grading_and_progress_want_the_token_and_a_lesson(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path))
    body = msgspec.json.encode(CheckRequest("nothing", ""))
    assert ask(viewer, "/check", "POST", content=body).status_code == 403
    assert ask(viewer, "/check?token=right", "POST", content=body).status_code == 404
    assert ask(viewer, "/check?token=right", "POST", content=b"[]").status_code == 422
    read = msgspec.json.encode(ProgressNote("banks"))
    assert ask(viewer, "/progress", "POST", content=read).status_code == 403
    assert ask(viewer, "/progress?token=right", "POST", content=read).status_code == 204
    assert read_progress() == {"banks": "read"}
    other = msgspec.json.encode(ProgressNote("../../etc"))
    assert ask(viewer, "/progress?token=right", "POST", content=other).status_code == 404


def test_damaged_progress_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path))
    for content in ("", "[]", "{", '{"banks": 3}', "[" * 100_000, '{"banks":' * 99 + "}" * 99):
        (tmp_path / "progress.json").write_text(content, "utf-8")
        assert read_progress() == {}
    note_progress("banks", "done")
    note_progress("banks", "read")
    assert read_progress() == {"banks": "done"}
