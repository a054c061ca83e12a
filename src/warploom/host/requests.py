"""A launch that is written down: a file, a kernel, a shape, arguments as text; made ready to go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.core.errors import WarploomError
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.launch_options import LaunchOptions
from warploom.host.launcher import Launcher
from warploom.host.module import Module
from warploom.host.programs.names import kernel_title
from warploom.host.values import Argument, BufferArgument, assignment, parse_arguments


@dataclass(frozen=True, slots=True)
class Request:
    """A launch that is asked for; `args` and the contents of `constants` as
    `host.values` reads them, `options` for the compiler."""

    file: Path
    kernel: str | None
    grid: str
    block: str
    shared: int
    args: Sequence[str]
    options: Sequence[str]
    saves: Sequence[str] = ()
    constants: Sequence[str] = ()
    max_instructions: int | None = None
    cooperative: bool = False
    cluster_dims: str = ""

    @property
    def launch_options(self) -> LaunchOptions:
        """Returns the options of the launch itself."""
        return launch_options(self.max_instructions, self.cooperative, self.cluster_dims)


def launch_options(
    max_instructions: int | None, cooperative: bool, cluster_dims: str
) -> LaunchOptions:
    """Returns the options of a launch; `cluster_dims` is a shape as text, empty for what the kernel
    says. Raises WarploomError for no shape."""
    return {
        "max_instructions": max_instructions,
        "cooperative": cooperative,
        "cluster_dims": dims("--cluster-dims", cluster_dims) if cluster_dims else None,
    }


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch that is ready to go: what to launch, with which values, the buffers by name."""

    launcher: Launcher
    values: list[Any]
    buffers: dict[str, Buffer]


def prepared(gpu: Device, request: Request) -> Prepared:
    """Loads the program and uploads the arguments."""
    return prepared_from(gpu, gpu.load(request.file, request.options), request)


def prepared_from(gpu: Device, module: Module, request: Request) -> Prepared:
    """Uploads the arguments for a kernel of a program that is loaded."""
    arguments = parse_arguments(request.args)
    for text in request.constants:
        module.set_variable(*assignment("--constant", text))
    shape = dims("--grid", request.grid), dims("--block", request.block)
    launcher = module[request.kernel or only_kernel(module)][*shape, 0, request.shared]
    return Prepared(launcher, *_upload(gpu, arguments))


def dims(option: str, text: str) -> tuple[int, ...]:
    """Returns the numbers of a shape such as "16", "16x8" or "16,8,1". Raises WarploomError for
    anything else."""
    try:
        return tuple(int(part) for part in re.split("[x,]", text))
    except ValueError:
        raise WarploomError(
            f"{option} {text!r} is not valid. Write numbers separated by x, such as 16x8."
        ) from None


def only_kernel(module: Module) -> str:
    """Returns the kernel of a module that has one."""
    if len(module.kernels) != 1:
        names = ", ".join(map(kernel_title, module.kernels)) or "none"
        raise WarploomError(
            f"{module.name}: use --kernel to choose the kernel to launch. Its kernels: {names}."
        )
    return module.kernels[0]


def _upload(gpu: Device, arguments: list[Argument]) -> tuple[list[Any], dict[str, Buffer]]:
    """Returns the values to launch with, and the buffers among them by name."""
    values: list[Any] = []
    buffers: dict[str, Buffer] = {}
    for argument in arguments:
        if isinstance(argument, BufferArgument):
            name = argument.name
            called = f"argument {name}" if name.isdigit() else name
            buffer = buffers[name] = gpu.to_device(argument.content, called)
            values.append(buffer)
        else:
            values.append(argument)
    return values, buffers
