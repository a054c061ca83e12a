"""Tests that the digest of a kernel covers what determines its machine code, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warploom.program.build import build
from warploom.program.digest import digest
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %t, %n; .reg .b64 %out, %at;
    .shared .align 4 .b8 tile[64];
    .local .align 4 .b8 own[16];
    ld.param.u64 %out, [out];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    setp.ge.u32 %p, %t, %n;
    @%p bra DONE;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out, %out, %at;
    st.shared.u32 [tile + 8], %t;
    st.local.u32 [own + 4], %t;
    st.global.u32 [%out], %t;
DONE:
    ret;
}
"""


def digest_of(text: str, kernel: str = "k") -> str:
    return build(parse(HEAD + text), kernel).digest


@pytest.mark.parametrize(
    "same",
    [
        "// a comment\n" + KERNEL,
        KERNEL + ".visible .entry other()\n{\n    ret;\n}\n",
        ".visible .entry other()\n{\n    ret;\n}\n" + KERNEL,
        KERNEL.replace("mov.u32", ".loc 1 7 3\n    mov.u32") + '.file 1 "a.cu"\n',
    ],
)
def test_the_digest_ignores_the_rest_of_the_module(same: str) -> None:
    assert digest_of(same) == digest_of(KERNEL)


def test_the_digest_ignores_the_name() -> None:
    assert digest_of(KERNEL.replace("k(", "twin("), "twin") == digest_of(KERNEL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%tid.x", "%tid.y"),
        ("setp.ge", "setp.gt"),
        ("@%p", "@!%p"),
        ("%t, 4;", "%t, 8;"),
        ("tile + 8", "tile + 12"),
        ("[%out], %t", "[%out], %n"),
        ("tile[64]", "tile[128]"),
        ("own[16]", "own[32]"),
        ("out, .param .u32 n", "out, .param .u64 m, .param .u32 n"),
        ("st.global.u32", "st.global.cs.u32"),
        ("bra DONE", "bra.uni DONE"),
    ],
)
def test_the_digest_covers_what_determines_the_code(old: str, new: str) -> None:
    assert old in KERNEL
    assert digest_of(KERNEL.replace(old, new)) != digest_of(KERNEL)


def test_a_function_that_is_called_is_in_the_digest() -> None:
    def text(amount: int) -> str:
        return f""".func (.param .b32 r) f(.param .b32 a) {{
            .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, {amount}; st.param.b32 [r], %x; ret;
        }}
        .visible .entry k(.param .u64 out) {{
            .reg .b32 %x; .reg .b64 %out; ld.param.u64 %out, [out];
            {{ .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call (r), f, (a);
               ld.param.b32 %x, [r]; }}
            st.global.u32 [%out], %x; ret;
        }}"""

    assert digest_of(text(1)) != digest_of(text(2))


def test_the_order_of_sets_and_the_process_do_not_matter() -> None:
    values = frozenset({"a", "b", "c"}), {"x": 1, "y": 2}
    code = (
        "from warploom.program.digest import digest;"
        "print(digest(frozenset(['c', 'b', 'a']), {'y': 2, 'x': 1}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(*values)


def test_adjacent_values_are_delimited() -> None:
    assert digest(("a", "b")) != digest(("ab",)) != digest((("a",), "b"))
    assert digest(1, 2) != digest(12)
    assert digest("1") != digest(1)
    with pytest.raises(TypeError, match="list has no digest"):
        digest([1])
