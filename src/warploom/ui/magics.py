"""Cell magics of IPython: `%load_ext warploom`, then cells of CUDA C++, PTX or OpenCL C.

    %%warploom --grid 4 --block 256 1000 2.0 x y --step 12 --view memory
    __global__ void saxpy(int n, float a, const float *x, float *y) { ... }

compiles the cell, launches its kernel and shows the launch. Arguments are those of `warploom run`
(`f32[64]=ones`), or names of the notebook's variables: a NumPy array is copied to the device, and
back after the launch.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, cast

import numpy as np

from warploom.core.errors import WarploomError
from warploom.host.buffer import Array, Buffer
from warploom.host.device import Device
from warploom.host.requests import dims, only_kernel
from warploom.host.values import BufferArgument, parse_arguments
from warploom.machine.launch import POLICIES
from warploom.observe.trace import Trace
from warploom.ui.notebook import HEIGHT, Shown, show

NAME = "warploom"
"""The name of the magic."""


_PTX = re.compile(r"^\s*\.version\s", re.MULTILINE)
"""The directive that every module of PTX begins with."""


class Shell(Protocol):
    """The part of IPython's shell that the magic uses."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Registers a function of a line and a cell as a magic."""
        ...


class _Options(argparse.ArgumentParser):
    """A parser that raises WarploomError where `argparse` would end the process."""

    def error(self, message: str) -> NoReturn:
        options = (one.option_strings[0] for one in self._actions if one.option_strings)
        raise WarploomError(f"%%{NAME}: {message}. Options: {', '.join(options)}.")


def _options() -> _Options:
    """Returns the parser of the magic's line."""
    options = _Options(add_help=False, allow_abbrev=False)
    options.add_argument("args", nargs="*", metavar="ARG")
    options.add_argument("--grid", default="1", metavar="N[xN[xN]]")
    options.add_argument("--block", default="32", metavar="N[xN[xN]]")
    options.add_argument("--shared", type=int, default=0, metavar="BYTES")
    options.add_argument("--kernel", default="", metavar="NAME")
    options.add_argument("--device", default="h100")
    options.add_argument("--schedule", default="converge", choices=POLICIES)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--language", choices=("cuda", "hip", "ptx", "opencl"))
    options.add_argument("--step", type=int, default=0)
    options.add_argument("--warp", type=int, default=0)
    options.add_argument("--view", default="")
    options.add_argument("--height", type=int, default=HEIGHT)
    options.add_argument("--name", default="", metavar="VARIABLE")
    return options


@dataclass(frozen=True)
class Magic:
    """The magic in a shell, whose variables arguments can name."""

    shell: Shell

    def __call__(self, line: str, cell: str) -> Shown | None:
        """Launches the kernel of a cell and returns its view; prints what is wrong with it."""
        try:
            return self._shown(line, cell)
        except WarploomError as error:
            print(error, file=sys.stderr)
            return None

    def _shown(self, line: str, cell: str) -> Shown:
        """Returns the view of a cell's launch. Raises WarploomError for what does not run."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise WarploomError(f"%%{NAME}: {error}") from None
        given = _options().parse_intermixed_args(words)  # options may stand between arguments
        trace = self._traced(given, cell)
        if given.name:
            self.shell.user_ns[given.name] = trace
        place = {"step": given.step, "warp": given.warp, "view": given.view}
        return show(trace, height=given.height, **place)

    def _traced(self, given: argparse.Namespace, cell: str) -> Trace:
        """Returns the trace of a launch, after which arrays of the notebook have their results."""
        language = given.language or ("ptx" if _PTX.search(cell) else "cuda")
        gpu = Device(given.device, schedule=given.schedule, seed=given.seed)
        module = gpu.compile(cell, language)
        kernel = module[given.kernel or only_kernel(module)]
        values = [self._value(gpu, text, number) for number, text in enumerate(given.args)]
        shape = dims("--grid", given.grid), dims("--block", given.block)
        trace = kernel[*shape, 0, given.shared].trace(*values)
        for text, value in zip(given.args, values, strict=True):
            if isinstance(value, Buffer) and text in self.shell.user_ns:
                self.shell.user_ns[text][...] = value.copy_to_host()
        return trace

    def _value(self, gpu: Device, text: str, number: int) -> Any:
        """Returns an argument: of a variable of the notebook, else as the text describes it."""
        if text.isidentifier() and text in self.shell.user_ns:
            given: Any = self.shell.user_ns[text]
            return gpu.to_device(cast(Array, given), text) if _is_array(given) else given
        (made,) = parse_arguments([text])
        if not isinstance(made, BufferArgument):
            return made
        name = f"argument {number}" if made.name == "0" else made.name
        return gpu.to_device(made.content, name)


def _is_array(given: object) -> bool:
    return isinstance(given, np.ndarray)


def load_ipython_extension(shell: Shell) -> None:
    """Registers the magic (`%load_ext warploom`)."""
    shell.register_magic_function(Magic(shell), "cell", NAME)
