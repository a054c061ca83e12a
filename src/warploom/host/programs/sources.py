"""Reads the sources of a program: CUDA C++, HIP, OpenCL C or PTX, and makes PTX of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warploom.core.collector import collector_paused
from warploom.core.errors import CompileError, WarploomError
from warploom.frontends.hip import HIP_OPTIONS
from warploom.host.programs.cached_ptx import compile_cached
from warploom.ptx.module import Module
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

BYTE_ORDER_MARK = "\ufeff"

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""

BINARY = re.compile("\0")
CONTROL = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""Characters that no source in Latin-1 has; form feed, vertical tab and escape may occur."""

LANGUAGES = {".cu": "cuda", ".hip": "hip", ".ptx": "ptx", ".cl": "opencl"}


def source_of(file: Path) -> tuple[str, str]:
    """Returns the text of a file, and its language by suffix. Raises CompileError for what is no
    source, WarploomError for a file that cannot be read."""
    language = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise CompileError(
            f"{file} cannot be loaded as kernel source: its suffix must be .cu, .hip, .cl or .ptx. "
            f"To run a program: `warploom run {file.name}`. For a binary, load its source, or the "
            "PTX that `cuobjdump -ptx` extracts."
        )
    return read_source(file), language


def ptx_of(
    text: str,
    language: str,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str] = (),
    warp_size: int = 32,
) -> Module:
    """Returns the PTX of a text in "cuda", "hip", "opencl" or "ptx", verified; messages call it
    `name`."""
    return verified(*compiled(text, language, name, compute_capability, options), warp_size)


def compiled(
    text: str,
    language: str,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str] = (),
) -> tuple[str, str]:
    """Returns a text in "cuda", "hip", "opencl" or "ptx" as PTX, and what messages call that."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if language == "hip":
        language, options = "cuda", (*options, *HIP_OPTIONS)
    if language == "cuda":
        return compile_cached(text, name, compute_capability, options), f"{name}.ptx"
    if language == "opencl":
        from warploom.frontends.opencl import compile_opencl

        return compile_opencl(text, name, compute_capability, options), f"{name}.ptx"
    if language != "ptx":
        known = ", ".join(repr(known) for known in LANGUAGES.values())
        raise CompileError(f"the language {language!r} is not one of {known}")
    if options:
        raise CompileError(f"PTX is not compiled, so these options have no effect: {options}")
    return text, name


def verified(text: str, name: str, warp_size: int = 32) -> Module:
    """Returns a PTX text, parsed and verified; messages call it `name`."""
    with collector_paused():
        made = parse(text, name, warp_size)
        verify(made)
    return made


def part_of(
    source: str | Path,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str],
    warp_size: int,
) -> Module:
    """Returns one of several sources that are to be linked; C++ is compiled for that."""
    text, language = (str(source), "ptx") if _is_text(source) else source_of(Path(source))
    given = ("-rdc=true", *options) if language in ("cuda", "hip") else ()
    return ptx_of(text, language, name, compute_capability, given, warp_size)


def name_of(source: str | Path, number: int) -> str:
    """Returns what stands for a source in messages: its path, or for a text its number."""
    return f"part {number}" if _is_text(source) else str(source)


def _is_text(source: str | Path) -> bool:
    return isinstance(source, str) and "\n" in source


def read_source(file: Path) -> str:
    """Returns the text of a source file: UTF-8, UTF-16 with a byte order mark, or, as NVIDIA's
    compilers accept, Latin-1. Raises CompileError for a binary file, WarploomError where it cannot
    be read."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
    text = decode_source(data)
    if text is None:
        is_elf = data.startswith(b"\x7fELF")
        kind = "is an ELF binary (such as a cubin)" if is_elf else "contains binary data"
        raise CompileError(
            f"{file} {kind}, not text. Load its source or its PTX (made by `nvcc -ptx "
            "-lineinfo`, or extracted by `cuobjdump -ptx`)."
        )
    return text


def decode_source(data: bytes) -> str | None:
    """Returns the text of a source without its byte order mark, None for binary data. Where no line
    ends in a line feed, carriage returns end lines: NVIDIA's compilers would read one line."""
    data = data if data.startswith(UTF_16) else data.rstrip(b"\0")
    encodings = ("utf-16",) if data.startswith(UTF_16) else ("utf-8-sig", "latin-1")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if BINARY.search(text) or (encoding == "latin-1" and CONTROL.search(text)):
            return None
        return text if "\n" in text else text.replace("\r", "\n")
    return None
