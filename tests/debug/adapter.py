"""A client of the Debug Adapter Protocol for tests, of a server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from protocol import validate

from warploom.cli.debug_adapter import READY

Body = dict[str, Any]


class Refused(Exception):
    """The server refused a request; the message says why."""


class Client:
    """Talks with `warploom debug --dap`; `events` are those that nobody has waited for yet. Both
    sides have to keep to the schema of the protocol."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "warploom.cli", "debug", "--dap"]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, READY: "1"},  # kernels alone need no stand-ins for libraries
        )
        self.events: list[Body] = []
        self._sequence = 0

    def request(self, command: str, **arguments: Any) -> Body:
        """The body of the answer to a request. Raises Refused."""
        self._sequence += 1
        message: Body = {"seq": self._sequence, "type": "request", "command": command}
        message["arguments"] = arguments
        validate(message)
        data = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()
        while True:
            received = self._next()
            if received["type"] == "event":
                self.events.append(received)
            elif received["request_seq"] == self._sequence:
                if not received["success"]:
                    raise Refused(received["message"])
                return received["body"]

    def wait(self, event: str) -> Body:
        """The body of the next event of that name; those before it are kept."""
        for number, received in enumerate(self.events):
            if received["event"] == event:
                return self.events.pop(number)["body"]
        while True:
            received = self._next()
            if received["event"] == event:
                return received["body"]
            self.events.append(received)

    def launch(self, **configuration: Any) -> None:
        """Up to where breakpoints can be set."""
        self.request("initialize", adapterID="warploom")
        self.request("launch", **configuration)
        self.wait("initialized")

    def run(self, request: str = "configurationDone", **arguments: Any) -> Body:
        """The place where the launch stops after a request that has it go."""
        self.request(request, **arguments)
        return self.wait("stopped")

    def top(self, stopped: Body) -> Body:
        """The innermost frame of the warp that has stopped."""
        return self.request("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]

    def scope(self, stopped: Body, name: str) -> dict[str, str]:
        """The variables of a scope of the innermost frame, as texts."""
        frame = self.top(stopped)["id"]
        scopes = self.request("scopes", frameId=frame)["scopes"]
        reference = next(s["variablesReference"] for s in scopes if s["name"] == name)
        found = self.request("variables", variablesReference=reference)["variables"]
        return {each["name"]: each["value"] for each in found}

    def _next(self) -> Body:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            length = int(line.split(b":")[1])
        message = json.loads(stream.read(length))
        validate(message)
        return message

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
