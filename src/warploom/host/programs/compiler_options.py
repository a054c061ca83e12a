"""Lists the options of the compilers that name no file and write none, by the form of each."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BOOLEAN = r"=(?:true|false)"

_NVRTC = (
    r"(?:-D|--define-macro=)[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=.*)?",
    r"(?:-U|--undefine-macro=)[A-Za-z_]\w*",
    r"--?std=\w[\w+]*",
    r"(?:-arch|--gpu-architecture)=(?:compute|sm|lto)_\d+[af]?",
    rf"(?:-rdc|--relocatable-device-code)(?:{_BOOLEAN})?",
    r"--?use_fast_math",
    rf"--?(?:fmad|ftz|prec-div|prec-sqrt){_BOOLEAN}",
    r"--?maxrregcount=\d+",
    r"-lineinfo|--generate-line-info",
    r"-default-device|--device-as-default-execution-space",
    r"-G|--device-debug",
    r"--?restrict",
    r"-w|--disable-warnings",
    r"--?extra-device-vectorization",
    r"--?diag-(?:error|suppress|warn)=[\d,]+",
)

_CLANG = (
    r"-D[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=.*)?",
    r"-U[A-Za-z_]\w*",
    r"-cl-std=\w[\w.+]*",
    r"-cl-[a-z][a-z-]*(?:=\d+)?",
    r"-O[0-3s]?",
    r"-w|-Werror|-Wno-[a-z][a-z0-9-]*|-Wall|-Wextra",
    r"-f(?:no-)?fast-math",
)

PLAIN_OPTIONS = {
    "cuda": re.compile("|".join(f"(?:{one})" for one in _NVRTC)),
    "opencl": re.compile("|".join(f"(?:{one})" for one in _CLANG)),
}
"""The whole text of an option that names no file, by language."""

FOLDER_OPTIONS = ("-I", "--include-path=")
"""The beginnings of options that name a folder of files to include."""


def is_plain(option: str, language: str) -> bool:
    """Returns whether an option of a language's compiler names no file and writes none."""
    return option.isprintable() and PLAIN_OPTIONS[language].fullmatch(option) is not None


def folder_in(option: str) -> str | None:
    """Returns the folder that an option such as `-Iinclude` names, empty if that is the next
    option; None for other options."""
    prefix = next((one for one in FOLDER_OPTIONS if option.startswith(one)), None)
    return None if prefix is None else option.removeprefix(prefix)


def folders_of(options: Sequence[str]) -> list[str]:
    """Returns the folders that options name, in either form: `-Iinclude`, or `-I` and `include`."""
    found = [(folder_in(option), number) for number, option in enumerate(options, 1)]
    return [
        folder or options[number]
        for folder, number in found
        if folder or (folder == "" and number < len(options))
    ]
