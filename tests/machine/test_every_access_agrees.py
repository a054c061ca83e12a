"""Checks every form of instructions that move bytes or hint caches, on both machines: results are
equal bit by bit."""

from __future__ import annotations

import random

import pytest
from form_kernels import VECTORS, Kernel, assert_agreement, assert_valid, covering
from parts import some_now
from random_programs import statement
from test_every_tensor_form_agrees import SPECS as TENSOR_SPECS

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.isa.spec import FORMS, Operation, OpSpec

NAMES = (
    *("ld", "ldu", "st", "prefetch", "prefetchu", "applypriority", "discard", "createpolicy"),
    *("cp", "cvta", "isspacep", "mov", "mbarrier", "fence"),
)


def is_access(spec: OpSpec) -> bool:
    """Returns true for operations that access memory by an address, or order copies."""
    has_address = any(operand.type == "address" for operand in spec.operands)
    if spec.name in ("mbarrier", "cp"):
        return spec not in TENSOR_SPECS
    if spec.name == "isspacep":
        return spec.semantics is None
    if spec.name == "mov":
        return any(slot.choices == ("b128",) for slot in spec.slots)
    return has_address or spec.name == "cvta" or spec.syntax.startswith("red.async")


SPECS = [
    spec
    for name in (*NAMES, "red")
    for spec in FORMS[name]
    if is_access(spec) and (name != "red" or "async" in spec.syntax)
]
KERNELS = 8

ECHO = """
.func (.param .align 32 .b8 back[32]) echo (.param .align 32 .b8 given[32])
{
\t.reg .b64 %a, %b;
\tld.param.v2.b64 {%a, %b}, [given];
\tst.param.v2.b64 [back], {%a, %b};
\tld.param.v2.b64 {%a, %b}, [given+16];
\tst.param.v2.b64 [back+16], {%a, %b};
\tret;
}
"""
ALL_WORDS = tuple(range(0, 32, 8))


def legal(operation: Operation) -> bool:
    """Returns true for at most 32 bytes at once, and those of 32 or 64 bits; 128 bits only alone
    (PTX ISA, ld)."""
    m = operation.modifiers
    if operation.name not in ("ld", "ldu", "st") or "type" not in m:
        return True
    count = VECTORS.get(m.text("vec", ""), 1)
    bits = m.scalar().bits
    return count * bits <= (256 if count < 8 or bits == 32 else 0) and (bits < 128 or count == 1)


def place(operation: Operation, name: str = "space") -> str:
    """Returns the address of the thread's 32 bytes in a space."""
    space = operation.modifiers.text(name, "").partition("::")[0]
    return {
        "": "%own", "global": "%own", "shared": "%cell", "local": "own", "const": "fixed+32",
        "param": "given+32",
    }[space]  # fmt: skip


def add(kernel: Kernel, operation: Operation) -> None:
    """Adds one instruction, its preparation, and stores of its effects."""
    name, m = operation.name, operation.modifiers
    if name in ("ld", "ldu", "st") and "type" in m and "mbarrier" not in operation.text:
        _plain(kernel, operation)
    elif name == "cvta":
        _converted(kernel, operation)
    elif name == "mbarrier" or "mbarrier" in operation.text:
        _at_barrier(kernel, operation)
    elif name == "cp" or name == "st":
        _copied(kernel, operation)
    elif name == "isspacep":
        kernel.lines.append("cvta.param.u64 %at, given")
        kernel.add(operation, ["%o1_0", "%at"])
    elif name == "createpolicy":
        kernel.add(operation, ["%o64_0", "[%own]", "16", "32"])
    elif name == "mov":
        kernel.add(operation)
    else:
        _hint(kernel, operation)


def _hint(kernel: Kernel, operation: Operation) -> None:
    space = operation.modifiers.text("space", "")
    at = f"[{place(operation) if 'tensormap' not in operation.modifiers else _map(space)}]"
    sizes = ["128"] if len(operation.spec.operands) > 1 else []
    kernel.add(operation, [at, *sizes])


def _map(space: str) -> str:
    return {"const": "fixed", "param": "given"}.get(space, "%own")


def _plain(kernel: Kernel, operation: Operation) -> None:
    """Adds a load or a store, and stores all bytes around the address."""
    m, name = operation.modifiers, operation.name
    space = m.text("space", "")
    called = space in ("param", "param::func") and (name == "st" or space == "param::func")
    at = "back" if called and name == "ld" else "slot" if called else place(operation)
    if name == "ldu":
        at = "%base+128"
    policy = [kernel.register(64)] if "L2::cache_hint" in m else []
    value = next(o for o in operation.spec.operands if o.name in ("d", "b"))
    shown = kernel.operand(operation, value)
    if called:
        kernel.lines += ["{", ".param .align 32 .b8 slot[32]", ".param .align 32 .b8 back[32]"]
        kernel.lines += [f"st.param.b64 [slot+{i}], {kernel.register(64)}" for i in ALL_WORDS]
    if called and name == "ld":
        kernel.lines.append("call (back), echo, (slot)")
    if name != "st":
        kernel.add(operation, [shown, f"[{at}]", *policy])
    else:
        kernel.add(operation, [f"[{at}]", shown, *policy])
        if called:
            kernel.lines.append("call (back), echo, (slot)")
        read = "back" if called else at
        head = "param" if called else space or "global"
        if head != "global":  # which is compared as a whole
            for i in (0, 16):
                kernel.lines.append(f"ld.{head}.v2.b64 {{%o64_4, %o64_5}}, [{read}+{i}]")
                kernel.lines.append("mad.lo.u64 %at, %o64_4, 3, %o64_5")
                kernel.put("b64", "%at")
    if called:
        kernel.lines.append("}")


def _converted(kernel: Kernel, operation: Operation) -> None:
    """Adds an address conversion; the base is subtracted from the result, since addresses differ
    from launch to launch."""
    m = operation.modifiers
    space, size = m.text("space", ""), m.text("size", "")
    named = {
        "global": "%own", "const": "fixed", "local": "own", "param": "given", "shared": "cells",
    }[space.partition("::")[0]]  # fmt: skip
    if named in ("%own", "fixed") and size == "u32":
        kernel.lines += [f"mov.u64 %at, {named}", "cvt.u32.u64 %i, %at"]
        named = "%i"
    result, generic, begin = (f"%o{size[1:]}_{number}" for number in range(3))
    kernel.lines.append(f"mov.{size} {begin}, {named}")
    if named == "given" and "to" not in m:
        convert = "cvt.u32.u64" if size == "u32" else "mov.u64"
        kernel.lines += ["cvta.param.u64 %at, given", f"{convert} {begin}, %at"]
    if "to" in m:
        kernel.lines.append(f"cvta.{space}.{size} {generic}, {named}")
    kernel.at[kernel.size] = operation.text
    kernel.lines.append(statement(operation, [result, generic if "to" in m else named]))
    kernel.lines.append(f"sub.{size} {result}, {result}, {begin}")
    kernel.put(f"b{size[1:]}", result)


def _at_barrier(kernel: Kernel, operation: Operation) -> None:
    """Adds an operation on the thread's mbarrier with a few pending arrivals, and stores its word
    afterwards."""
    m, spec = operation.modifiers, operation.spec
    count = kernel.rng.randrange(1, 4)
    kernel.lines += [
        "st.shared.b64 [%cell], 0",
        f"mbarrier.init.shared.b64 [%cell], {count + 1}",
        "mbarrier.arrive.shared.b64 %o64_3, [%cell]",
        "mbarrier.expect_tx.relaxed.cta.shared.b64 [%cell], 16",
        f"st.shared.v2.b64 [%cell+32], {{{kernel.register(64)}, {kernel.register(64)}}}",
    ]
    at = "[%cell]"
    if operation.modifiers.text("space", "") == "" and operation.name != "st":
        kernel.lines += ["cvt.u64.u32 %at, %cell", "cvta.shared.u64 %at, %at"]
        at = "[%at]"
    shown: list[str] = []
    for form in spec.shown:
        if form.type == "address":
            shown.append(at)
            if form.name == "barrier":
                shown[-1] = "[%cell]"
            elif operation.name in ("st", "red") or form.name == "d":
                shown[-1] = "[%cell+32]"
            elif operation.name == "cp" and len(spec.shown) > 1:
                shown[-1] = "[%own]"
        elif form.name == "policy":
            shown += [kernel.register(64)] if "L2::cache_hint" in m else []
        elif form.name == "state" and not form.written:
            shown.append("%o64_3")
        elif form.name in ("count", "hint"):
            shown.append("1")
        elif form.name in ("bytes", "size"):
            shown.append("16")
        elif form.name == "parity":
            shown.append(str(kernel.rng.randrange(2)))
        else:
            shown.append(kernel.operand(operation, form))
    kernel.add(operation, shown)
    for offset in (0, 32, 40):
        kernel.lines.append(f"ld.shared.b64 %at, [%cell+{offset}]")
        kernel.put("b64", "%at")


def _copied(kernel: Kernel, operation: Operation) -> None:
    """Adds a copy of 16 bytes between the thread's addresses, or an instruction that orders
    copies."""
    m, spec = operation.modifiers, operation.spec
    into_shared = m.text("to", "shared").startswith("shared")
    ends = {"d": "[%cell]", "a": "[%own]"} if into_shared else {"d": "[%own]", "a": "[%cell]"}
    if operation.name == "st":  # st.bulk
        if "space" in m:
            ends["a"] = "[%cell]"
        else:
            kernel.lines += ["cvt.u64.u32 %at, %cell", "cvta.shared.u64 %at, %at"]
            ends["a"] = "[%at]"
    values = {"size": "16", "count": str(kernel.rng.choice([0, 5, 16])), "n": "0", "value": "0"}
    shown: list[str] = []
    for form in spec.shown:
        if form.name == "policy":
            shown += [kernel.register(64)] if "L2::cache_hint" in m else []
        else:
            shown.append((ends | values)[form.name])
    kernel.lines.append(f"st.shared.v2.b64 [%cell], {{{kernel.register(64)}, %d0}}")
    kernel.add(operation, shown)
    kernel.lines.append("cp.async.wait_all")
    for offset in (0, 8):
        kernel.lines.append(f"ld.shared.b64 %at, [%cell+{offset}]")
        kernel.put("b64", "%at")


def kernel_of(part: int) -> Kernel:
    """Returns a kernel in which all forms of a part occur."""
    rng = random.Random(part)
    kernel = Kernel(rng, functions=ECHO)
    for spec in SPECS[part::KERNELS]:
        for operation in covering(spec, rng, legal):
            add(kernel, operation)
    return kernel


@pytest.mark.parametrize("part", some_now(range(KERNELS), 5))
def test_both_machines_move_the_same(part: int) -> None:
    assert_agreement(kernel_of(part), SPECS[part::KERNELS], part)


def test_all_programs_are_valid() -> None:
    """Parses those of the nightly job, too."""
    assert_valid(kernel_of(part).text() for part in range(KERNELS))
