"""Caches on disk the PTX that NVRTC makes of CUDA C++: a source that was compiled before is not
compiled again, and the compiler, whose library takes long to load, is not loaded for it.

The key covers the text, its name, which the PTX's line table holds, the options, NVIDIA's wheels,
and the text of every other file that an `#include` may name, in any folder, whether or not the
preprocessor would come to the line; a file that appears later makes another key. What the text
alone does not decide is compiled each time: the date, `__has_include`, a file named by a macro, and
options that `compiler_options` does not have.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from warploom.host.programs.compiler_options import folder_in, is_plain
from warploom.llvm import disk_cache

_CONTINUED = re.compile(r"\\\r?\n")
_INCLUDE = re.compile(r'#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
_UNDECIDED = re.compile(
    r"__(?:DATE|TIME|TIMESTAMP)__|__has_(?:include|embed)|%:|\?\?="
    r"|#[ \t]*(?:/\*|include_next|embed|import|include(?![ \t]*[\"<]))"
)
"""What makes a compilation depend on more than the files that `_INCLUDE` finds, or writes a
directive in a way in which that does not find it."""


def compile_cached(
    text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str]
) -> str:
    """Returns the PTX of a CUDA C++ text: from the cache, or compiled and then cached. Raises
    CompileError as `frontends.cuda_cpp.compile_cuda`."""
    key = _key(text, name, compute_capability, options)
    found = None if key is None else disk_cache.find("ptx", key)
    if found is not None:
        return found.decode()
    from warploom.frontends.cuda_cpp import compile_cuda

    ptx = compile_cuda(text, name, compute_capability, options)
    if key is not None:
        disk_cache.store("ptx", key, ptx.encode())
    return ptx


def _key(
    text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str]
) -> str | None:
    """Returns the key of a source in the cache; None if it has to be compiled each time."""
    folders = [Path(name).parent]
    for option in options:
        folder = folder_in(option)
        if folder == "" or (folder is None and not is_plain(option, "cuda")):
            return None
        if folder is not None:
            folders.append(Path(folder))
    compiler = _compiler()
    files: dict[str, str] = {}
    if compiler is None or not _add_files(text, folders[:1], folders, files):
        return None
    included = (part for pair in sorted(files.items()) for part in pair)
    # The line table holds the absolute path, which depends on the working directory.
    place = str(Path(name).absolute())
    parts = (text, name, place, str(compute_capability), *options, "", *compiler, "", *included)
    return disk_cache.key_of(parts, ("frontends",))


def _add_files(text: str, own: list[Path], folders: list[Path], files: dict[str, str]) -> bool:
    """Adds to `files` the text of each file that a text may include, and that those may, by path,
    from every folder that has one of the name: which of them is taken is up to the compiler.
    `own`: the folders of the text and of those that include it. Returns False if the text alone
    does not decide what is compiled."""
    text = _CONTINUED.sub("", text)
    if _UNDECIDED.search(text):
        return False
    for quoted, bracketed in _INCLUDE.findall(text):
        for folder in (*own, *folders):
            path = folder / (quoted or bracketed)
            if str(path) in files or not path.is_file():
                continue
            files[str(path)] = content = path.read_text("latin-1")
            if not _add_files(content, [path.parent, *own], folders, files):
                return False
    return True


def _compiler() -> list[str] | None:
    """Returns what identifies NVRTC and its headers, of NVIDIA's wheels: the times at which their
    files were installed; None if they are not from wheels."""
    try:
        roots = list(importlib.import_module("nvidia.cu13").__path__)
    except ImportError:
        return None
    return [
        f"{path} {path.stat().st_mtime_ns}" for root in roots for path in _installed(Path(root))
    ]


def _installed(root: Path) -> Iterator[Path]:
    """Yields NVRTC's libraries and the folders of headers below a folder of wheels."""
    yield from sorted(root.glob("*/*nvrtc*"))
    yield from (root / part for part in ("include", "include/cccl") if (root / part).is_dir())
