"""Linked texts keep what their parts say of lines."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode

import pytest

from warploom.clients.driver.device_runtime import with_runtime
from warploom.clients.linking import linked, parts_of
from warploom.core.errors import WarploomError
from warploom.host.device import Device

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 out) twice(.param .b32 x);
.visible .entry k(.param .b64 to)
{
    .reg .b64 %d<2>;
    .reg .b32 %r<3>;
    .loc 1 7 5
    ld.param.b64 %d1, [to];
    mov.b32 %r1, 21;
    {
        .param .b32 p;
        .param .b32 q;
        st.param.b32 [p], %r1;
        call (q), twice, (p);
        ld.param.b32 %r2, [q];
    }
    .loc 1 9 5
    st.global.b32 [%d1], %r2;
    ret;
}
.file 1 "kernel.py"
"""

FUNCTION = """
.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 out) twice(.param .b32 x)
{
    .reg .b32 %r<3>;
    .loc 1 3 5
    ld.param.b32 %r1, [x];
    add.s32 %r2, %r1, %r1;
    st.param.b32 [out], %r2;
    ret;
}
.file 1 "function.py"
"""


def test_instructions_of_linked_texts_have_their_lines() -> None:
    gpu = Device()
    text = linked([("kernel.ptx", KERNEL), ("function.ptx", FUNCTION)])
    kernel = with_runtime(gpu, text, "both")["k"]
    program = kernel.program
    lines = {program.line(index) for index in range(len(program.instructions))}
    assert {"kernel.py:7", "kernel.py:9", "function.py:3"} <= lines
    x = gpu.zeros(1, "int32")
    kernel[1, 1](x)
    assert x.copy_to_host()[0] == 42


def test_what_is_linked_twice_keeps_all_parts_and_limits() -> None:
    once = linked([("kernel.ptx", KERNEL), ("function.ptx", FUNCTION)])
    other = FUNCTION.replace("twice", "thrice")
    twice = linked([("once", once), ("other.ptx", other)], registers=40)
    parts = parts_of("twice", twice)
    assert len(parts) == 3
    assert [".maxnreg 40" in part for part in parts.values()] == [True, False, False]


def test_texts_without_lines_are_text_alone() -> None:
    plain = [re.sub(r"\.(loc|file) .*", "", text) for text in (KERNEL, FUNCTION)]
    text = linked([("kernel.ptx", plain[0]), ("function.ptx", plain[1])])
    assert parts_of("both", text) == {"both": text}


@pytest.mark.parametrize(
    "parts",
    [
        b"@@@",
        b64encode(b"hello"),
        b64encode(zlib.compress(b"[1]")),
        b64encode(zlib.compress(b"[" * 100_000)),
        b64encode(zlib.compress(b"{}")[:-3]),
    ],
)
def test_damaged_parts_are_an_error(parts: bytes) -> None:
    with pytest.raises(WarploomError, match="kernel has damaged parts"):
        parts_of("kernel", f"{KERNEL}\n//warploom-parts {parts.decode()}\n")
