"""`warploom ptx`: the PTX of a program, with the source lines that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from warploom.host.device import Device
from warploom.host.launcher import Launcher
from warploom.host.module import Module
from warploom.host.requests import dims, only_kernel
from warploom.report.source import source_line


def ptx(
    file: Annotated[Path, typer.Argument(help="A CUDA C++ (.cu) or PTX (.ptx) file.")],
    device: Annotated[
        str | None, typer.Option(help="Device to compile for, as listed by `warploom devices`.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Compiler option, such as -DN=4; repeatable.")
    ] = None,
    source: Annotated[bool, typer.Option(help="Show the source lines.")] = True,
    llvm: Annotated[
        bool, typer.Option("--llvm", help="Print a kernel's LLVM IR before LLVM's passes.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Print only a kernel's access plan: how each memory access is compiled.",
        ),
    ] = False,
    ir: Annotated[
        bool,
        typer.Option("--ir", help="Print a kernel's Warp IR after the compiler's passes."),
    ] = False,
    passes: Annotated[
        bool,
        typer.Option(
            "--passes",
            help="Print a kernel's Warp IR after each compiler pass, not only after the last one.",
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="With --llvm: print the LLVM IR of the baseline code."),
    ] = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="The kernel for --llvm, --ir, --passes or --plan; required if FILE has several "
            "kernels."
        ),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            metavar="X[,Y[,Z]]",
            help="Threads per block assumed by --llvm, --ir, --passes and --plan. Default: 256.",
        ),
    ] = None,
) -> None:
    """Print the PTX of a program, with each source line above its instructions.

    Examples: `warploom ptx saxpy.cu`, `warploom ptx saxpy.cu --device t4 --no-source`,
    `warploom ptx saxpy.cu --llvm --block 16x16`, `warploom ptx saxpy.cu --ir`,
    `warploom ptx saxpy.cu --plan`, `warploom ptx saxpy.cu --passes`.
    """
    if llvm + ir + passes + plan > 1:
        raise typer.BadParameter(
            "--llvm, --ir, --passes and --plan are mutually exclusive: use only one"
        )
    if not (llvm or ir or passes or plan) and (kernel is not None or block is not None):
        raise typer.BadParameter(
            "--kernel and --block require one of --llvm, --ir, --passes and --plan: add one of "
            "these, or omit --kernel and --block"
        )
    if baseline and not llvm:
        raise typer.BadParameter("--baseline requires --llvm: add it, or omit --baseline")
    module = Device(device).load(file, option or ())
    if llvm or ir or passes or plan:
        chosen = module[kernel or only_kernel(module)]
        launcher = chosen[1, dims("--block", block or "256")]
        if llvm:
            text = launcher.llvm_ir(baseline=baseline)
        else:
            text = "\n".join(planned(launcher)) if plan else launcher.warp_ir(each_pass=passes)
        print(text.rstrip())
    else:
        print("\n".join(annotated(module)) if source else module.ptx.rstrip())


def planned(launcher: Launcher) -> Iterator[str]:
    """Yields for each access to memory its source line, its instruction and how it is done."""
    program = launcher.kernel.program
    lines = program.module.text.splitlines()
    for number, sentence in launcher.access_plans():
        made = program.instructions[number]
        place = made.location
        where = f"{Path(place.file).name}:{place.line}" if place else f"PTX:{made.span.line}"
        yield f"{where}  [{number}] {lines[made.span.line - 1].strip()}"
        yield f"    {sentence}"


def annotated(module: Module) -> Iterator[str]:
    """Yields the lines of a module's PTX, with a comment where the source line changes."""
    places = {
        instruction.span.line: instruction.location
        for function in module.ir.functions
        for instruction in function.instructions
    }
    before: tuple[str, int] | None = None
    for number, line in enumerate(module.ptx.rstrip().splitlines(), 1):
        place = places.get(number)
        if place is not None and (place.file, place.line) != before:
            before = (place.file, place.line)
            text = source_line(place.file, place.line)
            yield f"// {Path(place.file).name}:{place.line}  {text}".rstrip()
        if not line.lstrip().startswith(".loc"):
            yield line
