"""Runs a function in a forked process while this one goes on; its result is bytes.

For example, a compiler that is Python for a third of its time: a thread would hold the
interpreter's lock, and a new interpreter would import the compiler's modules anew.

    task = ForkedTask.start(lambda: compiled(kernel))
    ...                                               # later, between two launches:
    if task is not None and task.is_done():
        code = task.result()

The process is a child of `init`, so the program never has to wait for it, and it ends when this
process does, in whatever way: a thread of it reads from a pipe whose other end only this process
has open. It ignores Ctrl-C, has no other open file, and prints nothing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from warploom.core.forked import forget_in_child

Work = Callable[[], bytes]
"""What runs in the forked process. Locks that other threads of this process hold stay locked there,
so it may acquire none of these."""

DONE = b"."
"""Written to the pipe by a process whose function has returned."""


class ForkedTask:
    """A function that runs in a forked process. `result` has its result once `is_done`.
    `is_forgotten`: this process was forked from the one that started the task, which alone gets the
    result."""

    _running: ClassVar[set[ForkedTask]] = set()

    def __init__(self, result: int, done: int, alive: int) -> None:
        """Keeps the file descriptors of a process: of the file that it writes its result to, of the
        pipe that it writes DONE to, and of the pipe whose closing ends it."""
        self._files = (result, done, alive)
        self.is_forgotten = False
        self._looking = threading.Lock()
        self._succeeded: bool | None = None
        self._bytes: bytes | None = None
        self._running.add(self)
        forget_in_child(self)

    @classmethod
    def start(cls, work: Work) -> ForkedTask | None:
        """Starts `work` in a forked process. Returns None where processes cannot be forked (other
        systems than Linux), if there is but one core, while half the cores have tasks already, or
        if the system refuses a process."""
        if sys.platform != "linux":
            return None
        # Nobody may ask for the result of a task any more.
        running = [task for task in tuple(cls._running) if not task.is_done()]
        if len(running) >= len(os.sched_getaffinity(0)) // 2:
            return None
        try:
            return cls._fork(work)
        except OSError:
            return None

    @classmethod
    def _fork(cls, work: Work) -> ForkedTask:
        """Forks the process; raises OSError if the system refuses it."""
        result = os.memfd_create("warploom")
        done, write_done = os.pipe()
        read_alive, alive = os.pipe()
        try:
            with warnings.catch_warnings():
                # Python and libraries warn of the locks that `Work` must not acquire.
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                _fork_again(work, result, write_done, read_alive)
        except OSError:
            for file in (result, done, alive):
                os.close(file)
            raise
        finally:
            os.close(write_done)
            os.close(read_alive)
        with suppress(ChildProcessError):  # the program ignores its children
            os.waitpid(child, 0)
        os.set_blocking(done, False)
        return cls(result, done, alive)

    def is_done(self) -> bool:
        """Returns whether the process has ended; then frees what it needed. Returns False while
        another thread is here, which reads the result."""
        if self._succeeded is not None:
            return True
        if not self._looking.acquire(blocking=False):
            return False
        try:
            if self._succeeded is None:
                self._finish(os.read(self._files[1], 1) == DONE)
            return True
        except BlockingIOError:
            return False
        finally:
            self._looking.release()

    def _finish(self, succeeded: bool) -> None:
        """Reads the result of a process that has ended, if it `succeeded`, and closes the files."""
        if succeeded:
            size = os.fstat(self._files[0]).st_size
            self._bytes = os.pread(self._files[0], size, 0)
        self._close()
        self._succeeded = succeeded

    def result(self) -> bytes | None:
        """Returns what the function returned, once the process has ended; None if it raised an
        exception, or if the process was killed."""
        return self._bytes

    def forget(self) -> None:
        """Drops the task in a forked child: the result belongs to the parent."""
        if self._succeeded is None:
            self.is_forgotten = True
            self._finish(False)

    def _close(self) -> None:
        """Closes the files, which ends a process that still runs."""
        for file in self._files:
            os.close(file)
        self._running.discard(self)


def _fork_again(work: Work, *files: int) -> None:
    """Forks once more and ends this process, so that the second one is no child of the program."""
    try:
        if os.fork() == 0:
            _serve(work, *files)
    finally:
        os._exit(1)


def _serve(work: Work, result: int, done: int, alive: int) -> None:
    """Runs `work` in the forked process, which it ends without any of the exit functions and
    buffers that it has inherited from the program."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Objects of the program must not be finalised here: files that they hold are closed below, and
    # their numbers name others then.
    gc.disable()
    _close_all_but({result, done, alive})
    threading.Thread(target=_end_with_program, args=(alive,), daemon=True).start()
    remaining = memoryview(work())
    while remaining:
        remaining = remaining[os.write(result, remaining) :]
    os.write(done, DONE)
    os._exit(0)


def _close_all_but(kept: set[int]) -> None:
    """Closes all files but these, and directs standard input, output and errors to nothing: a pipe
    of the program must end when the program closes it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    begin = 3
    for file in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(begin, file)
        begin = file + 1


def _end_with_program(alive: int) -> None:
    """Waits until the program closes its end of a pipe, or ends; then ends this process."""
    os.read(alive, 1)
    os._exit(1)
