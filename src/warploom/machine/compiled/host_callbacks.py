"""Serves compiled code: a function of the host that it calls by address.

Reads the arguments from the buffer of the warp, asks `machine.services`, and leaves the results
there. What kernels allocate or free meanwhile shows in the environment when they go on.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import Slot, local_stride
from warploom.core.errors import Allocation
from warploom.machine.cancellation import Cancellation
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import WARP_SIZE
from warploom.machine.memory.device_memory import AllocationTable
from warploom.machine.services import ServiceCall, Services
from warploom.program.services import service_of
from warploom.ptx.ir import Space, Vector
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE

ALL_ONES = (1 << 64) - 1

_CALLBACK_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)

YIELD_EVERY, YIELD_SECONDS = 0.02, 0.0001
"""How often a kernel that calls the host leaves the interpreter to others, and for how long."""

DONE, FAILED = 0, 1
"""What compiled code hears: it goes on, or leaves."""


class HostCallbacks:
    """Serves one launch. `error` is what a service raised; `forget_bounds` has checks of
    accesses forget what they know of allocations; `environment` is the worker's."""

    def __init__(
        self,
        services: Services,
        forget_bounds: Callable[[], None],
        environment: npt.NDArray[np.int64],
    ) -> None:
        self.services, self.environment = services, environment
        self._forget_bounds = forget_bounds
        self.error: BaseException | None = None
        self._yielded = time.monotonic()
        self.stop = Cancellation()
        """Looked at before each call: a kernel that calls for ever never pauses by itself."""
        self._published: AllocationTable | None = None

    @cached_property
    def _function(self) -> Any:
        return _CALLBACK_TYPE(self._serve)

    @property
    def address(self) -> int:
        """Returns where compiled code calls."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _serve(self, _: int, warp: int, instruction: int, mask: int, data: int) -> int:
        try:
            self._yield_interpreter()
            self.stop.check()
            self._call_service(warp, instruction, mask, data)
        except BaseException as error:
            self.error = error
            return FAILED
        self.publish_allocations()
        return DONE

    def _yield_interpreter(self) -> None:
        """Leaves the interpreter to other threads now and then. This one gives its lock back after
        each call and takes it again at once, so that a thread which waits for the lock, to hear
        Ctrl-C for example, can wait for seconds."""
        now = time.monotonic()
        if now - self._yielded > YIELD_EVERY:
            time.sleep(YIELD_SECONDS)
            self._yielded = time.monotonic()

    def _call_service(self, warp: int, index: int, mask: int, data: int) -> None:
        made = self.services.program.instructions[index]
        given, name = made.operands[2], service_of(made)
        assert isinstance(given, Vector)
        assert name is not None
        rows = max(1, len(given.elements))
        words = (ctypes.c_uint64 * (rows * WARP_SIZE)).from_address(data)
        table = [words[row * WARP_SIZE : (row + 1) * WARP_SIZE] for row in range(rows)]
        block = int(self.environment[Slot.BLOCK])

        def read_memory(lane: int, address: int, size: int) -> bytes:
            return self._read_generic(
                Fault(FaultKind.OUT_OF_BOUNDS, index, block, warp, lane), address, size
            )

        lanes = tuple(lane for lane in range(WARP_SIZE) if mask >> lane & 1)
        arguments = tuple(table[: len(given.elements)])
        answers = self.services.serve(
            ServiceCall(name, index, block, warp, lanes, arguments, read_memory)
        )
        words[:WARP_SIZE] = [serve & ALL_ONES for serve in answers]

    def _read_generic(self, fault: Fault, address: int, size: int) -> bytes:
        """Bytes at a generic address, as a lane sees them."""
        program, memory = self.services.program, self.services.memory
        space, offset = Space.GLOBAL, address
        if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
            space, offset = Space.SHARED, address - SHARED_WINDOW
            length = int(self.environment[Slot.SHARED_BYTES])
            own = Allocation(0, length, "the block's shared memory")
        elif LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_SIZE:
            space, offset = Space.LOCAL, address - LOCAL_WINDOW
            own = Allocation(0, program.local_bytes, "the thread's local memory")
        else:
            own = memory.find(address) or memory.nearest(address)
        if own is None or not own.address <= offset <= own.address + own.size - size:
            wrong = replace(fault, address=offset, size=size, space=space)
            raise fault_error(wrong, program, self.services.launch, own)
        if space is Space.LOCAL:
            return self._read_local(fault, offset, size)
        if space is Space.SHARED:
            return ctypes.string_at(int(self.environment[Slot.SHARED_AT]) + offset, size)
        return memory.read(address, size)

    def _read_local(self, fault: Fault, offset: int, size: int) -> bytes:
        """Local memory is interleaved: word w of lane l is word w * 32 + l of the warp's."""
        stride = local_stride(self.services.program.local_bytes)
        start = int(self.environment[Slot.LOCAL_AT]) + fault.warp * stride
        places = (
            start + (n // 4 * WARP_SIZE + fault.lane) * 4 + n % 4
            for n in range(offset, offset + size)
        )
        return b"".join(ctypes.string_at(place, 1) for place in places)

    def publish_allocations(self, *, anew: bool = False) -> None:
        """Let checks see what is live now; bounds that they remember may be of what is gone.
        `anew`: the environment has been put back to an earlier state."""
        table = self.services.memory.table_in_launch()
        if table is self._published and not anew:
            return
        self._published = table
        self.environment[Slot.ALLOCATIONS_AT] = table.address
        self.environment[Slot.ALLOCATIONS] = table.count
        self._forget_bounds()
