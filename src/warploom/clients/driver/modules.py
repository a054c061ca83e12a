"""Modules: programs that are loaded, found by name, and unloaded."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.jit_options import Options, read_options
from warploom.clients.driver.programs import LoadedProgram, function_at, load
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, put_int, text_at


@entry("cuModuleLoadData", "cuModuleLoadFatBinary")
def load_data(module: int, image: int) -> None:
    _load(module, image, Options())


@entry("cuModuleLoadDataEx")
def load_data_with(module: int, image: int, count: int, names: int, values: int) -> None:
    _load(module, image, read_options(count, names, values))


@entry("cuModuleLoad")
def load_file(module: int, path: int) -> None:
    data = read_file(text_at(path))
    _load(module, ctypes.addressof(data), Options())


def read_file(path: str) -> ctypes.Array[ctypes.c_char]:
    """Returns the content of a file, ended by a zero."""
    try:
        with open(path, "rb") as file:
            return ctypes.create_string_buffer(file.read())
    except OSError:
        raise DriverError(Result.FILE_NOT_FOUND, f"{path} cannot be read") from None


def _load(module: int, image: int, options: Options) -> None:
    context = state.current()
    with options.reporting():
        made = load(image)
    made.handle = state.own(context, made)
    put(module, made.handle)


@entry("cuModuleUnload")
def unload(module: int) -> None:
    state.current()
    found = state.handles.get(module, LoadedProgram)
    if found.is_library:
        raise DriverError(Result.NOT_PERMITTED)
    found.unload()
    state.handles.remove(module)


@entry("cuModuleGetFunction")
def get_function(function: int, module: int, name: int) -> None:
    state.current()
    found = state.handles.get(module, LoadedProgram)
    put(function, found.function(text_at(name)))


@entry("cuModuleGetFunctionCount")
def function_count(count: int, module: int) -> None:
    found = state.handles.get(module, LoadedProgram)
    put(count, len(found.module.kernels), ctypes.c_uint)


@entry("cuModuleEnumerateFunctions")
def functions(target: int, capacity: int, module: int) -> None:
    found = state.handles.get(module, LoadedProgram)
    for index, name in enumerate(found.module.kernels[:capacity]):
        put(target + 8 * index, found.function(name))


@entry("cuModuleGetGlobal_v2")
def get_global(address: int, size: int, module: int, name: int) -> None:
    state.current()
    found = state.handles.get(module, LoadedProgram)
    at, length = found.variable(text_at(name))
    offer(address, at)
    offer(size, length)


@entry("cuModuleGetLoadingMode")
def loading_mode(mode: int) -> None:
    """Kernels are compiled when they are first launched: 2, lazily."""
    put_int(mode, 2)


# ---- functions -----------------------------------------------------------------------------------


@entry("cuFuncGetModule")
def module_of(module: int, function: int) -> None:
    put(module, function_at(function).program.handle)


@entry("cuFuncIsLoaded")
def is_loaded(loaded: int, function: int) -> None:
    function_at(function)
    put_int(loaded, 1)


@entry("cuFuncLoad")
def load_function(function: int) -> None:
    function_at(function)
