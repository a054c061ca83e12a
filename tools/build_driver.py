"""Builds the shared libraries that stand in for NVIDIA's: libcuda, libcudart, libnvrtc and others,
and that of OpenCL (`build_opencl`).

Every function of a library's header becomes a stub that hands its arguments to Python
(`native/bridge.h`); what each does is in `warploom.clients`. The headers come with NVIDIA's wheels
and are read, never copied: a newer wheel gives newer stubs.

    python tools/build_driver.py [FOLDER]     builds into src/warploom/clients/lib, or FOLDER
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from build_opencl import commands as opencl_commands

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "native"
DESTINATION = ROOT / "src" / "warploom" / "clients" / "lib"

NO_COMPILER = (
    "There is no C compiler, so the drop-in libraries (libcuda.so.1 and its companions) are not"
    " built: `warploom run program.py` will not work. `from warploom import cuda` and everything"
    " else do. Install gcc or clang (or set CC) and install Warploom again to have them."
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function: its declaration, its name, and how it becomes a word."""

    declaration: str
    name: str
    word: str


@dataclass(frozen=True)
class Function:
    """A function of a header; `exported` are the names under which it is found."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    exported: tuple[str, ...]


@dataclass(frozen=True)
class Library:
    """A library to build. `codes` are what its functions give in a forked child, after Python has
    gone, and where there is no Python. The file `extra` defines the functions `own`, which need no
    Python; `more` are declarations that stand in another header. With the macro `per_thread`
    defined, the header declares functions of other names as well, for programs in which each thread
    has a default stream. The symbols of a `versioned` library have its name for a version, as
    programs linked with NVIDIA's expect."""

    soname: str
    header: str
    result: str
    codes: tuple[int, int, int]
    defines: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    extra: str = ""
    more: tuple[str, ...] = ()
    per_thread: str = ""
    links: tuple[str, ...] = ()
    versioned: bool = False


RUNTIME_INTERNALS = """
void __warploomUnloadFatBinary(void **handle);
void __cudaRegisterManagedVar(void **h, void **v, char *a, const char *n, int e, size_t s,
    int c, int g);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
    struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
    size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
    size_t shared, cudaStream_t stream);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
"""
"""What nvcc's own code calls, as crt/host_runtime.h declares it for C++; what `registration.h`
calls of Python; and the functions of cuda_profiler_api.h, which is in another wheel."""

FORWARDED = "libcute_dsl_runtime.so"
"""A library of CuTe DSL's with a CUDA runtime linked into it, where `cudaFree` is `_cudaFree`: the
stand-in hands such functions on."""

FORWARDS = {
    "libcuda.so.1": (
        *("cuDeviceGet", "cuKernelGetAttribute", "cuLibraryGetGlobal", "cuLibraryGetKernel"),
        *("cuLibraryGetKernelCount", "cuLibraryGetManaged", "cuLibraryGetModule"),
        *("cuLibraryGetUnifiedFunction", "cuLibraryLoadData", "cuLibraryLoadFromFile"),
        *("cuLibraryUnload", "cuTensorMapEncodeTiled"),
    ),
    "libcudart.so.13": (
        *("cudaDeviceGetAttribute", "cudaDeviceSynchronize", "cudaEventCreate"),
        *("cudaEventDestroy", "cudaEventElapsedTime", "cudaEventRecord", "cudaFree"),
        *("cudaFreeAsync", "cudaFreeHost", "cudaFuncSetAttribute", "cudaGetDevice"),
        *("cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaGraphDestroy"),
        *("cudaGraphExecDestroy", "cudaGraphInstantiate", "cudaGraphLaunch"),
        *("cudaKernelSetAttributeForDevice", "cudaLaunchKernel", "cudaLibraryGetGlobal"),
        *("cudaLibraryGetKernel", "cudaLibraryGetKernelCount", "cudaLibraryGetManaged"),
        *("cudaLibraryGetUnifiedFunction", "cudaLibraryLoadData", "cudaLibraryLoadFromFile"),
        *("cudaLibraryUnload", "cudaMalloc", "cudaMallocAsync", "cudaMallocHost"),
        *("cudaMallocManaged", "cudaMemcpy", "cudaMemcpyAsync", "cudaMemset"),
        *("cudaMemsetAsync", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"),
        *("cudaProfilerStart", "cudaProfilerStop", "cudaSetDevice", "cudaStreamAddCallback"),
        *("cudaStreamBeginCapture", "cudaStreamCreate", "cudaStreamDestroy"),
        *("cudaStreamEndCapture", "cudaStreamSynchronize", "cudaStreamWaitEvent"),
    ),
}
RENAMED = {"_cudaLaunchKernelEx": "cudaLaunchKernelExC"}

INTEROPERATION = ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
NEWER = ("cuDevResourceDestroyDesc",)
"""Functions that no header here declares."""

DEVICE_RUNTIME, EMPTY_ARCHIVE = "libcudadevrt.a", b"!<arch>\n"
"""A file that clients look for before they link device code; the driver has what is in it."""

LIBRARIES = (
    Library(
        soname="libcuda.so.1",
        header="cuda.h",
        result="CUresult",
        # CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_SYSTEM_NOT_READY
        codes=(3, 4, 802),
        defines=("__CUDA_API_VERSION_INTERNAL",),
        own=("cuGetErrorName", "cuGetErrorString", "cuGetProcAddress", "cuGetProcAddress_v2"),
        extra="driver.h",
        more=(
            "CUresult cuProfilerInitialize(const char *config, const char *output, int mode);",
            "CUresult cuProfilerStart(void);",
            "CUresult cuProfilerStop(void);",
        ),
        links=("libcuda.so",),
    ),
    Library(
        soname="libcudart.so.13",
        header="cuda_runtime_api.h",
        result="(?:cudaError_t|void|void \\*\\*|unsigned|char)",
        # cudaErrorInitializationError, cudaErrorCudartUnloading, cudaErrorSystemNotReady
        codes=(3, 4, 802),
        own=(
            *("cudaGetErrorName", "cudaGetErrorString", "cudaCreateChannelDesc", "cudaGetDevice"),
            *("cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion"),
            *("cudaGetDriverEntryPoint_ptsz", "cudaGetDriverEntryPointByVersion_ptsz"),
        ),
        extra="runtime.h",
        more=(RUNTIME_INTERNALS,),
        per_thread="CUDA_API_PER_THREAD_DEFAULT_STREAM",
        versioned=True,
    ),
    # NVJITLINK_ERROR_INTERNAL and NVRTC_ERROR_INTERNAL_ERROR, whatever happened
    Library("libnvJitLink.so.13", "nvJitLink.h", "nvJitLinkResult", (6, 6, 6), versioned=True),
    Library(
        soname="libnvrtc.so.13",
        header="nvrtc.h",
        result="nvrtcResult",
        codes=(11, 11, 11),
        own=("nvrtcGetErrorString",),
        extra="nvrtc_errors.h",
        versioned=True,
    ),
)


def build(destination: Path = DESTINATION) -> bool:
    """Build every library; False, with a word about it, where there is no C compiler."""
    compiler = _compiler()
    if compiler is None or not sys.platform.startswith("linux"):
        print(f"warning: {NO_COMPILER}", file=sys.stderr)
        return False
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            source = Path(folder) / f"{library.header}.c"
            source.write_text("\n".join(_source(library, compiler)), "utf-8")
            _compile(compiler, source, library, destination / library.soname)
        _forward(compiler, Path(folder) / "forwards.c", destination)
        for command in opencl_commands(compiler, Path(folder), destination):
            subprocess.run(command, check=True)
    (destination / DEVICE_RUNTIME).write_bytes(EMPTY_ARCHIVE)
    return True


def _compiler() -> str | None:
    asked = os.environ.get("CC")
    names = [asked] if asked else ["cc", "gcc", "clang"]
    return next((found for name in names if (found := shutil.which(name))), None)


def nvidia_headers() -> Path:
    """Where the wheels' headers are."""
    for root in importlib.import_module("nvidia.cu13").__path__:
        if (Path(root) / "include" / "cuda.h").exists():
            return Path(root) / "include"
    raise SystemExit("cuda.h is not found: install the wheel nvidia-cuda-runtime")


def _compile(compiler: str, source: Path, library: Library, target: Path) -> None:
    subprocess.run(
        [
            *(compiler, "-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Werror"),
            *("-Wno-deprecated-declarations", f"-I{NATIVE}", f"-I{nvidia_headers()}"),
            *(f"-D{define}" for define in library.defines),
            *(str(source), f"-Wl,-soname,{library.soname}", "-ldl", "-lpthread", "-o", str(target)),
            *_version_script(library, source.parent),
        ],
        check=True,
    )
    for link in library.links:
        # A wheel holds no symbolic links: an empty library that needs the other one does as well.
        subprocess.run(
            [
                *(compiler, "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed"),
                *(str(target), "-Wl,-rpath,$ORIGIN", "-o", str(target.parent / link)),
            ],
            check=True,
        )


def _forward(compiler: str, source: Path, destination: Path) -> None:
    """Builds the library that hands functions on. Arguments are words in registers in all of them,
    so that one more or less does no harm."""
    names = {
        f"_{name}": name for parameters_text in FORWARDS.values() for name in parameters_text
    } | RENAMED
    words = ", ".join(f"long {letter}" for letter in "abcdefgh")
    given = ", ".join("abcdefgh")
    lines = [
        f"int {name}({words}); int {own}({words}) {{ return {name}({given}); }}"
        for own, name in names.items()
    ]
    source.write_text("\n".join(lines) + "\n", "utf-8")
    subprocess.run(
        [
            *(compiler, "-shared", "-fPIC", "-O2", "-fno-builtin", str(source)),
            *(str(destination / library) for library in FORWARDS),
            *("-Wl,-rpath,$ORIGIN", "-o", str(destination / FORWARDED)),
        ],
        check=True,
    )


def _version_script(library: Library, folder: Path) -> list[str]:
    """The option that gives symbols their version."""
    if not library.versioned:
        return []
    script = folder / "version.map"
    script.write_text(f"{library.soname} {{ global: *; }};", "utf-8")
    return [f"-Wl,--version-script,{script}"]


# ---- reading a header ----------------------------------------------------------------------------


def _declarations(library: Library, compiler: str) -> str:
    """Returns all that a library's header declares, and what stands in other headers."""
    modes = [library.defines, *([(library.per_thread,)] if library.per_thread else [])]
    return "\n".join((*(_preprocessed(library, compiler, mode) for mode in modes), *library.more))


def _preprocessed(library: Library, compiler: str, defines: Iterable[str]) -> str:
    """The declarations of a header, without comments, attributes and inline bodies."""
    made = subprocess.run(
        [
            *(compiler, "-E", "-P", "-x", "c", f"-I{nvidia_headers()}"),
            *(f"-D{define}" for define in defines),
            str(nvidia_headers() / library.header),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", made.stdout)


def functions_of(text: str, result: str) -> Iterator[Function]:
    """The functions in preprocessed declarations that give `result`, each once."""
    structures = set(_structures(text))
    seen: set[str] = set()
    for given, name, parameters_text in re.findall(
        rf"\b({result})\s*(\w+)\s*\(([^;{{}}]*)\)\s*;", text
    ):
        exported = _exported(name)
        if exported[0] in seen:
            continue
        seen.add(exported[0])
        parameters = tuple(
            _parameter(declaration, number, structures)
            for number, declaration in enumerate(_split(parameters_text))
        )
        yield Function(exported[0], given, parameters, exported)


def _structures(text: str) -> Iterator[str]:
    """The names of structure and union types, which functions may take by value."""
    complete = set(re.findall(r"struct (\w+)\s*\{", text))
    for name, alias in re.findall(r"typedef struct (\w+) (\w+);", text):
        if name in complete:
            yield alias
    for found in re.finditer(r"typedef (?:struct|union) \w*\s*\{", text):
        at, depth = found.end(), 1
        while depth:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        named = re.match(r"\s*(\w+)", text[at:])
        if named:
            yield named[1]
            yield from re.findall(rf"typedef {named[1]} (\w+);", text)


def _exported(name: str) -> tuple[str, ...]:
    """The names of a function: nvJitLink's carry every minor version up to the header's."""
    found = re.fullmatch(r"__(nvJitLink\w+)_(\d+)_(\d+)", name)
    if found is None:
        return (name,)
    plain, major, minor = found[1], int(found[2]), int(found[3])
    return (plain, *(f"__{plain}_{major}_{n}" for n in range(minor + 1)))


def _split(parameters_text: str) -> list[str]:
    """The declarations of a parameter list."""
    parts, depth = [""], 0
    for letter in " ".join(parameters_text.split()):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    parts = [part.strip() for part in parts]
    return [] if parts == ["void"] or parts == [""] else parts


def _parameter(declaration: str, number: int, structures: set[str]) -> Parameter:
    """A parameter; a function pointer's or an array's name stands inside its declaration."""
    found = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration) or re.search(
        r"(\w+)\s*(?:\[\w*\])?$", declaration
    )
    assert found is not None
    name = found[1]
    type = declaration[: found.start()].replace("const", "").strip()
    if not type or declaration.endswith("*"):
        name, type = f"a{number}", declaration
        declaration = f"{declaration} {name}"
    if type == "float":
        return Parameter(declaration, name, f"bridge_float({name})")
    if type in structures or (type.startswith("struct ") and "*" not in type):
        return Parameter(declaration, name, f"WORD(&{name})")
    return Parameter(declaration, name, f"WORD({name})")


# ---- writing the source --------------------------------------------------------------------------


def _source(library: Library, compiler: str) -> Iterator[str]:
    text = _declarations(library, compiler)
    functions = [f for f in functions_of(text, library.result) if f.name not in library.own]
    yield "/* Written by tools/build_driver.py. */"
    yield '#include "bridge.h"'
    if not library.header.startswith("nvJitLink"):
        yield f"#include <{library.header}>"
    else:
        yield from _jit_link_types()
    yield from library.more
    forked, closed, absent = library.codes
    yield f"static const int64_t bridge_forked = {forked}, bridge_closed = {closed};"
    yield f"static const int64_t bridge_absent = {absent};"
    yield f"static const int bridge_version = {_version()};"
    yield "static const char *const names[] = {"
    yield from (f'    "{function.name}",' for function in functions)
    yield "};"
    counts = ", ".join(str(len(function.parameters)) for function in functions)
    yield f"static const int8_t words[] = {{{counts}}};"
    yield (
        f"static bridge_control bridge = {{.count = {len(functions)}, .names = names,"
        f' .words = words, .library = "{library.soname}"}};'
    )
    for number, function in enumerate(functions):
        yield from _stub(function, number)
    if library.header == "cuda.h":
        yield from _results(text, "cudaError_enum", r"CUDA_\w+")
        yield from _addresses((f.name for f in functions), library.own)
        yield from _unsupported({f.name for f in functions} | {*library.own})
    if library.header == "cuda_runtime_api.h":
        yield from _results(text, "cudaError", r"cuda\w+")
    if library.extra:
        yield f'#include "{library.extra}"'


def _version() -> str:
    """The CUDA version that the driver reports."""
    text = (ROOT / "src/warploom/clients/driver/devices.py").read_text("utf-8")
    found = re.search(r"^VERSION = (\d+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def _unsupported(declared: Iterable[str]) -> Iterator[str]:
    """Functions of the driver that give CUDA_ERROR_NOT_SUPPORTED: those of headers that need others
    (OpenGL, EGL, VDPAU), and those of newer drivers, which clients look up before they begin."""
    headers = [(nvidia_headers() / name).read_text("utf-8") for name in INTEROPERATION]
    found = re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", "\n".join(headers))
    for name in dict.fromkeys((*found, *NEWER)):
        if name not in declared:
            yield f"CUresult {name}(void) {{ return CUDA_ERROR_NOT_SUPPORTED; }}"


def _stub(function: Function, number: int) -> Iterator[str]:
    parameters_text = ", ".join(p.declaration for p in function.parameters) or "void"
    words = ", ".join(p.word for p in function.parameters) or "0"
    yield f"{function.result} {function.name}({parameters_text}) {{"
    yield f"    const int64_t given[] = {{{words}}};"
    cast = "(void)" if function.result == "void" else f"return ({function.result})"
    yield f"    {cast}bridge_call({number}, given);"
    yield "}"
    for alias in function.exported[1:]:
        yield f"{function.result} {alias}({parameters_text})"
        yield f'    __attribute__((alias("{function.name}")));'


def _jit_link_types() -> Iterator[str]:
    """nvJitLink's header defines functions itself, as calls of others: types are what is needed."""
    yield "#include <stddef.h>"
    yield "typedef int nvJitLinkResult;"
    yield "typedef int nvJitLinkInputType;"
    yield "typedef void *nvJitLinkHandle;"


def _results(text: str, enumeration: str, pattern: str) -> Iterator[str]:
    """The error codes with their names."""
    parameters_text = re.search(rf"enum {enumeration}\s*\{{(.*?)\}}", text, re.DOTALL)
    assert parameters_text is not None
    yield "static const struct { int code; const char *name; } results[] = {"
    for name, code in re.findall(rf"({pattern})\s*=\s*(\d+)", parameters_text[1]):
        yield f'    {{{code}, "{name}"}},'
    yield "};"


def _addresses(names: Iterable[str], own: Sequence[str]) -> Iterator[str]:
    """For each name that cuGetProcAddress knows, the functions that it stands for and the CUDA
    versions that brought them.

    cudaTypedefs.h says which versions a name has had; cuda.h which functions: the newest version of
    the one is the newest of the other.
    """
    files = ("cudaTypedefs.h", "cudaProfilerTypedefs.h")
    typedefs = "\n".join((nvidia_headers() / file).read_text("utf-8") for file in files)
    symbols = [*names, *own]
    versions: dict[tuple[str, str], set[int]] = {}
    for name, version, stream in re.findall(r"PFN_(cu\w+?)_v(\d+)(_pt[sd][zs])?\)\(", typedefs):
        versions.setdefault((name, stream), set()).add(int(version))
    yield "typedef struct { const char *name; int version; int per_thread; void *address; } entry;"
    yield "static const entry addresses[] = {"
    for (name, stream), known in versions.items():
        pattern = re.compile(rf"{name}(?:_v(\d+))?{stream}")
        found = [(int(m[1] or 1), s) for s in symbols if (m := pattern.fullmatch(s))]
        paired = zip(sorted(known, reverse=True), sorted(found, reverse=True), strict=False)
        for version, (_, symbol) in paired:
            yield f'    {{"{name}", {version}, {int(bool(stream))}, (void *){symbol}}},'
    yield "};"


if __name__ == "__main__":
    sys.exit(0 if build(*(Path(folder) for folder in sys.argv[1:])) else 1)
