"""Checks device memory: exact lengths, guards between allocations, zeros, and lookups by
address."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.core.errors import Allocation, LaunchError, WarploomError
from warploom.machine.memory.allocator import ALIGNMENT, GUARD, Allocator
from warploom.machine.memory.device_memory import DeviceMemory, unwritten_bits
from warploom.simt.allocations import AllocationRow

MIB = 1 << 20


@pytest.fixture
def memory() -> Iterator[DeviceMemory]:
    made = DeviceMemory(256 * MIB)
    yield made
    made.close()


def test_a_device_of_64_gib_costs_nothing_until_it_is_used() -> None:
    memory = DeviceMemory()
    last = memory.allocate(memory.capacity - 2 * MIB)
    memory.write(last.address + last.size - 4, b"last")
    assert memory.read(last.address + last.size - 4, 4) == b"last"
    memory.close()


def test_allocations_are_aligned_exact_and_disjoint(memory: DeviceMemory) -> None:
    first, second = memory.allocate(10, "a"), memory.allocate(1000, "b")
    assert first.address % 256 == second.address % 256 == 0
    assert second.address - (first.address + first.size) >= 256
    assert memory.find(first.address + 9) == first
    assert memory.find(first.address + 10) is None
    with pytest.raises(WarploomError, match="11 bytes"):
        memory.view(first.address, 11)
    with pytest.raises(WarploomError):
        memory.view(first.address - 1, 1)


def test_nearest_is_by_distance_to_either_end(memory: DeviceMemory) -> None:
    assert memory.nearest(123) is None
    first, second = memory.allocate(256, "a"), memory.allocate(256, "b")
    gap = second.address - (first.address + 256)
    assert memory.nearest(first.address + 256) == first
    assert memory.nearest(second.address - 1) == second
    assert memory.nearest(first.address + 256 + gap // 2 + 10) == second
    assert memory.nearest(0) == first
    assert memory.nearest(1 << 60) == second


@pytest.mark.parametrize("size", [100, 5000, 3 * MIB + 77])
def test_freed_memory_is_zero_when_reallocated(memory: DeviceMemory, size: int) -> None:
    neighbour = memory.allocate(8, "neighbour")
    memory.write(neighbour.address, b"\xaa" * 8)
    first = memory.allocate(size)
    behind = memory.allocate(8, "behind")
    memory.write(behind.address, b"\xbb" * 8)
    memory.view(first.address, size)[:] = 255
    memory.free(first.address)
    assert memory.find(first.address) is None
    again = memory.allocate(size)
    assert again.address == first.address
    assert not memory.view(again.address, size).any()
    assert memory.read(neighbour.address, 8) == b"\xaa" * 8
    assert memory.read(behind.address, 8) == b"\xbb" * 8


def test_a_view_is_the_memory_itself(memory: DeviceMemory) -> None:
    made = memory.allocate(64)
    memory.view(made.address, 64)[5] = 7
    assert memory.read(made.address, 6) == bytes([0, 0, 0, 0, 0, 7])


def test_the_table_lists_what_is_live_in_order(memory: DeviceMemory) -> None:
    a, b = memory.allocate(8), memory.allocate(100, constant=True)
    before = memory.table()
    memory.free(a.address)
    after = memory.table()
    rows = [[a.address, a.address + 8, False], [b.address, b.address + 100, True]]
    assert before.rows.reshape(-1, AllocationRow.WORDS).tolist() == rows
    assert (after.rows[AllocationRow.start :: AllocationRow.WORDS].tolist(), after.count) == (
        [b.address],
        1,
    )
    assert memory.is_constant(b.address + 99)
    assert not memory.is_constant(b.address + 100)


def test_out_of_memory_reports_requested_and_available_bytes(memory: DeviceMemory) -> None:
    with pytest.raises(LaunchError, match="weights needs 1,073,741,824 bytes") as caught:
        memory.allocate(1 << 30, "weights")
    assert caught.value.requested == 1 << 30
    assert caught.value.limit is not None
    assert caught.value.limit < 256 * MIB
    memory.allocate(caught.value.limit)


def test_freeing_twice_is_an_error(memory: DeviceMemory) -> None:
    made = memory.allocate(8)
    memory.free(made.address)
    with pytest.raises(WarploomError, match="not the start"):
        memory.free(made.address)


def test_a_buffer_may_be_collected_during_an_allocation(
    memory: DeviceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs a finalizer while this thread holds the memory's lock, since Python collects garbage at
    any point."""
    garbage = [memory.allocate(16).address for _ in range(2)]
    take, made = Allocator.allocate, list[Allocation]()

    def collecting(allocator: Allocator, size: int, alignment: int = ALIGNMENT) -> int | None:
        memory.drop(garbage.pop())
        return take(allocator, size, alignment)

    def allocate() -> None:
        made.extend(memory.allocate(16) for _ in range(2))

    monkeypatch.setattr(Allocator, "allocate", collecting)
    thread = Thread(target=allocate, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for itself"
    assert set(memory.live()) == set(made)


def test_closing_keeps_views_valid() -> None:
    memory = DeviceMemory(256 * MIB)
    view = memory.view(memory.allocate(64).address, 64)
    memory.close()
    assert int(view.sum()) == 0


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4000)), max_size=60))
def test_allocations_are_disjoint_and_all_space_is_reused(steps: list[tuple[bool, int]]) -> None:
    start, end = 4096 + 17, 4096 + 40_000
    allocator = Allocator(start, end)
    whole = allocator.largest
    live: list[tuple[int, int]] = []
    for keep, size in steps:
        address = allocator.allocate(size)
        if address is None:
            assert allocator.largest < size
            continue
        assert address % ALIGNMENT == 0
        assert start <= address
        assert address + size <= end
        for other, other_size in live:
            assert address >= other + other_size + GUARD or other >= address + size + GUARD
        live.append((address, size))
        if not keep:
            allocator.give_back(*live.pop(size % len(live)))
    for address, size in live:
        allocator.give_back(address, size)
    assert allocator.largest == whole


def test_memory_reads_as_numpy_of_any_type(memory: DeviceMemory) -> None:
    made = memory.allocate(16)
    memory.view(made.address, 16).view(np.float32)[:] = [1, 2, 3, 4]
    assert np.frombuffer(memory.read(made.address, 16), np.float32).tolist() == [1, 2, 3, 4]


def test_a_finalizer_may_release_in_the_middle_of_a_change(
    memory: DeviceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs a finalizer in the middle of an allocation."""
    before = memory.free_bytes
    first = memory.allocate(64)
    take = Allocator.allocate

    def interrupted(allocator: Allocator, size: int, alignment: int = ALIGNMENT) -> int | None:
        memory.drop(first.address)
        return take(allocator, size, alignment)

    monkeypatch.setattr(Allocator, "allocate", interrupted)
    done: list[int] = []
    thread = Thread(target=lambda: done.append(memory.allocate(64).address), daemon=True)
    thread.start()
    thread.join(30)
    assert done, "the release waits for the allocation, which waits for it"
    assert memory.table().rows[AllocationRow.start :: AllocationRow.WORDS].tolist() == done
    assert memory.free_bytes == before - 64


@pytest.mark.parametrize(
    ("first", "size"), [(0, 100), (3, 61), (31, 2), (40, 20), (64, 32), (5, 0)]
)
def test_written_bytes_have_a_bit_each(first: int, size: int) -> None:
    memory = DeviceMemory(1 << 28)
    allocation = memory.allocate(100)
    memory.unwritten[allocation.address] = unwritten_bits(100)
    memory.mark_written(allocation.address + first, size)
    words = memory.unwritten[allocation.address]
    found = [byte for byte in range(100) if words[byte // 32] >> byte % 32 & 1]
    assert found == list(range(first, first + size))
