"""Prepares pages that run kernels themselves, without a server: their launches, whose buffers must
be numbers or short contents, and the PTX of their kernels, for which a page has no compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from warploom.devices.catalog import catalog, find_device
from warploom.frontends.cuda_cpp import compile_cuda
from warploom.host.programs.sources import LANGUAGES, compiled
from warploom.host.values import written_out
from warploom.machine.launch import POLICIES
from warploom.ui.edited_numbers import compiled_kernel, plain_kernel
from warploom.ui.lessons import requests_of
from warploom.ui.schema import CompiledKernel, DeviceChoice, LaunchRequest, Lesson, Show


def device_choices() -> tuple[DeviceChoice, ...]:
    """Returns the devices that a page can choose."""
    return tuple(DeviceChoice(d.name, d.title, d.cc) for d in catalog().values())


def with_machine(show: Show, script: str) -> Show:
    """Returns what a page shows that runs the launch of its lesson by the script at a URL."""
    assert show.lesson is not None
    lesson = _without_files(show.lesson)
    return replace(
        show,
        machine=script,
        request=lesson.request,
        lesson=lesson,
        devices=device_choices(),
        schedules=POLICIES,
    )


def _without_files(lesson: Lesson) -> Lesson:
    """Returns a lesson whose launches need no generator of numbers, no file and no model of
    time."""
    request = replace(lesson.request, args=written_out(lesson.request.args), timed=False)
    versus = lesson.versus
    if versus is not None and versus.args is not None:
        versus = replace(versus, args=written_out(versus.args))
    return replace(lesson, request=request, versus=versus)


def kernels_of(lesson: Lesson) -> tuple[CompiledKernel, ...]:
    """Returns the PTX of a lesson's kernels, for each device that it has; those of CUDA C++ also
    with other numbers in their sources."""
    return tuple(_kernels(requests_of(lesson)))


def _kernels(requests: Sequence[LaunchRequest]) -> Iterator[CompiledKernel]:
    """Yields the kernels of launches whose PTX is not given, each once."""
    done: set[tuple[str, str]] = set()
    for request in requests:
        key = request.device, request.source
        if request.ptx or key in done:
            continue
        done.add(key)
        yield _kernel(request)


def _kernel(request: LaunchRequest) -> CompiledKernel:
    """Returns the PTX of a launch's source."""
    suffix = request.name[request.name.rfind(".") :]
    language = LANGUAGES.get(suffix.lower(), "cuda")
    capability = find_device(request.device).compute_capability

    if language != "cuda":
        ptx, _ = compiled(request.source, language, request.name, capability, request.options)
        return plain_kernel(request.device, request.source, ptx)

    def compile_text(text: str) -> str:
        """Returns the PTX of a text, which no cache keeps."""
        return compile_cuda(text, request.name, capability, request.options)

    return compiled_kernel(request.device, request.source, compile_text)
