"""Writes the C of the OpenCL library: a stub for each function, and the table of them that each
object begins with (cl_khr_icd).

`native/opencl_functions.txt` says what functions there are. Beside the library that loaders open is
one that programs are linked with, for machines without a loader: it hands every call on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "native"
TABLE = NATIVE / "opencl_functions.txt"

SONAME = "libwarploom_opencl.so"
"""The library that a loader opens."""

LINKED = Path("opencl", "libOpenCL.so.1")
"""The library that programs are linked with; loaders have its name, so it lies apart."""

TYPES = {"p": "void *", "z": "size_t ", "u": "uint32_t ", "i": "int32_t ", "l": "uint64_t "}
RESULTS = {"status": "int32_t", "handle": "void *", "address": "void *", "nothing": "void"}

OWN = ("clGetExtensionFunctionAddress", "clGetExtensionFunctionAddressForPlatform")
"""Functions that need no Python (`native/opencl.h`)."""

TAGGED = ("clGetPlatformIDs", "clUnloadCompiler")
ICD2_TAG = 0x4F50454E434C3331
"""The functions in whose place the table has a tag, by which a loader sees that it may have a table
of its own (cl_khr_icd 2.0, CL_ICD2_TAG_KHR). They take no object, so no loader calls them by the
table."""


@dataclass(frozen=True)
class OpenclFunction:
    """A function of the table; no `version` stands for a slot that is empty here."""

    version: str
    name: str
    result: str = "status"
    codes: str = ""

    @property
    def declaration(self) -> str:
        """Returns how it is declared."""
        taken = ", ".join(f"{TYPES[code]}a{n}" for n, code in enumerate(self.codes)) or "void"
        return f"{RESULTS[self.result]} {self.name}({taken})"

    @property
    def arguments(self) -> list[str]:
        """Returns the names of its parameters."""
        return [f"a{n}" for n in range(len(self.codes))]


def read_table() -> list[OpenclFunction]:
    """Returns the functions in the order of the dispatch table."""
    lines = TABLE.read_text("utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [OpenclFunction("" if row[0] == "-" else row[0], *row[1:]) for row in rows]


def opencl_source() -> Iterator[str]:
    """Yields the lines of the library's source."""
    table = read_table()
    served = [one for one in table if one.version and one.name not in OWN]
    yield "/* Written by tools/build_opencl.py. */"
    yield '#include "bridge.h"'
    yield "/* CL_DEVICE_NOT_AVAILABLE; CL_PLATFORM_NOT_FOUND_KHR where there is no Python. */"
    yield "static const int64_t bridge_forked = -2, bridge_closed = -2, bridge_absent = -1001;"
    yield "static const int bridge_version = 300;"
    yield from (f"{one.declaration};" for one in table if one.version)
    yield "static const char *const names[] = {"
    yield from (f'    "{one.name}",' for one in served)
    yield "};"
    yield "static void *const functions[] = {"
    yield from (f"    (void *){one.name}," for one in served)
    yield "};"
    counts = ", ".join(str(len(one.codes)) for one in served)
    yield f"static const int8_t words[] = {{{counts}}};"
    yield (
        f"static bridge_control bridge = {{.count = {len(served)}, .names = names,"
        f' .words = words, .library = "{SONAME}"}};'
    )
    yield "void *const warploom_opencl_dispatch[] = {"
    yield from (f"    {_slot(one)}," for one in table)
    yield "};"
    yield '#include "opencl.h"'
    for number, one in enumerate(served):
        yield from _stub(one, number)
    for one in table:
        if one.version:
            alias = one.declaration.replace(one.name, f"warploom_{one.name}", 1)
            yield f'{alias} __attribute__((alias("{one.name}")));'


def _slot(function: OpenclFunction) -> str:
    """Returns what the table has for a function."""
    if function.name in TAGGED:
        return f"(void *){ICD2_TAG:#x}"
    return f"(void *){function.name}" if function.version else "NULL"


def _stub(function: OpenclFunction, number: int) -> Iterator[str]:
    words = ", ".join(f"WORD({name})" for name in function.arguments) or "0"
    yield f"{function.declaration} {{"
    yield f"    const int64_t given[] = {{{words}}};"
    call = f"bridge_call({number}, given)"
    returned = {
        "status": f"return (int32_t){call};",
        "handle": f"return opencl_handle({number}, given, {(function.arguments or ['NULL'])[-1]});",
        "address": f"return opencl_handle({number}, given, NULL);",
        "nothing": f"(void){call};",
    }
    yield f"    {returned[function.result]}"
    yield "}"


def forwarding_source() -> Iterator[str]:
    """Yields the source of the library that programs are linked with."""
    yield "#include <stddef.h>"
    yield "#include <stdint.h>"
    for one in read_table():
        if one.version:
            call = f"warploom_{one.name}({', '.join(one.arguments)})"
            yield f"{one.declaration.replace(one.name, f'warploom_{one.name}', 1)};"
            back = "" if one.result == "nothing" else "return "
            yield f"{one.declaration} {{ {back}{call}; }}"


def version_script() -> str:
    """Returns the versions of symbols, as programs that were linked with a loader expect them."""
    found: dict[str, list[str]] = {}
    for one in read_table():
        if one.version:
            found.setdefault(one.version, []).append(one.name)
    return "\n".join(
        f"OPENCL_{version} {{ global: {'; '.join(names)}; }};"
        for version, names in sorted(found.items())
    )


def commands(compiler: str, folder: Path, destination: Path) -> Iterator[Sequence[str]]:
    """Writes the sources into a folder; yields the commands that make the libraries of them."""
    source, forwards, script = (folder / name for name in ("opencl.c", "linked.c", "opencl.map"))
    source.write_text("\n".join(opencl_source()) + "\n", "utf-8")
    forwards.write_text("\n".join(forwarding_source()) + "\n", "utf-8")
    script.write_text(version_script() + "\n", "utf-8")
    shared = (compiler, "-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Werror", f"-I{NATIVE}")
    yield (
        *(*shared, str(source), "-ldl", "-lpthread", f"-Wl,-soname,{SONAME}"),
        *("-Wl,-Bsymbolic", "-o", str(destination / SONAME)),  # a loader's functions have its names
    )
    (destination / LINKED).parent.mkdir(exist_ok=True)
    yield (
        *(*shared, str(forwards), str(destination / SONAME), f"-Wl,-soname,{LINKED.name}"),
        *(f"-Wl,--version-script,{script}", "-Wl,-rpath,$ORIGIN/.."),
        *("-o", str(destination / LINKED)),
    )
