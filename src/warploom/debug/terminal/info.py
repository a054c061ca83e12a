"""`info`, which lists what there is, and `cuda`, which shows and changes the focus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from warploom.debug.lanes import ACTIVE, waits_for
from warploom.debug.session import DebugError, Session
from warploom.debug.terminal.context import Command, Shell
from warploom.debug.values import written
from warploom.machine.lanes_off import reconvergence_points

_PART = re.compile(
    r"(kernel|grid|block|thread|warp|lane|sm)\s*(\(?\s*\d+(?:\s*,\s*\d+){0,2}\s*\)?)?"
)


def _cuda(shell: Shell, rest: str) -> None:
    """`cuda block 1 thread 33`: change the focus, or say what it is."""
    parts = [(kind, text) for kind, text in _PART.findall(rest)]
    if not parts or "".join(_PART.sub("", rest).split()):
        raise DebugError("`cuda` accepts block, thread, warp and lane, each followed by a number")
    session = shell.session
    given = {kind: _numbers(text) for kind, text in parts if text}
    if given:
        focus, launch = session.focus, session.launch
        block, warp, lane = focus.block, focus.warp, focus.lane
        if "block" in given:
            block = _linear(given["block"], launch.grid, "block")
            warp, lane = (warp, lane) if "thread" in given else (0, 0)
        if "thread" in given:
            linear = _linear(given["thread"], launch.block, "thread")
            warp, lane = divmod(linear, launch.warp_size)
        warp, lane = given.get("warp", [warp])[0], given.get("lane", [lane])[0]
        session.set_focus(block, warp, lane)
        shell.say(f"[Switching focus to {shell.focus_text()}]")
        shell.say(shell.place_text())
        return
    shell.say(shell.focus_text())


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _linear(index: list[int], shape: tuple[int, int, int], what: str) -> int:
    """Returns the number of an (x, y, z), or a number itself."""
    if len(index) == 1:
        return index[0]
    full = [*index, 0, 0][:3]
    if any(n >= size for n, size in zip(full, shape, strict=True)):
        raise DebugError(f"there is no {what} {tuple(full)}: indices must be less than {shape}")
    return full[0] + shape[0] * (full[1] + shape[1] * full[2])


def _info(shell: Shell, rest: str) -> None:
    words = rest.split()
    topic = words[0] if words else ""
    if topic == "cuda" and len(words) > 1:
        topic = f"cuda {words[1]}"
    fitting = [name for name in TOPICS if topic and name.startswith(topic)]
    if not fitting:
        raise DebugError(f"`info` requires one of these topics: {', '.join(TOPICS)}")
    for line in TOPICS[fitting[0]](shell):
        shell.say(line)


def _kernels(shell: Shell) -> Iterator[str]:
    session = shell.session
    launch = session.launch
    yield "  Kernel  Grid Dim  Block Dim  Warps  Invocation"
    title = session.program.title
    grid, block = (",".join(map(str, dim)) for dim in (launch.grid, launch.block))
    yield f"*      0  ({grid})  ({block})  {launch.blocks * launch.warps_per_block}  {title}"
    policy = launch.schedule.policy
    yield f"position {session.position:,} of the launch; schedule {policy}"
    if session.timeline.edited or not session.target.compiles:
        why = "its state was edited" if session.timeline.edited else session.target.not_compiled
        yield (
            "The reference engine runs this launch, at about 10,000 instructions per second, "
            f"because {why}."
        )


def _blocks(shell: Shell) -> Iterator[str]:
    session = shell.session
    launch = session.launch
    yield "  BlockIdx  Running warps"
    for block in session.resident:
        warps = [session.warp(block, n) for n in range(launch.warps_per_block)]
        live = sum(1 for warp in warps if warp is not None and warp.splits.live)
        mark = "*" if block == session.focus.block else " "
        yield f"{mark} {_tuple(launch.block_index(block))}  {live} of {len(warps)}"
    begun = session.stepper.grid.run.plan.next_block if session.stepper.grid else 0
    left = launch.blocks - begun
    yield f"  {left} of {launch.blocks} blocks have not started"


def _warps(shell: Shell) -> Iterator[str]:
    session = shell.session
    size = session.launch.warp_size // 4
    yield f"  Wp  {'Active lanes':{size + 2}}  {'Diverged':{size + 2}}  Where"
    for number in range(session.launch.warps_per_block):
        warp = session.warp(session.focus.block, number)
        if warp is None:
            continue
        mark = "*" if number == session.focus.warp else " "
        groups = session.groups(warp)
        first = groups[0] if groups else None
        lanes = first.lanes if first is not None and first.instruction is not None else 0
        rest = warp.splits.live & ~lanes
        where = _where(session, first.instruction) if first is not None else "ended"
        status = "" if first is None or first.status == ACTIVE else f" ({first.status})"
        yield f"{mark} {number:2}  {lanes:#0{size + 2}x}  {rest:#0{size + 2}x}  {where}{status}"


def _lanes(shell: Shell) -> Iterator[str]:
    session = shell.session
    warp = session.thread().warp
    yield "  Ln  State                 ThreadIdx      Where"
    for lane in range(warp.size):
        if not warp.existing >> lane & 1:
            continue
        group = next((g for g in session.groups(warp) if g.lanes >> lane & 1), None)
        mark = "*" if lane == session.focus.lane else " "
        index = _tuple(session.launch.thread_index(warp.number, lane))
        status = group.status if group is not None else "exited"
        where = _where(session, group.instruction if group is not None else None)
        yield f"{mark} {lane:2}  {status:20}  {index:13}  {where}"


def _threads(shell: Shell) -> Iterator[str]:
    """Threads of the block that are at one instruction, together."""
    session = shell.session
    launch = session.launch
    yield "  Threads of the block                          Count  Where"
    for number in range(launch.warps_per_block):
        warp = session.warp(session.focus.block, number)
        if warp is None:
            continue
        waiting = waits_for(session.program, warp)
        for group in session.groups(warp):
            own = session.focus.warp == number and group.lanes >> session.focus.lane & 1
            first = launch.thread_index(number, (group.lanes & -group.lanes).bit_length() - 1)
            last = launch.thread_index(number, group.lanes.bit_length() - 1)
            reason = waiting.get(group.lanes, "")
            status = f"{group.status}{f': {reason}' if reason else ''}"
            count = group.lanes.bit_count()
            where = _where(session, group.instruction)
            span = f"{_tuple(first)} to {_tuple(last)}"
            yield f"{'*' if own else ' '} warp {number:2}: {span:36} {count:5}  {where}  [{status}]"


def _stack(shell: Shell) -> Iterator[str]:
    """Yields the SIMT stack of the warp: where its lanes will reconverge."""
    session = shell.session
    warp = session.thread().warp
    found = [*reversed(reconvergence_points(warp.splits.table))]
    if not found:
        yield "The lanes of this warp have not diverged."
    for each in found:
        exit = session.program.exit
        at = session.program.blocks[each.block].start if each.block < exit else None
        yield (
            f"  reconverge at {_where(session, at)}: {each.expected:#010x} expected,"
            f" {each.arrived:#010x} arrived, {each.other_side:#010x} pending on the other path"
        )


FEW = 8
"""The elements of an array that a list of variables shows; `print` shows more."""


def _locals(shell: Shell) -> Iterator[str]:
    session = shell.session
    thread = session.thread()
    found = session.variables()
    if not found:
        yield (
            "The debug information has no variables here; compile with -G, or use `info registers`."
        )
    for name, value in found:
        text = f"<{value}>" if isinstance(value, str) else written(value, thread, most=FEW)
        yield f"{name} = {text}"


def _registers(shell: Shell) -> Iterator[str]:
    session = shell.session
    thread, frame = session.thread(), session.frame()
    for register in session.program.registers:
        if frame.suffix and not register.name.endswith(frame.suffix):
            continue
        plain = register.name.partition("@")[0].removeprefix("%")
        value = session.names.find(f"${plain}", thread, frame)
        bits = thread.register(register.name) or 0
        name = register.name.partition("@")[0]
        yield f"{name:10} {bits:#018x}  {written(value, thread, most=FEW)}"


def _breakpoints(shell: Shell) -> Iterator[str]:
    found = shell.session.breakpoints
    if not found:
        yield "No breakpoints or watchpoints."
        return
    yield "Num  Type        Enb  What"
    for each in found:
        kind = "watchpoint" if each.watched else "catchpoint" if each.event else "breakpoint"
        condition = f" if {each.condition_text}" if each.condition_text else ""
        hits = f" (hit {each.hits} times)" if each.hits else ""
        what = each.place or each.text
        yield f"{each.number:<4} {kind:11} {'y' if each.enabled else 'n':4} {what}{condition}{hits}"


def _line(shell: Shell) -> Iterator[str]:
    yield shell.place_text()


def _source(shell: Shell) -> Iterator[str]:
    yield from shell.session.places.files


def _functions(shell: Shell) -> Iterator[str]:
    yield from shell.session.places.functions


def _buffers(shell: Shell) -> Iterator[str]:
    for allocation in shell.session.target.memory.live():
        yield f"{allocation.address:#x}  {allocation.size:>12,} bytes  {allocation.name}"


def _replay(shell: Shell) -> Iterator[str]:
    session = shell.session
    timeline = session.timeline
    yield f"position {session.position:,}, in warp instructions since the start of the launch"
    if session.end_position is not None:
        yield f"the launch ends at {session.end_position:,}"
    yield f"{timeline.checkpoints} checkpoints, {timeline.bytes / 1e6:.1f} MB"


TOPICS = {
    "cuda kernels": _kernels,
    "cuda blocks": _blocks,
    "cuda warps": _warps,
    "cuda lanes": _lanes,
    "cuda threads": _threads,
    "stack": _stack,
    "locals": _locals,
    "args": _locals,
    "registers": _registers,
    "breakpoints": _breakpoints,
    "watchpoints": _breakpoints,
    "line": _line,
    "sources": _source,
    "functions": _functions,
    "buffers": _buffers,
    "replay": _replay,
    "record": _replay,
}
"""Maps the topics of `info` to the functions that yield their lines."""


def _where(session: Session, index: int | None) -> str:
    if index is None:
        return "-"
    frame = session.places.frames(index)[0]
    return f"{PurePath(frame.file).name}:{frame.line}" if frame.line else f"*{index}"


def _tuple(index: tuple[int, int, int]) -> str:
    return f"({','.join(map(str, index))})"


COMMANDS = {
    "info": Command(_info, f"Show information about: {', '.join(TOPICS)}.", "info TOPIC"),
    "cuda": Command(
        _cuda, "Show or change the focus.", "cuda [block N] [thread N] [warp N] [lane N]"
    ),
}
