"""Takes the host's part out of CUDA C++ that is compiled for its kernels alone: NVRTC has none of
the host's headers, and refuses host functions.

Lines keep their numbers, so that errors and `.loc` name those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_INTEGERS = "\n".join(
    f"typedef {'unsigned ' * unsigned}{base} {'u' * unsigned}int{bits}_t;"
    for bits, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for unsigned in (False, True)
).replace("typedef char", "typedef signed char")

_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
"""

_FLOATS = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""

_MATHEMATICS = """
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
"""

_INTEGER_LIMITS = "\n".join(
    f"#define {name} {value}"
    for name, value in (
        *(("INT32_MAX", "2147483647"), ("INT32_MIN", "(-2147483647 - 1)")),
        *(("UINT32_MAX", "4294967295u"), ("INT64_MAX", "9223372036854775807ll")),
        *(("UINT64_MAX", "18446744073709551615ull"), ("UINT8_MAX", "255"), ("UINT16_MAX", "65535")),
    )
)

_CONTENT = {
    **dict.fromkeys(("cstdint", "stdint.h", "inttypes.h"), f"{_INTEGERS}\n{_INTEGER_LIMITS}"),
    **dict.fromkeys(("climits", "limits.h"), _LIMITS),
    **dict.fromkeys(("cfloat", "float.h"), _FLOATS),
    **dict.fromkeys(("cmath", "math.h"), _MATHEMATICS),
    "pthread.h": "typedef unsigned long pthread_t;",
}
"""What kernels use of the host's headers, of those that have some."""

_EMPTY = (
    *("cstdio", "stdio.h", "cstdlib", "stdlib.h", "cstring", "string.h", "cassert", "assert.h"),
    *("cstddef", "stddef.h", "ctime", "time.h", "cerrno", "errno.h", "unistd.h", "sys/time.h"),
    *("iostream", "fstream", "sstream", "ostream", "istream", "iomanip", "string", "string_view"),
    *("vector", "array", "map", "set", "unordered_map", "unordered_set", "list", "deque", "queue"),
    *("stack", "tuple", "utility", "algorithm", "numeric", "random", "functional", "memory"),
    *("chrono", "thread", "mutex", "atomic", "limits", "iterator", "stdexcept", "exception"),
    *("complex", "optional", "variant", "initializer_list", "type_traits", "cctype", "ctype.h"),
    *(
        "GL/gl.h",
        "GL/glu.h",
        "GL/glut.h",
        "GL/freeglut.h",
        "GL/glew.h",
        "GL/glext.h",
        "GL/glx.h",
        "mpi.h",
    ),
    *("sched.h", "signal.h", "getopt.h", "fcntl.h", "malloc.h", "sys/types.h"),
    *("sys/stat.h", "sys/mman.h", "filesystem", "regex", "bitset", "typeinfo", "strings.h"),
    *("condition_variable", "future", "cinttypes", "numbers", "cuda_profiler_api.h", "wchar.h"),
    *("stdbool.h", "stdarg.h", "cstdarg", "cuda.h", "cuda_runtime_api.h", "omp.h", "locale"),
)

_GUARDED = "#ifndef WARPLOOM_{0}\n#define WARPLOOM_{0}\n{1}\nnamespace std {{}}\n#endif\n"

HOST_HEADERS = {
    name: _GUARDED.format(re.sub(r"\W", "_", name), _CONTENT.get(name, ""))
    for name in (*_CONTENT, *_EMPTY)
}
"""The texts that stand in for the host's headers, by name. `printf`, `assert` and mathematical
functions are built into NVRTC."""

_HIDDEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
"""Comments, texts and directives, whose braces do not count."""

_FOR_THE_DEVICE = re.compile(
    r"\b(?:__global__|__device__|constexpr|struct|class|union|enum|namespace|concept|extern)\b|="
)
"""Words of a declaration before its braces that is no function of the host alone."""


_OF_THE_HOST = re.compile(r"\bstd::|\bcuda[A-Z]\w*_t\b|\bFILE\b|\bGL[a-z]+\b")
"""What is in a declaration of the host alone."""


def without_host_functions(text: str) -> str:
    """Returns the text with blanks for the host's part: functions at the top level with a body that
    are neither for the device nor constant expressions, and declarations with types of the host.
    Directives stay."""
    directives = bytearray(len(text))

    def hidden(found: re.Match[str]) -> str:
        is_directive = found[0].lstrip().startswith("#")
        directives[found.start() : found.end()] = bytes([is_directive]) * len(found[0])
        return re.sub(r"[^\n]", " ", found[0])

    shown = _HIDDEN.sub(hidden, text)
    kept = list(text)
    for start, end in _host_parts(shown):
        for position in range(start, end):
            if text[position] != "\n" and not directives[position]:
                kept[position] = " "
    return "".join(kept)


_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def included_without_host_functions(text: str, folders: Sequence[Path]) -> dict[str, str]:
    """Returns the files that a text includes by names in quotes, from its own folder, the first of
    `folders`, or the others, and those that they include, all without the host's part, by name."""
    found: dict[str, str] = {}
    waiting = [(text, folders[0])]
    while waiting:
        including, own = waiting.pop()
        for name in _QUOTED.findall(including):
            paths = (folder / name for folder in (own, *folders[1:]))
            path = next((path for path in paths if path.is_file()), None)
            if path is not None and name not in found:
                included = path.read_text("utf-8", errors="replace")
                found[name] = without_host_functions(included)
                waiting.append((included, path.parent))
    return found


def _host_parts(shown: str) -> Iterator[tuple[int, int]]:
    """Yields the parts of a text without comments that are for the host alone, as ranges."""
    start, depth, opened = 0, 0, 0
    for found in re.finditer(r"[{};]", shown):
        end = found.end()
        if found[0] == "{":
            depth += 1
            opened = found.start() if depth == 1 else opened
            continue
        if found[0] == "}":
            depth = max(0, depth - 1)
        if depth:
            continue
        head = shown[start : opened if found[0] == "}" else end]
        has_body = found[0] == "}" and "(" in head
        if (has_body and not _FOR_THE_DEVICE.search(head)) or (
            found[0] == ";" and "__global__" not in head and _OF_THE_HOST.search(head)
        ):
            yield start + len(head) - len(head.lstrip()), end
        start = end
