"""Requests about breakpoints. They may come before a kernel is launched, and hold for all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from warploom.core.errors import WarploomError
from warploom.debug.dap.client import Client
from warploom.debug.dap.inspecting import Inspecting
from warploom.debug.session import DebugError, Session
from warploom.debug.stops import COUNTED, FINDINGS, Breakpoint

Wanted = dict[str, Any]
"""Holds the fields of one breakpoint in a request."""


class Breaking:
    """Keeps what the client wants, by kind and source, and binds it to each session. `messages` are
    those of log points, by the numbers of their breakpoints."""

    def __init__(self, client: Client, inspecting: Inspecting) -> None:
        self._client, self._inspecting = client, inspecting
        self._wanted: dict[str, list[Wanted]] = {}
        self.messages: dict[int, str] = {}
        self._bound: dict[str, list[Breakpoint]] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self.handlers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "setBreakpoints": self._of_source,
            "setFunctionBreakpoints": lambda a: self._set("functions", a["breakpoints"]),
            "setInstructionBreakpoints": lambda a: self._set("instructions", a["breakpoints"]),
            "setDataBreakpoints": lambda a: self._set("data", a["breakpoints"]),
            "setExceptionBreakpoints": self._of_events,
            "dataBreakpointInfo": self._data_info,
            "breakpointLocations": self._locations,
        }

    def bind(self, session: Session) -> None:
        """Sets all breakpoints that the client wants in a session, and sends the client an event
        for each."""
        self._bound.clear()
        for group in list(self._wanted):
            for description in self._make(session, group):
                self._client.connection.event(
                    "breakpoint", reason="changed", breakpoint=description
                )

    def _of_source(self, arguments: dict[str, Any]) -> Any:
        path = arguments["source"].get("path") or arguments["source"].get("name", "")
        lines = arguments.get("lines", ())
        wanted = arguments.get("breakpoints") or [{"line": line} for line in lines]
        first = 1 - self._client.lines_from
        return self._set(f"source:{path}", [{**w, "line": w["line"] + first} for w in wanted])

    def _of_events(self, arguments: dict[str, Any]) -> Any:
        options = {o["filterId"]: o for o in arguments.get("filterOptions", ())}
        names = [*arguments.get("filters", ()), *options]
        return self._set("events", [{"name": n, **options.get(n, {})} for n in names])

    def _set(self, group: str, wanted: list[Wanted]) -> Any:
        self._wanted[group] = wanted
        session = self._client.session
        if session is None:
            waits = "pending until a kernel is launched"
            return {
                "breakpoints": [
                    {"id": self._id(group, i), "verified": False, "message": waits}
                    for i in range(len(wanted))
                ]
            }
        return {"breakpoints": self._make(session, group)}

    def _make(self, session: Session, group: str) -> list[dict[str, Any]]:
        """Sets the breakpoints of a group in a session; returns their descriptions for the client,
        as the protocol's type `Breakpoint`."""
        for old in self._bound.pop(group, ()):
            if old in session.breakpoints:
                session.breakpoints.remove(old)
        made: list[dict[str, Any]] = []
        for number, wanted in enumerate(self._wanted[group]):
            id = self._id(group, number)
            try:
                breakpoint = self._one(session, group, wanted)
            except WarploomError as error:
                made.append({"id": id, "verified": False, "message": str(error)})
                continue
            breakpoint.number = id
            self._bound.setdefault(group, []).append(breakpoint)
            made.append({"id": id, "verified": True, **self._placed(session, breakpoint)})
        return made

    def _id(self, group: str, number: int) -> int:
        return self._ids.setdefault((group, number), len(self._ids) + 1)

    def _one(self, session: Session, group: str, wanted: Wanted) -> Breakpoint:
        """Adds one breakpoint. Raises WarploomError where it cannot be."""
        kind, _, path = group.partition(":")
        match kind:
            case "source":
                made = session.add(f"{path}:{wanted['line']}")
            case "functions":
                made = session.add(wanted["name"])
            case "instructions":
                reference = int(wanted["instructionReference"], 0) + wanted.get("offset", 0)
                made = session.add(f"*{reference}")
            case "data":
                access = {"read": "read", "readWrite": "access"}
                made = session.watch(
                    wanted["dataId"], access.get(wanted.get("accessType", ""), "write")
                )
            case _:
                counted = wanted["name"] in (*COUNTED, *FINDINGS) and wanted.get("condition")
                made = session.catch(wanted["name"], _number(counted) if counted else 0)
                if counted:
                    return made
        if wanted.get("condition"):
            session.set_condition(made, wanted["condition"])
        if wanted.get("hitCondition"):
            made.ignored = _ignored(wanted["hitCondition"])
        if wanted.get("logMessage"):
            self.messages[self._id(group, self._wanted[group].index(wanted))] = wanted["logMessage"]
        return made

    def _placed(self, session: Session, made: Breakpoint) -> dict[str, Any]:
        """Returns where a breakpoint has come to stand."""
        if not made.instructions:
            return {}
        index = min(made.instructions)
        frame = session.places.frames(index)[0]
        description: dict[str, Any] = {"instructionReference": f"{index:#x}"}
        if frame.line:
            description["line"] = frame.line - 1 + self._client.lines_from
            description["source"] = self._inspecting.source(frame.file)
        return description

    def _data_info(self, arguments: dict[str, Any]) -> Any:
        session = self._client.opened()
        name = arguments["name"]
        parent = arguments.get("variablesReference", 0)
        text = self._inspecting.expression(parent, name) if parent else name
        try:
            watched = session.watched(text)
        except WarploomError as error:
            return {"dataId": None, "description": str(error)}
        described = f"{text} ({watched.size} bytes of {watched.space.value} memory)"
        kinds = ["read", "write", "readWrite"]
        return {"dataId": text, "description": described, "accessTypes": kinds}

    def _locations(self, arguments: dict[str, Any]) -> Any:
        session, first = self._client.session, 1 - self._client.lines_from
        if session is None:
            return {"breakpoints": []}
        path = arguments["source"].get("path") or arguments["source"].get("name", "")
        start = arguments["line"] + first
        end = arguments.get("endLine", arguments["line"]) + first
        lines = (n for n in session.places.lines_of(path) if start <= n <= end)
        return {"breakpoints": [{"line": line - first} for line in lines]}


def _number(condition: str) -> int:
    """Returns from how many on an event counts: 8 for `8`, `>= 8` and `> 7`."""
    found = re.fullmatch(r"\s*(>=|>)?\s*(\d+)\s*", condition)
    if found is None:
        raise DebugError(
            "the condition of this event must be a number or a comparison, such as 8 or >= 8, "
            f"not `{condition}`"
        )
    return int(found[2]) + (found[1] == ">")


def _ignored(condition: str) -> int:
    """Returns how many hits come before the one to stop at: the third for `3` or `>= 3`."""
    found = re.fullmatch(r"\s*(==|=|>=|>)?\s*(\d+)\s*", condition)
    if found is None:
        raise DebugError(
            "a hit condition must be a number or a comparison, such as 3 or >= 3, not "
            f"`{condition}`"
        )
    return int(found[2]) - (0 if found[1] == ">" else 1)
