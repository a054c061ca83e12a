"""The options of builds: which there are, and what each kind of call takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from warploom.clients.opencl.errors import ClError, Status
from warploom.frontends.opencl import HINTS, REGISTER_LIMIT

PLAIN = (
    *("-cl-single-precision-constant", "-cl-denorms-are-zero", "-cl-opt-disable"),
    *("-cl-fp32-correctly-rounded-divide-sqrt", "-cl-strict-aliasing", "-cl-mad-enable"),
    *("-cl-no-signed-zeros", "-cl-unsafe-math-optimizations", "-cl-finite-math-only"),
    *("-cl-fast-relaxed-math", "-cl-uniform-work-group-size", "-cl-kernel-arg-info"),
    *("-cl-no-subgroup-ifp", "-w", "-Werror", "-g", "-s", "-O0", "-O1", "-O2", "-O3"),
)
"""Options of the specification and of clang, as they are."""

STANDARD = re.compile(r"-cl-std=CL(1\.0|1\.1|1\.2|2\.0|3\.0)")
JOINED = re.compile(r"-[DIU].+", re.DOTALL)

AT_LINK = (
    *("-cl-denorms-are-zero", "-cl-no-signed-zeros", "-cl-unsafe-math-optimizations"),
    *("-cl-finite-math-only", "-cl-fast-relaxed-math", "-cl-no-subgroup-ifp"),
)
LIBRARY, ENABLED = "-create-library", "-enable-link-options"

FOR_CLANG = {"-cl-strict-aliasing": (), "-g": (), "-s": (), "-cl-no-subgroup-ifp": ()}
"""Options that change nothing here: lines are always recorded."""


def compiler_options(text: str, wrong: Status) -> list[str]:
    """Returns clang's options for those of a program, as a text. ClError(`wrong`) names the first
    that does not exist."""
    found: list[str] = []
    given = iter(_words(text, wrong))
    for word in given:
        if word in ("-D", "-I", "-U"):
            value = next(given, "")
            if not value:
                raise ClError(wrong, f"a value must follow {word}")
            found.append(word + value)
        elif word == "-x":
            raise ClError(
                wrong, f"-x {next(given, '')} is not supported: programs must be OpenCL C"
            )
        elif word in PLAIN:
            found.extend(FOR_CLANG.get(word, (word,)))
        elif (
            JOINED.fullmatch(word)
            or STANDARD.fullmatch(word)
            or HINTS.fullmatch(word)
            or REGISTER_LIMIT.fullmatch(word)
        ):
            found.append(word)
        else:
            raise ClError(wrong, f"{word!r} is not an OpenCL compiler option")
    return found


def link_options(text: str) -> Sequence[str]:
    """Returns the options of a link; INVALID_LINKER_OPTIONS for others."""
    wrong = Status.INVALID_LINKER_OPTIONS
    words = list(_words(text, wrong))
    for word in words:
        if word not in (*AT_LINK, LIBRARY, ENABLED):
            raise ClError(wrong, f"{word!r} is not a link option")
    if ENABLED in words and LIBRARY not in words:
        raise ClError(wrong, f"{ENABLED} requires {LIBRARY}")
    return words


def _words(text: str, wrong: Status) -> Iterator[str]:
    try:
        yield from shlex.split(text)
    except ValueError as error:
        raise ClError(wrong, f"the options are incomplete: {error}") from None
