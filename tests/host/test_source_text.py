"""Sources in other encodings than UTF-8: what NVIDIA's compilers accept loads, as does UTF-16."""

from __future__ import annotations

from pathlib import Path

import pytest

import warploom as wl
from warploom.core.errors import CompileError, WarploomError
from warploom.host.programs.sources import read_source, source_of

PTX = """// größe
.version 7.0
.target sm_70
.address_size 64
.visible .entry kernel()
{
    ret;
}
"""
"""A kernel, in whose comment two letters are not ASCII."""


@pytest.mark.parametrize(
    "data",
    [
        PTX.encode(),
        PTX.encode("latin-1"),
        PTX.encode("utf-8-sig"),
        PTX.encode("utf-16"),
        b"\xfe\xff" + PTX.encode("utf-16-be"),
        PTX.encode() + b"\0",
    ],
    ids=["utf-8", "latin-1", "utf-8-bom", "utf-16", "utf-16-be", "ended by 0"],
)
@pytest.mark.parametrize("suffix", [".cu", ".ptx", ".cl"])
def test_the_text_of_a_source(data: bytes, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"kernel{suffix}"
    file.write_bytes(data)
    assert source_of(file)[0] == PTX


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "utf-16"])
def test_such_a_source_is_loaded(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_bytes(PTX.encode(encoding))
    assert wl.Device().load(file).kernels == ("kernel",)


def test_a_text_with_a_byte_order_mark_is_compiled() -> None:
    assert wl.Device().compile("\ufeff" + PTX, "ptx").kernels == ("kernel",)


def test_errors_after_a_byte_order_mark_have_the_column_of_the_editor(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_bytes(b"\xef\xbb\xbf.version x")
    with pytest.raises(WarploomError, match=r"kernel\.ptx:1:10: "):
        wl.Device().load(file)


def test_carriage_returns_alone_end_lines(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_bytes(PTX.replace("\n", "\r").encode())
    assert wl.Device().load(file).kernels == ("kernel",)
    file.write_bytes(PTX.replace("\n", "\r\n").encode())
    assert wl.Device().load(file).kernels == ("kernel",)


@pytest.mark.parametrize("data", [b"\x7fELF\2\1\0\2", b"\xe9\1\2\3", b"a\0b", b"\xff\xfe\0\xd8"])
def test_binary_data_is_no_source(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_bytes(data)
    with pytest.raises(CompileError, match=r"(is an ELF|contains) binary.*, not text"):
        read_source(file)
