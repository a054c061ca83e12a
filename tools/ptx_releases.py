"""Compares what instructions need, version of PTX and target, with what ptxas asks for.

`python tools/ptx_releases.py PTXAS` spells instructions from the tables, thousands of them, leaves
out those that this ptxas does not read whatever the version, and assembles the others for versions
and targets that are too old, until it has no more to ask for. It prints where the tables ask for
more (a program that ptxas takes would be refused) or for less. A newer ptxas reads more.
"""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.core.types import ScalarType
from warploom.isa.since import OLDEST, Release
from warploom.isa.spec import FORMS, OperandSpec, Operation, OpSpec, Unit, UnknownOpcode, decode
from warploom.isa.targets import needed
from warploom.isa.versions import needed_version

NEWEST = ("9.1", "sm_103a")
"""For which every instruction that ptxas reads is assembled."""

LINES = 1500
"""Instructions in one text."""

MOST = 300
"""Opcodes drawn of a form that has more."""

HEAD = """.version {version}
.target {target}
.entry k() {{
.reg .pred p<32>; .reg .b16 h<32>; .reg .b32 r<32>; .reg .b64 d<32>; .reg .b128 q<32>;
.reg .f32 f<32>; .reg .f64 e<32>;
"""
PLAIN = {"address": "[d1]", "selector": "0", "zero": "0", "bytes": "16"}
PLAIN |= {"multiplicand": "d1", "sign": "1", "transposition": "0", "groups": "0"}
PARTS = ("=b0", "=h1", "=b20")
"""Of the many parts that a video operand can be, these are spelt."""


def opcodes(spec: OpSpec, rng: random.Random) -> Iterator[Operation]:
    """Opcodes of a form: all, or every choice of each modifier and some more."""
    columns = [
        [
            *(c for c in s.choices if "=" not in c or c.endswith(PARTS)),
            *([""] if s.optional else []),
        ]
        for s in spec.slots
    ]
    longest = max(map(len, columns), default=1)
    picks = [tuple(c[row % len(c)] for c in columns) for row in range(longest)]
    every = list(itertools.islice(itertools.product(*columns), MOST + 1))
    if len(every) > MOST:
        every = [tuple(rng.choice(c) for c in columns) for _ in range(MOST)]
    for pick in dict.fromkeys([*picks, *every]):
        try:
            operation = decode(".".join([spec.name, *filter(None, pick)]))
        except UnknownOpcode:
            continue
        if operation.spec is spec:
            yield operation


def instructions(operation: Operation) -> Iterator[str]:
    """An opcode with all of its operands, and without the optional ones."""
    shown = [form for form in operation.spec.operands if not form.implicit]
    for forms in (shown, [form for form in shown if not form.optional]):
        operands = [operand(operation, form, place) for place, form in enumerate(forms)]
        if None not in operands:
            yield f"{operation.opcode} {', '.join(map(str, operands))};"


def operand(operation: Operation, form: OperandSpec, place: int) -> str | None:
    """Text for an operand; None for what has no type of its own."""
    if form.type in PLAIN:
        return PLAIN[form.type]
    type = operation.type_of(form)
    if type is None:
        return None
    lanes = {"v2": 2, "v4": 4, "v8": 8}.get(operation.modifiers.text("vec", ""), 1)
    count = max(operation.count_of(form), lanes if form.type == "type" else 1)
    first = 8 * place % 24
    names = [f"{prefix(type)}{first + number}" for number in range(count)]
    before, behind = operation.decorations.get(form.name, ("", ""))
    return f"{before}{names[0]}{behind}" if count == 1 else f"{{{', '.join(names)}}}"


def prefix(type: ScalarType) -> str:
    """What names of registers of a type begin with."""
    if type.is_float and type.bits >= 32:
        return {32: "f", 64: "e"}[type.bits]
    return {1: "p", 4: "h", 8: "h", 16: "h", 32: "r", 64: "d", 128: "q"}.get(type.bits, "h")


def complaints(ptxas: str, lines: list[str], version: str, target: str) -> dict[int, list[str]]:
    """The errors of ptxas, by the number of the instruction."""
    head = HEAD.format(version=version, target=target)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "k.ptx"
        source.write_text(head + "\n".join(lines) + "\nret;\n}\n", "utf-8")
        command = [ptxas, str(source), "-arch", NEWEST[1], "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[int, list[str]] = defaultdict(list)
    for line, message in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr):
        number = int(line) - head.count("\n") - 1
        if number in range(len(lines)):  # the head has errors of its own where it is too new
            found[number].append(message)
    return found


def chunks(lines: list[str]) -> Iterator[list[str]]:
    """The lines in groups of `LINES`."""
    for start in range(0, len(lines), LINES):
        yield lines[start : start + LINES]


def asked(ptxas: str, lines: list[str]) -> dict[str, tuple[Release, Release]]:
    """The version and the target that ptxas asks for, by instruction, for those that it reads."""
    found: dict[str, tuple[Release, Release]] = {}
    for chunk in chunks(lines):
        wrong = complaints(ptxas, chunk, *NEWEST)
        found |= {line: (OLDEST, OLDEST) for n, line in enumerate(chunk) if n not in wrong}
    pending = list(found)
    while pending:
        by_release: dict[tuple[Release, Release], list[str]] = defaultdict(list)
        for line in pending:
            by_release[found[line]].append(line)
        pending = []
        for releases, group in by_release.items():
            for chunk in chunks(group):
                version, target = (
                    f"{a}{dot}{b}" for (a, b), dot in zip(releases, (".", ""), strict=True)
                )
                wrong = complaints(ptxas, chunk, version, f"sm_{target}")
                for number, messages in wrong.items():
                    more = raised(releases, messages)
                    if more != releases:
                        found[chunk[number]] = more
                        pending.append(chunk[number])
    return found


def raised(releases: tuple[Release, Release], messages: list[str]) -> tuple[Release, Release]:
    """The version and the target that errors ask for, where they are newer."""
    version, target = releases
    for message in messages:
        if wanted := re.search(r"requires PTX ISA \.version (\d+)\.(\d+)", message):
            version = max(version, (int(wanted[1]), int(wanted[2])))
        elif wanted := re.search(r"requires \.target (?:sm_)?(\d+)(\d)", message):
            target = max(target, (int(wanted[1]), int(wanted[2])))
    return version, target


def main(ptxas: str) -> None:
    rng = random.Random(0)
    spelt: dict[str, Operation] = {}
    for spec in itertools.chain.from_iterable(FORMS.values()):
        if spec.unit not in (Unit.TEXTURE, Unit.CONTROL):
            for operation in opcodes(spec, rng):
                spelt |= dict.fromkeys(instructions(operation), operation)
    found = asked(ptxas, list(spelt))
    differing: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], str] = {}
    for line, releases in found.items():
        ours = needed_version(spelt[line]), needed(spelt[line])
        for what, mine, other in zip(("version", "target"), ours, releases, strict=True):
            if mine != other:
                key = (spelt[line].name, what, f"{mine[0]}.{mine[1]}", f"{other[0]}.{other[1]}")
                differing[key] += 1
                example.setdefault(key, line)
    print(f"{len(found):,} of {len(spelt):,} instructions read")
    for (name, what, mine, other), count in sorted(differing.items()):
        shown = example[name, what, mine, other]
        print(f"{name}: {what} {mine} here, ptxas {other} ({count}), such as {shown}")


if __name__ == "__main__":
    main(sys.argv[1])
