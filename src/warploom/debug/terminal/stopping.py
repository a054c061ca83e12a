"""Commands that set where the launch stops."""

from __future__ import annotations

from collections.abc import Callable

from warploom.debug.session import DebugError
from warploom.debug.stops import EVENTS
from warploom.debug.terminal.context import Command, Shell, number_of


def _break(shell: Shell, rest: str) -> None:
    if shell.repeated is not None and rest:
        shell.repeated.append(rest)
        if not set_breakpoint(shell, rest):
            shell.say(
                f"{shell.session.kernel.name} has no {rest.partition(' if ')[0]}: the breakpoint "
                "stays pending, and is set in the next launch that has this location."
            )
        return
    set_breakpoint(shell, rest)


def set_breakpoint(shell: Shell, rest: str) -> bool:
    """Sets a breakpoint and says where. Of a program's launch, returns False where the kernel does
    not have the place; otherwise raises DebugError."""
    location = rest.partition(" if ")[0].strip()
    try:
        shell.session.resolve(location)
    except DebugError:
        if shell.repeated is None:
            raise
        return False
    made = shell.session.add(rest)
    count = len(made.instructions)
    where = f" ({count} instructions)" if count > 1 else ""
    shell.say(f"Breakpoint {made.number} at {made.place}{where}")
    return True


def _tbreak(shell: Shell, rest: str) -> None:
    made = shell.session.add(rest, temporary=True)
    shell.say(f"Temporary breakpoint {made.number} at {made.place}")


def _catch(shell: Shell, rest: str) -> None:
    event, _, condition = rest.partition(" if ")
    words = event.replace(">=", " ").split()
    if not words:
        raise DebugError(f"catch requires an event: {', '.join(EVENTS)}")
    least = number_of(words[1], "the minimum number") if len(words) > 1 else 0
    made = shell.session.catch(words[0], least)
    if condition.strip():
        shell.session.set_condition(made, condition.strip())
    if made.site is not None:
        shell.say(f"Catchpoint {made.number} ({made.event} {made.least}):")
        shell.say(made.site.finding.message)
        return
    shell.say(f"Catchpoint {made.number} ({made.event}{f' >= {made.least}' if made.least else ''})")


def _watches(kind: str) -> Callable[[Shell, str], None]:
    def do(shell: Shell, rest: str) -> None:
        made = shell.session.watch(rest, kind)
        assert made.watched is not None
        size, space = made.watched.size, made.watched.space.value
        shell.say(f"Watchpoint {made.number}: {made.text} ({size} bytes of {space} memory)")

    return do


def _delete(shell: Shell, rest: str) -> None:
    session, repeated = shell.session, shell.repeated or []
    if not rest:
        session.breakpoints.clear()
        repeated.clear()
    for word in rest.split():
        number = number_of(word, "the number of a breakpoint")
        location = session.breakpoint(number).text
        session.delete(number)
        repeated[:] = [one for one in repeated if one.partition(" if ")[0].strip() != location]


def _enables(enabled: bool) -> Callable[[Shell, str], None]:
    def do(shell: Shell, rest: str) -> None:
        session = shell.session
        wanted = [number_of(word, "the number of a breakpoint") for word in rest.split()]
        for each in [session.breakpoint(n) for n in wanted] or session.breakpoints:
            each.enabled = enabled

    return do


def _condition(shell: Shell, rest: str) -> None:
    number, _, condition = rest.partition(" ")
    made = shell.session.breakpoint(number_of(number, "the number of a breakpoint"))
    shell.session.set_condition(made, condition.strip())


def _ignore(shell: Shell, rest: str) -> None:
    words = rest.split()
    if len(words) != 2:
        raise DebugError(
            "`ignore` requires the number of a breakpoint and the number of times to skip it"
        )
    made = shell.session.breakpoint(number_of(words[0], "the number of a breakpoint"))
    made.ignored = number_of(words[1], "the number of times to skip the breakpoint")


COMMANDS = {
    "break": Command(
        _break,
        "Stop before a line, a function or an instruction.",
        "break [LOCATION] [if CONDITION]",
    ),
    "tbreak": Command(
        _tbreak, "Set a breakpoint that stops only once.", "tbreak LOCATION [if CONDITION]"
    ),
    "catch": Command(
        _catch,
        f"Stop at an event: {', '.join(EVENTS)}.",
        "catch EVENT [NUMBER] [if CONDITION]",
    ),
    "watch": Command(_watches("write"), "Stop when memory is written.", "watch EXPRESSION"),
    "rwatch": Command(_watches("read"), "Stop when memory is read.", "rwatch EXPRESSION"),
    "awatch": Command(_watches("access"), "Stop when memory is accessed.", "awatch EXPRESSION"),
    "delete": Command(_delete, "Delete all or some breakpoints.", "delete [NUMBER...]"),
    "enable": Command(_enables(True), "Enable breakpoints.", "enable [NUMBER...]"),
    "disable": Command(_enables(False), "Disable breakpoints.", "disable [NUMBER...]"),
    "condition": Command(
        _condition, "Set or remove the condition of a breakpoint.", "condition NUMBER [CONDITION]"
    ),
    "ignore": Command(_ignore, "Skip a breakpoint a given number of times.", "ignore NUMBER COUNT"),
}
