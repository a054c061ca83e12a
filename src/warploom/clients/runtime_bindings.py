"""Lets `cuda.bindings.runtime` use the stand-in of the CUDA runtime.

Its extension modules have a CUDA runtime linked into them, which asks for undocumented tables of
NVIDIA's driver. One of them, `cuda.bindings._internal.runtime`, hands its functions to the others
as capsules, as Cython modules do: these are replaced by capsules of the stand-in's functions of the
same names before the others are imported.
"""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import cast

STAND_IN = "libcudart.so.13"

SUFFIXES = {"runtime": "", "runtime_ptds": "_ptsz _ptds"}
"""Endings of the stand-in's names by module: one is for default streams per thread."""


def use_stand_in(module: ModuleType) -> None:
    """Replaces the functions of an imported module that hands them out, where the stand-in has
    them."""
    library = ctypes.CDLL(STAND_IN)
    endings = ("", *SUFFIXES[module.__name__.rpartition(".")[2]].split())
    capsules = cast("dict[str, object]", vars(module)["__pyx_capi__"])
    for name, capsule in capsules.items():
        found = [f"{name.removeprefix('_')}{ending}" for ending in endings]
        functions = [getattr(library, one) for one in found if hasattr(library, one)]
        if functions:
            capsules[name] = _capsule_like(capsule, functions[-1])


_kept: list[ctypes.c_char_p] = []
"""The names of capsules, which capsules do not keep."""


def _capsule_like(capsule: object, function: object) -> object:
    """Returns a capsule of the same name, which is the function's signature, for a function."""
    named, made = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_New
    named.argtypes, named.restype = [ctypes.py_object], ctypes.c_char_p
    made.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    made.restype = ctypes.py_object
    name = ctypes.c_char_p(named(capsule))
    _kept.append(name)
    address = ctypes.cast(function, ctypes.c_void_p)  # pyright: ignore[reportArgumentType]
    return cast(object, made(address, name, None))
