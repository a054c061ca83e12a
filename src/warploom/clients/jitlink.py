"""libnvJitLink in front of NVIDIA's: links PTX itself, and has NVIDIA's turn LTO-IR into PTX. What
it hands over as a "cubin" is the linked PTX.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from warploom.clients.fatbin import NoPtx, ptx_of
from warploom.clients.linking import linked
from warploom.clients.nvidia_libraries import real_library
from warploom.clients.registry import Registry
from warploom.clients.session import session
from warploom.clients.targets import lacks_fma, target_for
from warploom.core.errors import WarploomError

SUCCESS, UNRECOGNIZED, INVALID_INPUT, PTX_COMPILE, INTERNAL = 0, 1, 4, 3, 6

CUBIN, PTX, LTOIR, FATBIN, OBJECT, LIBRARY = 1, 2, 3, 4, 5, 6

ARCHITECTURE = re.compile(rb"(-arch=(?:sm|compute)_)(\d+\w?)")


def _failed(error: BaseException, name: str) -> int:
    print(f"warploom: {name}: {error}", file=sys.stderr)
    return INTERNAL


def _missing(_name: str, _words: Sequence[int]) -> int:
    return UNRECOGNIZED


registry = Registry(_failed, _missing)


@dataclass
class Link:
    """A link: its options, PTX inputs by name, LTO-IR inputs by name, and what came of them."""

    options: list[bytes]
    ptx: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ltoir: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    outcome: bytes = b""
    log: bytes = b"\0"

    @property
    def capability(self) -> tuple[int, int]:
        """Returns the compute capability that is linked for."""
        for option in self.options:
            if option.startswith(b"-arch="):
                digits = bytes(c for c in option if 48 <= c <= 57)
                return int(digits[:-1]), int(digits[-1:])
        return 8, 0

    @property
    def registers(self) -> int:
        """Returns the limit of registers a thread; 0 where there is none."""
        found = (option.partition(b"-maxrregcount=")[2] for option in self.options)
        return next((int(digits) for digits in found if digits.isdigit()), 0)


_links: dict[int, Link] = {}
_numbers = count(0x6A17_0000_0000, 0x100)


def _put(address: int, value: int) -> None:
    ctypes.c_uint64.from_address(address).value = value


@registry.entry("nvJitLinkCreate")
def create(link: int, number: int, options: int) -> int:
    given = [
        ctypes.c_char_p.from_address(options + 8 * index).value or b"" for index in range(number)
    ]
    handle = next(_numbers)
    _links[handle] = Link(given)
    _put(link, handle)
    return SUCCESS


@registry.entry("nvJitLinkDestroy")
def destroy(link: int) -> int:
    handle = ctypes.c_uint64.from_address(link)
    gone = _links.pop(handle.value, None)
    handle.value = 0
    return SUCCESS if gone else INVALID_INPUT


@registry.entry("nvJitLinkAddData")
def add_data(link: int, kind: int, data: int, size: int, name: int) -> int:
    called = ctypes.string_at(name) if name else b"input"
    return _add(link, kind, ctypes.string_at(data, size), called)


@registry.entry("nvJitLinkAddFile")
def add_file(link: int, kind: int, path: int) -> int:
    name = ctypes.string_at(path)
    try:
        data = Path(name.decode()).read_bytes()
    except OSError as error:
        _links[link].log = f"{name.decode()}: {error.strerror}".encode() + b"\0"
        return INVALID_INPUT
    return _add(link, kind, data, name)


def _add(handle: int, kind: int, data: bytes, name: bytes) -> int:
    link = _links.get(handle)
    if link is None:
        return INVALID_INPUT
    if kind == LIBRARY:
        return SUCCESS  # the device runtime, which is built in
    if kind == LTOIR:
        link.ltoir.append((data, name))
        return SUCCESS
    try:
        link.ptx.append((name.decode(errors="replace"), ptx_of(data, link.capability)))
    except NoPtx as missing:
        link.log = f"{name.decode(errors='replace')}: {missing}".encode() + b"\0"
        return INVALID_INPUT
    return SUCCESS


@registry.entry("nvJitLinkComplete")
def complete(handle: int) -> int:
    link = _links.get(handle)
    if link is None:
        return INVALID_INPUT
    parts = list(link.ptx)
    if link.ltoir:
        with session().compiling():
            made = _optimized(link)
        if made is None:
            return PTX_COMPILE
        parts.append(("linked LTO-IR", made))
    if not parts:
        return INVALID_INPUT
    try:
        link.outcome = linked(parts, link.registers).encode() + b"\0"
    except WarploomError as error:
        link.log = str(error).encode() + b"\0"
        return PTX_COMPILE
    return SUCCESS


def _optimized(link: Link) -> str | None:
    """Returns the LTO-IR inputs as PTX, by NVIDIA's library; None, with its log kept, where it
    fails."""
    real = real_library("libnvJitLink.so.13")
    kept = [option for option in link.options if option not in (b"-lto", b"-ptx")]
    options = [b"-lto", b"-ptx", *(ARCHITECTURE.sub(_target, option) for option in kept)]
    if lacks_fma():
        options.append(b"-fma=0")
    array = (ctypes.c_char_p * len(options))(*options)
    handle = ctypes.c_void_p()
    if real.nvJitLinkCreate(ctypes.byref(handle), len(options), array):
        link.log = b"nvJitLink does not take the options " + b" ".join(options) + b"\0"
        return None
    try:
        for data, name in link.ltoir:
            if real.nvJitLinkAddData(handle, LTOIR, data, ctypes.c_size_t(len(data)), name):
                link.log = _text(real, handle, "ErrorLog")
                return None
        if real.nvJitLinkComplete(handle):
            link.log = _text(real, handle, "ErrorLog")
            return None
        return _text(real, handle, "LinkedPtx").rstrip(b"\0").decode()
    finally:
        real.nvJitLinkDestroy(ctypes.byref(handle))


def _target(option: re.Match[bytes]) -> bytes:
    """Returns the option for the architecture that NVIDIA's library optimizes for."""
    return option[1] + target_for(option[2].decode()).encode()


def _text(real: ctypes.CDLL, handle: ctypes.c_void_p, what: str) -> bytes:
    """Returns what NVIDIA's library has to give of that name."""
    size = ctypes.c_size_t()
    getattr(real, f"nvJitLinkGet{what}Size")(handle, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value + 1)
    getattr(real, f"nvJitLinkGet{what}")(handle, data)
    return data.value + b"\0"


def _give(target: int, data: bytes) -> int:
    ctypes.memmove(target, data, len(data))
    return SUCCESS


@registry.entry("nvJitLinkGetLinkedCubinSize", "nvJitLinkGetLinkedPtxSize")
def size_of_outcome(link: int, size: int) -> int:
    _put(size, len(_links[link].outcome))
    return SUCCESS


@registry.entry("nvJitLinkGetLinkedCubin", "nvJitLinkGetLinkedPtx")
def outcome(link: int, target: int) -> int:
    return _give(target, _links[link].outcome)


@registry.entry("nvJitLinkGetErrorLogSize")
def size_of_log(link: int, size: int) -> int:
    _put(size, len(_links[link].log))
    return SUCCESS


@registry.entry("nvJitLinkGetErrorLog")
def log(link: int, target: int) -> int:
    return _give(target, _links[link].log)


@registry.entry("nvJitLinkGetInfoLogSize")
def size_of_info(_link: int, size: int) -> int:
    _put(size, 1)
    return SUCCESS


@registry.entry("nvJitLinkGetInfoLog")
def info(_link: int, target: int) -> int:
    return _give(target, b"\0")


@registry.entry("nvJitLinkVersion")
def version(major: int, minor: int) -> int:
    return int(
        real_library("libnvJitLink.so.13").nvJitLinkVersion(
            ctypes.c_void_p(major), ctypes.c_void_p(minor)
        )
    )
