"""The local server of the view: gives the page and its traces, and runs what the page asks for.

It listens on the loopback interface alone, on a port that the system chooses. A client must
know the token, which only the URL has; requests from pages of other origins are refused, and so are
those that name another host (a name that was made to point here).
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from warploom.core.errors import WarploomError
from warploom.host.programs.confinement import Confinement
from warploom.ui.guard import HOST, Guard
from warploom.ui.lessons import find_lesson
from warploom.ui.page import Traces, live_page
from warploom.ui.progress import DONE, READ, note_progress
from warploom.ui.runner import NOTHING, Limits, run
from warploom.ui.schema import (
    Assignment,
    CheckRequest,
    ExploreRequest,
    LaunchRequest,
    Lesson,
    ProgressNote,
    Refusal,
    Show,
    Verdict,
)
from warploom.ui.worker_runner import WorkerPair

LARGEST_REQUEST = 4 << 20

GRACE_SECONDS = 1
"""So long a client that does not read its answer can delay the end of the server."""

CLIENT_GONE = 499
"""The status, which no client reads, of a request whose client has left."""


@dataclass
class Viewer:
    """The page and traces that a server shows, and the limits of its runs."""

    show: Show
    traces: Traces
    limits: Limits = field(default_factory=Limits)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _running: int = 0
    _ending: asyncio.Event = field(default_factory=asyncio.Event)
    _workers: WorkerPair | None = None

    def app(self, port: int) -> Starlette:
        """Returns the application, for that port."""
        self._ending = asyncio.Event()
        self._workers = WorkerPair(self.limits)
        routes = [
            Route("/", self._page),
            Route("/trace/{number}", self._trace),
            Route("/lesson/{name}", self._lesson),
            Route("/run", self._run, methods=["POST"]),
            Route("/check", self._check, methods=["POST"]),
            Route("/explore", self._explore, methods=["POST"]),
            Route("/progress", self._progress, methods=["POST"]),
        ]
        guard = Middleware(Guard, token=self.token, port=port, ending=self._ending)
        return Starlette(routes=routes, middleware=[guard])

    def end(self) -> None:
        """Ends the requests in progress, and the runs for them."""
        self._ending.set()

    async def close(self) -> None:
        """Ends the processes that stay between runs."""
        if self._workers is not None:
            await self._workers.end()

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(live_page(self.show))

    async def _trace(self, request: Request) -> Response:
        number = request.path_params["number"]
        if number not in map(str, range(len(self.traces))):
            return Response(status_code=404)
        try:
            # A launch of a program is recorded when it is chosen.
            trace = await asyncio.to_thread(self.traces.__getitem__, int(number))
        except WarploomError as error:
            return _refused(Refusal("launch", str(error)), 422)
        return Response(trace, media_type="application/octet-stream")

    async def _lesson(self, request: Request) -> Response:
        lesson = self._find(request.path_params["name"])
        if lesson is None:
            return Response(status_code=404)
        return Response(msgspec.json.encode(lesson), media_type="application/json")

    def _find(self, name: str) -> Lesson | None:
        """Returns the lesson of that name: the one that is shown, or one of the package."""
        shown = self.show.lesson
        return shown if shown is not None and shown.id == name else find_lesson(name)

    async def _run(self, request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await _body(request), type=LaunchRequest)
        except msgspec.DecodeError as error:
            return _refused(Refusal("usage", f"The request cannot be read: {error}"), 422)
        confinement = self._confinement(asked)
        answer = await self._limited(run(asked, self.limits, confinement), request)
        if isinstance(answer, Response):
            return answer
        return Response(answer, media_type="application/octet-stream")

    async def _check(self, request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await _body(request), type=CheckRequest)
        except msgspec.DecodeError as error:
            return _refused(Refusal("usage", f"The request cannot be read: {error}"), 422)
        lesson = self._find(asked.lesson)
        if lesson is None:
            return Response(status_code=404)
        assignment = Assignment(lesson, asked.source)
        answer = await self._limited(run(assignment, self.limits, NOTHING), request)
        if isinstance(answer, Response):
            return answer
        if msgspec.json.decode(answer, type=Verdict).passed:
            note_progress(lesson.id, DONE)
        return Response(answer, media_type="application/json")

    async def _explore(self, request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await _body(request), type=ExploreRequest)
        except msgspec.DecodeError as error:
            return _refused(Refusal("usage", f"The request cannot be read: {error}"), 422)
        shown = self.show.explorable
        if shown is None or shown.id != asked.explorable or self._workers is None:
            return Response(status_code=404)
        answer = await self._limited(self._workers.run(asked), request)
        if isinstance(answer, Response):
            return answer
        return Response(answer, media_type="application/octet-stream")

    async def _progress(self, request: Request) -> Response:
        try:
            note = msgspec.json.decode(await _body(request), type=ProgressNote)
        except msgspec.DecodeError as error:
            return _refused(Refusal("usage", f"The request cannot be read: {error}"), 422)
        if self._find(note.lesson) is None:
            return Response(status_code=404)
        note_progress(note.lesson, READ)
        return Response(status_code=204)

    def _confinement(self, asked: LaunchRequest) -> Confinement:
        """Returns what a changed version of the user's own kernel may use: what that may."""
        shown = self.show.request if self.show.lesson is None else None
        if shown is None or Path(asked.name).parent != Path(shown.name).parent:
            return NOTHING
        return Confinement.of(shown.source, shown.name, shown.options)

    async def _limited(
        self, going: Coroutine[Any, Any, bytes | Refusal], request: Request
    ) -> bytes | Response:
        """Returns the result of a run, or the response that refuses it. The run ends when the
        client leaves."""
        if self._running >= self.limits.runs:
            going.close()
            busy = (
                f"The server already has the maximum of {self._running} runs in progress. Wait "
                "until a run ends."
            )
            return _refused(Refusal("busy", busy), 429)
        self._running += 1
        running = asyncio.create_task(going)
        leaving = asyncio.create_task(_disconnected(request))
        try:
            await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                return Response(status_code=CLIENT_GONE)
            answer = running.result()
        finally:
            leaving.cancel()
            running.cancel()
            await asyncio.wait((running,))
            self._running -= 1
        return _refused(answer, 422) if isinstance(answer, Refusal) else answer


def _refused(refusal: Refusal, status: int) -> Response:
    return Response(msgspec.json.encode(refusal), status, media_type="application/json")


async def _disconnected(request: Request) -> None:
    """Waits until the client of a request, whose body has been read, has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request) -> bytes:
    """Returns the body of a request, of which no more is read than may come."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > LARGEST_REQUEST:
            raise msgspec.DecodeError("it is too long")
    return bytes(parts)


class ViewServer(uvicorn.Server):
    """A web server that ends the requests in progress, and their runs, when it is to end."""

    def __init__(self, config: uvicorn.Config, viewer: Viewer) -> None:
        super().__init__(config)
        self._viewer = viewer

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends all requests, then the server."""
        self._viewer.end()
        await super().shutdown(sockets)
        await self._viewer.close()


def serve(viewer: Viewer, opened: Callable[[str], object]) -> None:
    """Serves until interrupted; `opened` is called with the URL when the server listens."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            viewer.app(port),
            log_level="warning",
            access_log=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = ViewServer(config, viewer)
        opened(f"http://{HOST}:{port}/?token={viewer.token}")
        server.run(sockets=[listening])
