"""Finds what a command launches: a kernel of a file, a launch of a program, or a saved launch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import typer

from warploom.cli.launches.captures import CapturedLaunch, ProgramRun
from warploom.cli.options import LaunchOptions
from warploom.cli.programs import Arguments
from warploom.clients.settings import Settings
from warploom.core.errors import WarploomError
from warploom.devices.catalog import DEFAULT
from warploom.host.core_files import SUFFIX
from warploom.host.core_files.replaying import ReplayDevice, SavedLaunch, saved_launch
from warploom.host.device import Device
from warploom.host.launch_options import LaunchOptions as Options
from warploom.host.requests import Prepared, Request, prepared
from warploom.machine.launch import POLICIES
from warploom.machine.memory.device_memory import DeviceMemory

OF_LAUNCHES = ("kernel", "device", "max_instructions")
"""Options of a kernel's launch that hold for one that is captured or saved, too."""

LaunchNumber = Annotated[
    int | None,
    typer.Option(
        "--launch",
        min=1,
        metavar="N",
        help="Number of the launch to show; the first launch is 1. With --kernel (a regular "
        "expression), only launches of matching kernels are counted. Default: the launch that "
        "executes the most instructions.",
    ),
]
CaptureFile = Annotated[
    Path | None,
    typer.Option(
        "--capture",
        metavar=f"FILE{SUFFIX}",
        help="Save the launch to a file. You can pass this file to a command instead of a kernel "
        "file.",
    ),
]
IsProgram = Annotated[
    bool,
    typer.Option(
        "--program", help="Run FILE as a program, even if its kernels can be launched individually."
    ),
]


class LaunchSource(Protocol):
    """Makes a launch ready, as often as wanted: each time its memory is as before."""

    def ready(self) -> Prepared:
        """Returns what launches."""
        ...

    @property
    def options(self) -> Options:
        """Returns the options of the launch itself."""
        ...

    @property
    def memory(self) -> DeviceMemory:
        """Returns the memory of its device."""
        ...


@dataclass(frozen=True)
class FileLaunch:
    """A launch of a kernel in a file, with arguments of the command line."""

    gpu: Device
    request: Request

    def ready(self) -> Prepared:
        """Loads the program, and uploads the arguments."""
        return prepared(self.gpu, self.request)

    @property
    def options(self) -> Options:
        """Returns the options of the launch itself."""
        return self.request.launch_options

    @property
    def memory(self) -> DeviceMemory:
        """Returns the memory of its device."""
        return self.gpu.memory


@dataclass(frozen=True)
class ReplayedLaunch:
    """A saved launch on a device with some options."""

    saved: SavedLaunch
    device: ReplayDevice
    max_instructions: int | None = None

    def ready(self) -> Prepared:
        """Rewinds memory."""
        return self.saved.ready(**self.device)

    @property
    def options(self) -> Options:
        """Returns the options of the launch itself."""
        saved = self.saved.options
        if self.max_instructions is not None:
            saved["max_instructions"] = self.max_instructions
        return saved

    @property
    def memory(self) -> DeviceMemory:
        """Returns the memory at the launch's addresses."""
        return self.saved.memory


@dataclass(frozen=True)
class CaptureOptions:
    """Options that choose a launch of a program."""

    launch: LaunchNumber = None
    capture: CaptureFile = None
    program: IsProgram = False


NONE = CaptureOptions()


@dataclass(frozen=True)
class Target:
    """A file, and where it is a program, its arguments."""

    file: Annotated[
        str,
        typer.Argument(
            help="A CUDA C++ (.cu), OpenCL C (.cl) or PTX (.ptx) file, a saved launch "
            f"({SUFFIX}), or a program (x.py, ./app, pytest, a .cu file with a main "
            "function)."
        ),
    ]
    arguments: Arguments = None

    @property
    def path(self) -> Path:
        """Returns the file."""
        return Path(self.file)

    @property
    def is_saved(self) -> bool:
        """Returns whether the file is a saved launch."""
        return self.path.suffix == SUFFIX

    def saved(
        self, launched: LaunchOptions, captured: CaptureOptions, device: dict[str, Any]
    ) -> Path | None:
        """Returns the file of the launch, which is captured now where a program is given; None for
        a file with kernels. `device` are options of `Device` that the program runs with. Raises
        WarploomError for options that do not belong to what is given."""
        if captured.program:
            run, settings = self._program(launched, captured, device)
            return run.capture(settings, captured.capture)
        kind = "a saved launch" if self.is_saved else "a kernel file"
        for option, value in (("--launch", captured.launch), ("--capture", captured.capture)):
            if value is not None:
                raise WarploomError(
                    f"{option} applies only to programs, but {self.file} is {kind}."
                )
        if self.arguments:
            raise WarploomError(
                f"{self.arguments[0]!r} is an unexpected argument: {self.file} is {kind}, not a "
                "program with arguments. Pass a kernel's arguments with --arg."
            )
        if not self.is_saved:
            return None
        self._check(launched, f"{self.file} already specifies the launch")
        if launched.kernel:
            raise WarploomError(f"--kernel: {self.file} has only one launch. Omit the option.")
        return self.path

    def _program(
        self, launched: LaunchOptions, captured: CaptureOptions, device: dict[str, Any]
    ) -> tuple[ProgramRun, Settings]:
        """Returns the program, and the settings that it runs with. Raises WarploomError for options
        of a kernel's launch."""
        self._check(
            launched, f"{self.file} is a program, which configures its own launches", "option"
        )
        shown = {name: device[name] for name in ("schedule", "seed") if name in device}
        settings = Settings(launched.device or DEFAULT, **shown).checked()
        kernel, given = launched.kernel or "", (self.arguments or (), launched.option or ())
        return ProgramRun(self.file, given[0], kernel, captured.launch, given[1]), settings

    def launches_of_program(
        self, launched: LaunchOptions, captured: CaptureOptions, most: int, **device: Any
    ) -> list[CapturedLaunch]:
        """Returns the costliest launches of a program, the costliest first. Raises WarploomError
        for options that do not belong to a program."""
        run, settings = self._program(launched, captured, device)
        return run.capture_several(settings, most)

    def source(
        self, launched: LaunchOptions, captured: CaptureOptions = NONE, **device: Any
    ) -> LaunchSource:
        """Returns the launch, on a device with these options of `Device`. Raises WarploomError, and
        what the compiler does."""
        saved = self.saved(launched, captured, device)
        if saved is None:
            return FileLaunch(Device(launched.device, **device), launched.request(self.path))
        return replayed(saved, launched, device)

    def _check(self, launched: LaunchOptions, reason: str, *others: str) -> None:
        """Raises WarploomError for an option of a kernel's launch, with the reason; `others` are
        allowed beside those of all launches."""
        allowed = (*OF_LAUNCHES, *others)
        for field in fields(LaunchOptions):
            value = getattr(launched, field.name)
            if field.name not in allowed and value != field.default and value:
                option = field.name.replace("_", "-")
                raise WarploomError(f"--{option}: {reason}. Omit the option.")


def replayed(file: Path, launched: LaunchOptions, device: dict[str, Any]) -> ReplayedLaunch:
    """Returns the launch of a core file, on a device with these options of `Device`."""
    replay = replay_options(launched.device, device)
    return ReplayedLaunch(saved_launch(file), replay, launched.max_instructions)


def replay_options(name: str | None, device: dict[str, Any]) -> ReplayDevice:
    """Returns the options of `Device` that a saved launch can be replayed with; its own schedule
    where the default is given."""
    given = {key: value for key, value in device.items() if key in ReplayDevice.__annotations__}
    if given.get("schedule") == POLICIES[0]:
        del given["schedule"]
    return cast(ReplayDevice, {**given, "device": name})
