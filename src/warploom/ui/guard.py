"""Guards the local server: refuses requests of those who may not ask, and ends those in progress
when the server ends."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
"""Content-Security-Policy: the page is one file with its scripts and styles in it, asks this server
alone, and stands in no frame of another."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of each answer to those who know the token."""


class Guard:
    """Refuses who does not know the token, comes from another origin, or calls us by another
    name; ends all requests in progress when the server ends (`ending`)."""

    def __init__(self, app: ASGIApp, token: str, port: int, ending: asyncio.Event) -> None:
        self._app = app
        self._token = token
        self._ending = ending
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; what is no HTTP is refused by the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Request(scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answered = await until(self._ending, self._app(scope, receive, send_with_headers))
        if not answered and not begun:
            await Response("The server has stopped.", 503)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Returns the response that refuses a request, None for one that is allowed."""
        if request.headers.get("host") not in self._hosts:
            return Response("This server accepts requests only at its own address.", 403)
        if request.headers.get("origin", next(iter(self._origins))) not in self._origins:
            return Response("Requests from other origins are not allowed.", 403)
        given = request.headers.get("x-warploom-token") or request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return Response(
                "The token is missing or wrong; open the URL exactly as it was printed.", 403
            )
        return None


async def until(event: asyncio.Event, work: Awaitable[None]) -> bool:
    """Runs work until it ends, or cancels it at an event. Returns whether it has ended by
    itself."""
    task, ending = asyncio.ensure_future(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait((task, ending), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        task.result()
        return True
    finally:
        ending.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
