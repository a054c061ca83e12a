"""Reads the sources of a program, CUDA C++, OpenCL C or PTX, and turns each into verified PTX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warploom.core.collector import collector_paused
from warploom.core.errors import CompileError, WarploomError
from warploom.host.programs.cached_ptx import compile_cached
from warploom.ptx.module import Module
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

LANGUAGES = {".cu": "cuda", ".ptx": "ptx", ".cl": "opencl"}


def source_of(file: Path) -> tuple[str, str]:
    """Return the text of a file, and its language by suffix. Raises CompileError for what is no
    source, WarploomError for a file that cannot be read."""
    language = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise CompileError(
            f"{file} cannot be loaded: its suffix is {file.suffix or 'missing'}, and CUDA C++"
            f" (.cu), OpenCL C (.cl) and PTX (.ptx) are what can. Of a binary, load the"
            f" source or the PTX that it was made from (`cuobjdump -ptx` extracts it)."
        )
    return _read(file), language


def ptx_of(
    text: str,
    language: str,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str] = (),
    warp_size: int = 32,
) -> Module:
    """Return the PTX of a text in "cuda", "opencl" or "ptx", verified; messages call it `name`."""
    return verified(*compiled(text, language, name, compute_capability, options), warp_size)


def compiled(
    text: str,
    language: str,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str] = (),
) -> tuple[str, str]:
    """Return a text in "cuda", "opencl" or "ptx" as PTX, and what messages call that."""
    if language == "cuda":
        return compile_cached(text, name, compute_capability, options), f"{name}.ptx"
    if language == "opencl":
        from warploom.frontends.opencl import compile_opencl

        return compile_opencl(text, name, compute_capability, options), f"{name}.ptx"
    if language != "ptx":
        known = ", ".join(repr(known) for known in LANGUAGES.values())
        raise CompileError(f"the language {language!r} is none of {known}")
    if options:
        raise CompileError(f"PTX is not compiled, so these options mean nothing: {options}")
    return text, name


def verified(text: str, name: str, warp_size: int = 32) -> Module:
    """Return a PTX text, parsed and verified; messages call it `name`."""
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
    """Return one of several sources that are to be linked; CUDA C++ is compiled for that."""
    text, language = (str(source), "ptx") if _is_text(source) else source_of(Path(source))
    given = ("-rdc=true", *options) if language == "cuda" else ()
    return ptx_of(text, language, name, compute_capability, given, warp_size)


def name_of(source: str | Path, number: int) -> str:
    """Returns what stands for a source in messages: its path, or for a text its number."""
    return f"part {number}" if _is_text(source) else str(source)


def _is_text(source: str | Path) -> bool:
    return isinstance(source, str) and "\n" in source


def _read(file: Path) -> str:
    """Return the text of a source file; errors say what is wrong with one that is none."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
    try:
        text = data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        kind = "an ELF binary, such as a cubin" if data.startswith(b"\x7fELF") else "binary data"
        raise CompileError(
            f"{file} is not text but {kind}. Load the source or the PTX that it was made from"
            f" (`nvcc -ptx -lineinfo` makes it, `cuobjdump -ptx` extracts it)."
        )
    return text
