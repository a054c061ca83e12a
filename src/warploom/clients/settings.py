"""Passes the settings of a program from the command line through the environment.

`warploom run` and the pytest plugin write it; the libraries in the program's process read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from warploom.core.errors import WarploomError
from warploom.devices.catalog import DEFAULT, find_device
from warploom.host.context import schedule_of
from warploom.host.core_files.capturing import LaunchCapture
from warploom.host.device import Device
from warploom.host.run import Run
from warploom.machine.launch import ORDERS
from warploom.sanitize.findings import TOOLS

PREFIX = "WARPLOOM_"
REPORTS = ("none", "short", "full")
ISSUED, LATE, RANDOM = STREAM_ORDERS = ("issued", "late", "random")
"""When the work of streams runs: when it is issued; when the host waits for it, and not before; in
an order among streams that the seed chooses, when the host waits for anything."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Settings:
    """Names the device, and what the process reports at its end: `report` is one of REPORTS, `json`
    a file, in whose name `%p` stands for the process id.

    `sanitize` names the tools that check each launch, and "leak", separated by commas. The process
    reports at most `sanitize_limit` of their findings at its end, without those of the file
    `sanitize_suppress`, and writes all of them to the file `sanitize_sarif`. Where there are
    errors, it ends with the status `sanitize_exitcode`. `debug` has launches debugged in the
    terminal (`debug.terminal.face`). `core` is a file to which launches that fail are saved.
    `timeline` has launches recorded for timing, and a timeline reported at the end, and written as
    a page to the file `timeline_page`, in whose name `%p` stands for the process id.
    `stream_order` is one of STREAM_ORDERS.
    `capture` is a folder for a list of all launches of kernels whose names match the regular
    expression `capture_kernel`, and for launch `capture_launch` of them, or for 0 the costliest
    ones, as many as `capture_most`.
    """

    device: str = DEFAULT
    engine: str = "compiled"
    schedule: str = "converge"
    seed: int = 0
    any_order: bool = False
    workers: int | None = None
    memory: str = ""
    caching_allocator: bool = False
    report: str = "none"
    json: str = ""
    sanitize: str = ""
    sanitize_exitcode: int = 1
    sanitize_limit: int = 100
    sanitize_suppress: str = ""
    sanitize_sarif: str = ""
    debug: str = ""
    core: str = ""
    timeline: bool = False
    timeline_page: str = ""
    stream_order: str = ISSUED
    capture: str = ""
    capture_kernel: str = ""
    capture_launch: int = 0
    capture_most: int = 1

    def __post_init__(self) -> None:
        if self.report not in REPORTS:
            raise WarploomError(f"there is no report {self.report!r}; choose from {REPORTS}")
        if self.stream_order not in STREAM_ORDERS:
            orders = ", ".join(STREAM_ORDERS)
            raise WarploomError(
                f"there is no stream order {self.stream_order!r}; choose from {orders}"
            )

    def checked(self) -> Settings:
        """Returns these settings; raises WarploomError where they contradict each other."""
        find_device(self.device)
        if self.memory:
            bytes_of(self.memory)
        schedule_of(find_device(self.device), self.schedule, self.seed, ORDERS[self.any_order])
        if self.timeline and (self.engine != "compiled" or self.sanitize):
            raise WarploomError(
                "a timeline requires the compiled engine, without sanitizers: omit --timeline, or "
                "run the program with `warploom run` and without --engine"
            )
        return self

    @classmethod
    def from_environment(cls, given: Mapping[str, str] = os.environ) -> Settings:
        """Returns the settings that another process left in the environment."""
        found: dict[str, Any] = {}
        for field in fields(cls):
            text = given.get(PREFIX + field.name.upper())
            if text is not None:
                default = field.default
                if default is None:
                    found[field.name] = int(text)
                else:
                    found[field.name] = (
                        type(default)(int(text)) if isinstance(default, int) else text
                    )
        return cls(**found)

    def environment(self) -> dict[str, str]:
        """Returns the settings as variables of an environment."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            PREFIX + name.upper(): str(int(value)) if isinstance(value, bool) else str(value)
            for name, value in values.items()
            if value is not None
        }

    @property
    def tools(self) -> tuple[str, ...]:
        """Returns the tools that check launches, and what is left at the end."""
        return tuple(self.sanitize.split(",")) if self.sanitize else ()

    def make_device(
        self, on_run: Callable[[Run], object], capture: LaunchCapture | None = None
    ) -> Device:
        """Returns the device that they describe; it calls `on_run` after a launch that ends
        well, and has launches captured."""
        return Device(
            self.device,
            engine=self.engine,
            schedule=self.schedule,
            seed=self.seed,
            order=ORDERS[self.any_order],
            workers=self.workers,
            memory_bytes=bytes_of(self.memory) if self.memory else None,
            on_run=on_run,
            sanitize=tuple(tool for tool in self.tools if tool in TOOLS),
            core=self.core or None,
            capture=capture,
        )

    def capturing(self, folder: str, kernel: str, launch: int, most: int = 1) -> Settings:
        """Returns these settings with launches captured."""
        return replace(
            self,
            capture=folder,
            capture_kernel=kernel,
            capture_launch=launch,
            capture_most=most,
        )

    def make_capture(self) -> LaunchCapture | None:
        """Returns what captures launches, None where they are not to be."""
        if not self.capture:
            return None
        return LaunchCapture(
            self.capture, self.capture_kernel, self.capture_launch, self.capture_most
        )


def bytes_of(text: str) -> int:
    """Returns a number of bytes such as 512M or 16G; WarploomError for what is none."""
    plain = text.strip().lower().removesuffix("ib").removesuffix("b")
    number, unit = plain.rstrip("kmg"), plain[len(plain.rstrip("kmg")) :]
    try:
        size = int(float(number) * UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise WarploomError(
            f"{text!r} is not a valid memory size; write a size such as 512M or 16G"
        ) from None
    if size <= 0:
        raise WarploomError(
            f"a device with {text} of memory cannot run anything; choose a larger size"
        )
    return size
