"""Checks every form of `tcgen05` and of `multimem` on both machines, under all policies: tensor
memory, registers and counts are equal."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from form_kernels import assert_valid, choices, chosen, covering

import warploom as wl
from warploom.isa.spec import FORMS, Operation, decode

POLICIES = ("converge", "fair", "random", "adversarial")
PARTS, SHARED, COLUMNS = 24, 16384, 128
SPECS = [*FORMS["tcgen05"], *FORMS["multimem"]]

DESCRIPTORS = {
    "kind::f16": 1 << 4,
    "kind::tf32": 1 << 4 | 2 << 7 | 2 << 10,
    "kind::f8f6f4": 1 << 4 | 3 << 7 | 5 << 10,
    "kind::i8": 2 << 4 | 1 << 7,
    "kind::mxf8f6f4": 4 << 7 | 1 << 10 | 1 << 23,
    "kind::mxf4": 1 << 7 | 1 << 10 | 1 << 23,
    "kind::mxf4nvf4": 1 << 7 | 1 << 10,
}
"""Instruction descriptors without their shapes."""

TYPES = {**dict.fromkeys(("b64", "u64", "s64"), "%w"), "f64": "%d", "f32": "%f"}
TYPES |= dict.fromkeys(("f16", "bf16", "e4m3x2", "e5m2x2"), "%h")
TYPES |= dict.fromkeys(("e4m3", "e5m2"), "%b")


GROUP = "cta_group::2"
ONE_OF_EACH = (
    "tcgen05.ld.sync.aligned.16x64b.x2.b32",
    "tcgen05.st.sync.aligned.16x128b.x1.b32",
    f"tcgen05.cp.{GROUP}.128x128b",
    f"tcgen05.mma.{GROUP}.kind::f16",
    f"tcgen05.commit.{GROUP}.mbarrier::arrive::one.multicast::cluster.b64",
    f"tcgen05.shift.{GROUP}.down",
    "multimem.red.global.add.u32",
)

ALLOCATIONS = {"alloc", "dealloc", "relinquish_alloc_permit"}
"""What stands at the end of a program, the last of them behind all others."""


def descriptor(operation: Operation) -> int:
    """Returns the instruction descriptor of a small product."""
    m = operation.modifiers
    rows, columns = 64, 16
    if m["cta_group"] == "cta_group::2" or "block_scale" in m or "ashift" in m:
        rows = 128
    if "ws" in m:
        rows, columns = 32, 64
    word = DESCRIPTORS[m.text("kind", "")] | columns >> 3 << 17 | rows >> 4 << 24
    return word | ("sp" in m) << 2


def registers(count: int) -> str:
    return "{" + ", ".join(f"%v{n}" for n in range(count)) + "}"


def line(operation: Operation, rng: random.Random) -> str:
    """Returns the instruction with the instructions that it needs around it."""
    m, text = operation.modifiers, operation.text
    if operation.name == "multimem":
        return multimem_line(operation, rng)
    if "alloc" in m or "dealloc" in m:
        group = m.text("cta_group", "")
        alloc = f"tcgen05.alloc.{group}.sync.aligned.b32 [%slot64], 32;"
        if "alloc" in m:
            alloc = f"{text} [{'%slot' if 'shared::cta' in m else '%slot64'}], 32;"
        free = text if "dealloc" in m else f"tcgen05.dealloc.{group}.sync.aligned.b32"
        return f"{alloc} ld.shared.b32 %x, [%slot]; {free} %x, 32;"
    if "relinquish_alloc_permit" in m:
        return f"{text};"
    where = f"[%own+{rng.randrange(16)}]"
    if "ld" in m or "st" in m:
        spec = operation.spec
        count = max(operation.count_of(form) for form in spec.operands)
        split = ", 3" if m["shape"] == "16x32bx2" else ""
        place = "[%own]" if count > 16 else where
        if "st" in m:
            return f"{text} {place}{split}, {registers(count)};"
        if "red" not in m:
            return f"{text} {registers(count)}, {place}{split}; xor.b32 %sum, %sum, %v0;"
        return f"{text} {registers(count)}, %v200, {place}{split}; xor.b32 %sum, %sum, %v200;"
    if m["op"] is not None or m["when"] is not None:
        return f"{text};"
    if "commit" in m:
        masks = [form for form in operation.spec.operands if form.name == "blocks"]
        mask = f", %mask{masks[0].type[1:]}" if masks else ""
        return f"@%lead {text} [%bar]{mask};"
    if "cp" in m:
        return f"@%lead {text} [%base+{rng.randrange(16)}], %da;"
    if "shift" in m:
        return f"@%lead {text} [%base];"
    a = "[%at]" if "ashift" in m else rng.choice(["%da", "[%at]"])
    meta = "[%meta], " if "sp" in m else ""
    scales = "[%at], [%meta], " if "block_scale" in m else ""
    return (
        f"mov.b32 %id, {descriptor(operation)};"
        f"@%lead {text} [%base], {a}, %db, {meta}%id, {scales}%p{rng.randrange(2)};"
    )


def multimem_line(operation: Operation, rng: random.Random) -> str:
    """Returns a multimem access of the thread's own words."""
    m = operation.modifiers
    register = TYPES.get(m.text("type", ""), "%v0")
    count = int(m.text("vec", "v1")[1:])
    names = [f"{register}{n}" if register in "%w %d %f %h %b" else f"%v{n}" for n in range(count)]
    value = names[0] if count == 1 else "{" + ", ".join(names) + "}"
    if count == 1 and register != "%v0":
        value = f"{register}0"
    place = f"[%own64+{64 * rng.randrange(4)}]"
    operands = f"{value}, {place}" if "ld_reduce" in m else f"{place}, {value}"
    return f"{operation.text} {operands};"


def operations_of(part: int) -> list[Operation]:
    """Returns operations in which all forms of a part occur, in random order."""
    rng = random.Random(part)
    operations = [each for spec in SPECS[part::PARTS] for each in covering(spec, rng)]
    rng.shuffle(operations)
    return operations


def program(operations: Sequence[Operation], seed: int) -> str:
    """Returns a program that executes operations at random addresses, with block barriers now and
    then."""
    rng = random.Random(seed)
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    lines, last = list[str](), list[str]()
    for each in operations:
        if ALLOCATIONS & set(each.modifiers.values):
            last.append(line(each, rng))
        else:
            lines.append(f"{line(each, rng)} {meet if rng.random() < 0.2 else ''}")
    values = registers(32)
    fill = "\n".join(f"mad.lo.u32 %v{n}, %t, {n * 7919 + 13}, %rank;" for n in range(128))
    wide = "\n".join(
        f"mov.u64 %w{n}, {n + 3}; mov.f64 %d{n}, 0d3FF0000000000000;" for n in range(2)
    )
    floats = "\n".join(
        f"mov.f32 %f{n}, 0f3F800000; mov.u16 %h{n}, 15360; cvt.u8.u16 %b{n}, %h{n};"
        for n in range(8)
    )
    stores = "\n".join(f"st.global.u32 [%out+{4 * n}], %v{n};" for n in range(32))
    copies = "".join(
        f"ld.global.u32 %v0, [%y+{n}]; st.shared.u32 [%x+{n}], %v0;"
        for n in range(0, SHARED // 128, 4)
    )
    keep = "\n".join(
        f"add.u32 %x, %own, {first};\n"
        f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {values}, [%x];\n{stores}"
        f"\nadd.u64 %out, %out, 128;"
        for first in range(0, COLUMNS, 32)
    )
    return f"""
.version 9.4\n.target sm_107a\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out) .reqnctapercluster 2
{{
    .reg .b32 %v<201>, %t, %x, %own, %base, %at, %meta, %id, %bar, %last, %slot, %sum, %rank;
    .reg .b32 %lane;
    .reg .b64 %data, %out, %da, %db, %slot64, %own64, %y, %w<8>; .reg .f64 %d<8>; .reg .f32 %f<8>;
    .reg .b16 %h<8>, %mask16; .reg .b32 %mask32; .reg .b8 %b<8>;
    .reg .pred %lead, %first, %p<2>, %go;
    .shared .align 1024 .b8 buf[{SHARED}];
    .shared .align 8 .b64 bar, last;
    .shared .align 4 .b32 slot;
    ld.param.u64 %data, [data]; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %bar, bar; mov.u32 %last, last;
    mov.u32 %slot, slot;
    cvt.u64.u32 %slot64, %slot; cvta.shared.u64 %slot64, %slot64;
    mov.u32 %sum, 0; mov.u16 %mask16, 3;
    setp.eq.u32 %go, %rank, 0; setp.eq.and.u32 %lead, %t, 0, %go; setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %p0, 0, 0; setp.eq.u32 %p1, 0, 1;
    mov.u32 %x, buf; mad.lo.u32 %x, %t, {SHARED // 128}, %x;
    mul.wide.u32 %y, %t, {SHARED // 128}; add.u64 %y, %y, %data;
    {copies}
    mad.lo.u32 %x, %rank, 128, %t; mul.wide.u32 %own64, %x, 256; add.u64 %own64, %own64, %data;
    mad.wide.u32 %out, %x, {4 * (COLUMNS + 1)}, %out;
    {fill}\n{wide}\n{floats}
    setp.ge.u32 %go, %t, 32;
    @%go bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 512;
allocated:
    @%first mbarrier.init.shared::cta.b64 [%bar], 100;
    @%first mbarrier.init.shared::cta.b64 [%last], 1;
    {meet}
    ld.shared.b32 %base, [%slot];
    shr.u32 %lane, %t, 5; shl.b32 %lane, %lane, 21; add.u32 %own, %base, %lane;
    add.u32 %at, %base, 64; add.u32 %meta, %base, 96;
    mov.b64 %da, {1 << 46 | 64 << 32 | 8 << 16}; mov.b64 %db, {1 << 46 | 16 << 32 | 128 << 16 | 64};
    tcgen05.st.sync.aligned.32x32b.x128.b32 [%own], {registers(128)};
    {meet}
    {chr(10).join(lines)}
    {meet}
    @%lead tcgen05.commit.{GROUP}.mbarrier::arrive::one.multicast::cluster.b64 [%last], %mask16;
    {meet}
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %go, [%last], 0;
    @!%go bra wait;
    {keep}
    st.global.u32 [%out], %sum;
    {meet}
    setp.ge.u32 %go, %t, 32;
    @%go bra done;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 512;
    {chr(10).join(sorted(last, key=lambda text: "relinquish" in text))}
done:
    ret;
}}
"""


def agree(operations: Sequence[Operation], seed: int, policy: str) -> None:
    """Asserts that a program of these operations leaves the same memory and counters on both
    machines."""
    text = program(operations, seed)
    bits = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 14, np.uint32)
    found: list[list[bytes]] = []
    runs: list[wl.Run] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device(cc="10.7", engine=engine, schedule=policy, seed=seed)
        data, out = gpu.to_device(bits), gpu.zeros((256, COLUMNS + 1), np.uint32)
        runs.append(gpu.compile(text, "ptx")["k"][2, 128](data, out))
        found.append([data.copy_to_host().tobytes(), out.copy_to_host().tobytes()])
    assert found[0] == found[1]
    assert runs[0].counters == runs[1].counters


def test_both_machines_do_the_same_with_one_form_of_each() -> None:
    agree([decode(text) for text in ONE_OF_EACH], 3, "converge")


@pytest.mark.nightly
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("part", range(PARTS))
def test_both_machines_do_the_same(part: int, policy: str) -> None:
    agree(operations_of(part), part, policy)


def test_all_programs_are_valid() -> None:
    """Parses those of the nightly job, too."""
    assert_valid(program(operations_of(part), part) for part in range(PARTS))


def test_every_form_occurs_with_every_modifier() -> None:
    used = [each for part in range(PARTS) for each in operations_of(part)]
    for spec in SPECS:
        of_spec = [operation for operation in used if operation.spec is spec]
        assert of_spec, spec.syntax
        assert choices(spec) <= {("", "")}.union(*map(chosen, of_spec))
        assert all(decode(each.text) is each for each in of_spec)
