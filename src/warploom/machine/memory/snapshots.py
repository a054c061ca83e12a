"""Copies of device memory at several points of a launch; pages that are equal are kept once."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.memory.device_memory import DeviceMemory, MemoryState
from warploom.machine.memory.pages import PAGE_BYTES, PageStore

Bytes = npt.NDArray[np.uint8]

_compare: Any = ctypes.CDLL(None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class MemorySnapshot:
    """The content of memory at one point of a launch: the pages of each allocation by its address,
    and what was allocated."""

    pages: dict[int, tuple[Bytes, ...]]
    state: MemoryState


class MemorySnapshots:
    """Takes images of a device's memory and puts them back. `allocates`: kernels allocate and free
    memory between two images. `constants`: images have constant memory, too, which kernels cannot
    write."""

    def __init__(self, memory: DeviceMemory, *, allocates: bool, constants: bool = False) -> None:
        self._memory, self._allocates, self._constants = memory, allocates, constants
        self._latest: MemorySnapshot | None = None
        self._store = PageStore()

    @property
    def bytes(self) -> int:
        """Return the memory that images take up, without what is in files."""
        return self._store.in_memory

    @property
    def file_bytes(self) -> int:
        """Return the bytes of images that are in files."""
        return self._store.in_file

    def take(self) -> MemorySnapshot:
        """Return the content of memory now."""
        latest = self._latest.pages if self._latest else {}
        pages = {
            address: tuple(self._stored_pages(content, latest.get(address, ())))
            for address, content in self._contents()
        }
        self._latest = MemorySnapshot(pages, self._memory.state())
        return self._latest

    def restore(self, image: MemorySnapshot) -> None:
        """Make memory what it was when the image was taken."""
        if self._allocates:
            self._memory.restore(image.state)
        for address, content in self._contents():
            for page, part in zip(image.pages[address], _pages(content), strict=True):
                if not _equal(page, part):
                    part[:] = page
        self._latest = image

    def _stored_pages(self, content: Bytes, before: tuple[Bytes, ...]) -> Iterator[Bytes]:
        """Yield the pages of an allocation: those of an image before where they are the same."""
        for number, part in enumerate(_pages(content)):
            page = before[number] if number < len(before) else _ZERO[: len(part)]
            same = len(page) == len(part) and _equal(page, part)
            yield page if same else self._store.keep(part)

    def _contents(self) -> Iterator[tuple[int, Bytes]]:
        memory = self._memory
        for allocation in memory.live():
            constant = not self._constants and memory.is_constant(allocation.address)
            if allocation.size and not constant:
                yield allocation.address, memory.view(allocation.address, allocation.size)


_ZERO: Bytes = np.zeros(PAGE_BYTES, np.uint8)


def _pages(content: Bytes) -> Iterator[Bytes]:
    for start in range(0, len(content), PAGE_BYTES):
        yield content[start : start + PAGE_BYTES]


def _equal(a: Bytes, b: Bytes) -> bool:
    return _compare(a.ctypes.data, b.ctypes.data, len(b)) == 0
