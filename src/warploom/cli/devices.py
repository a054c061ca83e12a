"""`warploom devices`: the catalog of devices, and all that is known of one; `warploom opencl`: the
OpenCL platform that has them, and how programs find it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, cast

import typer
from rich.table import Table

from warploom.devices.catalog import catalog, find_device
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.frontends.opencl_features import opencl_version
from warploom.report.console import terminal

_NOT_FACTS = ("name", "title", "sources")


def devices(
    name: Annotated[
        str | None,
        typer.Argument(help="The device whose properties are shown. Default: list all devices."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the output as JSON.")] = False,
) -> None:
    """List the devices, or show all properties of one device with their sources.

    Examples: `warploom devices`, `warploom devices rtx-2080-ti --json`.
    """
    if as_json:
        chosen = [find_device(name)] if name else list(catalog().values())
        print(json.dumps({spec.name: _facts(spec) for spec in chosen}, indent=2))
    elif name:
        _show_one(find_device(name))
    else:
        _show_all()


def _show_all() -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("Name", "Product"):
        table.add_column(heading)
    for heading in ("CC", "SMs", "Warps/SM", "Shared/block"):
        table.add_column(heading, justify="right")
    for spec in catalog().values():
        shared = f"{spec.shared_bytes_per_block_optin // 1024} KiB"
        table.add_row(
            spec.name, spec.title, spec.cc, str(spec.sms), str(spec.max_warps_per_sm), shared
        )
    terminal().print(table)


def _show_one(spec: DeviceSpec) -> None:
    """Prints the facts, each with the number of its source, and the sources below."""
    sources = list(dict.fromkeys(spec.sources.values()))
    table = Table(title=f"{spec.title} ({spec.name})", title_justify="left", box=None)
    table.add_column("Fact")
    table.add_column("Value", justify="right")
    table.add_column("Source", justify="right")
    for fact, value in _facts(spec).items():
        source = spec.sources.get(fact)
        table.add_row(fact, _shown(fact, value), str(sources.index(source) + 1) if source else "")
    console = terminal(soft_wrap=True)
    console.print(_multiprocessors(spec))
    console.print(table)
    for number, source in enumerate(sources, 1):
        console.print(f"{number}: {source.text}{'' if source.verified else ' (unverified)'}")


def _multiprocessors(spec: DeviceSpec) -> str:
    """Returns what the device consists of, in a sentence."""
    timing, threads = find_timing(spec), spec.max_threads_per_sm
    return (
        f"{spec.title}: {spec.sms} multiprocessors (SMs), each with {timing.schedulers} "
        f"scheduler{'s' * (timing.schedulers > 1)}, {timing.lanes_fp32:g} cores, "
        f"{spec.registers_per_sm:,} registers and {spec.shared_bytes_per_sm >> 10} KiB of shared "
        f"memory. Each SM can hold {spec.max_warps_per_sm} warps ({threads:,} threads). The whole "
        f"device can hold {spec.sms * threads:,} resident threads."
    )


def _facts(spec: DeviceSpec) -> dict[str, object]:
    """Returns every fact by name; the compute capability as text."""
    facts = {f.name: getattr(spec, f.name) for f in fields(spec) if f.name not in _NOT_FACTS}
    return {"title": spec.title, **facts, "compute_capability": spec.cc}


def _shown(fact: str, value: object) -> str:
    if isinstance(value, tuple):
        numbers = cast("tuple[int, ...]", value)
        return (" x " if fact.endswith("dims") else ", ").join(f"{n:,}" for n in numbers)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def opencl(
    icd: Annotated[
        bool,
        typer.Option(
            "--icd",
            help="Write a file that registers the platform with the OpenCL ICD loader, and print "
            "the file's path.",
        ),
    ] = False,
) -> None:
    """List the OpenCL platform and its devices. Programs started with `warploom run` find the
    platform. For other programs, set OCL_ICD_VENDORS to the file whose path --icd prints, and
    WARPLOOM_DEVICE to the name of a device.

    Examples: `warploom opencl`, `OCL_ICD_VENDORS=$(warploom opencl --icd) clinfo`.
    """
    if icd:
        from warploom.clients.opencl_vendor import vendor_file

        print(vendor_file())
        return
    print(
        "Platform: Warploom (NVIDIA CUDA), with one device. Select the device with "
        "`warploom run --device NAME`."
    )
    print(f"Compiler: {opencl_is_missing() or 'clang and libdevice are installed'}")
    table = Table(box=None, pad_edge=False)
    for heading in ("Device", "Product", "OpenCL", "Local memory"):
        table.add_column(heading)
    for spec in catalog().values():
        version = opencl_version(spec.compute_capability)
        local = f"{spec.shared_bytes_per_block // 1024} KiB"
        table.add_row(spec.name, spec.title, f"{version // 100}.{version % 100 // 10}", local)
    terminal().print(table)
