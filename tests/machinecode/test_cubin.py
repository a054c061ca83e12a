"""Reads cubins made by hand, and of ptxas, against what nvdisasm prints of these."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import warploom as wl
from warploom.host.programs.ptxas import architecture_of, find_tool, identity, run_ptxas
from warploom.machinecode.cubin import code_of
from warploom.machinecode.lines import own_lines
from warploom.machinecode.operands import ListingError

KERNEL = Path(__file__).parent.parent.parent / "examples" / "mandelbrot.cu"


def elf(sections: Mapping[str, bytes], links: Mapping[str, str]) -> bytes:
    """Returns an ELF file of sections, some of which link to others."""
    names = ["", *sections, ".shstrtab"]
    texts = b"".join(name.encode() + b"\0" for name in names)
    contents = [b"", *sections.values(), texts]
    data, table = bytearray(64), b""
    for name, content in zip(names, contents, strict=True):
        link = names.index(links.get(name, ""))
        at = texts.index(name.encode() + b"\0")
        table += struct.pack("<II8x8xQQII16x", at, 0, len(data), len(content), link, 0)
        data += content
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HH", data, 60, len(names), len(names) - 1)
    return bytes(data) + table


def line_table(program: Sequence[int]) -> bytes:
    """Returns a line table with this program: special opcodes from 13 on advance the line by -5 to
    8, and by 14 of them the address by 4."""
    header = bytes((4, 1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0))
    return (
        struct.pack("<IHI", 6 + len(header) + len(program), 3, len(header))
        + header
        + bytes(program)
    )


@pytest.mark.parametrize("with_addend", [True, False])
def test_encodings_and_lines_by_hand(with_addend: bool) -> None:
    """Line 20 from offset 0x10 on, 17 from 0x20 on, 219 from 0x40 on; a function that the assembler
    added begins at 0x50."""
    code = b"".join(number.to_bytes(16, "little") for number in (7, 1 << 127, 3, 4, 5, 6))
    program = (0, 9, 2, *[0] * 8, 3, 19, 1, 13 + 14 * 4 + 2, 2, 8,
               3, 0xCA, 1, 1, 2, 8, 0, 1, 1)  # fmt: skip
    table = line_table(program)
    at = table.index(bytes((0, 9, 2))) + 3
    symbols = struct.pack("<4xBxHQ8x", 0, 0, 0) + struct.pack("<4xBxHQ8x", 2, 1, 0x10)
    symbols += struct.pack("<4xBxHQ8x", 2, 1, 0x50)
    name, layout = (".rela", "<Q4xIq") if with_addend else (".rel", "<Q4xI")
    relocation = struct.pack(layout, at, 1, *([0] if with_addend else []))
    lines = ".nv_debug_line_sass"
    sections = {".text.k": code, ".symtab": symbols, lines: table, f"{name}{lines}": relocation}
    cubin = elf(sections, {f"{name}{lines}": ".symtab"})
    found = code_of(cubin, "k")
    assert list(found.encodings) == [7, 1 << 127, 3, 4, 5, 6]
    assert list(found.lines) == [None, 20, 17, 17, 219, None]


def test_a_kernel_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ListingError, match="no machine code for other"):
        code_of(elf({".text.k": bytes(16), ".symtab": b""}, {}), "other")


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="needs ptxas and nvdisasm")
@pytest.mark.parametrize("name", ["t4", "a100", "h100"])
def test_as_nvdisasm_prints(name: str, tmp_path: Path) -> None:
    """A kernel with a division of floats, whose slow path the assembler adds."""
    ptxas, nvdisasm = find_tool("ptxas"), find_tool("nvdisasm")
    assert ptxas is not None
    assert nvdisasm is not None
    gpu = wl.Device(name)
    module = gpu.compile(KERNEL.read_text(encoding="utf-8"))
    program = module["mandelbrot"].program
    text, _ = own_lines(program.module)
    architecture = architecture_of(text, gpu.spec.compute_capability)
    made = run_ptxas(identity(ptxas), architecture, text, None)
    (tmp_path / "k.cubin").write_bytes(made.binary)
    options = ("--print-code", "--print-line-info-ptx", "--print-instruction-encoding")
    printed = subprocess.run(
        [nvdisasm, *options, str(tmp_path / "k.cubin")],
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    _, _, section = printed.partition(".text.mandelbrot ")
    section, _, _ = section.partition("\n//---")
    lines, encodings, line = list[int | None](), list[int](), None
    for row in section.splitlines():
        if "@function" in row:
            line = None
        elif found := re.match(r"\s*//## File .*, line (\d+)", row):
            line = int(found[1])
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/.*/\* (0x[0-9a-f]+) \*/", row):
            lines.append(line)
            encodings.append(int(found[1], 16))
        elif found := re.match(r"\s*/\* (0x[0-9a-f]+) \*/", row):
            encodings[-1] |= int(found[1], 16) << 64
    code = code_of(made.binary, "mandelbrot")
    assert list(code.encodings) == encodings
    assert list(code.lines) == lines
    assert None in lines
