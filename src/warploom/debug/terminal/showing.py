"""Commands that show values, memory, source and code, and change the focus."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path, PurePath

from warploom.core.errors import WarploomError
from warploom.core.output_files import write_bytes
from warploom.debug.post_mortem import save_core
from warploom.debug.recording import recorded
from warploom.debug.scene import Place
from warploom.debug.session import DebugError
from warploom.debug.terminal.context import Command, Shell, number_of
from warploom.debug.types import (
    CHAR,
    DOUBLE,
    FLOAT,
    Arithmetic,
    Array,
    Encoding,
)
from warploom.debug.values import Value, number_text, written
from warploom.host.core_files import SUFFIX
from warploom.isa.instruction import Space

LINES = 10
"""Lines that `list` shows."""

_FORMAT = re.compile(r"/(\d*)([a-z]*)\s*(.*)", re.DOTALL)
_SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}


def _print(shell: Shell, rest: str) -> None:
    found = _FORMAT.fullmatch(rest)
    letters, text = (found[2], found[3]) if found else ("", rest)
    if not text:
        raise DebugError("print requires an expression")
    value = shell.session.evaluate(text)
    thread = shell.session.evaluator().thread
    shell.history += 1
    shown = _formatted(value, letters, shell) if letters else written(value, thread)
    shell.say(f"${shell.history} = {shown}")


def _formatted(value: Value, letters: str, shell: Shell) -> str:
    """Returns a value in another format: x, d, u, o, t, c, a or f."""
    thread = shell.session.evaluator().thread
    if isinstance(value.type, Array):
        parts = (_formatted(part, letters, shell) for _, part in value.parts(thread))
        return "{" + ", ".join(parts) + "}"
    return _in_format(value.bytes(thread), letters[0])


def _in_format(data: bytes, letter: str) -> str:
    unsigned = int.from_bytes(data, "little")
    signed = int.from_bytes(data, "little", signed=True)
    match letter:
        case "x" | "a":
            return f"{unsigned:#x}"
        case "o":
            return f"0{unsigned:o}"
        case "t":
            return f"{unsigned:b}"
        case "d":
            return str(signed)
        case "u":
            return str(unsigned)
        case "c":
            return number_text(CHAR, data[:1])
        case "f":
            types = {4: FLOAT, 8: DOUBLE, 2: Arithmetic("half", 2, Encoding.FLOAT)}
            return number_text(types[len(data)], data) if len(data) in types else str(signed)
        case _:
            raise DebugError(f"there is no format {letter}; use one of x d u o t c a f")


def _examine(shell: Shell, rest: str) -> None:
    """`x/8fw ADDRESS`."""
    found = _FORMAT.fullmatch(rest)
    count, letters, text = (found[1], found[2], found[3]) if found else ("", "", rest)
    size = next((_SIZES[letter] for letter in letters if letter in _SIZES), 0)
    letter = next((each for each in letters if each not in _SIZES), "x")
    size = size or (1 if letter in "cs" else 4)
    number = int(count or 1)
    if letter == "i":
        _disassemble_from(shell, text, number)
        return
    place, name = _start_of(shell, text)
    thread = shell.session.evaluator().thread
    width = {1: 8, 2: 8, 4: 4, 8: 2}[size]
    for row in range(0, number, width):
        at = place.moved(row * size)
        cells = [
            _in_format(thread.read(at.moved(i * size), size), letter)
            for i in range(min(width, number - row))
        ]
        shell.say(f"{at.generic:#x}{_named(shell, at, name)}:\t" + "\t".join(cells))


def _start_of(shell: Shell, text: str) -> tuple[Place, str]:
    """Returns where an expression points to, or where it is."""
    value = shell.session.evaluate(text)
    if isinstance(value.type, Array) and value.place is not None:
        return value.place, text
    address = int(value.number(shell.session.evaluator().thread))
    return Place(Space.GENERIC, address), text


def _named(shell: Shell, place: Place, name: str) -> str:
    where = place.resolved
    found = shell.session.target.memory.find(where.address)
    if where.space is not Space.GLOBAL:
        return f" <{where.space.value}+{where.address}>"
    return "" if found is None else f" <{found.name}+{where.address - found.address}>"


def _display(shell: Shell, rest: str) -> None:
    if not rest:
        for number, text in shell.displays.items():
            shell.say(f"{number}: {text}")
        return
    shell.session.evaluate(rest)
    shell.displays[max(shell.displays, default=0) + 1] = rest


def _undisplay(shell: Shell, rest: str) -> None:
    if not rest:
        shell.displays.clear()
    for word in rest.split():
        shell.displays.pop(number_of(word, "the number of a display"), None)


def _set(shell: Shell, rest: str) -> None:
    if "=" not in rest:
        raise DebugError("`set variable` requires an assignment, such as x[5] = 1.5")
    shell.session.evaluate(rest)


def _lanes(shell: Shell, rest: str) -> None:
    """Shows an expression in all lanes of the warp."""
    session = shell.session
    focus, shown = session.focus, list[str]()
    warp = session.thread().warp
    for lane in range(warp.size):
        if not warp.existing >> lane & 1:
            shown.append("-")
            continue
        session.focus = replace(focus, lane=lane)
        try:
            evaluator = session.evaluator()
            text = written(evaluator.value(rest), evaluator.thread)
        except WarploomError:
            text = "?"
        shown.append(text if warp.splits.active >> lane & 1 else f"({text})")
    session.focus = focus
    shell.say(f"{rest} in the lanes of warp {focus.warp} (inactive lanes in parentheses)")
    width = max(map(len, shown)) + 1
    for first in range(0, len(shown), 8):
        cells = "".join(f"{text:>{width}}" for text in shown[first : first + 8])
        shell.say(f"  lane {first:2}:{cells}")


def _grid(shell: Shell, rest: str) -> None:
    """Shows an expression in all threads of the block, as its first two axes lie."""
    session = shell.session
    focus, launch = session.focus, session.launch
    wide, high, deep = launch.block
    cells: list[str] = []
    for linear in range(launch.threads_per_block):
        warp, lane = divmod(linear, launch.warp_size)
        session.focus = replace(focus, warp=warp, lane=lane)
        try:
            evaluator = session.evaluator()
            cells.append(written(evaluator.value(rest), evaluator.thread))
        except WarploomError:
            cells.append("?")
    session.focus = focus
    width = max(map(len, cells)) + 1
    for z in range(deep):
        for y in range(high):
            row = cells[(z * high + y) * wide : (z * high + y + 1) * wide]
            where = f"({y},{z})" if deep > 1 else f"y={y}" if high > 1 else ""
            for first in range(0, wide, 16):
                part = "".join(f"{text:>{width}}" for text in row[first : first + 16])
                shell.say(f"  {where} x={first:3}:{part}")


def _list(shell: Shell, rest: str) -> None:
    session = shell.session
    file, first = shell.next_listing or (session.main_file, 1)
    if rest:
        name, _, number = rest.rpartition(":")
        if number.isdigit():
            file, first = name or file, max(1, int(number) - LINES // 2)
        else:
            instructions, _ = session.resolve(rest)
            frame = session.places.frames(instructions[0])[0]
            file, first = frame.file, max(1, frame.line - LINES // 2)
    lines = session.source_lines(file)
    if lines is None:
        raise DebugError(
            f"the source {file or 'of this kernel'} cannot be found; try `disassemble`"
        )
    here = None
    try:
        frame = session.frame()
        here = frame.line if PurePath(frame.file).name == PurePath(file).name else None
    except WarploomError:
        pass
    for number in range(first, min(first + LINES, len(lines) + 1)):
        mark = "=>" if number == here else "  "
        shell.say(f"{mark} {number}\t{lines[number - 1]}")
    shell.next_listing = (file, first + LINES)


def _disassemble(shell: Shell, rest: str) -> None:
    if rest:
        _disassemble_from(shell, rest, 12)
        return
    session = shell.session
    here = session.instruction_of(session.thread()) or 0
    _show_code(shell, max(0, here - 6), min(len(session.program.instructions), here + 7))


def _disassemble_from(shell: Shell, text: str, count: int) -> None:
    session = shell.session
    if text.strip() in ("", "$pc"):
        first = session.instruction_of(session.thread()) or 0
    elif text.strip().isdigit():
        first = int(text)
    else:
        first = session.resolve(text.strip())[0][0]
    _show_code(shell, first, min(first + count, len(session.program.instructions)))


def _show_code(shell: Shell, first: int, end: int) -> None:
    session = shell.session
    here = session.instruction_of(session.thread()) if session.stepper.has_warp else None
    starts = {block.start: block.index for block in session.program.blocks}
    for index in range(first, end):
        if index in starts:
            shell.say(f"  block {starts[index]}:")
        frame = session.places.frames(index)[0]
        where = f"{PurePath(frame.file).name}:{frame.line}" if frame.line else ""
        mark = "=>" if index == here else "  "
        shell.say(f"{mark} {index:5}  {where:20} {shell.instruction_text(index)}")


def _backtrace(shell: Shell, rest: str) -> None:
    for number, frame in enumerate(shell.session.frames()):
        shell.say(f"#{number}  {frame}")


def _frame(shell: Shell, rest: str) -> None:
    session = shell.session
    frames = session.frames()
    number = number_of(rest, "the number of a frame", session.focus.frame)
    if not 0 <= number < len(frames):
        raise DebugError(f"there is no frame {number}; `backtrace` lists the frames")
    session.focus = replace(session.focus, frame=number)
    shell.say(f"#{number}  {shell.place_text()}")


def _moves_frame(by: int) -> Command:
    def do(shell: Shell, rest: str) -> None:
        _frame(shell, str(shell.session.focus.frame + by))

    return Command(
        do,
        "Select the frame that called this one."
        if by > 0
        else "Select the frame that this one called.",
    )


def _echo(shell: Shell, rest: str) -> None:
    shell.say(rest)


def _core(shell: Shell, rest: str) -> None:
    file = Path(rest or f"{shell.session.kernel.name}{SUFFIX}").absolute()
    save_core(shell.session, file)
    shell.say(f"Saved corefile {file}")


def _view(shell: Shell, rest: str) -> None:
    found, here = recorded(shell.session), shell.session
    file = Path(rest or f"{here.kernel.name}.wl").absolute()
    write_bytes(file, found.trace.to_bytes())
    command = ["view", str(file), "--step", str(found.step), "--warp", str(found.warp)]
    shell.say(
        f"Saved a recording of block {here.focus.block}; this command opens it at the same step:"
    )
    shell.say(f"  warploom {shlex.join(command)}")
    if shell.interactive:
        shell.say("The page stays available until you leave this launch.")
        shell.servers.append(subprocess.Popen([sys.executable, "-m", "warploom.cli", *command]))


def _ptype(shell: Shell, rest: str) -> None:
    shell.say(f"type = {shell.session.evaluate(rest).type.name}")


COMMANDS = {
    "print": Command(_print, "Show the value of an expression.", "print[/FORMAT] EXPRESSION"),
    "x": Command(
        _examine, "Show memory, with a count, a format and a size.", "x/COUNTFORMATSIZE ADDRESS"
    ),
    "display": Command(_display, "Show a value at each stop.", "display EXPRESSION"),
    "undisplay": Command(_undisplay, "Stop displaying a value.", "undisplay [NUMBER...]"),
    "set variable": Command(_set, "Change a variable, memory or a register.", "set variable A = B"),
    "lanes": Command(_lanes, "Show a value in all lanes of the warp.", "lanes EXPRESSION"),
    "grid": Command(_grid, "Show a value in all threads of the block.", "grid EXPRESSION"),
    "ptype": Command(_ptype, "Show the type of an expression.", "ptype EXPRESSION"),
    "list": Command(_list, "Show source.", "list [LINE|FILE:LINE|FUNCTION]"),
    "disassemble": Command(_disassemble, "Show PTX.", "disassemble [LOCATION]"),
    "backtrace": Command(_backtrace, "Show the call stack."),
    "frame": Command(_frame, "Select another frame.", "frame NUMBER"),
    "up": _moves_frame(1),
    "down": _moves_frame(-1),
    "generate-core-file": Command(
        _core,
        "Save the launch for `warploom debug FILE`, which opens it at the current position.",
        "generate-core-file [FILE.wlcore]",
    ),
    "view": Command(
        _view,
        "Show the block in focus in the browser, at the same step.",
        "view [FILE.wl]",
    ),
    "echo": Command(_echo, "Print text.", "echo TEXT"),
}
