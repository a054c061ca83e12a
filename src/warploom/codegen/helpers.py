"""The helpers that compiled code calls, as LLVM IR: Python compiled by Numba.

The rules of the hardware and the checks are stated once, in Python. Numba turns them into LLVM IR,
which is linked into each kernel's module and inlined there. The IR is kept in the user's cache, for
it depends only on the sources, the versions and the processor; with it, Numba is not even imported.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir

from warploom.codegen.lanes import I64, PTR

_ROW_RULES = {
    "count_global": "coalescing",
    "count_local": "coalescing",
    "count_shared": "banks",
    "count_constant": "constant",
    "count_passes": "atomics",
}

_CHECKS = {
    "check_global": "int64(u64*, int64, int64, int64, i64*, u64*, u64*, i64*, u64*)",
    "check_span": "int64(u64*, int64, int64, int64, i64*)",
    "poll": "int64(i64*)",
    "settle": "int64(i64*, int64)",
}

_PACKAGE = Path(__file__).parent.parent


def signature(name: str) -> ir.FunctionType:
    """The LLVM type of a helper."""
    if name in _ROW_RULES:
        return ir.FunctionType(I64, [PTR, I64, I64, PTR])
    arguments = _CHECKS[name].partition("(")[2].rstrip(")").split(",")
    return ir.FunctionType(I64, [PTR if "*" in a else I64 for a in arguments])


@lru_cache
def helpers_ir() -> str:
    """The IR of all helpers, under their Python names."""
    path = cache_directory() / f"helpers-{_fingerprint()}.ll"
    try:
        return path.read_text()
    except OSError:
        text = _compile()
        _keep(path, text)
        return text


def cache_directory() -> Path:
    """Where compiled things are kept between runs: WARPLOOM_CACHE, else the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("WARPLOOM_CACHE") or Path(base) / "warploom")


def _fingerprint() -> str:
    digest = hashlib.sha256()
    sources = [*sorted(_PACKAGE.glob("rules/*.py")), *sorted(_PACKAGE.glob("codegen/*.py"))]
    for source in sources:
        digest.update(source.read_bytes())
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    host = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    digest.update("\n".join(versions + host).encode())
    return digest.hexdigest()[:32]


def _keep(path: Path, text: str) -> None:
    """Write a file so that another process sees all of it or nothing; a failure does no harm."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        return


def _compile() -> str:
    """Compile every helper with Numba, link the modules into one, and leave out the rest."""
    whole = llvm.parse_assembly("")
    for name, module in _ROW_RULES.items():
        function = getattr(importlib.import_module(f"warploom.rules.{module}"), name)
        whole.link_in(_compiled(name, function, "int64(u64*, int64, int64, i64*)"))
    checks = importlib.import_module("warploom.codegen.checks")
    for name, types in _CHECKS.items():
        whole.link_in(_compiled(name, getattr(checks, name), types))
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, builder)
    return str(whole)


def _compiled(name: str, function: Callable[..., object], types: str) -> llvm.ModuleRef:
    """One helper as a module: Numba's function, and a shim of the C signature around it.

    Numba's own C wrapper would report Python exceptions; the helpers raise none.
    """
    from numba import cfunc

    spelled = types.replace("u64*", "CPointer(uint64)").replace("i64*", "CPointer(int64)")
    returns_value = name in _CHECKS
    if not returns_value:
        spelled = spelled.replace("int64(", "void(", 1)
    made = cfunc(spelled, nopython=True, error_model="numpy")(function)
    inner = made.native_name.removeprefix("cfunc.")
    arguments = [str(a) for a in signature(name).args]
    given = ", ".join(f"{type} %a{i}" for i, type in enumerate(arguments))
    shim = f"""
define i64 @{name}({given}) alwaysinline {{
  %result = alloca i64
  %exception = alloca ptr
  %status = call i32 @{inner}(ptr %result, ptr %exception, {given})
  %value = load i64, ptr %result
  ret i64 {"%value" if returns_value else "0"}
}}
"""
    part = llvm.parse_assembly(made.inspect_llvm() + shim)
    for item in (*part.functions, *part.global_variables):
        if not item.is_declaration and item.name != name:
            item.linkage = "internal"
    return part
