"""Chooses the verb that is meant: one launch of a kernel from a file, or a whole program."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

RUN, PROGRAM = "run", "run-program"
CHECK, CHECK_PROGRAM = "check", "check-program"
DEBUG, DEBUG_PROGRAM, DEBUG_ADAPTER = "debug", "debug-program", "debug-adapter"

FLAGS = ("--caching-allocator", "--batch", "--optimized")
"""Options of programs that have no value."""

MAIN = re.compile(r"^\s*(?:int|auto|void)\s+main\s*\(", re.MULTILINE)


def verbs(args: Sequence[str]) -> list[str]:
    """Return the arguments of the command line; `run`, `check` or `debug` before a program becomes
    the hidden verb for it, and `debug` without a file that for editors."""
    hidden = {RUN: PROGRAM, CHECK: CHECK_PROGRAM, DEBUG: DEBUG_PROGRAM}
    if args and args[0] == DEBUG and (args[1:2] == ["--dap"] or args[1:2] == ["--port"]):
        return [DEBUG_ADAPTER, *args[1:]]
    if args and args[0] in hidden and is_program(args[1:]):
        return [hidden[args[0]], *args[1:]]
    return list(args)


def is_program(args: Sequence[str]) -> bool:
    """Returns whether the first argument that is no option, nor an option's value, names a
    program."""
    given = iter(args)
    for arg in given:
        if arg.startswith("-") and arg != "-":
            if arg == "--":
                return next(given, None) is not None
            if arg in ("--help", "-h"):
                return False
            if "=" not in arg and arg not in FLAGS:
                next(given, None)
            continue
        return _names_program(arg)
    return False


def _names_program(name: str) -> bool:
    path = Path(name)
    if path.suffix == ".cu":
        try:
            return bool(MAIN.search(path.read_text(errors="replace")))
        except OSError:
            return False
    if path.suffix.lower() in (".ptx", ".cl"):
        return False
    return path.suffix == ".py" or (path.exists() and not path.suffix) or bool(shutil.which(name))
