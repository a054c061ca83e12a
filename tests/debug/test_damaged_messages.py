"""Messages of an editor that do not conform to the protocol: the server ends, or refuses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from warploom.cli.debug_adapter import READY


def served(data: bytes) -> subprocess.CompletedProcess[bytes]:
    """What the server did with these bytes, and the end of the stream behind them."""
    return subprocess.run(
        [sys.executable, "-m", "warploom.cli", "debug", "--dap"],
        input=data,
        capture_output=True,
        env={**os.environ, READY: "1"},
        timeout=120,
        check=False,
    )


def framed(message: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(message) + message


def request(number: int, command: str, arguments: Any) -> bytes:
    message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
    return framed(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (framed(b"[" * 100_000), "nested more than 64 levels deep"),
        (framed(b"nothing"), "Expecting value"),
        (framed(b"\xff\xff"), "decode"),
        (framed(b"[]"), "Expected `object`, got `array`"),
        (framed(b'{"type":"request"}'), "`seq`"),
        (framed(b'{"seq":1,"type":"request","command":5}'), "command"),
        (framed(b'{"seq":1,"type":"request","command":"a","arguments":[]}'), "arguments"),
        (b"Content-Length: -1\r\n\r\n{}", "Content-Length"),
        (b"Content-Length: 99999999999\r\n\r\n{}", "Content-Length"),
        (b"a" * 100_000 + b"\r\n\r\n", "Content-Length"),
    ],
    ids=range(10),
)
def test_what_is_no_message_ends_the_server(data: bytes, reason: str) -> None:
    done = served(data)
    error = done.stderr.decode()
    assert error.startswith("error: a message does not conform to the Debug Adapter Protocol: ")
    assert reason in error
    assert error.count("\n") == 1


def test_a_client_that_has_gone_is_no_error() -> None:
    assert served(b"").stderr == b""
    assert served(b"Content-Length: 100\r\n\r\n{").stderr == b""


def test_arguments_of_other_types_are_refused() -> None:
    requests = [
        ("initialize", {}),
        ("setBreakpoints", {"source": 5, "breakpoints": [3]}),
        ("setFunctionBreakpoints", {"breakpoints": 7}),
        ("launch", {"program": 5, "grid": {}}),
        ("configurationDone", None),
        ("disconnect", {}),
    ]
    done = served(b"".join(request(n, *each) for n, each in enumerate(requests)))
    assert b"Traceback" not in done.stderr
    answers = [
        json.loads(part[: part.rindex(b"}") + 1]) for part in done.stdout.split(b"\r\n\r\n")[1:]
    ]
    responses = {each["command"]: each for each in answers if each["type"] == "response"}
    assert [name for name, each in responses.items() if not each["success"]] == [
        "setBreakpoints",
        "setFunctionBreakpoints",
    ]
    assert "has the wrong type" in responses["setBreakpoints"]["message"]
    [output] = [each["body"]["output"] for each in answers if each.get("event") == "output"]
    assert "the launch configuration is invalid: Expected `str`, got `int`" in output
