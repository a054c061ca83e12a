"""Chooses the verb that is meant: one launch of a kernel from a file, or a whole program."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from warploom.host.core_files import SUFFIX

RUN, PROGRAM = "run", "run-program"
CHECK, CHECK_PROGRAM = "check", "check-program"
DEBUG, DEBUG_PROGRAM, DEBUG_ADAPTER = "debug", "debug-program", "debug-adapter"
DEBUG_CORE = "debug-core"

FLAGS = ("--caching-allocator", "--timeline", "--batch", "--optimized")
"""Options of programs that have no value."""

FLAGS_OF_CHECK = (*FLAGS, "--json", "--view")
"""Those of `check`, before a kernel's file or a program."""

OF_KERNEL = ("--kernel", "--arg")
"""Options that launch a kernel of a file."""

ONE_LAUNCH = ("profile", "time", "view", "sass", "explore", "tune", CHECK)
"""Commands that show one launch of a program."""

OF_ONE_LAUNCH = ("--launch", "--capture", "--kernel")
"""Options that choose a launch of a program."""

SHAPES = ("--grid", "--block", "--arg", "--shared")
"""Options that a launch of a kernel has, and a program has not."""

AS_PROGRAM = "--program"
"""The option that has a file run as a program."""

MAIN = re.compile(r"^\s*(?:int|auto|void)\s+main\s*\(", re.MULTILINE)
DIRECTIVE = re.compile(r"\s*#\s*(define|if|ifdef|ifndef|else|endif)\b\s*(\w*)")


FlagsOf = Callable[[str], Sequence[str]]


def _usual_flags(command: str) -> Sequence[str]:
    return FLAGS_OF_CHECK


def verbs(args: Sequence[str], flags_of: FlagsOf = _usual_flags) -> list[str]:
    """Returns the arguments of the command line; `run`, `check` or `debug` before a program becomes
    the hidden verb for it, `debug` before a core file and without a file those for them and for
    editors, and a command that shows one launch gets a program's arguments as they are. `flags_of`
    returns the options of a command that have no value."""
    hidden = {RUN: PROGRAM, CHECK: CHECK_PROGRAM, DEBUG: DEBUG_PROGRAM}
    if args and args[0] == DEBUG and (args[1:2] == ["--dap"] or args[1:2] == ["--port"]):
        return [DEBUG_ADAPTER, *args[1:]]
    if args and args[0] == DEBUG and (file_of(args[1:]) or "").endswith(SUFFIX):
        return [DEBUG_CORE, *args[1:]]
    if args and args[0] in ONE_LAUNCH and _wants_launch(args, flags_of(args[0])):
        return _before_program(args, flags_of(args[0]))
    flags = FLAGS_OF_CHECK if args[:1] == [CHECK] else FLAGS
    if args and args[0] in hidden and is_program(args[1:], flags):
        return [hidden[args[0]], *args[1:]]
    return list(args)


def is_program(args: Sequence[str], flags: Sequence[str] = FLAGS) -> bool:
    """Returns whether the file among a verb's arguments names a program; `flags` are the options
    that have no value. A source of CUDA C++ with a main is one, unless a kernel of it is named, or
    arguments of one."""
    file = file_of(args, flags)
    if file is None:
        return False
    at = args.index(file)
    if "--" in args[:at]:
        return True
    # A source with a main is no program where one of its kernels is to be launched.
    is_source = file.endswith((".cu", ".hip"))
    launches = is_source and any(arg.partition("=")[0] in OF_KERNEL for arg in args)
    return not launches and _names_program(file)


def _wants_launch(args: Sequence[str], flags: Sequence[str]) -> bool:
    """Returns whether one launch of the program is wanted among a command's arguments: `check`
    checks all launches where none is chosen."""
    file = file_of(args[1:], flags)
    if file is None or file.endswith(SUFFIX):
        return False
    before, after = _split_at(args, file)
    names = {arg.partition("=")[0] for arg in before}
    if AS_PROGRAM in names:
        return True
    if args[0] == CHECK and not names.intersection(OF_ONE_LAUNCH):
        return False
    if not is_program([*([] if "--" not in before else ["--"]), file], flags):
        return False
    # Of a source with a main, a kernel is launched alone where its launch is given.
    launch = {arg.partition("=")[0] for arg in (*before, *after)}.intersection(SHAPES)
    named = any(arg.partition("=")[0] == "--kernel" for arg in after)
    return not (file.endswith(".cu") and (launch or named))


def _before_program(args: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Returns the arguments of a command with all from the program's name on as they are."""
    file = file_of(args[1:], flags)
    assert file is not None
    before, after = _split_at(args, file)
    options = [arg for arg in before if arg not in ("--", AS_PROGRAM)]
    return [*options, AS_PROGRAM, "--", file, *after]


def _split_at(args: Sequence[str], file: str) -> tuple[Sequence[str], Sequence[str]]:
    """Returns the arguments before a file and those after it."""
    at = args.index(file, 1)
    return args[:at], args[at + 1 :]


def is_command(name: str) -> bool:
    """Returns whether a name without a folder is that of a command on the PATH."""
    return Path(name).name == name and shutil.which(name) is not None


def has_main(text: str) -> bool:
    """Returns whether a source defines `main` outside of what its preprocessor leaves out, as far
    as the text alone shows: parts under `#if 0`, and under `#ifdef` of names that it does not
    define."""
    defined = set[str]()
    left_out: list[bool] = []
    kept: list[str] = []
    for line in text.splitlines():
        found = DIRECTIVE.match(line)
        if found is None:
            kept += [] if any(left_out) else [line]
            continue
        word, name = found.groups()
        if word == "define" and not any(left_out):
            defined.add(name)
        elif word in ("if", "ifdef", "ifndef"):
            missing = name == "0" if word == "if" else (name in defined) is (word == "ifndef")
            left_out.append(missing)
        elif word == "else" and left_out:
            left_out[-1] = not left_out[-1]
        elif word == "endif" and left_out:
            left_out.pop()
    return MAIN.search("\n".join(kept)) is not None


def file_of(args: Sequence[str], flags: Sequence[str] = FLAGS) -> str | None:
    """Returns the first argument that is no option, nor an option's value."""
    given = iter(args)
    for arg in given:
        if arg.startswith("-") and arg != "-":
            if arg == "--":
                return next(given, None)
            if arg in ("--help", "-h"):
                return None
            if "=" not in arg and arg not in flags:
                next(given, None)
            continue
        return arg
    return None


def _names_program(name: str) -> bool:
    path = Path(name)
    if path.suffix in (".cu", ".hip"):
        try:
            return has_main(path.read_text("utf-8", errors="replace"))
        except OSError:
            return False
    if path.suffix.lower() in (".ptx", ".cl"):
        return False
    return path.suffix == ".py" or (path.is_file() and not path.suffix) or bool(shutil.which(name))
