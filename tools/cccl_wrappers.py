"""Counts which instructions of CCCL's `cuda::ptx` are decoded here.

Each wrapper of an instruction is a function with `asm` statements, and a comment that says from
which architecture on there is the instruction. Every statement becomes a line of a kernel, with
registers for its operands; where ptxas takes the line in a version of PTX (`ptxas_forms.VERSION`,
or the one that the command names), it has to be decoded. Run it by `make test-ptxas`. Its exit
status is 1 where fewer are than `REQUIRED` says.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from ptxas_forms import VERSION, is_decoded, taken

REQUIRED = {"sm_90": 0.95, "sm_90a": 0.95, "sm_100a": 0.85}
"""By architecture on which the instructions are new, the share that has to be decoded."""

NEW_ON = {"SM_90": "sm_90", "SM_90a": "sm_90a", "SM_100": "sm_100a", "SM_100a": "sm_100a"}

COMMENTED = re.compile(r"/\*(.*?)\*/(.*?)(?=/\*|\Z)", re.DOTALL)
STATEMENT = re.compile(r"\basm\s*(?:volatile)?\s*\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\)"
                       r"|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)\s*;")  # fmt: skip
TEXT = re.compile(r'\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
CONSTRAINT = re.compile(r'"[=+]?([rlhfdqn])"')
KINDS = {"r": "r", "l": "rd", "h": "h", "f": "f", "d": "fd", "q": "q"}
CONSTANTS = ("0", "1", "8", "32", "128")
"""What stands for a constant operand: the first of these that ptxas takes."""


def instructions(statement: str) -> list[str]:
    """Return the lines of PTX that an `asm` statement may be, by its constant operands."""
    found = TEXT.match(statement)
    assert found is not None
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]))
    text = re.sub(r"//.*", "", text.replace(r"\n", " ").replace(r"\t", " ")).strip()
    constraints = CONSTRAINT.findall(statement[found.end() :])
    lines: list[str] = []
    for constant in CONSTANTS if "n" in constraints else CONSTANTS[:1]:
        line = text
        for number, kind in reversed(list(enumerate(constraints))):
            operand = constant if kind == "n" else f"%{KINDS[kind]}{number + 1}"
            line = line.replace(f"%{number}", operand) if number > 9 else re.sub(
                rf"%{number}(?!\d)", operand, line
            )  # fmt: skip
        lines.append(line.replace("%%", "%"))
    return lines


def wrappers(folder: Path) -> dict[str, list[list[str]]]:
    """Return the statements of all wrappers, by the architecture on which they are new."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for file in sorted(folder.glob("*.h")):
        for comment, code in COMMENTED.findall(file.read_text("utf-8")):
            architectures = re.findall(r"SM_\d+[af]?", comment)
            target = NEW_ON.get(architectures[0]) if architectures else None
            if target is not None:
                found[target] += [instructions(each) for each in STATEMENT.findall(code)]
    return found


def instruction(line: str) -> str:
    """Return the opcode of the instruction that a line is about: other ones convert its results."""
    opcodes = re.findall(r"[a-z]\w+\.[\w.:]+", line)
    return next(each for each in opcodes if not each.startswith(("selp", "cvt")))


def main() -> int:
    """Print the count for each architecture, and what is not decoded."""
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: cccl_wrappers.py PTXAS FOLDER [VERSION]")
    ptxas, folder = sys.argv[1], Path(sys.argv[2])
    version = sys.argv[3] if len(sys.argv) == 4 else VERSION
    failed = False
    for target, statements in wrappers(folder).items():
        lines = {line for statement in statements for line in statement}
        accepted = set(taken(ptxas, target, sorted(lines), version))
        known = [next((line for line in each if line in accepted), None) for each in statements]
        entries = [line for line in known if line is not None]
        absent = [line for line in entries if not is_decoded(target, line, version)]
        share = 1 - len(absent) / len(entries)
        print(
            f"{target}: of {len(statements)} statements ptxas takes {len(entries)},"
            f" {share:.1%} of them are decoded"
        )
        names = Counter(instruction(line) for line in absent)
        for name, count in names.most_common(40):
            print(f"  {count:4} {name}")
        failed |= share < REQUIRED[target]
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
