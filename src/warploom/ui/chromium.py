"""Drives a headless Chromium by the Chrome DevTools Protocol, over a pair of pipes.

In: a page's file. Out: values of JavaScript expressions, and pictures. What is shown is left to the
page. Nothing has to be installed but the browser.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from warploom.core.errors import WarploomError
from warploom.ui.installed import find_installed

if sys.platform != "win32":
    import fcntl

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

ARGUMENTS = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"),
    *("--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb"),
)

AT_REST = """document.fonts.ready.then(() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done)))))"""
"""Is fulfilled when the fonts are loaded, two frames are drawn, and the page has nothing to do."""

DRAWINGS = 50
"""How many pictures are taken at most of a page that is being drawn."""

PATIENCE = 60
"""Seconds until a page must be ready."""


def find_chromium() -> str:
    """Returns the path of the browser. Raises WarploomError where there is none, and on Windows,
    where it reads no pipes."""
    if sys.platform == "win32":
        raise WarploomError("videos can be exported only on Linux and macOS; on Windows, use WSL")
    return find_installed("a video", "Chromium or Google Chrome", *NAMES)


@dataclass
class Tab:
    """A page in the browser."""

    _to: IO[bytes]
    _from: IO[bytes]
    session: str = ""
    _number: int = 0
    _rest: bytearray = field(default_factory=bytearray)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns the answer to a command of the protocol. Raises WarploomError for an error."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        self._to.write(json.dumps(asked).encode() + b"\0")
        self._to.flush()
        while (answer := self._message()).get("id") != self._number:
            pass
        if "error" in answer:
            raise WarploomError(f"Chromium rejected {method}: {answer['error']['message']}")
        return answer["result"]

    def _message(self) -> dict[str, Any]:
        """Returns the next message, which ends with a byte of zero."""
        while (end := self._rest.find(b"\0")) < 0:
            read = os.read(self._from.fileno(), 1 << 16)
            if not read:
                raise WarploomError("Chromium exited before it had drawn the page")
            self._rest += read
        message = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return json.loads(message)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression, awaited. Raises WarploomError if it throws."""
        given = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", **given)
        if "exceptionDetails" in answer:
            raise WarploomError(f"the page failed: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Waits until an expression is true. Raises WarploomError where it does not become so."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise WarploomError(f"the page was not ready after {PATIENCE} s")
            time.sleep(0.05)

    def close(self) -> None:
        """Closes the pipes."""
        self._from.close()
        with contextlib.suppress(OSError):
            self._to.close()

    def picture(self) -> bytes:
        """Returns the page as PNG, once it has been drawn: when two pictures in a row are equal.
        Raises WarploomError for a page that does not come to rest."""
        self.evaluate(AT_REST)
        last = self._captured()
        for _ in range(DRAWINGS):
            self.evaluate(AT_REST)
            if (now := self._captured()) == last:
                return now
            last = now
        raise WarploomError("the page was still changing, so no screenshot was taken")

    def _captured(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def opened(page: Path, size: tuple[int, int], scheme: str = "light") -> Generator[Tab]:
    """Opens the page of a file in a browser of its own, of a size in pixels, and ends the browser.
    `scheme` is "light" or "dark"."""
    browser = find_chromium()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process, tab = _launched(browser, profile)
        try:
            target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            tab.session = tab.call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            width, height = size
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            tab.call("Emulation.setDeviceMetricsOverride", **metrics)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            tab.call("Emulation.setEmulatedMedia", features=features)
            tab.call("Page.navigate", url=page.resolve().as_uri())
            yield tab
        finally:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            tab.close()


def _launched(browser: str, profile: str) -> tuple[int, Tab]:
    """Returns the process of a browser and what speaks to it: the browser reads its descriptor 3
    and writes its descriptor 4."""
    command = [browser, *ARGUMENTS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # Chromium's sandbox does not start for root.
    pipes = (*os.pipe(), *os.pipe())
    # Numbers that are none of those which the browser expects.
    its_input, our_output, our_input, its_output = (
        fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, 10) for pipe in pipes
    )
    for pipe in pipes:
        os.close(pipe)
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    ends = [(os.POSIX_SPAWN_DUP2, its_input, 3), (os.POSIX_SPAWN_DUP2, its_output, 4)]
    process = os.posix_spawn(browser, command, os.environ, file_actions=[*quiet, *ends])
    os.close(its_input)
    os.close(its_output)
    return process, Tab(os.fdopen(our_output, "wb"), os.fdopen(our_input, "rb", buffering=0))
