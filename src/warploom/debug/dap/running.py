"""Requests that go forward and back, and the events that report the position of the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warploom.core.errors import WarploomError
from warploom.debug.dap.breaking import Breaking
from warploom.debug.dap.client import Client
from warploom.debug.dap.inspecting import Inspecting
from warploom.debug.session import Session, Stop
from warploom.debug.values import written

Handler = Callable[[dict[str, Any]], Any]
Motion = Callable[[Session], Stop]

REASONS = {
    "begin": "entry",
    "error": "exception",
    "interrupted": "pause",
    "exited": "step",
    "none": "step",
    "end": "pause",
}
"""Maps reasons of the core to those of a `stopped` event; others have the same name there."""


class Running:
    """Goes when a request has been answered. `leaves` says that the launch is to run to its end and
    the program to go on; `moving` that a search is under way."""

    def __init__(self, client: Client, inspecting: Inspecting, breaking: Breaking) -> None:
        self._client, self._inspecting, self._breaking = client, inspecting, breaking
        self._motion: Motion | None = None
        self.leaves = self.moving = False
        self.handlers: dict[str, Handler] = {
            "continue": self._continue,
            "next": self._steps("over"),
            "stepIn": self._steps("line"),
            "stepOut": self._steps("out"),
            "stepBack": self._step_back,
            "reverseContinue": self._goes(lambda session: session.reverse()),
            "pause": lambda _: None,
            "restart": self._goes(lambda session: session.start()),
            "exceptionInfo": self._exception_info,
            "warploom/whoWrote": self._who_wrote,
            "warploom/whereDiverged": self._goes(lambda session: session.last_divergence()),
            "warploom/goto": self._goto,
        }

    def go(self) -> None:
        """Runs the launch to where the last request asks for, if it asks for that."""
        motion, session = self._motion, self._client.session
        self._motion = None
        if motion is None or session is None:
            return
        self.moving = True
        try:
            stop = motion(session)
            while self._logs(session, stop):
                stop = motion(session)
        except WarploomError as error:
            self._client.connection.event("output", category="console", output=f"{error}\n")
            stop = Stop("step")
        self.moving = False
        self.report(stop)

    def report(self, stop: Stop) -> None:
        """Reports the position of the launch, and why it stopped."""
        session = self._client.opened()
        self._inspecting.forget()
        if stop.reason == "none":
            self._client.connection.event("output", category="console", output=f"{stop.message}\n")
        thread = self._inspecting.thread_id(session.focus.block, session.focus.warp)
        reason = REASONS.get(stop.reason, stop.reason)
        if stop.breakpoints and stop.breakpoints[0].event:
            reason = "exception"
        elif stop.breakpoints and stop.breakpoints[0].watched is not None:
            reason = "data breakpoint"
        body: dict[str, Any] = {"reason": reason, "threadId": thread, "allThreadsStopped": True}
        if stop.message:
            body["text"] = body["description"] = stop.message.split("\n")[0]
        if stop.breakpoints:
            body["hitBreakpointIds"] = [each.number for each in stop.breakpoints]
        self._client.connection.event("stopped", **body)

    def _logs(self, session: Session, stop: Stop) -> bool:
        """Writes the messages of log points; returns whether only such were hit."""
        logged = [self._breaking.messages.get(each.number) for each in stop.breakpoints]
        for message in filter(None, logged):
            self._client.connection.event(
                "output", category="console", output=_filled(message, session) + "\n"
            )
        return bool(logged) and all(logged)

    # ---- requests -------------------------------------------------------------------------------

    def _goes(self, motion: Motion) -> Handler:
        """Returns the request that goes so."""

        def do(arguments: dict[str, Any]) -> Any:
            session, alone = self._client.opened(), bool(arguments.get("singleThread"))
            self._focus(arguments)
            session.locking = "on" if alone else "off"
            self._motion = motion
            return {"allThreadsContinued": not alone}

        return do

    def _continue(self, arguments: dict[str, Any]) -> Any:
        session = self._client.opened()
        if session.has_ended:
            self.leaves = True
            return {"allThreadsContinued": True}
        return self._goes(lambda session: session.go_on())(arguments)

    def _steps(self, kind: str) -> Handler:
        def do(arguments: dict[str, Any]) -> Any:
            single = arguments.get("granularity") == "instruction" and kind != "out"
            return self._goes(lambda session: session.step("instruction" if single else kind))(
                arguments
            )

        return do

    def _step_back(self, arguments: dict[str, Any]) -> Any:
        single = arguments.get("granularity") == "instruction"
        kind = "instruction" if single else "over"
        return self._goes(lambda session: session.reverse_step(kind))(arguments)

    def _who_wrote(self, arguments: dict[str, Any]) -> Any:
        text = str(arguments["expression"])
        return self._goes(lambda session: session.last_access(text))({})

    def _goto(self, arguments: dict[str, Any]) -> Any:
        position = int(arguments["position"])
        return self._goes(lambda session: session.goto(position))({})

    def _exception_info(self, _: dict[str, Any]) -> Any:
        stop = self._client.opened().stop
        error = self._client.opened().stepper.error
        name = type(error).__name__ if error is not None else stop.reason
        return {"exceptionId": name, "description": stop.message, "breakMode": "always"}

    def _focus(self, arguments: dict[str, Any]) -> None:
        """Sets the focus to the warp that a request names, and keeps the lane if that warp is in
        focus already."""
        if "threadId" in arguments:
            self._inspecting.focus(int(arguments["threadId"]))


def _filled(message: str, session: Session) -> str:
    """Returns a message of a log point with its expressions, in braces, as values."""
    parts: list[str] = []
    for number, part in enumerate(message.replace("}", "{").split("{")):
        if number % 2 == 0:
            parts.append(part)
            continue
        try:
            evaluator = session.evaluator()
            parts.append(written(evaluator.value(part), evaluator.thread))
        except WarploomError as error:
            parts.append(f"<{error}>")
    return "".join(parts)
