"""Messages of the Debug Adapter Protocol over two streams.

A message is JSON after a header with its length (DAP specification, "Base protocol").
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any, BinaryIO

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import MOST_BYTES, decode_json, reading
from warploom.core.streams import report

Message = dict[str, Any]

LONGEST_LINE = 1 << 12
"""Bytes of a line of a header."""


class _Head(msgspec.Struct):
    """The fields of a message that the server relies on, with their types."""

    seq: int
    type: str
    command: str = ""
    arguments: dict[str, Any] | None = None


class Connection:
    """Reads messages in a thread of its own, so that a request can interrupt what runs; `urgent` is
    called with each message as soon as it is there. Data that are no message end the connection."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, urgent: Callable[[Message], None]) -> None:
        self._source, self._sink, self._urgent = source, sink, urgent
        self._received: Queue[Message | None] = Queue()
        self._sequence, self._lock = 0, threading.Lock()

    def begin(self) -> None:
        """Starts to read. `urgent` may be called at once: all that it looks at has to be there."""
        threading.Thread(target=self._read, daemon=True, name="DAP").start()

    def receive(self) -> Message | None:
        """Returns the next message, None when the client has gone."""
        return self._received.get()

    def event(self, name: str, **body: Any) -> None:
        """Sends an event."""
        self._send({"type": "event", "event": name, "body": body})

    def answer(self, request: Message, body: Any = None) -> None:
        """Answers a request."""
        made = {"success": True, "command": request["command"], "request_seq": request["seq"]}
        self._send({"type": "response", **made, "body": {} if body is None else body})

    def refuse(self, request: Message, message: str) -> None:
        """Answers a request that cannot be executed, with an error."""
        made = {"success": False, "command": request["command"], "request_seq": request["seq"]}
        error = {"id": 1, "format": message.replace("{", "{{"), "showUser": True}
        self._send({"type": "response", **made, "message": message, "body": {"error": error}})

    def _send(self, message: Message) -> None:
        with self._lock:
            self._sequence += 1
            data = json.dumps({"seq": self._sequence, **message}).encode()
            try:
                self._sink.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
                self._sink.flush()
            except (OSError, ValueError):  # the client has gone
                return

    def _read(self) -> None:
        try:
            while (message := self._next()) is not None:
                self._urgent(message)
                self._received.put(message)
        except (OSError, ValueError):  # the client has gone
            pass
        except WarploomError as error:
            report(f"error: {error}")
        finally:
            self._received.put(None)

    def _next(self) -> Message | None:
        header: list[bytes] = []
        while line := self._source.readline(LONGEST_LINE):
            if not line.strip():
                break
            header.append(line)
        else:
            return None
        with reading("a message", "does not conform to the Debug Adapter Protocol"):
            length = _length(header)
        data = self._source.read(length)
        if len(data) < length:
            return None
        with reading("a message", "does not conform to the Debug Adapter Protocol"):
            return _checked(decode_json(data))


def _length(header: list[bytes]) -> int:
    """Returns the bytes of the message after a header. Raises ValueError for none or too many."""
    fields = (line.partition(b":") for line in header)
    named = {name.strip().lower(): value.strip() for name, _, value in fields}
    value = named.get(b"content-length", b"")
    if not value.isdigit() or len(value) > len(str(MOST_BYTES)) or int(value) > MOST_BYTES:
        raise ValueError(f"its Content-Length must be a number no greater than {MOST_BYTES:,}")
    return int(value)


def _checked(message: Any) -> Message:
    """Returns a message whose fields have the types of the protocol. Raises ValueError."""
    msgspec.convert(message, _Head)
    return message
