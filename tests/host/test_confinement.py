"""Sources from outside: which files they may include, and with which options they are compiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warploom.core.errors import CompileError
from warploom.host.programs.confinement import Confinement

SECRET = "secret.h"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a kernel's folder with headers in it, and a secret beside it."""
    inner = tmp_path / "kernel"
    (inner / "sub").mkdir(parents=True)
    (inner / "own.h").write_text('#include "sub/more.h"\n', "utf-8")
    (inner / "sub" / "more.h").write_text('#include "../last.h"\n', "utf-8")
    (inner / "last.h").write_text("#define N 4\n", "utf-8")
    (inner / "bad.h").write_text(f'#include "../{SECRET}"\n', "utf-8")
    (tmp_path / SECRET).write_text("password\n", "utf-8")
    os.symlink(tmp_path / SECRET, inner / "link.h")
    return inner


def check(folder: Path, text: str, *options: str, language: str = "cuda") -> None:
    suffix = "cl" if language == "opencl" else "cu"
    Confinement((str(folder),)).check(text, language, str(folder / f"k.{suffix}"), options)


@pytest.mark.parametrize(
    "text",
    [
        '#include "own.h"',
        "#include <cuda_fp16.h>\n#include <cooperative_groups/reduce.h>",
        "# define text(x) #x\n#define both(a, b) a##b\n#\n#pragma unroll\n#if defined(N)\n#endif",
        "#ifdef __has_include\n#if __has_include(<cuda_fp16.h>)\n#endif\n#endif",
        'printf("%d #%d #: # %%\\n", 1, 2); // #1',
        '#line 7 "other.cu"\n# 8 "other.cu"',
    ],
)
def test_what_stays_in_the_folder_is_allowed(folder: Path, text: str) -> None:
    check(folder, text)


OUTSIDE = [
    '#include "/etc/passwd"',
    "#include </etc/passwd>",
    f'#include "../{SECRET}"',
    f'#include "sub/../../{SECRET}"',
    '#include "link.h"',
    '#include "bad.h"',
    "#include <../../../../../../etc/passwd>",
    '#include_next "/etc/passwd"',
    '#import "/etc/passwd"',
    '#embed "/etc/passwd"',
    '#define FILE "/etc/passwd"\n#include FILE',
    '#include/**/"/etc/passwd"',
    '#/**/include "/etc/passwd"',
    '/**/ # include "/etc/passwd"',
    '%:include "/etc/passwd"',
    '??=include "/etc/passwd"',
    '#??/\ninclude "/etc/passwd"',
    '#in\\\nclude "/etc/passwd"',
    '#in\\ \nclude "/etc/passwd"',
    '#\\\ninclude "/etc/passwd"',
    '#\vinclude "/etc/passwd"',
    '#\xa0include "/etc/passwd"',
    '#\0include "/etc/passwd"',
    '#\\u0069nclude "/etc/passwd"',
    '#include "C:\\\\secret"',
    '#include "file:///etc/passwd"',
    '#if __has_include("/etc/passwd")\n#endif',
    '#define F "/etc/passwd"\n#if __has_include(F)\n#endif',
    '#if __has_include_next("/etc/passwd")\n#endif',
    '#if __has_embed("/etc/passwd")\n#endif',
    '#pragma GCC dependency "/etc/passwd"',
    '_Pragma("GCC dependency \\"/etc/passwd\\"")',
    '#define P(x) _Pragma(#x)\nP(GCC dependency "/etc/passwd")',
]


@pytest.mark.parametrize("language", ["cuda", "opencl"])
@pytest.mark.parametrize("text", OUTSIDE)
def test_what_leaves_the_folder_is_refused(folder: Path, text: str, language: str) -> None:
    with pytest.raises(CompileError, match=r"outside|untrusted source"):
        check(folder, f"int a;\n{text}\n", language=language)


@pytest.mark.parametrize(
    "option",
    [
        *("-DN=4", "--define-macro=F(x)=x", "-UN", "-std=c++20", "--std=c++17", "-arch=sm_90a"),
        *("--gpu-architecture=compute_75", "--use_fast_math", "-fmad=false", "-maxrregcount=32"),
        *("--maxrregcount=64", "-lineinfo", "-G", "-w", "--diag-suppress=20013,177"),
    ],
)
def test_options_that_name_no_file_are_allowed(folder: Path, option: str) -> None:
    check(folder, "", option)
    check(folder, "", option, f"-I{folder}/sub")


@pytest.mark.parametrize(
    "option",
    [
        *("--time=/tmp/t", "-fdevice-time-trace=/tmp/t", "--create-pch=/tmp/t", "-include=/a.h"),
        *("--pre-include=/a.h", "-I/etc", "-I", "--include-path=/", "--include-path", "/etc"),
        *("-I..", "--pch-dir=/tmp", "--use-pch=/tmp/t", "-arch", "-std", "-Gx", "-D", "-DN=1\n#"),
        *("--dump-dir=/tmp", "--optix-ir", "-dlto", "--options-file=/a", "--device-time-trace=/a"),
    ],
)
def test_options_of_files_are_refused_by_name(folder: Path, option: str) -> None:
    with pytest.raises(CompileError, match="is not allowed") as refused:
        check(folder, "", option)
    assert repr(option) in str(refused.value)


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        *(("-DN=4", True), ("-cl-std=CL2.0", True), ("-cl-fast-relaxed-math", True)),
        *(("-O3", True), ("-w", True), ("-include", False), ("-o/tmp/a", False), ("-MF/a", False)),
        *(("-Wl,-o,/a", False), ("-Xclang", False), ("@/etc/passwd", False), ("-fplugin=a", False)),
        *(("-save-temps=/tmp", False), ("-I/etc", False), ("-Wp,-MD,/a", False), ("k.cl", False)),
    ],
)
def test_options_of_clang(folder: Path, option: str, allowed: bool) -> None:
    if allowed:
        check(folder, "", option, language="opencl")
        return
    with pytest.raises(CompileError, match="is not allowed"):
        check(folder, "", option, language="opencl")


def test_a_changed_kernel_may_use_what_the_users_own_does(tmp_path: Path) -> None:
    kernel, shared = tmp_path / "kernel", tmp_path / "shared"
    kernel.mkdir()
    shared.mkdir()
    (tmp_path / "common.h").write_text("", "utf-8")
    (shared / "tools.h").write_text("", "utf-8")
    name, options = str(kernel / "k.cu"), (f"-I{shared}", "-I", str(shared), "--ftz=true")
    own = '#include "../common.h"\n#include <tools.h>\n'
    confinement = Confinement.of(own, name, options)
    confinement.check(own + "int changed;", "cuda", name, options)
    for text in ('#include "../other.h"', f'#include "{tmp_path}/common.h"'):
        with pytest.raises(CompileError, match="outside"):
            confinement.check(text, "cuda", name, options)


def test_messages_about_files_outside_are_withheld(folder: Path) -> None:
    """A macro makes a computed name of a toolkit header mean any file."""
    name, confinement = str(folder / "k.cu"), Confinement((str(folder),))
    for place in ("/etc/passwd(1): error: hidden words", "/etc/passwd:1:1: error: hidden words"):
        with pytest.raises(CompileError) as refused, confinement.withheld(name):
            raise CompileError(f"no.\n{place}", place)
        assert "hidden" not in str(refused.value)
        assert not refused.value.log
    own = f"{name}(3): error: expected a ';'"
    with pytest.raises(CompileError, match="expected"), confinement.withheld(name):
        raise CompileError(own, own)


def test_a_header_that_is_no_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe.h")
    with pytest.raises(CompileError, match="not a source file"):
        check(folder, '#include "pipe.h"')
