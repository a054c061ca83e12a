"""Serves the host callbacks of compiled code: printf, assert, malloc and free.

Compiled code calls one C function by its address. The arguments are in a buffer of the warp (one
row of 32 64-bit words per argument), where the results replace the first row; `machine.services`
does the work. Allocations that the call makes or frees are published to the environment before the
kernel continues.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from warploom.abi.environment import Slot, local_stride
from warploom.core.errors import Allocation
from warploom.core.lazy import cached_property
from warploom.cost.address_pattern import interleaved
from warploom.isa.instruction import Space, Vector
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import WARP_SIZE
from warploom.machine.memory.allocation_table import AllocationTable
from warploom.machine.services import ServiceCall, Services
from warploom.machine.turn import Cancellation
from warploom.program.services import service_of
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE

ALL_ONES = (1 << 64) - 1

_CALLBACK_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)

YIELD_EVERY, YIELD_SECONDS = 0.02, 0.0001
"""The interval at which a kernel that calls the host releases the interpreter lock, and for how
long, in seconds."""

DONE, FAILED = 0, 1
"""The results of a callback: the kernel continues, or returns to its host."""


class HostCallbacks:
    """Serves the callbacks of one worker's launch. `error` is the exception that a service raised,
    which the engine raises after the launch."""

    def __init__(
        self,
        services: Services,
        forget_bounds: Callable[[], None],
        environment: memoryview[int],
        cancellation: Cancellation,
    ) -> None:
        """`services` executes the device functions; `forget_bounds` invalidates the bounds of
        allocations that range caches hold; `environment` is the worker's. `cancellation`, that of
        the launch, is polled before each call: a kernel that calls the host endlessly may never
        pause by itself."""
        self.services, self.environment = services, environment
        self._forget_bounds = forget_bounds
        self.error: BaseException | None = None
        self._yielded = time.monotonic()
        self._cancellation = cancellation
        self._published: AllocationTable | None = None

    @cached_property
    def _function(self) -> Any:
        """Returns the C function; it has to stay alive as long as the launch."""
        return _CALLBACK_TYPE(self._serve)

    @property
    def address(self) -> int:
        """Returns the address that compiled code calls."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _serve(self, _: int, warp: int, instruction: int, mask: int, data: int) -> int:
        """Executes a callback of warp number `warp` of the current block: the function that
        compiled code calls. `mask` are the lanes that call, `data` is the address of the argument
        buffer. Returns DONE, with the allocations published anew if they changed, or FAILED after
        an exception or a cancellation, which is stored in `error`."""
        try:
            self._yield_interpreter()
            self._cancellation.check()
            self._call_service(warp, instruction, mask, data)
        # An exception cannot propagate through machine code; the host raises it after the launch.
        except BaseException as error:
            self.error = error
            return FAILED
        self.publish_allocations()
        return DONE

    def _yield_interpreter(self) -> None:
        """Sleeps YIELD_SECONDS if YIELD_EVERY seconds have passed since its last sleep, so that
        other Python threads run. The callback releases the interpreter lock when it returns and
        acquires it again at once: without the sleep another thread (the one that handles Ctrl-C,
        for example) could wait for seconds."""
        now = time.monotonic()
        if now - self._yielded > YIELD_EVERY:
            time.sleep(YIELD_SECONDS)
            self._yielded = time.monotonic()

    def _call_service(self, warp: int, index: int, mask: int, data: int) -> None:
        """Reads the arguments of the lanes in `mask` from the buffer at address `data`, which has a
        row of 32 words for each argument, and at least one row. Calls the service that instruction
        `index` calls, and writes the results of 32 lanes (0 for lanes that do not call) to the
        buffer's first row."""
        call = self.services.program.instructions[index]
        parameters, name = call.operands[2], service_of(call)
        assert isinstance(parameters, Vector)
        assert name is not None
        # A call without arguments has a row too, for its result.
        rows = max(1, len(parameters.elements))
        words = (ctypes.c_uint64 * (rows * WARP_SIZE)).from_address(data)
        table = [words[row * WARP_SIZE : (row + 1) * WARP_SIZE] for row in range(rows)]
        block = self.environment[Slot.BLOCK]

        def read_memory(lane: int, address: int, size: int) -> bytes:
            """Returns bytes at a generic address of a lane, or raises its fault."""
            return self._read_generic(
                Fault(FaultKind.OUT_OF_BOUNDS, index, block, warp, lane), address, size
            )

        lanes = tuple(lane for lane in range(WARP_SIZE) if mask >> lane & 1)
        arguments = tuple(table[: len(parameters.elements)])
        results = self.services.serve(
            ServiceCall(name, index, block, warp, lanes, arguments, read_memory)
        )
        words[:WARP_SIZE] = [result & ALL_ONES for result in results]

    def _read_generic(self, fault: Fault, address: int, size: int) -> bytes:
        """Returns `size` bytes at a generic address (in the shared or local window, else global) as
        the lane that `fault` names sees them. If they are not all in one memory or allocation,
        raises that fault, with its space and address (an offset in shared or local memory) filled
        in."""
        program, memory = self.services.program, self.services.memory
        space, offset = Space.GLOBAL, address
        if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
            space, offset = Space.SHARED, address - SHARED_WINDOW
            length = self.environment[Slot.SHARED_BYTES]
            allocation = Allocation(0, length, "the block's shared memory")
        elif LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_SIZE:
            space, offset = Space.LOCAL, address - LOCAL_WINDOW
            allocation = Allocation(0, program.local_bytes, "the thread's local memory")
        else:
            allocation = memory.find(address) or memory.nearest(address)
        if (
            allocation is None
            or not allocation.address <= offset <= allocation.address + allocation.size - size
        ):
            failed = replace(fault, address=offset, size=size, space=space)
            raise fault_error(failed, program, self.services.launch, allocation)
        if space is Space.LOCAL:
            return self._read_local(fault, offset, size)
        if space is Space.SHARED:
            return ctypes.string_at(self.environment[Slot.SHARED_AT] + offset, size)
        return memory.read(address, size)

    def _read_local(self, fault: Fault, offset: int, size: int) -> bytes:
        """Returns bytes of the local memory of the warp and lane in `fault`, which is interleaved:
        4-byte word w of lane l is word w * 32 + l of the warp's."""
        stride = local_stride(self.services.program.local_bytes)
        start = self.environment[Slot.LOCAL_AT] + fault.warp * stride
        addresses = (
            # Byte by byte, since consecutive words of a lane are 128 bytes apart.
            start + interleaved(byte, fault.lane)
            for byte in range(offset, offset + size)
        )
        return b"".join(ctypes.string_at(address, 1) for address in addresses)

    def publish_allocations(self, *, anew: bool = False) -> None:
        """Writes address and length of the table of live allocations to the environment, and
        invalidates cached bounds, which may be those of a freed one; nothing if the table is the
        one published last. `anew`: the environment has been restored to an earlier state, so update
        it even if nothing has changed."""
        table = self.services.memory.table_in_launch()
        if table is self._published and not anew:
            return
        self._published = table
        self.environment[Slot.ALLOCATIONS_AT] = table.address
        self.environment[Slot.ALLOCATIONS] = table.count
        self._forget_bounds()
