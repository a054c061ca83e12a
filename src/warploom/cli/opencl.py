"""`warploom opencl`: the platform that OpenCL's programs find, and how they find it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from warploom.devices.catalog import catalog
from warploom.frontends.opencl import opencl_is_missing, opencl_version
from warploom.report.console import terminal


def opencl(
    icd: Annotated[
        bool,
        typer.Option(
            "--icd",
            help="Write a file for OpenCL's loader that names the platform; print its path.",
        ),
    ] = False,
) -> None:
    """List the OpenCL platform and its devices. A program finds the platform with `warploom run`;
    without it, by the file that --icd prints: OCL_ICD_VENDORS names it to OpenCL's loader, and
    WARPLOOM_DEVICE the device.

    Examples: `warploom opencl`, `OCL_ICD_VENDORS=$(warploom opencl --icd) clinfo`.
    """
    if icd:
        from warploom.clients.opencl_vendor import vendor_file

        print(vendor_file())
        return
    print("Platform: Warploom (NVIDIA CUDA), one device: that of `warploom run --device NAME`")
    print(f"Compiler: {opencl_is_missing() or 'clang, libclc and libdevice are installed'}")
    table = Table(box=None, pad_edge=False)
    for heading in ("Device", "Product", "OpenCL", "Local memory"):
        table.add_column(heading)
    for spec in catalog().values():
        version = opencl_version(spec.compute_capability)
        local = f"{spec.shared_bytes_per_block // 1024} KiB"
        table.add_row(spec.name, spec.title, f"{version // 100}.{version % 100 // 10}", local)
    terminal().print(table)
