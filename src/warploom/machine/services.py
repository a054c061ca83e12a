"""Implements the device functions printf, assert, malloc and free on the host.

Both machines pass one warp's call, which is served lane by lane in rising order; so the lines of
one thread stay in order, and every run prints the same text and returns the same addresses.
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
"""Reads device memory for a lane: (lane, generic address, number of bytes) to bytes. Raises
KernelFault if the bytes are not all accessible."""


@dataclass(frozen=True)
class ServiceCall:
    """One warp's call of a device function.

    `name` is the function, `instruction`, `block` and `warp` state where the call is (index in the
    program, linear numbers), `lanes` which lanes are active; `arguments` has a sequence for each
    argument, indexed by lane, `read` reads memory as a lane sees it.
    """

    name: str
    instruction: int
    block: int
    warp: int
    lanes: tuple[int, ...]
    arguments: tuple[Sequence[int], ...]
    read: Reader


@dataclass(frozen=True)
class Services:
    """Executes the calls of one launch: both machines make one per launch and call `serve`."""

    program: Program
    launch: Launch
    memory: DeviceMemory

    def serve(self, call: ServiceCall) -> list[int]:
        """Executes a call in each active lane, in rising order, by the handler of its function, and
        returns the results by lane, 0 for inactive lanes. Raises KernelFault, DeviceAssert for a
        failed assertion, LaunchError for a malloc without device memory, or what the launch's
        output raises."""
        results = [0] * self.launch.warp_size
        for lane in call.lanes:
            arguments = [argument[lane] for argument in call.arguments]
            results[lane] = _HANDLERS[call.name](self, call, lane, *arguments)
        return results

    def print(self, call: ServiceCall, lane: int, format: int, arguments: int) -> int:
        """Executes `vprintf`: writes the text to the launch's output (standard output if it has
        none) and returns the number of arguments that the format used, as CUDA's printf does.
        `format` and `arguments` are addresses."""

        def read(address: int, size: int) -> bytes:
            """Returns the `size` bytes that the calling lane sees at a generic address."""
            return call.read(lane, address, size)

        values = PrintfArguments(read, arguments)
        text = format_printf(read_string(read, format), values)
        # A launch from the callback would wait for the kernel that waits for the callback.
        with callback():
            (self.launch.output or sys.stdout.write)(text)
        return values.taken

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
        """Executes `__assertfail`: raises DeviceAssert with the strings at the addresses `message`,
        `file` and `function`, which ends the kernel. `width` (bytes of a character) is ignored."""

        def text(address: int) -> str:
            """Returns the zero-terminated string at an address, decoded as UTF-8; invalid bytes are
            replaced."""
            data = read_string(lambda at, size: call.read(lane, at, size), address)
            return data.decode(errors="replace")

        block, thread = self._thread_of(call, lane)
        # The line is passed as a 32-bit unsigned value.
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
        """Executes `malloc`: returns the address of `size` bytes, named after the thread for
        messages, or 0 if the heap is full or `size` is 0. Raises LaunchError if device memory has
        no such range."""
        block, thread = self._thread_of(call, lane)
        name = f"malloc by thread {thread} of block {block}"
        line = self.program.line(call.instruction)
        allocate_memory = partial(self._allocate_for_kernel, name)
        return self.memory.heap.allocate(size, allocate_memory, line)

    def _allocate_for_kernel(self, name: str, size: int) -> int:
        """Returns the address of `size` new bytes of device memory, whose allocation has this name
        and is reported to the heap's watcher (a sanitizer), if there is one. Raises LaunchError if
        device memory has no such range."""
        allocation = self.memory.allocate(size, name)
        if self.memory.heap.watcher is not None:
            self.memory.heap.watcher.allocated(allocation)
        return allocation.address

    def release(self, call: ServiceCall, lane: int, address: int) -> int:
        """Executes `free`: reports the allocation to the heap's watcher, if there is one, and ends
        it at once; a null pointer is ignored. Returns 0. Raises KernelFault for an address that is
        not a live malloc of a kernel."""
        if self.memory.heap.release(address):
            if self.memory.heap.watcher is not None:
                location = call.instruction, call.block, call.warp, lane
                self.memory.heap.watcher.released(address, *location)
            self.memory.free(address, in_kernel=True)
        elif address:
            block, thread = self._thread_of(call, lane)
            line = self.program.line(call.instruction)
            raise KernelFault(
                f"free of {address:#x}, which malloc did not return in a kernel, or which has "
                f"already been freed\n    at {line} in kernel {self.program.title}, by thread "
                f"{thread} in block {block}\n    Free each allocation once, and only pointers that "
                "malloc returned.",
                kernel=self.program.name,
                line=line,
                block=block,
                thread=thread,
            )
        return 0

    def _thread_of(
        self, call: ServiceCall, lane: int
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Returns the block index and the thread index of a lane."""
        thread = self.launch.thread_index(call.warp, lane)
        return self.launch.block_index(call.block), thread


_HANDLERS: Mapping[str, Callable[..., int]] = {
    "vprintf": Services.print,
    "__assertfail": Services.fail,
    "malloc": Services.allocate,
    "free": Services.release,
}
"""The method that executes each device function, called with the call, the lane and the lane's
arguments."""
