"""Libraries and kernels: programs that belong to no context."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.attributes_of_functions import function_attribute, set_attribute
from warploom.clients.driver.jit_options import read_options
from warploom.clients.driver.modules import read_file
from warploom.clients.driver.programs import LoadedProgram, function_at, load
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import check_device, state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, text_at


def _library(handle: int) -> LoadedProgram:
    state.check()
    return state.handles.get(handle, LoadedProgram)


@entry("cuLibraryLoadData")
def load_data(library: int, image: int, names: int, values: int, count: int) -> None:
    state.check()
    with read_options(count, names, values).reporting():
        made = load(image, "library")
    made.is_library = True
    made.handle = state.handles.add(made)
    put(library, made.handle)


@entry("cuLibraryLoadFromFile")
def load_file(library: int, path: int, names: int, values: int, count: int) -> None:
    data = read_file(text_at(path))
    load_data(library, ctypes.addressof(data), names, values, count)


@entry("cuLibraryUnload")
def unload(library: int) -> None:
    _library(library).unload()
    state.handles.remove(library)


@entry("cuLibraryGetKernel")
def get_kernel(kernel: int, library: int, name: int) -> None:
    put(kernel, _library(library).function(text_at(name)))


@entry("cuLibraryGetModule")
def get_module(module: int, library: int) -> None:
    """Writes the library itself as its module: there is one device."""
    _library(library)
    put(module, library)


@entry("cuLibraryGetGlobal", "cuLibraryGetManaged")
def get_global(address: int, size: int, library: int, name: int) -> None:
    at, length = _library(library).variable(text_at(name))
    offer(address, at)
    offer(size, length)


@entry("cuLibraryGetKernelCount")
def kernel_count(count: int, library: int) -> None:
    put(count, len(_library(library).module.kernels), ctypes.c_uint)


@entry("cuLibraryEnumerateKernels")
def kernels(target: int, capacity: int, library: int) -> None:
    found = _library(library)
    for index, name in enumerate(found.module.kernels[:capacity]):
        put(target + 8 * index, found.function(name))


# ---- kernels -------------------------------------------------------------------------------------


@entry("cuKernelGetFunction")
def get_function(function: int, kernel: int) -> None:
    function_at(kernel)
    put(function, kernel)


@entry("cuKernelGetLibrary")
def get_library(library: int, kernel: int) -> None:
    put(library, function_at(kernel).program.handle)


@entry("cuKernelGetAttribute")
def get_attribute(value: int, number: int, kernel: int, device: int) -> None:
    check_device(device)
    function_attribute(value, number, kernel)


@entry("cuKernelSetAttribute")
def set_kernel_attribute(number: int, value: int, kernel: int, device: int) -> None:
    check_device(device)
    set_attribute(kernel, number, value)


@entry("cuKernelSetCacheConfig")
def set_cache(kernel: int, _config: int, device: int) -> None:
    check_device(device)
    function_at(kernel)


_names: dict[str, ctypes.Array[ctypes.c_char]] = {}
"""Names that callers have pointers to."""


@entry("cuKernelGetName", "cuFuncGetName")
def get_name(name: int, kernel: int) -> None:
    text = function_at(kernel).kernel.name
    kept = _names.setdefault(text, ctypes.create_string_buffer(text.encode()))
    put(name, ctypes.addressof(kept))


@entry("cuKernelGetParamInfo", "cuFuncGetParamInfo")
def parameter_info(kernel: int, index: int, offset: int, size: int) -> None:
    places = function_at(kernel).places
    if not 0 <= index < len(places):
        raise DriverError(Result.INVALID_VALUE)
    at, length = places[index]
    put(offset, at)
    offer(size, length)


@entry("cuKernelGetParamCount", "cuFuncGetParamCount")
def parameter_count(kernel: int, count: int) -> None:
    put(count, len(function_at(kernel).places))
