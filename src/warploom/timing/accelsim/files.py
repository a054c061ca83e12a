"""Reads and writes the files of a trace in Accel-Sim's format: `kernelslist.g` with the name of
each kernel's file, and `kernel-N.traceg` with a head and the instructions of each block, warp by
warp.

Source: accel-sim-framework, gpu-simulator/trace-parser.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from warploom.core.errors import Dim3, WarploomError
from warploom.core.input_files import read_text, reading
from warploom.timing.accelsim.lines import TracedInstruction, parse_line

LONGEST_LINE = 1 << 20
"""Characters of a line that are read: a packed file can hold a line of any length."""

LIST = "kernelslist.g"
FIRST_WITHOUT_POSITIONS = 3
"""The first version of traces whose lines do not begin with a block and a warp."""

COLUMNS = (
    "PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?]"
    " [mem_addresses]"
)


@dataclass(frozen=True)
class KernelHead:
    """Holds the head of a kernel's trace. `shared` is the size of a block's shared memory in bytes,
    `registers` counts those of a thread, `binary` is the compute capability times ten, `number` the
    kernel's number in the trace; `shared_base` and `local_base` are where shared and local memory
    begin in generic addresses. `has_lines`: each instruction begins with its source line."""

    name: str
    grid: Dim3
    block: Dim3
    shared: int
    registers: int
    binary: int
    number: int = 1
    shared_base: int = 0x7F00_0000_0000
    local_base: int = 0x7F00_0200_0000
    tracer: str = "none (Warploom)"
    version: int = 4
    has_lines: bool = False

    def __str__(self) -> str:
        """Returns the head as the lines of a trace's file, `-key = value`."""
        rows = {
            "kernel name": self.name,
            "kernel id": self.number,
            "grid dim": "({},{},{})".format(*self.grid),
            "block dim": "({},{},{})".format(*self.block),
            "shmem": self.shared,
            "nregs": self.registers,
            "binary version": self.binary,
            "cuda stream id": 0,
            "shmem base_addr": f"{self.shared_base:#018x}",
            "local mem base_addr": f"{self.local_base:#018x}",
            "nvbit version": self.tracer,
            "accelsim tracer version": self.version,
            "enable lineinfo": int(self.has_lines),
        }
        return "".join(f"-{key} = {value}\n" for key, value in rows.items())


@dataclass(frozen=True)
class TracedBlock:
    """Holds the instructions of a thread block, by warp."""

    index: Dim3
    warps: Mapping[int, tuple[TracedInstruction, ...]]


def write_kernel(path: Path, head: KernelHead, blocks: Iterable[TracedBlock]) -> None:
    """Writes the trace of a kernel as text to `path`, replacing a file there: the head, a comment
    that names the columns, then each block between `#BEGIN_TB` and `#END_TB`. A block has its
    index, and for each warp its number, its count of instructions, and a line for each. Raises
    OSError."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{head}\n#traces format = {COLUMNS}\n\n")
        for block in blocks:
            file.write("\n#BEGIN_TB\n\nthread block = {},{},{}\n".format(*block.index))
            for warp, instructions in block.warps.items():
                file.write(f"\nwarp = {warp}\ninsts = {len(instructions)}\n")
                file.writelines(f"{instruction} \n" for instruction in instructions)
            file.write("\n#END_TB\n")


def write_list(folder: Path, kernels: Iterable[str]) -> None:
    """Writes the names of the kernels' trace files, one a line, to `kernelslist.g` in a folder,
    replacing a file there. Raises OSError."""
    (folder / LIST).write_text("".join(f"{name}\n" for name in kernels), encoding="utf-8")


def kernel_files(path: str | Path) -> tuple[Path, ...]:
    """Returns the paths of the kernels' trace files: `path` itself, if it ends in .traceg or
    .traceg.xz. Otherwise `path` is a list of files, or a folder with a list `kernelslist.g`: each
    line that begins with "kernel" names a file beside the list; other lines are ignored. Only the
    list is opened: raises WarploomError if it cannot be read or names no kernel."""
    location = Path(path)
    kernel_list = location / LIST if location.is_dir() else location
    if kernel_list.name.endswith((".traceg", ".traceg.xz")):
        return (kernel_list,)
    names = read_text(kernel_list).split("\n")
    files = tuple(kernel_list.parent / name.strip() for name in names if name.startswith("kernel"))
    if not files:
        raise WarploomError(f"{kernel_list} does not list any kernel")
    return files


def read_kernel(path: Path) -> tuple[KernelHead, Iterator[TracedBlock]]:
    """Returns the head of a kernel's trace, read at once, and an iterator that reads its blocks
    lazily. Raises WarploomError for a file that is unreadable or malformed; in the blocks, only on
    iteration."""
    lines = _lines(path)
    head = _read_head(path, lines)
    return head, _read_blocks(path, head, lines)


def _lines(path: Path) -> Iterator[str]:
    """Yields the non-empty lines of a trace's file, stripped; a file ending in .xz is decompressed.
    Raises WarploomError if the file cannot be read."""
    with reading(path, "cannot be read as a trace"), _opened(path) as file:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise ValueError(f"a line has more than {LONGEST_LINE:,} characters")
            if line.strip():
                yield line.strip()


def _opened(path: Path) -> TextIO:
    """Opens a trace for reading as UTF-8; decompresses it if its suffix is .xz. Raises OSError."""
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _read_head(path: Path, lines: Iterator[str]) -> KernelHead:
    """Returns the head of a kernel's trace, from lines `-key = value`, consuming the lines up to
    and with the first that begins with "#". The kernel's id, the bases of shared and local memory,
    versions of tracer and trace, and line numbers may be missing (1, 0, "", 1, False). Raises
    WarploomError if another field is missing, or a value is malformed."""
    values: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            break
        key, _, value = line.removeprefix("-").partition("=")
        values[key.strip()] = value.strip()
    try:
        return KernelHead(
            values["kernel name"],
            _triple(values["grid dim"]),
            _triple(values["block dim"]),
            int(values["shmem"]),
            int(values["nregs"]),
            int(values["binary version"]),
            int(values.get("kernel id", "1")),
            int(values.get("shmem base_addr", "0"), 0),
            int(values.get("local mem base_addr", "0"), 0),
            values.get("nvbit version", ""),
            int(values.get("accelsim tracer version", "1")),
            values.get("enable lineinfo", "0") == "1",
        )
    except (KeyError, ValueError) as error:
        raise WarploomError(
            f"{path} does not have a valid kernel trace header: {error} is missing or wrong"
        ) from None


def _triple(text: str) -> Dim3:
    """Returns the three integers of a text such as "(1,2,3)" or "1,2,3". Raises ValueError for
    others."""
    x, y, z = (int(part) for part in text.strip("()").split(","))
    return x, y, z


_MARK = re.compile(r"(thread block|warp|insts) = ([\d,]+)")


def _read_blocks(path: Path, head: KernelHead, lines: Iterator[str]) -> Iterator[TracedBlock]:
    """Yields the blocks of a kernel's trace, each once its `#END_TB` is read, from the `lines`
    after its head; other comments, and marks such as the count of instructions, are skipped. Raises
    WarploomError for malformed instructions, a block's index that is not three numbers, a warp's
    number that is not one, instructions outside of a warp, warps outside of a block, and a file
    that ends inside of a block."""
    index: Dim3 | None = None
    warps: dict[int, list[TracedInstruction]] = {}
    warp = -1
    has_position = head.version < FIRST_WITHOUT_POSITIONS
    for line in lines:
        mark = _MARK.fullmatch(line)
        if line == "#END_TB" and index is not None:
            yield TracedBlock(
                index, {number: tuple(instructions) for number, instructions in warps.items()}
            )
            index, warps, warp = None, {}, -1
        elif mark is None and not line.startswith("#"):
            if warp < 0:
                raise WarploomError(f"{path} has an instruction outside a warp: {line!r}")
            warps[warp].append(parse_line(line, has_line=head.has_lines, has_position=has_position))
        elif mark is not None and mark[1] != "insts":
            try:
                if mark[1] == "thread block":
                    index = _triple(mark[2])
                    continue
                warp = int(mark[2])
            except ValueError:
                raise WarploomError(f"{path} has a malformed number: {line!r}") from None
            if index is None:
                raise WarploomError(f"{path} has a warp outside a block: {line!r}")
            warps[warp] = []
    if index is not None:
        raise WarploomError(f"{path} ends inside block {index}")
