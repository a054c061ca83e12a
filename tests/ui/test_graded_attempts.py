"""Attempts of a learner's kernel to get out of its task: each ends with a clear verdict, and
nothing outside of the run is written, shown or still running.

A learner's kernel is CUDA C++, OpenCL C or PTX. NVRTC and clang compile its device code alone, and
the engine executes that: no function of the host can be called, so no process can be started and no
socket opened from it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.llvm.disk_cache import cache_directory

SECRET = "for nobody's eyes"

USERS = Path("/etc/passwd")

HANDED_IN = "structures"
"""The lesson whose task the kernels are handed in for."""

LONG_SECONDS = 600.0
"""A limit that no attempt comes to that ends by another one, on any computer."""


@dataclass(frozen=True)
class Attempt:
    """A kernel that is graded, and words of its verdict."""

    name: str
    source: str
    verdict: str
    suffix: str = ".cu"
    seconds: float = LONG_SECONDS
    memory: int = 4096
    """MiB."""


def kernel(inside: str = "", before: str = "") -> str:
    """Returns a kernel that does the task in the slow way, with text in it and before it."""
    return f"""{before}
__global__ void sums(const volatile float *points, float *out)
{{
    int i = threadIdx.x;
    float sum = 0;
    {inside}
    for (int k = 0; k < 4; k++)
        sum += points[4 * i + k];
    out[i] = sum;
}}
"""


def ptx(inside: str, before: str = "") -> str:
    return f""".version 8.0
.target sm_75
.address_size 64
{before}
.visible .entry sums(.param .u64 points, .param .u64 out)
{{
    {inside}
    ret;
}}
"""


def opencl(inside: str = "", before: str = "") -> str:
    return f"""{before}
__kernel void sums(__global const float *points, __global float *out) {{ {inside} }}
"""


OUTSIDE = "which is outside the kernel's folder"
BY_NAME = "is not allowed in an untrusted source"
NO_HOST_CODE = "does not compile as CUDA C++"
NOT_DONE = "The task is not done yet."
OUT_OF_TIME = "The run was stopped after"
OUT_OF_MEMORY = "needs more memory than --memory allows"

MACROS = "#define M0 1\n" + "".join(
    f"#define M{n + 1} M{n} + M{n} + M{n} + M{n}\n" for n in range(20)
)
"""Macros of which the last stands for 10^12 numbers."""

TEMPLATES = """template <long N, int D> struct Sum {
    static const long value = Sum<2 * N, D - 1>::value + Sum<2 * N + 1, D - 1>::value;
};
template <long N> struct Sum<N, 0> { static const long value = N; };"""

SLOW = (
    f"if (points[i] > {n}) sum += points[i] * {n}; else if (sum > {n}) sum -= 1;"
    for n in range(20_000)
)
"""Statements whose optimization takes minutes."""

DEEP = """__device__ __noinline__ int deep(int n)
{
    volatile int a[64];
    a[n & 63] = n;
    return n < 0 ? 0 : deep(n + 1) + a[n & 63];
}"""

NEXT = "template <int N> struct Next { static const int value = Next<N + 1>::value; };"

ENDLESS = """constexpr int endless()
{
    int n = 0;
    while (n >= 0)
        n = (n + 1) & 1023;
    return n;
}"""

SOCKET = 'extern "C" int socket(int, int, int);'

GETENV = 'extern "C" char *getenv(const char *);'

WRITE = 'system("touch written");'

FILES = (
    Attempt("an absolute path", kernel(before=f'#include "{USERS}"'), OUTSIDE),
    Attempt("a path above", kernel(before='#include "../secret"'), OUTSIDE),
    Attempt("a link", kernel(before='#include "link.h"'), OUTSIDE),
    Attempt("a link to an endless file", kernel(before='#include "zero.h"'), OUTSIDE),
    Attempt("a computed name", kernel(before=f'#define F "{USERS}"\n#include F'), BY_NAME),
    Attempt("a look for a file", kernel(before="#if __has_embed(<x>)\n#endif"), BY_NAME),
    Attempt("a line table", kernel("out[1 << 20] = 1;", f'#line 1 "{USERS}"'), "__global__ write"),
    Attempt("a message", kernel("nonsense;", f'#line 1 "{USERS}"'), OUTSIDE),
    Attempt(
        "a line table of PTX",
        ptx(".reg .b64 %a; .loc 1 1 0\n mov.u64 %a, 16; st.global.u32 [%a], 1;")
        + f'.file 1 "{USERS}"\n',
        "__global__ write",
        ".ptx",
    ),
    Attempt("a directive of an assembler", kernel(f'asm(".incbin \\"{USERS}\\";");'), "`.incbin`"),
    Attempt("a file of OpenCL", opencl(before=f'#include "{USERS}"'), OUTSIDE, ".cl"),
)

NETWORK_AND_ENVIRONMENT = (
    Attempt("an address", kernel(before='#include "http://127.0.0.1/x.h"'), OUTSIDE),
    Attempt("a share", kernel(before='#include "//127.0.0.1/share/x.h"'), OUTSIDE),
    Attempt(
        "a socket",
        kernel("socket(2, 1, 0);", 'extern "C" int socket(int, int, int);'),
        "`socket` has no body",
    ),
    Attempt("the environment", kernel(before='#include "/proc/self/environ"'), OUTSIDE),
    Attempt("a link to the environment", kernel(before='#include "environ.h"'), OUTSIDE),
    Attempt(
        "a variable",
        kernel('printf("%s", getenv("ATTEMPT"));', 'extern "C" char *getenv(const char *);'),
        "`getenv` has no body",
    ),
    Attempt(
        "the memory of the host", kernel("sum = *(volatile float *)0x400000;"), "__global__ read"
    ),
    Attempt("a text of the host", kernel('printf("%s", (char *)0x400000);'), "__global__ read"),
)

PROCESSES = (
    Attempt(
        "a command", kernel(WRITE, 'extern "C" int system(const char *);'), "`system` has no body"
    ),
    Attempt(
        "a command before main",
        kernel(before=f'extern "C" int system(const char *);\nstatic int x = {WRITE}'),
        NO_HOST_CODE,
    ),
    Attempt(
        "a function of the C library by its name",
        kernel("while (true) fork();", 'extern "C" __device__ int fork();'),
        "`fork` has no body",
    ),
    Attempt(
        "a function of the C library in PTX",
        ptx("call.uni fork;", ".extern .func fork;"),
        "`fork` has no body",
        ".ptx",
    ),
    Attempt("a jump into the host", kernel("((void (*)())0x400000)();"), "is not a function"),
    Attempt("a launch in a launch", kernel("sums<<<32, 32>>>(points, out);"), NO_HOST_CODE),
)

FLOODS = (
    Attempt(
        "endless printf", kernel('while (true) printf("%d flood\\n", i);'), OUT_OF_TIME, seconds=8
    ),
    Attempt("a wide printf", kernel('printf("%2000000000d", i);'), NOT_DONE),
    Attempt("errors", kernel("".join(f"nonsense{n};\n" for n in range(100_000))), NO_HOST_CODE),
    Attempt("a terminal", kernel(before="#error \x1b]0;owned\x07\x1b[2J"), "\\x1b[2J"),
)

MEMORY = (
    Attempt(
        "a large variable",
        kernel("big[i] = 1;", "__device__ char big[1ull << 40];"),
        "out of device memory",
    ),
    Attempt(
        "a large table",
        kernel("sum = big[i];", "__device__ int big[1 << 28] = {1};"),
        OUT_OF_MEMORY,
        memory=256,
    ),
    Attempt("large frames", kernel("volatile char a[1 << 30]; a[i] = 1;"), "bytes of local memory"),
    Attempt("deep recursion", kernel("sum = deep(i);", DEEP), "thread's call stack is full"),
    Attempt(
        "malloc without an end",
        kernel("while (true) *(char *)malloc(1 << 20) = 1;"),
        "__global__ write",
    ),
    Attempt(
        "registers",
        ptx(".reg .b32 %r<1000000>; add.u32 %r999999, %r5, %r6;"),
        NOT_DONE,
        ".ptx",
    ),
)

TIME = (
    Attempt("an endless kernel", kernel("while (true) out[i] += 1;"), "endless loop"),
    Attempt("endless sleep", kernel("while (true) __nanosleep(1000000);"), "endless loop"),
    Attempt("a deadlock", kernel("while (atomicCAS((int *)out, 0, 1)) ;"), "deadlock"),
    Attempt("templates without an end", kernel("sum = Next<0>::value;", NEXT), NO_HOST_CODE),
    Attempt(
        "an explosion of templates",
        kernel("sum = Sum<0, 40>::value;", TEMPLATES),
        OUT_OF_MEMORY,
        memory=128,
    ),
    Attempt("an explosion of macros", kernel("sum = M20;", MACROS), OUT_OF_MEMORY, memory=128),
    Attempt("a slow compilation", kernel("\n".join(SLOW)), OUT_OF_TIME, seconds=8),
    Attempt("includes of itself", '#include "structures.cu"\n', NO_HOST_CODE),
    Attempt(
        "a constant without an end", kernel("constexpr int n = endless();", ENDLESS), NO_HOST_CODE
    ),
    Attempt("deep nesting", kernel(f"sum = {'(' * 100_000}1{')' * 100_000};"), NOT_DONE),
    Attempt("deep nesting in PTX", ptx("{" * 100_000 + "}" * 100_000), NOT_DONE, ".ptx"),
)

CRASH = "#pragma clang __debug parser_crash"

NO_OPENCL = "does not compile as OpenCL C"

OPENCL = (
    Attempt(
        "a directive of an assembler",
        opencl(f'__asm__(".incbin \\"{USERS}\\"");'),
        "found `.incbin`",
        ".cl",
    ),
    Attempt("the environment", opencl(before="#if ATTEMPT\n#endif\n#error no"), NO_OPENCL, ".cl"),
    Attempt(
        "a command",
        opencl(WRITE, "int system(__constant char *command);"),
        "`system` has no body",
        ".cl",
    ),
    Attempt(
        "the memory of the host",
        opencl("out[0] = *(volatile __global float *)0x400000;"),
        "__global read",
        ".cl",
    ),
    Attempt("a crash of the compiler", opencl(before=CRASH), NO_OPENCL, ".cl"),
    Attempt(
        "an explosion of macros", opencl("out[0] = M20;", MACROS), OUT_OF_MEMORY, ".cl", memory=256
    ),
    Attempt("an endless kernel", opencl("while (true) out[0] += 1;"), "endless loop", ".cl"),
)
"""Through clang, on computers that have it."""

WITH_CLANG = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())
ATTEMPTS = (
    *FILES,
    *NETWORK_AND_ENVIRONMENT,
    *PROCESSES,
    *FLOODS,
    *MEMORY,
    *TIME,
    *(pytest.param(one, marks=WITH_CLANG, id=f"{one.name} in OpenCL") for one in OPENCL),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the folder of the learner's kernel. All that the program may write to by its own
    choice, but for the cache, is beside it; at the end, nothing is there."""
    (tmp_path / "secret").write_text(f"{SECRET}\n", "utf-8")
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, target in (("link", USERS), ("zero", "/dev/zero"), ("environ", "/proc/self/environ")):
        (folder / f"{name}.h").symlink_to(target)
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(cache_directory()))
    for variable in ("HOME", "WARPLOOM_DATA_DIR", "TMPDIR"):
        beside = tmp_path / variable.lower()
        beside.mkdir()
        monkeypatch.setenv(variable, str(beside))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ATTEMPT", SECRET)
    before = files(tmp_path)
    yield folder
    assert files(tmp_path) - before <= set(folder.glob(f"{HANDED_IN}.*"))


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks the processes that a test starts by a variable; at the end, none is there."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("ATTEMPT_MARK", mark)
    yield mark
    assert not marked(mark)


def marked(mark: str) -> list[int]:
    """Returns the processes with a mark, other than this one (on Linux)."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in variables and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


@pytest.mark.usefixtures("mark")
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attempt_ends_with_a_verdict(attempt: Attempt, folder: Path) -> None:
    file = folder / f"{HANDED_IN}{attempt.suffix}"
    file.write_text(attempt.source, "utf-8")
    limits = ["--seconds", str(attempt.seconds), "--memory", str(attempt.memory)]
    result = CliRunner().invoke(app, ["learn", HANDED_IN, "--check", str(file), *limits])
    print(result.output[:2000])
    assert attempt.verdict in " ".join(result.output.split())
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert_nothing_is_shown(result.output)


def assert_nothing_is_shown(output: str) -> None:
    """Asserts that an output has nothing of files and variables, nothing that a terminal executes,
    no exception of Python, and is not long."""
    users = USERS.read_text("utf-8", "replace").splitlines() if USERS.exists() else []
    assert not [line for line in users if line in output]
    assert SECRET not in output
    assert "\x1b" not in output
    assert "Traceback" not in output
    assert len(output) < 100_000
