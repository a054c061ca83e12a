"""The versions, extensions and optional features of OpenCL C that NVIDIA's driver reports for a
device, by its compute capability."""

from __future__ import annotations

from collections.abc import Iterator

VERSIONS = (((5, 0), 300), ((3, 0), 120), ((1, 0), 110))
"""The version of OpenCL, as `__OPENCL_VERSION__` has it, that NVIDIA's last driver reports for
devices from a compute capability on (Khronos, "Conformant Products": OpenCL)."""

EXTENSIONS = {
    "cl_khr_global_int32_base_atomics": (1, 0),
    "cl_khr_global_int32_extended_atomics": (1, 0),
    "cl_khr_local_int32_base_atomics": (1, 0),
    "cl_khr_local_int32_extended_atomics": (1, 0),
    "cl_khr_3d_image_writes": (1, 0),
    "cl_khr_byte_addressable_store": (1, 0),
    "cl_khr_fp64": (1, 3),
    "cl_khr_int64_base_atomics": (2, 0),
    "cl_khr_int64_extended_atomics": (3, 5),
    "cl_khr_depth_images": (5, 0),
}
"""Extensions of the language, and the compute capability that they begin with."""

FEATURES = ("__opencl_c_images", "__opencl_c_3d_image_writes", "__opencl_c_int64")
DOUBLE = "__opencl_c_fp64"
"""The optional features of OpenCL C 3.0 that NVIDIA's driver reports."""

SUB_GROUPS = "cl_khr_subgroups"
"""Sub-groups, which NVIDIA's driver does not report: kernels of `.cl` files have them."""


def opencl_version(compute_capability: tuple[int, int]) -> int:
    """Returns the value of `__OPENCL_VERSION__` for a device."""
    return next(version for first, version in VERSIONS if compute_capability >= first)


def language_extensions(compute_capability: tuple[int, int]) -> list[str]:
    """Returns the extensions of the language that a device has."""
    return [name for name, first in EXTENSIONS.items() if compute_capability >= first]


def language_features(compute_capability: tuple[int, int]) -> list[str]:
    """Returns the optional features of OpenCL C 3.0 that a device has."""
    has_double = compute_capability >= EXTENSIONS["cl_khr_fp64"]
    return [*FEATURES, *([DOUBLE] if has_double else [])]


def standard_options(
    compute_capability: tuple[int, int], options: list[str], *extensions: str
) -> Iterator[str]:
    """Yields clang's options for the language of a program: OpenCL C 1.2, which all programs mean
    that say nothing else, and what the device has of extensions, with others that are named."""
    if not any(option.startswith("-cl-std=") for option in options):
        yield "-cl-std=CL1.2"
    named = [*language_extensions(compute_capability), *extensions]
    if "-cl-std=CL3.0" in options:
        named += language_features(compute_capability)
    yield from ("-Xclang", f"-cl-ext={','.join(f'+{name}' for name in named)}")
    yield f"-D__OPENCL_VERSION__={opencl_version(compute_capability)}"
