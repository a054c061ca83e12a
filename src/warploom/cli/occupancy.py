"""`warploom occupancy`: how many blocks of a kernel an SM holds, and what would make it more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import Block, CompilerOption, DeviceName, Json, KernelName, grouped
from warploom.core.errors import WarploomError
from warploom.core.output_files import write_text
from warploom.devices.gains import Gain, gains
from warploom.devices.launches import check_launch, check_registers
from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.devices.spec import DeviceSpec
from warploom.host.device import Device
from warploom.host.kernel import Kernel
from warploom.host.programs.resources import Resources
from warploom.host.requests import dims, only_kernel
from warploom.report.console import terminal
from warploom.report.occupancy_curve import Curve, sweep
from warploom.report.plot import as_svg, as_text


@dataclass(frozen=True)
class BlockOptions:
    """Options for the resources of a block."""

    block: Block = "256"
    shared: Annotated[int, typer.Option(help="Bytes of dynamic shared memory per block.")] = 0
    registers: Annotated[
        int | None,
        typer.Option(
            help="Registers per thread. Default: the count reported by ptxas, or an estimate."
        ),
    ] = None

    def demand(self, chosen: Kernel | None) -> tuple[Demand, Resources]:
        """Returns what a block of a kernel, or of any with so many registers and so much shared
        memory, needs, and where its registers are known from."""
        threads = prod(dims("--block", self.block))
        if chosen is None:
            known = Resources(self._given_registers(), 1, "given")
            return Demand(threads, known.registers, self.shared), known
        known = chosen.resources
        if self.registers is not None:
            known = Resources(self.registers, known.barriers, "given")
        whole = chosen.program.shared_bytes
        if self.shared:
            whole = chosen.program.dynamic_shared_offset + self.shared
        return Demand(threads, known.registers, whole, known.barriers), known

    def _given_registers(self) -> int:
        """Returns the registers per thread. Raises WarploomError where they are not given."""
        if self.registers is None:
            raise WarploomError(
                "pass a kernel file, or use --registers to specify the number of registers per "
                "thread"
            )
        return self.registers


@dataclass(frozen=True)
class SweepOptions:
    """Options for drawing occupancy over block size, registers and shared memory."""

    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Plot occupancy against block size, registers and shared memory."
        ),
    ] = False
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Write the plot to a file.")
    ] = None


AnyFile = Annotated[
    Path | None,
    typer.Argument(help="A CUDA C++ (.cu), HIP (.hip), OpenCL C (.cl) or PTX (.ptx) file."),
]


@grouped
def occupancy(
    file: AnyFile = None,
    *,
    resources: BlockOptions,
    drawn: SweepOptions,
    kernel: KernelName = None,
    device: DeviceName = None,
    option: CompilerOption = None,
    as_json: Json = False,
) -> None:
    """Print how many blocks of a kernel fit on an SM at once, and which resources limit this
    number. Without a file, --registers and --shared describe the block.

    Example: `warploom occupancy matmul.cu --kernel matmul_tiled --block 256 --device t4 --sweep`
    """
    gpu = Device(device)
    chosen = None
    if file is not None:
        module = gpu.load(file, option or ())
        chosen = module[kernel or only_kernel(module)]
    name = "any kernel" if chosen is None else chosen.name
    demand, known = resources.demand(chosen)
    x, y, z = (*dims("--block", resources.block), 1, 1)[:3]
    check_launch(gpu.spec, (1, 1, 1), (x, y, z), demand.shared_bytes)
    check_registers(gpu.spec, demand.threads, known.registers, known.source)
    found, steps = occupancy_of(gpu.spec, demand), gains(gpu.spec, demand)
    curves = sweep(gpu.spec, demand) if drawn.sweep or drawn.svg is not None else ()
    if as_json:
        print(json.dumps(_as_json(found, known, steps, curves), indent=2))
    else:
        _print(gpu.spec, name, found, known, steps)
        for curve in curves if drawn.sweep else ():
            print(f"\n{as_text(curve)}")
    if drawn.svg is not None:
        _write(drawn.svg, as_svg(curves, f"{name} on {gpu.spec.title}"))


def _print(
    spec: DeviceSpec, name: str, found: Occupancy, known: Resources, steps: tuple[Gain, ...]
) -> None:
    demand, console = found.demand, terminal(soft_wrap=True)
    console.print(
        f"{name} on {spec.title} (compute capability {spec.cc}): blocks of"
        f" {demand.threads} threads, {demand.registers} registers per thread ({known.source}),"
        f" {demand.shared_bytes:,} bytes of shared memory"
    )
    console.print(
        f"{found.active_blocks} blocks, {found.active_warps} of {found.max_warps} warps per SM:"
        f" {100 * found.fraction:.1f} %, limited by {', '.join(found.limiters)}"
    )
    limits = ", ".join(f"{name} {n}" for name, n in found.limits.items() if n is not None)
    console.print(f"blocks per SM by resource: {limits}")
    if len(spec.shared_capacities) > 1:
        console.print(f"shared memory carveout: at least {found.shared_carveout:,} bytes per SM")
    for step in steps:
        console.print(
            f"to improve occupancy: {step.resource} {step.before:,} -> {step.after:,} gives "
            f"{100 * step.occupancy.fraction:.1f} %"
        )


def _as_json(
    found: Occupancy, known: Resources, steps: tuple[Gain, ...], curves: tuple[Curve, ...]
) -> dict[str, object]:
    demand = found.demand
    return {
        "device": found.device,
        "block_size": demand.threads,
        "registers_per_thread": demand.registers,
        "registers_from": known.source,
        "shared_bytes_per_block": demand.shared_bytes,
        "active_blocks": found.active_blocks,
        "active_warps": found.active_warps,
        "fraction": found.fraction,
        "limiters": list(found.limiters),
        "limits": dict(found.limits),
        "shared_carveout": found.shared_carveout,
        "gains": [
            {
                "resource": step.resource,
                "before": step.before,
                "after": step.after,
                "fraction": step.occupancy.fraction,
            }
            for step in steps
        ],
        "sweep": {
            curve.title: [list(pair) for pair in zip(curve.values, curve.warps, strict=True)]
            for curve in curves
        },
    }


def _write(path: Path, text: str) -> None:
    write_text(path, text)
