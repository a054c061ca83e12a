"""Errors, synchronization, streams and events: the driver's own, under the runtime's names."""

from __future__ import annotations

from collections.abc import Callable

from warploom.clients.driver import contexts, streams
from warploom.clients.driver.state import state
from warploom.clients.runtime.table import entry, last_error


@entry("cudaGetLastError")
def get_last_error() -> int:
    return last_error(forget=True)


@entry("cudaPeekAtLastError")
def peek_at_last_error() -> int:
    return last_error(forget=False)


@entry("cudaDeviceSynchronize", "cudaThreadSynchronize")
def synchronize() -> None:
    contexts.synchronize()


@entry("cudaDeviceReset", "cudaThreadExit")
def reset() -> None:
    contexts.primary_reset(0)
    state.stack.clear()


@entry("cudaStreamCreate")
def stream_create(stream: int) -> None:
    streams.create(stream, 0)


@entry("cudaEventCreate")
def event_create(event: int) -> None:
    streams.event_create(event, 0)


SAME: dict[str, Callable[..., int | None]] = {
    "cudaDeviceGetLimit": contexts.get_limit,
    "cudaDeviceSetLimit": contexts.set_limit,
    "cudaDeviceGetStreamPriorityRange": contexts.priority_range,
    "cudaStreamCreateWithFlags": streams.create,
    "cudaStreamCreateWithPriority": streams.create_with_priority,
    "cudaStreamSynchronize": streams.synchronize,
    "cudaStreamQuery": streams.query,
    "cudaEventCreateWithFlags": streams.event_create,
    "cudaEventRecord": streams.event_record,
    "cudaEventRecordWithFlags": streams.record_with,
    "cudaStreamDestroy": streams.destroy,
    "cudaStreamWaitEvent": streams.wait_event,
    "cudaStreamAddCallback": streams.add_callback,
    "cudaStreamGetFlags": streams.flags,
    "cudaStreamGetPriority": streams.priority,
    "cudaLaunchHostFunc": streams.host_function,
    "cudaEventDestroy": streams.event_destroy,
    "cudaEventQuery": streams.event_query,
    "cudaEventSynchronize": streams.event_synchronize,
    "cudaEventElapsedTime": streams.elapsed,
}
"""What takes the same arguments."""

for _name, _function in SAME.items():
    entry(_name)(_function)
