"""Streams: launches that run one after another while the host goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class Stream:
    """A queue of launches with a thread of its own; launches run in the order of their calls."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._worker = ThreadPoolExecutor(1, thread_name_prefix="warploom-stream")
        self._pending: list[Future[object]] = []

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work`; its future has what comes of it."""
        future = self._worker.submit(work)
        self._pending.append(future)  # pyright: ignore[reportArgumentType]
        return future

    def synchronize(self) -> None:
        """Wait for all that was queued; then raise the first error among it, if any."""
        pending, self._pending = self._pending, []
        errors = [future.exception() for future in pending]
        for error in errors:
            if error is not None:
                raise error
