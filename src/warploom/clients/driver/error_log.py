"""The driver's log of errors: kept, handed to callbacks, and dumped by cuLogs* (CUDA Driver API,
"Coredump and error log management").
"""

from __future__ import annotations

import ctypes
from collections import deque
from itertools import count

from warploom.clients.driver.results import DriverError, Result

MEMORY_DUMP_BYTES = 25600
"""Bytes of a dump to memory at most, as cuda.h says."""

KEPT = 100
"""Messages that are kept."""

ERROR_LEVEL = 0
"""CU_LOG_LEVEL_ERROR."""

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)


class ErrorLog:
    """Messages by their numbers, which begin with 0, and callbacks for the next ones."""

    def __init__(self) -> None:
        self.end = 0
        """The number of the next message."""
        self._messages: deque[bytes] = deque(maxlen=KEPT)
        self._callbacks: dict[int, tuple[int, int]] = {}
        self._handles = count(1)

    def add(self, message: str) -> None:
        """Records a message and passes it to the callbacks."""
        text = message.encode()
        self._messages.append(text)
        self.end += 1
        for function, data in tuple(self._callbacks.values()):
            _CALLBACK(function)(data, ERROR_LEVEL, text, len(text))

    def register(self, function: int, data: int) -> int:
        """Returns the handle of a callback, which gets `data` with each message from now on."""
        handle = next(self._handles)
        self._callbacks[handle] = function, data
        return handle

    def unregister(self, handle: int) -> None:
        """Ends a callback; raises DriverError(INVALID_VALUE) where there is none."""
        if self._callbacks.pop(handle, None) is None:
            raise DriverError(Result.INVALID_VALUE)

    def lines(self, first: int, capacity: int) -> bytes:
        """Returns the messages from number `first` on, a line each, in at most `capacity` bytes.

        Where they take more, or older ones are no longer kept, it returns the latest that fit,
        below a line that says that older messages are left out.
        """
        oldest = self.end - len(self._messages)
        wanted = [text + b"\n" for text in list(self._messages)[max(0, first - oldest) :]]
        if first >= oldest and sum(map(len, wanted)) <= capacity:
            return b"".join(wanted)
        notice = b"(older messages are left out)\n"
        chosen: list[bytes] = []
        capacity -= len(notice)
        for line in reversed(wanted):
            capacity -= len(line)
            if capacity < 0:
                break
            chosen.insert(0, line)
        return b"".join([notice, *chosen]) if chosen else b""


error_log = ErrorLog()
