"""The link API: PTX of several inputs as one program."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from warploom.clients.driver.jit_options import Options, read_options
from warploom.clients.driver.modules import read_file
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, text_at, unsigned
from warploom.clients.fatbin import NoPtx, ptx_of
from warploom.clients.linking import linked
from warploom.core.errors import WarploomError

CUBIN, PTX, FATBIN, OBJECT, LIBRARY = 0, 1, 2, 3, 4


@dataclass
class Link:
    """A link in progress: the inputs with their names, and the outcome once complete."""

    options: Options
    parts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    outcome: ctypes.Array[ctypes.c_char] | None = None


@entry("cuLinkCreate", "cuLinkCreate_v2")
def create(count: int, names: int, values: int, link: int) -> None:
    context = state.current()
    put(link, state.own(context, Link(read_options(count, names, values))))


@entry("cuLinkAddData", "cuLinkAddData_v2")
def add_data(link: int, kind: int, data: int, size: int, name: int) -> None:
    if not data:
        raise DriverError(Result.INVALID_VALUE)
    called = text_at(name) if name else "input"
    _add(state.handles.get(link, Link), kind, ctypes.string_at(data, unsigned(size)), called)


@entry("cuLinkAddFile", "cuLinkAddFile_v2")
def add_file(link: int, kind: int, path: int) -> None:
    found = state.handles.get(link, Link)
    called = text_at(path)
    _add(found, kind, bytes(read_file(called))[:-1], called)


def _add(link: Link, kind: int, data: bytes, name: str) -> None:
    if kind == LIBRARY:
        return  # NVIDIA's device runtime, the one library that clients add, is built in
    with link.options.reporting():
        try:
            text = ptx_of(data, state.device.spec.compute_capability)
        except NoPtx as missing:
            raise DriverError(Result.INVALID_IMAGE, f"{name}: {missing}") from None
        link.parts.append((name, text))


@entry("cuLinkComplete")
def complete(link: int, binary: int, size: int) -> None:
    """Completes a link; the "binary" is PTX text again."""
    found = state.handles.get(link, Link)
    with found.options.reporting():
        try:
            text = linked(found.parts, found.options.registers)
        except WarploomError as error:
            raise DriverError(Result.INVALID_PTX, str(error)) from None
    found.outcome = ctypes.create_string_buffer(text.encode())
    put(binary, ctypes.addressof(found.outcome))
    offer(size, len(found.outcome))


@entry("cuLinkDestroy")
def destroy(link: int) -> None:
    state.handles.get(link, Link)
    state.handles.remove(link)
