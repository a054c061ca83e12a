"""Serves one client: launches what it wants, and debugs each launch of a kernel.

The program, or the one kernel, runs in the thread that serves; a launch of a kernel comes back here
and is debugged until it has ended (`debug.attaching`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from warploom.core.errors import WarploomError
from warploom.debug.attaching import AttachedDebugger
from warploom.debug.dap.breaking import Breaking
from warploom.debug.dap.client import Client
from warploom.debug.dap.connection import Connection, Message
from warploom.debug.dap.inspecting import Inspecting
from warploom.debug.dap.running import Running
from warploom.debug.session import Session
from warploom.debug.stops import COUNTED
from warploom.host.debugging import Quit, attach

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsRestartRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True,
    "supportsDataBreakpoints": True,
    "supportsReadMemoryRequest": True,
    "supportsWriteMemoryRequest": True,
    "supportsDisassembleRequest": True,
    "supportsInstructionBreakpoints": True,
    "supportsSteppingGranularity": True,
    "supportsLogPoints": True,
    "supportsLoadedSourcesRequest": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsSingleThreadExecutionRequests": True,
    "supportsExceptionFilterOptions": True,
    "exceptionBreakpointFilters": [
        {
            "filter": name,
            "label": label,
            "default": False,
            "supportsCondition": True,
            "conditionDescription": (
                "Minimum number, such as 8" if name in COUNTED else "An expression, such as i == 5"
            ),
        }
        for name, label in (
            ("divergence", "Lanes of a warp diverge"),
            ("reconvergence", "Lanes of a warp reconverge"),
            ("barrier", "A barrier"),
            ("bank-conflict", "Shared memory bank conflicts"),
            ("uncoalesced", "Uncoalesced accesses (over 4 sectors)"),
            ("nan", "A NaN is computed from operands that are not NaN"),
            ("race", "A race that the sanitizer detects"),
            ("uninitialized", "A read of uninitialized memory"),
        )
    ],
}
"""Lists the abilities of the server (DAP specification, "Capabilities")."""

Start = Callable[[dict[str, Any]], None]
"""Runs what a client wants to debug, by the arguments of its `launch` request."""

Handler = Callable[[dict[str, Any]], Any]


class Server:
    """Serves one client over two streams; `start` runs what it launches."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, start: Start) -> None:
        self._start = start
        self.client = Client(Connection(source, sink, self._urgent))
        self._wanted: dict[str, Any] = {}
        self._configured = self._over = False
        self._inspecting = Inspecting(self.client)
        self._breaking = Breaking(self.client, self._inspecting)
        self._running = Running(self.client, self._inspecting, self._breaking)
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "launch": self._launch,
            "attach": self._launch,
            "configurationDone": self._configuration_done,
            "disconnect": self._disconnect,
            "terminate": self._disconnect,
            "cancel": lambda _: None,
            **self._breaking.handlers,
            **self._inspecting.handlers,
            **self._running.handlers,
        }
        self.client.connection.begin()

    def serve(self) -> int:
        """Serves until the client has gone or wants no more; returns the exit code of what ran."""
        while not self._over and not self._configured:
            self._next()
        if self._over:
            return 0
        code = self._run()
        self.client.session = None
        self.client.connection.event("exited", exitCode=code)
        self.client.connection.event("terminated")
        while not self._over:
            self._next()
        return code

    def _run(self) -> int:
        """Runs what is to be debugged."""
        attach(AttachedDebugger(self._debug, self._wanted.get("breakInKernel", "")))
        try:
            self._start(self._wanted)
        except Quit as quit:
            return quit.code
        except WarploomError as error:
            self.client.connection.event("output", category="stderr", output=f"error: {error}\n")
            return 1
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            attach(None)
        return 0

    def _debug(self, session: Session) -> bool:
        """Debugs one launch; returns whether further ones are to be."""
        session.target.output.write = self._output
        self.client.session = session
        self._breaking.bind(session)
        if self._wanted.get("stopOnEntry"):
            self._running.report(session.begin())
        else:
            self._running.report(session.start())
        while not self._running.leaves:
            if self._over:
                raise Quit
            self._next()
        self._running.leaves = False
        self.client.session = None
        return not self._over

    def _output(self, text: str) -> None:
        self.client.connection.event("output", category="stdout", output=text)

    # ---- requests -------------------------------------------------------------------------------

    def _next(self) -> None:
        """Executes the next request."""
        message = self.client.connection.receive()
        if message is None:
            self._over = True
            return
        if message.get("type") != "request":
            return
        handler = self._handlers.get(message["command"])
        if handler is None:
            self.client.connection.refuse(message, f"there is no request {message['command']}")
            return
        try:
            body = handler(message.get("arguments") or {})
        except (WarploomError, KeyError, ValueError) as error:
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            self.client.connection.refuse(message, missing)
            return
        except (AttributeError, TypeError, OverflowError) as error:
            reason = f"an argument of {message['command']} has the wrong type or size: {error}"
            self.client.connection.refuse(message, reason)
            return
        self.client.connection.answer(message, body)
        self._after(message["command"])

    def _after(self, command: str) -> None:
        """Executes what follows the answer to a request."""
        if command in ("launch", "attach"):
            self.client.connection.event("initialized")
        self._running.go()

    def _urgent(self, message: Message) -> None:
        """Ends what runs where the client wants it; called in the thread that reads."""
        session = self.client.session
        ends = message.get("command") in ("pause", "disconnect", "terminate")
        if session is not None and ends and self._running.moving:
            session.timeline.interrupted = True

    def _initialize(self, arguments: dict[str, Any]) -> Any:
        self.client.lines_from = 0 if arguments.get("linesStartAt1") is False else 1
        return CAPABILITIES

    def _launch(self, arguments: dict[str, Any]) -> None:
        self._wanted = arguments

    def _configuration_done(self, _: dict[str, Any]) -> None:
        self._configured = True

    def _disconnect(self, _: dict[str, Any]) -> None:
        self._over = True
