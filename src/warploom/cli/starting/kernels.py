"""`warploom kernels`: the kernels of a file, their parameters, and a command that launches each."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from warploom.cli.options import CompilerOption, DeviceName, File, Json
from warploom.core.mangled import read_symbol
from warploom.host.device import Device
from warploom.host.kernel import Kernel
from warploom.host.programs.cpp_types import Class
from warploom.host.programs.signatures import Parameter
from warploom.host.values import DTYPES
from warploom.isa.instruction import Space
from warploom.ptx.module import Variable

ELEMENTS = 1024
"""The elements of each buffer in the command."""


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel: its name, its parameters as declared, and a command that launches it."""

    name: str
    parameters: tuple[str, ...]
    command: str


def kernels(
    file: File, option: CompilerOption = None, device: DeviceName = None, as_json: Json = False
) -> None:
    """Print the kernels of a file with their parameters, and a command to launch each of them.

    Example: `warploom kernels saxpy.cu`
    """
    module = Device(device).load(file, option or ())
    rows = [_row(module[name], file) for name in module.kernels]
    if as_json:
        shown = ({"name": r.name, "parameters": r.parameters, "command": r.command} for r in rows)
        print(json.dumps(list(shown), indent=2))
        return
    for row in rows:
        print(f"{row.name}({', '.join(row.parameters)})\n  {row.command}\n")
    if not rows:
        print(f"{file} has no kernels (__global__ functions).")


def _row(kernel: Kernel, file: Path) -> Row:
    """Returns what is shown of a kernel."""
    parameters = list(zip(kernel.function.parameters, kernel.signature, strict=True))
    declared = tuple(source.text or str(ptx.type) for ptx, source in parameters)
    name = read_symbol(kernel.name).template
    words = ["warploom", "run", str(file), "--kernel", name, "--grid", "4", "--block", "256"]
    for ptx, source in parameters:
        words += ["--arg", argument_for(ptx, source)]
    return Row(name, declared, shlex.join(words))


def argument_for(ptx: Variable, source: Parameter) -> str:
    """Returns a value for a parameter, as `--arg` takes it: a buffer for a pointer, the number of
    elements for an integer, a structure of bytes for what the source does not describe."""
    if ptx.pointer_space is Space.SHARED:
        return f"local:{4 * ELEMENTS}"
    if ptx.shape or ptx.vector > 1:
        return "{" + ",".join(["u8:0"] * ptx.size) + "}"
    type = source.type
    if "*" in source.text or (type is None and not source.text and ptx.type.bits == 64):
        element = "u8" if type is None else _element(type.element.kind, type.element.bytes)
        content = "zeros" if "const" not in source.text else "arange"
        named = f"{source.name}:" if source.name else ""
        return f"{named}{element}[{ELEMENTS}]={content}"
    is_float = ptx.type.name.startswith("f")
    return "1.0" if is_float else str(ELEMENTS)


def _element(kind: Class, size: int) -> str:
    """Returns the type of a buffer of elements; of types that the command line does not have, of
    their bits."""
    letter = {Class.SIGNED: "i", Class.FLOAT: "f"}.get(kind, "u")
    name = f"{letter}{8 * size}"
    return name if name in DTYPES else f"u{8 * size}"
