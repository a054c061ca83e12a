"""Commands that go forward and back."""

from __future__ import annotations

from collections.abc import Callable

from warploom.debug.session import LOCKING, DebugError, Stop
from warploom.debug.terminal.context import Command, Shell, number_of


def _goes(go: Callable[[Shell, str], Stop]) -> Callable[[Shell, str], None]:
    """Returns a command that prints the position of the launch after it has moved."""

    def do(shell: Shell, rest: str) -> None:
        before = shell.key()
        shell.stopped(go(shell, rest), before)

    return do


def _steps(kind: str, *, back: bool = False) -> Callable[[Shell, str], None]:
    """Returns the command that steps so."""

    def go(shell: Shell, rest: str) -> Stop:
        count = number_of(rest, "a number of steps", 1)
        session = shell.session
        return session.reverse_step(kind, count) if back else session.step(kind, count)

    return _goes(go)


def _run(shell: Shell, rest: str) -> Stop:
    return shell.session.start()


def _start(shell: Shell, rest: str) -> Stop:
    return shell.session.begin()


def _continue(shell: Shell, rest: str) -> Stop:
    ignored = number_of(rest, "the number of times to skip this breakpoint", 1) - 1
    for each in shell.session.stop.breakpoints:
        each.ignored = ignored
    return shell.session.go_on()


def _goto(shell: Shell, rest: str) -> Stop:
    return shell.session.goto(number_of(rest, "a position, in warp instructions"))


def _until(shell: Shell, rest: str) -> Stop:
    if not rest:
        raise DebugError("`until` requires a line, FILE:LINE or a function")
    return shell.session.until(rest)


def _wrote(shell: Shell, rest: str) -> Stop:
    return shell.session.last_access(_asked(rest))


def _read(shell: Shell, rest: str) -> Stop:
    return shell.session.last_access(_asked(rest), "read")


def _asked(rest: str) -> str:
    text = rest.rstrip("?").strip()
    if not text:
        raise DebugError(
            "`who wrote` and `who read` require a variable or an element in memory, such as x[5]"
        )
    return text


def _set_locking(shell: Shell, rest: str) -> None:
    if rest not in LOCKING:
        raise DebugError(f"scheduler-locking must be one of {', '.join(LOCKING)}, not `{rest}`")
    shell.session.locking = rest


def _show_locking(shell: Shell, rest: str) -> None:
    meanings = {
        "off": "all warps run, in the order of the schedule",
        "step": "other warps are held back only during stepping commands",
        "on": "other warps run only when the warp in focus waits for them",
    }
    shell.say(f"scheduler-locking is {shell.session.locking}: {meanings[shell.session.locking]}")


COMMANDS = {
    "run": Command(_goes(_run), "Restart the launch and continue until it stops."),
    "start": Command(_goes(_start), "Go to the start of the launch."),
    "continue": Command(_goes(_continue), "Continue until the launch stops.", "continue [COUNT]"),
    "reverse-continue": Command(
        _goes(lambda shell, rest: shell.session.reverse()), "Go back to the previous stop."
    ),
    "step": Command(
        _steps("line"), "Step to another line; enter called functions.", "step [COUNT]"
    ),
    "next": Command(
        _steps("over"), "Step to another line; do not enter called functions.", "next [COUNT]"
    ),
    "stepi": Command(_steps("instruction"), "Step one PTX instruction.", "stepi [COUNT]"),
    "nexti": Command(_steps("instruction"), "Step one PTX instruction.", "nexti [COUNT]"),
    "reverse-step": Command(_steps("line", back=True), "Step back to the previous line."),
    "reverse-next": Command(
        _steps("over", back=True), "Step back to the previous line; do not enter called functions."
    ),
    "reverse-stepi": Command(_steps("instruction", back=True), "Step back one instruction."),
    "finish": Command(
        _goes(lambda shell, rest: shell.session.finish()), "Continue until this function returns."
    ),
    "until": Command(
        _goes(_until), "Continue until the thread reaches a location.", "until LOCATION"
    ),
    "set scheduler-locking": Command(
        _set_locking,
        "Hold back the other warps: off, step (only while stepping) or on.",
        "set scheduler-locking MODE",
    ),
    "show scheduler-locking": Command(_show_locking, "Show the scheduler-locking mode."),
    "goto": Command(_goes(_goto), "Go to a position in the launch.", "goto POSITION"),
    "who wrote": Command(
        _goes(_wrote), "Go back to the last write to a value in memory.", "who wrote EXPRESSION"
    ),
    "who read": Command(
        _goes(_read), "Go back to the last read of a value in memory.", "who read EXPRESSION"
    ),
    "where diverged": Command(
        _goes(lambda shell, rest: shell.session.last_divergence()),
        "Go back to the last divergence of this warp.",
    ),
}
