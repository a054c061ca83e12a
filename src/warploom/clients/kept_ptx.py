"""PTX that a compiler writes to files beside the machine code that it hands over.

CuTe DSL assembles its kernels itself and loads machine code, but keeps their PTX on demand. The
PTX of machine code is the newest file with a kernel of the same name.
"""

from __future__ import annotations

import atexit
import io
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from warploom.clients.fatbin import machine_code_at

FOLDER, WANTED = "CUTE_DSL_DUMP_DIR", "CUTE_DSL_KEEP"
"""Variables of CuTe DSL: where it keeps files, and which."""

LINES = "CUTE_DSL_LINEINFO"
"""Its variable for lines of the Python source in PTX."""

LIBRARIES = "CUTE_DSL_LIBS"
"""Its variable for the library of its runtime."""

STAND_IN = Path(__file__).parent / "lib" / "libcute_dsl_runtime.so"

PREFIX = ".text."


def keep_ptx(_module: object) -> None:
    """Makes CuTe DSL keep PTX with lines of the source, and use the stand-in of its runtime, where
    the user does not say otherwise; runs when it is imported."""
    if WANTED not in os.environ and FOLDER not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="warploom-ptx-")
        atexit.register(folder.cleanup)
        os.environ[FOLDER] = folder.name
    os.environ.setdefault(WANTED, "ptx")
    os.environ.setdefault(LINES, "1")
    os.environ.setdefault(LIBRARIES, str(STAND_IN))


def kept_ptx(address: int) -> str | None:
    """Returns the PTX of the machine code in the image at an address; None where there is none."""
    folder = os.environ.get(FOLDER)
    names = {name for code in machine_code_at(address) for name in _kernels(code)} if folder else ()
    if not folder or not names:
        return None
    files = sorted(Path(folder).glob("*.ptx"), key=lambda file: file.stat().st_mtime, reverse=True)
    for text in (file.read_text("utf-8", errors="replace") for file in files):
        entries = set(re.findall(r"\.entry\s+([\w$]+)", text))
        if entries.issuperset(names):
            return text.rstrip("\0")
    return None


def _kernels(code: bytes) -> Iterator[str]:
    """Yields the names of the kernels in machine code: each has a section of its own."""
    with suppress(ELFError):
        for section in ELFFile(io.BytesIO(code)).iter_sections():
            if section.name.startswith(PREFIX):
                yield section.name.removeprefix(PREFIX)
