"""Binaries of programs: PTX text, as NVIDIA's are, with the kernels as their source declares them
in a comment at its end."""

from __future__ import annotations

from base64 import b64decode, b64encode
from enum import IntEnum

import msgspec

from warploom.clients.linking import linked, parts_of
from warploom.clients.opencl.kernel_calls import with_called_kernels
from warploom.core.input_files import reading
from warploom.frontends.opencl_metadata import DeclaredKernel

MARK = "\n//warploom-opencl "
"""What the comment begins with."""


class BinaryType(IntEnum):
    """CL_PROGRAM_BINARY_TYPE."""

    NONE = 0
    OBJECT = 1
    LIBRARY = 2
    EXECUTABLE = 4


class Binary(msgspec.Struct, frozen=True):
    """A compiled program: its PTX, its kind, its kernels as declared, and its source, in whose
    lines messages are."""

    ptx: str
    type: int
    kernels: dict[str, DeclaredKernel] = {}
    name: str = "program"
    source: str = ""

    @property
    def data(self) -> bytes:
        """Returns the binary as programs get it."""
        facts = msgspec.json.encode(msgspec.structs.replace(self, ptx=""))
        return f"{self.ptx}{MARK}{b64encode(facts).decode()}\n".encode()


def read_binary(data: bytes) -> Binary | None:
    """Returns what a binary has; None for what is no PTX. Raises WarploomError for one that is
    damaged."""
    text = data.rstrip(b"\0").decode(errors="replace")
    ptx, mark, facts = text.rpartition(MARK)
    if not mark:
        is_ptx = ".version" in text and ".target" in text
        return Binary(text, BinaryType.EXECUTABLE) if is_ptx else None
    with reading("the binary", "is damaged", "Build the program again"):
        found = msgspec.json.decode(b64decode(facts.strip(), validate=True), type=Binary)
    return msgspec.structs.replace(found, ptx=ptx)


def link_binaries(parts: list[Binary], type: BinaryType) -> Binary:
    """Returns several compiled programs as one. Raises WarploomError where they do not fit."""
    every = [item for part in parts for item in parts_of(part.name, part.ptx).items()]
    texts = with_called_kernels([text for _, text in every])
    named = [(f"{every[n][0]}, part {n + 1}", text) for n, text in enumerate(texts)]
    kernels = {name: one for part in parts for name, one in part.kernels.items()}
    first = parts[0]
    source = first.source if len(parts) == 1 else ""
    return Binary(linked(named), type, kernels, first.name, source)
