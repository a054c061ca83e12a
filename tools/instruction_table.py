"""Writes docs/instructions.md: every instruction of the PTX manual, and whether it runs here.

`python tools/instruction_table.py` after a change of the instruction tables; a test compares.
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.isa.spec import ABSENT, FORMS, OpSpec, Slot

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "instructions.md"
MACHINE_TESTS = ROOT / "tests" / "machine"
EXECUTING = (
    *("test_every_form_agrees", "test_every_atomic_agrees", "test_every_access_agrees"),
    *("test_every_warp_form_agrees", "test_every_texel_form_agrees"),
    *("test_every_group_form_agrees", "test_every_tensor_form_agrees"),
    "test_every_tensor_memory_form_agrees",
)
"""Each executes all forms that it lists on both machines, with every value of every modifier but
the shapes of `wgmma`, which tests/programs/test_warp_groups.py has, and fails where the machines
counted no lane that executed one."""

UNCOUNTED = {
    "call": "test_calls_return",
    "ret": "test_calls_return",
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), "test_the_stack_is_the_same"),
    "trap": "test_a_trap_stops_the_kernel",
}
"""What no count shows, for others stand for it or it ends the kernel: the test of it by name."""

WHERE_UNCOUNTED = "tests/machine/test_every_warp_form_agrees.py"

MOST_SHOWN = 24

MANUAL = {
    "Integer Arithmetic": "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind"
    " fns brev bfe bfi bmsk szext dp4a dp2a",
    "Extended-Precision Integer Arithmetic": "addc subc madc",
    "Floating Point": "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    "Comparison and Selection": "set setp selp slct",
    "Logic and Shift": "and or xor not cnot lop3 shf shl shr",
    "Data Movement and Conversion": "mov shfl prmt ld ldu st multimem prefetch prefetchu"
    " applypriority discard createpolicy isspacep cvta cvt mapa getctarank cp tensormap",
    "Texture": "tex tld4 txq istypep",
    "Surface": "suld sust sured suq",
    "Control Flow": "bra brx call ret exit",
    "Parallel Synchronization and Communication": "bar barrier membar fence atom red vote match"
    " activemask redux griddepcontrol elect mbarrier clusterlaunchcontrol",
    "Warp Level Matrix": "wmma mma ldmatrix stmatrix movmatrix",
    "Asynchronous Warpgroup Level Matrix": "wgmma",
    "TensorCore 5th Generation": "tcgen05",
    "Stack Manipulation": "stacksave stackrestore alloca",
    "Video": "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2"
    " vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    "Miscellaneous": "brkpt nanosleep pmevent trap setmaxnreg",
}
"""Names of instructions by section of the manual (PTX ISA 9.x, "Instruction Set"). A name that is
not here stands in the section of the one that is declared before it."""

MISSING_FORMS = {
    "tex and tld4 of textures with several samples (.2dms, .a2dms)": "CUDA cannot"
    " create such textures",
    "tex and tld4 with a depth comparison": "CUDA cannot create depth textures",
    "fma.rn.oob": "the manual does not state the bits of the NaN for out-of-bounds values",
    "cvt to and from .s2f6x2 and .ue5m3x2": "not implemented: only sm_100a and its family support"
    " them, and compilers emit them only on request",
    "isspacep.const": "constants have no address window: their generic addresses are in global"
    " memory",
    "red.async to global memory": "not implemented: only sm_100 and later support it",
    "cp.async.bulk with .ignore_oob": "not implemented",
    "cp.async.bulk.tensor of 6-bit elements for sm_103a and sm_107": "boxes and coordinates"
    " must obey the rules for sm_100",
    "cp.async.bulk.tensor in the modes im2col::w and im2col::w::128": "a copy faults if a"
    " halo extends beyond the bounding box, because the manual describes the pixels of such a halo"
    " only in figures",
    "mad.f32 without a rounding modifier": "only for targets before sm_20",
}
"""Forms of instructions that run otherwise."""


def table() -> str:
    """The whole page."""
    lines = [
        "# Instructions",
        "",
        "`tools/instruction_table.py` writes this page from the instruction tables. Each row shows",
        "a syntax line, the values of its modifiers, and the test that executes it with each of",
        "these values in the compiled engine and on the reference machine. Any other opcode or",
        "modifier is an error, and the message names the line. An instruction that is newer than",
        "the module's `.version` or `.target` is also an error, as in ptxas.",
        "",
    ]
    for section, names in sections().items():
        lines += [f"## {section}", ""]
        running = [name for name in names if name in FORMS]
        if running:
            lines += [
                "| syntax | operands | what it does | executed by |",
                "| --- | --- | --- | --- |",
            ]
            lines += [row(spec) for name in running for spec in FORMS[name]]
            lines.append("")
        absent = [name for name in names if name not in FORMS]
        lines += [f"- `{name}` does not run: not built yet." for name in absent]
        lines += [""] if absent else []
    lines += ["## Forms that do not run", ""]
    lines += [f"- {form}: {reason}." for form, reason in absent_forms().items()]
    lines += [f"- `{form}`: {reason}." for form, reason in MISSING_FORMS.items()]
    return "\n".join(lines) + "\n"


def absent_forms() -> dict[str, str]:
    """Every syntax line that is known and refused, with its reason; lines that differ only in the
    values of modifiers are one."""
    return {f"`{spec.syntax}`": spec.doc for forms in ABSENT.values() for spec in forms}


def sections() -> dict[str, list[str]]:
    """All names by section: those of the manual, then the others of its section."""
    names = {section: names.split() for section, names in MANUAL.items()}
    of_name = {name: section for section, entries in names.items() for name in entries}
    section = next(iter(names))
    for name in FORMS:
        section = of_name.get(name, section)
        if name not in of_name:
            names[section].append(name)
    return names


def row(spec: OpSpec) -> str:
    formula = re.split(r"\s+PTX ISA", " ".join(spec.doc.split()))[0].replace("|", "\\|")
    operands = ", ".join(o.name for o in spec.operands if not o.implicit)
    test = executed_by(spec)
    shown = f"`{test}`" if test else "accepted, no test"
    return f"| {syntax(spec)} | {operands} | {formula} | {shown} |"


def syntax(spec: OpSpec) -> str:
    """The syntax line, and below it what its slots can be."""
    shown = "".join(part(slot) for slot in spec.slots if not at_operand(slot))
    chosen = [slot for slot in spec.slots if slot.choices != (slot.name,)]
    lines = [f"`{spec.name}{shown}`"]
    for slot in chosen:
        where = f"after `{slot.name[0]}`" if at_operand(slot) else f".{slot.name}"
        lines.append(f"{where}: {values(slot)}")
    return "<br>".join(lines)


def part(slot: Slot) -> str:
    return f"{{.{slot.name}}}" if slot.optional else f".{slot.name}"


def at_operand(slot: Slot) -> bool:
    """Whether the text writes it at an operand."""
    return "=" in slot.choices[0] or slot.choices[0].startswith("-")


def values(slot: Slot) -> str:
    names = [choice.partition("=")[2] or choice for choice in slot.choices]
    if len(names) > MOST_SHOWN:
        return f"{names[0]} to {names[-1]} ({len(names)})"
    return " ".join(names)


def executed_by(spec: OpSpec) -> str | None:
    """The test that executes a form."""
    return WHERE_UNCOUNTED if spec.name in UNCOUNTED else executed().get(spec)


@cache
def executed() -> dict[OpSpec, str]:
    """The forms that the tests execute, as they list them."""
    sys.path.insert(0, str(MACHINE_TESTS))
    try:
        modules = {name: importlib.import_module(name) for name in EXECUTING}
    finally:
        sys.path.remove(str(MACHINE_TESTS))
    return {
        spec: f"tests/machine/{name}.py"
        for name, module in modules.items()
        for spec in (*module.SPECS, *getattr(module, "OLD_SPECS", ()))
    }


if __name__ == "__main__":
    TARGET.write_text(table(), "utf-8")
