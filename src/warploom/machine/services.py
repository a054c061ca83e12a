"""Serves kernels that call printf, assert, malloc or free.

Both machines come here with one warp's call, its lanes in rising order; so one thread's lines stay
in order, and a run gives the same text and the same addresses every time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from warploom.core.errors import DeviceAssert, KernelFault
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.printf import PrintfArguments, format_printf, read_string
from warploom.machine.turn import callback
from warploom.program.program import Program

Reader = Callable[[int, int, int], bytes]
"""Bytes by lane, generic address and number; raises KernelFault where they are not all there."""


@dataclass(frozen=True)
class ServiceCall:
    """One warp's call: which service, where, the lanes, and each argument in all lanes."""

    name: str
    instruction: int
    block: int
    warp: int
    lanes: tuple[int, ...]
    arguments: tuple[Sequence[int], ...]
    read: Reader


@dataclass(frozen=True)
class Services:
    """The services of one launch."""

    program: Program
    launch: Launch
    memory: DeviceMemory

    def serve(self, call: ServiceCall) -> list[int]:
        """Do it in each lane; gives a result for every one. Raises KernelFault."""
        results = [0] * self.launch.warp_size
        for lane in call.lanes:
            given = [argument[lane] for argument in call.arguments]
            results[lane] = _HANDLERS[call.name](self, call, lane, *given)
        return results

    def print(self, call: ServiceCall, lane: int, format: int, arguments: int) -> int:
        """`vprintf`: gives how many arguments the format took (CUDA's printf returns that)."""

        def read(address: int, size: int) -> bytes:
            return call.read(lane, address, size)

        taken = PrintfArguments(read, arguments)
        text = format_printf(read_string(read, format), taken)
        with callback():
            (self.launch.output or sys.stdout.write)(text)
        return taken.taken

    def fail(
        self,
        call: ServiceCall,
        lane: int,
        message: int,
        file: int,
        line: int,
        function: int,
        width: int,
    ) -> int:
        """`__assertfail`: stops the kernel."""

        def text(address: int) -> str:
            found = read_string(lambda at, size: call.read(lane, at, size), address)
            return found.decode(errors="replace")

        block, thread = self._thread_of(call, lane)
        where = f"{text(file)}:{line & 0xFFFFFFFF}"
        raise DeviceAssert(
            f"Assertion `{text(message)}` failed\n    at {where} in {text(function)}, kernel"
            f" {self.program.title}, by thread {thread} in block {block}",
            kernel=self.program.name,
            line=where,
            block=block,
            thread=thread,
        )

    def allocate(self, call: ServiceCall, lane: int, size: int) -> int:
        """`malloc`."""
        block, thread = self._thread_of(call, lane)
        name = f"malloc by thread {thread} of block {block}"
        line = self.program.line(call.instruction)
        take = partial(self._allocate_for_kernel, name)
        return self.memory.heap.allocate(size, take, line)

    def _allocate_for_kernel(self, name: str, size: int) -> int:
        """Return the address of a new allocation."""
        made = self.memory.allocate(size, name)
        if self.memory.heap.watcher is not None:
            self.memory.heap.watcher.allocated(made)
        return made.address

    def release(self, call: ServiceCall, lane: int, address: int) -> int:
        """`free`; nothing happens to a null pointer."""
        if self.memory.heap.release(address):
            if self.memory.heap.watcher is not None:
                self.memory.heap.watcher.released(address, call, lane)
            self.memory.free(address, in_kernel=True)
        elif address:
            block, thread = self._thread_of(call, lane)
            line = self.program.line(call.instruction)
            raise KernelFault(
                f"free of {address:#x}, which no malloc of a kernel gave, or which is free already"
                f"\n    at {line} in kernel {self.program.title}, by thread {thread} in block"
                f" {block}\n    Free each allocation once, and only what malloc gave.",
                kernel=self.program.name,
                line=line,
                block=block,
                thread=thread,
            )
        return 0

    def _thread_of(
        self, call: ServiceCall, lane: int
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        thread = self.launch.thread_index(call.warp, lane)
        return self.launch.block_index(call.block), thread


_HANDLERS: Mapping[str, Callable[..., int]] = {
    "vprintf": Services.print,
    "__assertfail": Services.fail,
    "malloc": Services.allocate,
    "free": Services.release,
}
