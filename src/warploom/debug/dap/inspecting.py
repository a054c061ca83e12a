"""Requests that look at the state: threads, frames, variables, memory, code.

A thread of the protocol is a warp of a block that runs, seen through one of its lanes: the one in
focus, else the first that is active.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from warploom.core.errors import WarploomError
from warploom.debug.dap.client import Client
from warploom.debug.scene import Place, Thread
from warploom.debug.session import DebugError, Focus
from warploom.debug.types import Array, Pointer, Structure
from warploom.debug.values import Value, written
from warploom.isa.instruction import Space
from warploom.ptx.printer import print_instruction

MOST_THREADS = 128
"""The most warps that are sent to the client."""


@dataclass(frozen=True)
class Held:
    """Resolves a reference of the client: a value whose parts it may ask for, the expression
    that gives it, and the thread; or, without a value, one of the scopes of a frame."""

    focus: Focus
    scope: str = ""
    value: Value | None = None
    expression: str = ""


class Inspecting:
    """Answers what the client asks about the state; references hold until the launch goes on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: list[Held] = []
        self._frames: list[Focus] = []
        self.handlers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "threads": self._threads,
            "stackTrace": self._stack_trace,
            "scopes": self._scopes,
            "variables": self._variables,
            "setVariable": self._set_variable,
            "setExpression": self._set_expression,
            "evaluate": self._evaluate,
            "source": self._source_text,
            "loadedSources": self._loaded_sources,
            "disassemble": self._disassemble,
            "readMemory": self._read_memory,
            "writeMemory": self._write_memory,
            "warploom/focus": self._set_focus,
            "warploom/warps": self._warps,
        }

    def forget(self) -> None:
        """Discards what references denote: the launch has continued."""
        self._held.clear()
        self._frames.clear()

    # ---- threads --------------------------------------------------------------------------------

    def thread_id(self, block: int, warp: int) -> int:
        """Returns the number of a warp for the client."""
        return block * self._client.opened().launch.warps_per_block + warp + 1

    def focus(self, thread: int) -> None:
        """Sets the focus to the warp of a number; keeps the lane if that warp is in focus
        already."""
        session = self._client.opened()
        block, warp = divmod(thread - 1, session.launch.warps_per_block)
        if (block, warp) == (session.focus.block, session.focus.warp):
            return
        found = session.warp(block, warp)
        if found is None:
            raise DebugError(f"warp {warp} of block {block} is not running now")
        lanes = found.splits.active & found.splits.live or found.existing
        session.set_focus(block, warp, (lanes & -lanes).bit_length() - 1)

    def _threads(self, _: dict[str, Any]) -> Any:
        session = self._client.session
        if session is None:
            return {"threads": [{"id": 1, "name": "host"}]}
        launch, found = session.launch, list[dict[str, Any]]()
        blocks = sorted(session.resident, key=lambda b: b != session.focus.block)
        for block in blocks or [session.focus.block]:
            for warp in range(launch.warps_per_block):
                if len(found) < MOST_THREADS or (block, warp) == _pair(session.focus):
                    found.append(
                        {"id": self.thread_id(block, warp), "name": self._name(block, warp)}
                    )
        return {"threads": found}

    def _name(self, block: int, warp: int) -> str:
        session = self._client.opened()
        launch = session.launch
        name = f"block {launch.block_index(block)} warp {warp}"
        if (block, warp) == _pair(session.focus):
            name += f", thread {launch.thread_index(warp, session.focus.lane)}"
        return name

    def _stack_trace(self, arguments: dict[str, Any]) -> Any:
        session = self._client.opened()
        if session.stepper.has_warp:
            self.focus(int(arguments["threadId"]))
        try:
            frames = session.frames()
        except DebugError:
            return {"stackFrames": [], "totalFrames": 0}
        index = session.instruction_of(session.thread()) or 0
        first = arguments.get("startFrame", 0)
        last = first + (arguments.get("levels") or len(frames))
        stack: list[dict[str, Any]] = []
        for number, frame in list(enumerate(frames))[first:last]:
            self._frames.append(Focus(*_triple(session.focus), number))
            line = frame.line - 1 + self._client.lines_from if frame.line else 0
            shown: dict[str, Any] = {"id": len(self._frames), "name": frame.function, "line": line}
            shown["column"] = frame.location.column if frame.location else 0
            if frame.line:
                shown["source"] = self.source(frame.file)
            if number == 0:
                shown["instructionPointerReference"] = f"{index:#x}"
            stack.append(shown)
        return {"stackFrames": stack, "totalFrames": len(frames)}

    def _at_frame(self, id: int | None) -> None:
        """Sets the focus to a frame that was sent to the client, by its id."""
        session = self._client.opened()
        if id and id <= len(self._frames):
            session.focus = self._frames[id - 1]

    def _set_focus(self, arguments: dict[str, Any]) -> Any:
        """Sets the focus to a thread: by `block` and `thread` in the grid and in the block, or by
        `lane`."""
        session, launch = self._client.opened(), self._client.opened().launch
        block = int(arguments.get("block", session.focus.block))
        if "thread" in arguments:
            warp, lane = divmod(int(arguments["thread"]), launch.warp_size)
        else:
            warp = int(arguments.get("warp", session.focus.warp))
            lane = int(arguments.get("lane", 0))
        session.set_focus(block, warp, lane)
        self.forget()
        return {"threadId": self.thread_id(block, warp)}

    def _warps(self, _: dict[str, Any]) -> Any:
        """Returns the lanes of each warp of the block in focus, by the instruction where they
        are."""
        session, warps = self._client.opened(), list[dict[str, Any]]()
        for number in range(session.launch.warps_per_block):
            warp = session.warp(session.focus.block, number)
            groups = session.groups(warp) if warp is not None else ()
            shown = [
                {"lanes": f"{g.lanes:#x}", "status": g.status, "instruction": g.instruction}
                | (
                    {"line": session.places.frames(g.instruction)[0].line}
                    if g.instruction is not None
                    else {}
                )
                for g in groups
            ]
            warps.append({"warp": number, "groups": shown})
        return {"block": session.focus.block, "position": session.position, "warps": warps}

    # ---- variables ------------------------------------------------------------------------------

    def _scopes(self, arguments: dict[str, Any]) -> Any:
        self._at_frame(arguments.get("frameId"))
        session = self._client.opened()
        names = ("Locals", "Registers", "Thread", "Lanes", "Buffers")
        return {
            "scopes": [
                {
                    "name": name,
                    "variablesReference": self._hold(Held(session.focus, name)),
                    "expensive": name in ("Registers", "Lanes"),
                    **(
                        {"presentationHint": name.lower()}
                        if name in ("Locals", "Registers")
                        else {}
                    ),
                }
                for name in names
            ]
        }

    def _hold(self, held: Held) -> int:
        self._held.append(held)
        return len(self._held)

    def _variables(self, arguments: dict[str, Any]) -> Any:
        held = self._held[int(arguments["variablesReference"]) - 1]
        session = self._client.opened()
        session.focus = held.focus
        thread = session.evaluator().thread
        if held.value is not None:
            parts = [
                (name, value, _part_of(held.expression, held.value, name))
                for name, value in held.value.parts(thread)
            ]
            start = arguments.get("start", 0)
            end = start + (arguments.get("count") or len(parts))
            return {"variables": [self._shown(*part, thread) for part in parts[start:end]]}
        return {"variables": self._in_scope(held.scope, thread)}

    def _in_scope(self, scope: str, thread: Thread) -> list[dict[str, Any]]:
        session = self._client.opened()
        match scope:
            case "Locals":
                found = [(n, v, n) for n, v in session.variables()]
            case "Registers":
                own = [r.name for r in session.program.registers]
                frame = session.frame()
                names = [
                    f"${n.partition('@')[0].removeprefix('%')}"
                    for n in own
                    if n.endswith(frame.suffix)
                ]
                found = [(n, session.names.find(n, thread, frame), n) for n in names]
            case "Thread":
                names = ("threadIdx", "blockIdx", "blockDim", "gridDim", "laneId", "warpId")
                found = [(n, session.evaluate(n), n) for n in names]
            case "Buffers":
                live = session.target.memory.live()
                return [
                    self._text(a.name, f"{a.size} bytes at {a.address:#x}", f"{a.address:#x}")
                    for a in live
                ]
            case _:
                return [self._text(*pair) for pair in self._lanes(thread)]
        return [self._shown(*each, thread) for each in found]

    def _lanes(self, thread: Thread) -> list[tuple[str, str]]:
        session = self._client.opened()
        found: list[tuple[str, str]] = []
        for group in session.groups(thread.warp):
            line = ""
            if group.instruction is not None:
                frame = session.places.frames(group.instruction)[0]
                line = f" at {PurePath(frame.file).name}:{frame.line}" if frame.line else ""
            found.append((f"{group.lanes:#010x}", f"{group.status}{line}"))
        return found

    def _text(self, name: str, value: str, memory: str = "") -> dict[str, Any]:
        description: dict[str, Any] = {"name": name, "value": value, "variablesReference": 0}
        return description | ({"memoryReference": memory} if memory else {})

    def _shown(
        self, name: str, value: Value | str, expression: str, thread: Thread
    ) -> dict[str, Any]:
        """Returns the description of a variable for the client, as the protocol's type
        `Variable`."""
        if isinstance(value, str):
            return self._text(name, f"<{value}>")
        return {
            "name": name,
            "evaluateName": expression,
            **self._described(value, expression, thread),
        }

    def _described(self, value: Value, expression: str, thread: Thread) -> dict[str, Any]:
        try:
            text = written(value, thread)
        except WarploomError as error:
            text = f"<{error}>"
        description: dict[str, Any] = {
            "value": text,
            "type": value.type.name,
            "variablesReference": 0,
        }
        if isinstance(value.type, (Structure, Array)) or (
            isinstance(value.type, Pointer) and value.type.to is not None
        ):
            focus = self._client.opened().focus
            held = Held(focus, value=value, expression=expression)
            description["variablesReference"] = self._hold(held)
            if isinstance(value.type, Array):
                description["indexedVariables"] = value.type.count
        if isinstance(value.type, Pointer):
            description["memoryReference"] = f"{int.from_bytes(value.bytes(thread), 'little'):#x}"
        elif value.place is not None and value.place.space is not Space.PARAM:
            description["memoryReference"] = f"{value.place.generic:#x}"
        return description

    def expression(self, reference: int, name: str) -> str:
        """Returns the expression of a variable among those of a reference."""
        held = self._held[reference - 1]
        self._client.opened().focus = held.focus
        return name if held.value is None else _part_of(held.expression, held.value, name)

    def _set_variable(self, arguments: dict[str, Any]) -> Any:
        name = self.expression(int(arguments["variablesReference"]), arguments["name"])
        return self._assigned(name, arguments["value"])

    def _set_expression(self, arguments: dict[str, Any]) -> Any:
        self._at_frame(arguments.get("frameId"))
        return self._assigned(arguments["expression"], arguments["value"])

    def _assigned(self, target: str, value: str) -> Any:
        session = self._client.opened()
        made = session.evaluate(f"{target} = {value}")
        return self._described(made, target, session.evaluator().thread)

    def _evaluate(self, arguments: dict[str, Any]) -> Any:
        self._at_frame(arguments.get("frameId"))
        session, text = self._client.opened(), arguments["expression"]
        value = session.evaluate(text)
        description = self._described(value, text, session.evaluator().thread)
        return {"result": description.pop("value"), **description}

    # ---- sources and code -----------------------------------------------------------------------

    def source(self, file: str) -> dict[str, Any]:
        """Returns the description of a source file for the client, as the protocol's type
        `Source`."""
        path = Path(file)
        if not path.is_absolute():
            name = self._client.opened().kernel.source.name
            same = PurePath(name).name == path.name
            path = Path(name) if same and Path(name).exists() else path
        if path.exists():
            return {"name": path.name, "path": str(path.resolve())}
        files = self._client.opened().places.files
        reference = files.index(file) + 1 if file in files else 0
        return {"name": path.name, "sourceReference": reference}

    def _source_text(self, arguments: dict[str, Any]) -> Any:
        session = self._client.opened()
        reference = int(arguments.get("sourceReference") or 0)
        files = session.places.files
        file = files[reference - 1] if reference else str(arguments["source"]["path"])
        lines = session.source_lines(file)
        if lines is None:
            raise DebugError(f"the source {file} cannot be found")
        return {"content": "\n".join(lines)}

    def _loaded_sources(self, _: dict[str, Any]) -> Any:
        files = self._client.opened().places.files
        return {"sources": [self.source(file) for file in files]}

    def _disassemble(self, arguments: dict[str, Any]) -> Any:
        """Returns PTX instructions; the address of one is its number."""
        session = self._client.opened()
        start = int(arguments["memoryReference"], 0) + (arguments.get("instructionOffset") or 0)
        instructions: list[dict[str, Any]] = []
        for index in range(start, start + int(arguments["instructionCount"])):
            if not 0 <= index < len(session.program.instructions):
                instructions.append(
                    {"address": f"{index:#x}", "instruction": "", "presentationHint": "invalid"}
                )
                continue
            frame = session.places.frames(index)[0]
            text = print_instruction(session.program.instructions[index])
            shown: dict[str, Any] = {"address": f"{index:#x}", "instruction": text}
            if frame.line:
                shown["line"] = frame.line - 1 + self._client.lines_from
                shown["location"] = self.source(frame.file)
            instructions.append(shown)
        return {"instructions": instructions}

    # ---- memory ---------------------------------------------------------------------------------

    def _read_memory(self, arguments: dict[str, Any]) -> Any:
        address = int(arguments["memoryReference"], 0) + (arguments.get("offset") or 0)
        thread, count = self._client.opened().evaluator().thread, int(arguments["count"])
        data = bytearray()
        for offset in range(count):
            try:
                data += thread.read(Place(Space.GENERIC, address + offset), 1)
            except WarploomError:
                break
        response: dict[str, Any] = {"address": f"{address:#x}"}
        if len(data) < count:
            response["unreadableBytes"] = count - len(data)
        return response | {"data": base64.b64encode(bytes(data)).decode()}

    def _write_memory(self, arguments: dict[str, Any]) -> Any:
        address = int(arguments["memoryReference"], 0) + (arguments.get("offset") or 0)
        data = base64.b64decode(arguments["data"])
        session = self._client.opened()
        session.write_memory(Place(Space.GENERIC, address), data)
        return {"bytesWritten": len(data)}


def _pair(focus: Focus) -> tuple[int, int]:
    return focus.block, focus.warp


def _triple(focus: Focus) -> tuple[int, int, int]:
    return focus.block, focus.warp, focus.lane


def _part_of(expression: str, value: Value, name: str) -> str:
    """Returns the expression of a part of a value."""
    if name == "*":
        return f"*({expression})"
    if isinstance(value.type, Array):
        return f"({expression}){name}" if " " in expression else f"{expression}{name}"
    return f"{expression}.{name}"
