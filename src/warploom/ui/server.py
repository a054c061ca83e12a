"""The local server of the view: gives the page and its traces, and runs what the page asks for.

It listens on the loopback interface alone, on a port that the system chooses. A client must
know the token, which only the URL has; requests from pages of other origins are refused, and so are
those that name another host (a name that was made to point here).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from warploom.ui.lessons import find_lesson
from warploom.ui.page import live_page
from warploom.ui.progress import DONE, READ, note_progress
from warploom.ui.runner import Limits, run
from warploom.ui.schema import (
    Assignment,
    CheckRequest,
    LaunchRequest,
    Lesson,
    ProgressNote,
    Refusal,
    Show,
    Verdict,
)

HOST = "127.0.0.1"
LARGEST_REQUEST = 4 << 20

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
"""Content-Security-Policy: the page is one file with its scripts and styles in it, asks this server
alone, and stands in no frame of another."""

Next = Callable[[Request], Awaitable[Response]]


@dataclass
class Viewer:
    """The page and traces that a server shows, and the limits of its runs."""

    show: Show
    traces: Sequence[bytes]
    limits: Limits = field(default_factory=Limits)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _running: int = 0

    def app(self, port: int) -> Starlette:
        """Return the application, for that port."""
        routes = [
            Route("/", self._page),
            Route("/trace/{number:int}", self._trace),
            Route("/lesson/{name}", self._lesson),
            Route("/run", self._run, methods=["POST"]),
            Route("/check", self._check, methods=["POST"]),
            Route("/progress", self._progress, methods=["POST"]),
        ]
        guard = Middleware(Guard, token=self.token, port=port)
        return Starlette(routes=routes, middleware=[guard])

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(live_page(self.show))

    async def _trace(self, request: Request) -> Response:
        number = int(request.path_params["number"])
        if number >= len(self.traces):
            return Response(status_code=404)
        return Response(self.traces[number], media_type="application/octet-stream")

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
        answer = await self._in_a_process(asked)
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
        answer = await self._in_a_process(Assignment(lesson, asked.source))
        if isinstance(answer, Response):
            return answer
        if msgspec.json.decode(answer, type=Verdict).passed:
            note_progress(lesson.id, DONE)
        return Response(answer, media_type="application/json")

    async def _progress(self, request: Request) -> Response:
        try:
            note = msgspec.json.decode(await _body(request), type=ProgressNote)
        except msgspec.DecodeError as error:
            return _refused(Refusal("usage", f"The request cannot be read: {error}"), 422)
        if self._find(note.lesson) is None:
            return Response(status_code=404)
        note_progress(note.lesson, READ)
        return Response(status_code=204)

    async def _in_a_process(self, request: LaunchRequest | Assignment) -> bytes | Response:
        """Returns what a process of its own makes of a request, or the response that refuses it."""
        if self._running >= self.limits.runs:
            busy = (
                f"{self._running} runs are in progress, and no more are allowed. Wait for one to"
                f" end."
            )
            return _refused(Refusal("busy", busy), 429)
        self._running += 1
        try:
            answer = await run(request, self.limits)
        finally:
            self._running -= 1
        return _refused(answer, 422) if isinstance(answer, Refusal) else answer


def _refused(refusal: Refusal, status: int) -> Response:
    return Response(msgspec.json.encode(refusal), status, media_type="application/json")


async def _body(request: Request) -> bytes:
    """Return the body of a request, of which no more is read than may come."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > LARGEST_REQUEST:
            raise msgspec.DecodeError("it is too long")
    return bytes(parts)


class Guard(BaseHTTPMiddleware):
    """Refuses who does not know the token, comes from another origin, or calls us by another
    name."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        super().__init__(app)
        self._token = token
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def dispatch(self, request: Request, call_next: Next) -> Response:
        if request.headers.get("host") not in self._hosts:
            return Response("This server answers to its own address alone.", 403)
        if request.headers.get("origin", next(iter(self._origins))) not in self._origins:
            return Response("Pages of other origins may not ask here.", 403)
        given = request.headers.get("x-warploom-token") or request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return Response("The token is missing or wrong; open the URL as it was printed.", 403)
        answer = await call_next(request)
        answer.headers["Content-Security-Policy"] = POLICY
        answer.headers["X-Frame-Options"] = "DENY"
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        return answer


def serve(viewer: Viewer, opened: Callable[[str], object]) -> None:
    """Serve until interrupted; `opened` is called with the URL when the server listens."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        port = listening.getsockname()[1]
        config = uvicorn.Config(viewer.app(port), log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        opened(f"http://{HOST}:{port}/?token={viewer.token}")
        server.run(sockets=[listening])
