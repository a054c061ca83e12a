"""Makes the findings of the tool "leak": memory that is allocated when a program ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warploom.machine.memory.device_memory import DeviceMemory
from warploom.sanitize.findings import WARNING, Finding


@dataclass(frozen=True, slots=True)
class LiveAllocation:
    """Describes an allocation that was not freed: its `kind` ("device", "managed", "host", "heap"),
    and the call stack that allocated it, the innermost frame first."""

    kind: str
    size: int
    address: int
    call_stack: tuple[str, ...] = ()


def alive_on_heap(memory: DeviceMemory) -> list[LiveAllocation]:
    """Returns the allocations that kernels have made with `malloc` and not freed."""
    heap = memory.heap
    return [
        LiveAllocation(
            "heap", size, address, (heap.lines[address],) if address in heap.lines else ()
        )
        for address, size in heap.sizes.items()
    ]


FREED_BY = {
    "device": "cudaFree",
    "managed": "cudaFree",
    "host": "cudaFreeHost",
    "registered": "cudaHostUnregister",
    "heap": "free, in a kernel",
    "buffer": "clReleaseMemObject",
    "image": "clReleaseMemObject",
    "shared": "clSVMFree",
}


def leaks(alive: Iterable[LiveAllocation]) -> list[Finding]:
    """Returns one finding for each call stack and kind of memory."""
    groups: dict[tuple[str, tuple[str, ...]], list[LiveAllocation]] = {}
    for allocation in alive:
        groups.setdefault((allocation.kind, allocation.call_stack), []).append(allocation)
    return [
        _finding(kind, call_stack, allocations)
        for (kind, call_stack), allocations in groups.items()
    ]


def _finding(kind: str, call_stack: tuple[str, ...], allocations: list[LiveAllocation]) -> Finding:
    first, size = allocations[0], sum(allocation.size for allocation in allocations)
    at = f"{'the first ' * (len(allocations) > 1)}at {first.address:#x}"
    memory = "the kernels' heap" if kind == "heap" else f"{kind} memory"
    words = ["made by", *["called by"] * len(call_stack)]
    places = [f"    {word} {place}" for word, place in zip(words, call_stack, strict=False)]
    message = "\n".join(
        (
            f"Leaked {size:,} bytes of {memory}, {at}",
            *places,
            f"    It was not freed by the end of the program. Free it with {FREED_BY[kind]}.",
        )
    )
    line = call_stack[0].rpartition("(")[2].rstrip(")") if call_stack else ""
    return Finding(
        "leak", "leaked memory", WARNING, kind, line, "", (), "", message, len(allocations)
    )
