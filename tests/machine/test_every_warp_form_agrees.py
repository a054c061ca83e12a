"""Checks every form of collective, control-flow and matrix instructions on both machines: results
are equal bit by bit."""

from __future__ import annotations

import random

import pytest
from form_kernels import Kernel, assert_agreement, assert_valid, covering, run
from parts import some_now
from test_every_tensor_form_agrees import SPECS as TENSOR_SPECS

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.core.errors import DeviceTrap
from warploom.isa.spec import FORMS, Operation, Unit
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.reference.machine import ReferenceEngine

STACK = ("alloca", "stacksave", "stackrestore")
GONE = ("call", "ret", "trap", *STACK)
"""What no counter of a kernel that ends can show: calls and the stack, which other instructions
stand for, and what stops the kernel."""

ELSEWHERE = ("wgmma", "tcgen05")
"""What `test_every_group_form_agrees` and `test_every_tensor_memory_form_agrees` are for."""

OLD_SPECS = [
    spec
    for name in ("shfl", "vote")
    for spec in FORMS[name]
    if all(slot.name != "sync" for slot in spec.slots)
]
"""`shfl` and `vote` without `.sync`, which newer versions of PTX lack."""

UNITS = (Unit.WARP, Unit.CONTROL, Unit.BARRIER, Unit.MATRIX)
SPECS = [
    spec
    for forms in FORMS.values()
    for spec in forms
    if spec.unit in UNITS or spec.name in ("membar", "fence") or "query_cancel" in spec.syntax
    if spec.name not in (*GONE, *ELSEWHERE)
    if spec not in (*TENSOR_SPECS, *OLD_SPECS)
    if spec.unit in UNITS or all(operand.type != "address" for operand in spec.operands)
]
KERNELS = 8


def add(kernel: Kernel, operation: Operation) -> None:
    """Adds one instruction, with operands of the kinds that it has."""
    name, spec = operation.name, operation.spec
    if name in ("bra", "brx", "exit"):
        _jump(kernel, operation)
        return
    if name in ("bar", "barrier") and "arrive" in operation.text:
        kernel.lines.append("mov.u32 %i, %warpid; setp.eq.u32 %q, %i, 0")
        kernel.at[kernel.size] = operation.text
        kernel.lines += [f"@%q {operation.text} 3, 64", "@!%q bar.sync 3, 64"]
        return
    shown = [_operand(kernel, operation, form.name) or "" for form in spec.shown]
    for place, form in enumerate(spec.shown):
        shown[place] = shown[place] or kernel.operand(operation, form)
    if (
        shown
        and "{" not in shown[0]
        and (name in ("shfl", "elect") or "match.all" in operation.text)
    ):
        shown[0] += "|%q"
    if name in ("bar", "barrier") and spec.destinations:
        shown = [shown[0], "4", "64", "%p1"]
    kernel.add(operation, shown)
    if name in ("wmma", "stmatrix") and not spec.destinations:
        space = operation.modifiers.text("space", "") or "shared"
        for offset in range(0, 64, 8):
            at = "%cell" if space.startswith("shared") else "%own"
            kernel.lines.append(f"ld.{space.partition('::')[0]}.b64 %at, [{at}+{offset}]")
            kernel.put("b64", "%at")


def _jump(kernel: Kernel, operation: Operation) -> None:
    """Adds a branch over an instruction that would change a result; with .uni all lanes branch."""
    label = f"L{len(kernel.lines)}"
    guard = "" if "uni" in operation.modifiers else "@%p0 "
    kernel.at[kernel.size] = operation.text
    kernel.lines.append("mov.u32 %i, 1")
    if operation.name == "brx":
        kernel.lines.append(f"T{label}: .branchtargets {label}, E{label};")
        kernel.lines.append(f"and.b32 %t, {'%r0' if guard else '1'}, 1")
        kernel.lines.append(f"{operation.text} %t, T{label}")
    else:
        kernel.lines.append(
            f"{guard}{operation.text}{'' if operation.name == 'exit' else ' ' + label}"
        )
    kernel.lines += [f"{label}:", "add.u32 %i, %i, 2", f"E{label}:"]
    kernel.put("b32", "%i")


def _operand(kernel: Kernel, operation: Operation, name: str) -> str | None:
    """Returns the text of an operand with this name; None for a register of its type."""
    if operation.name in ("bar", "barrier"):
        return {"membermask": "0xFFFFFFFF", "a": "4", "b": "64"}.get(name)
    if name == "membermask":
        return "0xFFFFFFFF"
    if operation.name == "wmma" and name in ("a", "b") and "atype" not in operation.modifiers:
        # Several lanes hold the same element of half precision, so that they hold the same.
        kernel.lines.append(f"shfl.sync.idx.b32 %t, {kernel.register(32)}, 0, 31, -1")
        return "{" + ", ".join(["%t"] * 8) + "}"
    if name == "f":
        return "0"
    if name in ("at_a", "at_b"):
        return kernel.rng.choice(("{0, 1}", "{%h0, %h1}"))
    if name == "stride":
        return "32"
    if name == "p":
        return _matrix(kernel, operation)
    if operation.name in ("nanosleep", "pmevent"):
        return "1"
    if operation.name == "setmaxnreg":
        return "40"
    if operation.name == "alloca":
        return {"size": "32", "alignment": "16"}.get(name)
    if operation.name == "stackrestore":
        type = operation.modifiers.text("type", "")
        kernel.lines.append(f"stacksave.{type} %o{type[1:]}_1")
        return f"%o{type[1:]}_1"
    return None


def _matrix(kernel: Kernel, operation: Operation) -> str:
    """Returns a matrix in memory that all lanes of a warp access: the address of its rows, or of
    its start."""
    if operation.name in ("ldmatrix", "stmatrix"):
        if "space" in operation.modifiers:
            return "[%cell]"
        kernel.lines += ["cvt.u64.u32 %at, %cell", "cvta.shared.u64 %at, %at"]
        return "[%at]"
    space = operation.modifiers.text("space", "")
    kernel.lines += [
        "mov.u32 %i, %tid.x",
        "and.b32 %i, %i, 32",
        "mov.u32 %t, cells",
        "mad.lo.u32 %i, %i, 128, %t",
    ]
    if space == "global":
        kernel.lines += [
            "mov.u32 %i, %tid.x",
            "and.b32 %i, %i, 32",
            "mad.wide.u32 %at, %i, 256, %base",
        ]
        return "[%at]"
    if space:
        return "[%i]"
    kernel.lines += ["cvt.u64.u32 %at, %i", "cvta.shared.u64 %at, %at"]
    return "[%at]"


def old_kernel(rng: random.Random) -> Kernel:
    """Returns the kernel for a target and a version of PTX that have what newer ones lack."""
    return kernel(rng, "sm_60", "6.3")


def kernel(rng: random.Random, target: str = "sm_120a", version: str = "") -> Kernel:
    """Returns a kernel with random words in shared memory, for a target and a version of PTX that
    have all of these instructions."""
    made = Kernel(rng, target=target, version=version)
    made.lines += [f"st.shared.b64 [%cell+{i}], {made.register(64)}" for i in range(0, 128, 8)]
    made.lines.append("bar.sync 0")
    return made


def kernel_of(part: int) -> Kernel:
    """Returns a kernel in which all forms of a part occur."""
    rng = random.Random(part)
    made = kernel(rng)
    for spec in sorted(SPECS[part::KERNELS], key=lambda spec: spec.name == "exit"):
        for operation in covering(spec, rng):
            add(made, operation)
    return made


@pytest.mark.parametrize("part", some_now(range(KERNELS), 5))
def test_both_machines_do_the_same(part: int) -> None:
    assert_agreement(kernel_of(part), SPECS[part::KERNELS], part)


def test_all_programs_are_valid() -> None:
    """Parses those of the nightly job, too."""
    assert_valid(kernel_of(part).text() for part in range(KERNELS))


def test_both_machines_do_the_same_with_what_has_ended() -> None:
    rng = random.Random(0)
    made = old_kernel(rng)
    for spec in OLD_SPECS:
        for operation in covering(spec, rng):
            add(made, operation)
    assert_agreement(made, OLD_SPECS, 0)


MACHINES = (ReferenceEngine(), CompiledEngine())
TWICE = """
.func (.param .b32 d) twice (.param .b32 a)
{{
\t.reg .b32 %v;
\tld.param.b32 %v, [a];
\tadd.u32 %v, %v, %v;
\tst.param.b32 [d], %v;
\tret{};
}}
"""


@pytest.mark.parametrize("uni", ["", ".uni"])
def test_calls_return(uni: str) -> None:
    """Doubles a number by a function and by an addition, on both machines."""
    made = Kernel(random.Random(1), functions=TWICE.format(uni))
    made.lines += ["{", ".param .b32 a", ".param .b32 d", "st.param.b32 [a], %r0"]
    made.lines += [f"call{uni} (d), twice, (a)", "ld.param.b32 %i, [d]", "}"]
    made.put("b32", "%i")
    made.lines.append("add.u32 %i, %r0, %r0")
    made.put("b32", "%i")
    for machine in MACHINES:
        called, added = run(made, 1, machine).results.T
        assert called.any()
        assert (called == added).all()


def test_a_trap_stops_the_kernel() -> None:
    made = Kernel(random.Random(1), lines=["@%two trap"], size=8)
    for machine in MACHINES:
        with pytest.raises(DeviceTrap):
            run(made, 1, machine)


def test_the_stack_is_the_same() -> None:
    made = Kernel(random.Random(1))
    for name in STACK:
        for spec in FORMS[name]:
            for operation in covering(spec, made.rng):
                add(made, operation)
    first, second = (run(made, 1, machine).results for machine in MACHINES)
    assert first.shape[1] == 4  # two types of `alloca` and of `stacksave`
    assert (first == second).all()
