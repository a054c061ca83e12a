"""Checks every form of tensor copies, bulk reductions, tensor maps and clusters on both machines,
under every policy: memory and counts are equal."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from form_kernels import choices, chosen, covering
from parts import some_now

import warploom as wl
from warploom.isa.ops.tensors import NEW_ADDRESS, NEW_SHAPE, NEW_SIZE, is_wide
from warploom.isa.spec import FORMS, Operation, OpSpec, decode

POLICIES = ("converge", "fair", "random", "adversarial")
SHARED, WORDS, MAP_BYTES = 8192, 4096, 128
RANKS = range(1, 6)


def is_of_tensors(spec: OpSpec) -> bool:
    """Returns true if a form of `cp` is executed by `asynchronous.tensors`."""
    parts = [slot.name for slot in spec.slots]
    whole = "tensor" in parts or "reduce" in parts or "cp_mask" in parts
    return spec.name == "cp" and (whole or {"bulk", "shared::cluster"} <= {*parts})


SPECS = [
    *(spec for spec in FORMS["cp"] if is_of_tensors(spec)),
    *(spec for spec in FORMS["applypriority"] if "tensor" in spec.syntax),
    *FORMS["tensormap"],
    *(spec for spec in FORMS["barrier"] if "cluster" in spec.syntax),
    *FORMS["getctarank"],
    *(spec for spec in FORMS["clusterlaunchcontrol"] if "try_cancel" in spec.syntax),
]


WIDE_MODES = ("im2col::w", "im2col::w::128")


def maps(gpu: wl.Device, data: wl.Buffer) -> bytes:
    """Returns tiled maps for each rank, then im2col maps for each rank from 3 on, then a map for
    `tensormap.replace`."""
    shapes = [(6, 5, 4, 3, 8)[5 - rank :] for rank in RANKS]
    boxes = [(2, 1, 2, 2, 8)[5 - rank :] for rank in RANKS]
    found = [
        gpu.tensor_map(data, box, shape=shape, strides=strides(shape), type="u32")
        for shape, box in zip(shapes, boxes, strict=True)
    ]
    # Boxes of one row, for what gathers.
    found.append(gpu.tensor_map(data, (1, 8), shape=(12, 8), strides=(32,), type="u32"))
    for shape in shapes[2:]:
        corners = (-1,) * (len(shape) - 2), (0,) * (len(shape) - 2)
        found.append(
            gpu.im2col_map(data, *corners, 8, 5, shape=shape, strides=strides(shape), type="u32")
        )
    for mode, shape in product(WIDE_MODES, shapes[2:]):
        given = {"shape": shape, "strides": strides(shape), "type": "u32", "swizzle": "32B"}
        found.append(gpu.im2col_map(data, (-1,), (0,), 4, 5, mode=mode, **given))
    found.append(found[1])
    return b"".join(map(bytes, found))


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the bytes between elements of 4 bytes along all axes but the last."""
    return tuple(4 * int(np.prod(shape[axis:])) for axis in range(1, len(shape)))


def place_of_map(operation: Operation) -> str:
    """Returns the address of the map that an operation needs."""
    m, rank = operation.modifiers, int(operation.modifiers.text("dim", "1d")[0])
    number = rank - 1
    if any(name in m for name in ("tile::gather4", "tile::scatter4")):
        number = 5
    elif is_wide(operation):
        number = 9 + 3 * (WIDE_MODES[1] in m) + rank - 3
    elif "im2col" in m or "im2col_no_offs" in m:
        number = 6 + rank - 3
    return f"%maps+{MAP_BYTES * number}"


def line(operation: Operation, rng: random.Random) -> str:
    """Returns the instruction with operands; copies are issued by the first thread of the block."""
    m, forms = operation.modifiers, operation.spec.shown
    rank, gathers = int(m.text("dim", "1d")[0]), "tile::gather4" in m or "tile::scatter4" in m
    offsets = [rng.randrange(2) for _ in range(rank - 2)]
    if is_wide(operation):  # no halo, which could lie beyond the bounding box
        offsets = [0, rng.randrange(2)]
    near = f"[%buf+{128 * rng.randrange(20)}]"
    other = f"[%peer+{128 * rng.randrange(20)}]"
    far = f"[%data+{16 * rng.randrange(200)}]"
    to_cluster = "shared::cta" in m and "shared::cluster" in m
    from_shared = "bulk_group" in m or to_cluster
    given = {
        "tensor": tensor(operation, rng, 5 if gathers else rank),
        "barrier": "[%peerbar]" if to_cluster else "[%bar]",
        "offsets": "{" + ", ".join(map(str, offsets)) + "}",
        "blocks": rng.choice(["1", "2", "3"]),
        "policy": "%pol",
        "mask": str(rng.randrange(1 << 16)),
        "size": str(16 * rng.randrange(1, 9)),
        "d": other if to_cluster else far if from_shared else near,
        "a": near if from_shared else far,
    }
    if operation.name == "tensormap":
        own = "%smap" if m["space"] == "shared::cta" else "%gmap"
        given |= {"a": f"[{own}]", "d": "[%gmap]", "size": "128", "axis": str(rng.randrange(3))}
        given["value"] = str(rng.randrange(3)) if "b32" in m else str(32 * rng.randrange(1, 99))
        if "cp_fenceproxy" in m:
            return f"{operation.text} [%gmap], [%smap], 128;"
    if operation.name == "clusterlaunchcontrol" and m["space"] is None:
        return (
            "cvt.u64.u32 %near, %buf; cvta.shared.u64 %near, %near; cvt.u64.u32 %told, %bar;"
            f"cvta.shared.u64 %told, %told; @%first {operation.text} [%near], [%told];"
        )
    shown = ", ".join(given[form.name] for form in forms)
    return f"@%first {operation.text} {shown};"


def tensor(operation: Operation, rng: random.Random, count: int) -> str:
    """Returns the operand for a map and so many coordinates, which are 0 where other sizes are
    given, and what replaces values of the map: another address, and smaller sizes."""
    m, rank = operation.modifiers, int(operation.modifiers.text("dim", "1d")[0])
    parts = [place_of_map(operation)] + ["%shifted"] * (NEW_ADDRESS in m)
    if NEW_SIZE in m or NEW_SHAPE in m:
        parts.append("{" + ", ".join(str(rng.randrange(1, 5)) for _ in range(rank)) + "}")
        if NEW_SHAPE in m:
            parts += ["{" + ", ".join(str(2 * axis) for axis in range(1, rank)) + "}", "0"]
        return f"[{', '.join(parts)}, {{{', '.join('0' * rank)}}}]"
    return f"[{', '.join(parts)}, {{{coordinates(rng, count)}}}]"


def coordinates(rng: random.Random, count: int) -> str:
    return ", ".join(str(rng.randrange(-1, 4)) for _ in range(count))


def step(operation: Operation, rng: random.Random) -> str:
    """Returns an operation with the instructions that it needs around it."""
    if operation.name == "barrier":
        arrives = "arrive" in operation.modifiers
        pair = (operation.text, "barrier.cluster.wait")
        return "; ".join(pair if arrives else ("barrier.cluster.arrive", operation.text)) + ";"
    if operation.name == "getctarank":
        source = "%peer" if operation.modifiers["type"] == "u32" else "%peer64"
        if operation.modifiers["type"] == "u64" and operation.modifiers["space"]:
            source = "%wide"
        return f"{operation.text} %v, {source}; add.u32 %sum, %sum, %v;"
    return line(operation, rng)


def between(rng: random.Random) -> str:
    """Returns instructions between copies."""
    parity = rng.randrange(2)
    return rng.choice(
        [
            "cp.async.bulk.commit_group;",
            f"cp.async.bulk.commit_group; cp.async.bulk.wait_group {rng.randrange(3)};",
            "cp.async.bulk.wait_group.read 0;",
            f"mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], {parity};",
            "barrier.cluster.arrive; barrier.cluster.wait;",
            "st.shared.u32 [%cell], %sum;",
            "@%first mbarrier.init.shared::cta.b64 [%bar], 3;",
        ]
    )


def operations_of(part: int) -> list[Operation]:
    """Returns operations in which all forms of a part occur."""
    rng = random.Random(part)
    return [each for spec in SPECS[part::4] for each in covering(spec, rng)]


def program(operations: Sequence[Operation], seed: int) -> str:
    """Returns a program that executes operations with random operands."""
    rng = random.Random(seed)
    lines = [f"{step(each, rng)} {between(rng)}" for each in operations]
    shown = "".join(
        f"ld.shared.u32 %v, [%cell+{128 * n}]; st.global.u32 [%out+{128 * n}], %v;"
        for n in range(SHARED // 128)
    )
    return f"""
.version 9.4\n.target sm_107a\n.address_size 64
.visible .entry k(.param .u64 maps, .param .u64 data, .param .u64 out) .reqnctapercluster 2
{{
    .reg .b64 %maps, %data, %shifted, %out, %gmap, %pol, %peer64, %wide, %x, %near, %told;
    .reg .pred %first, %p;
    .reg .b32 %t, %buf, %bar, %peer, %peerbar, %smap, %cell, %v, %sum, %rank;
    .shared .align 1024 .b8 buf[{SHARED}];
    .shared .align 128 .b8 smap[128];
    .shared .align 8 .b64 bar;
    ld.param.u64 %maps, [maps]; ld.param.u64 %data, [data]; ld.param.u64 %out, [out];
    add.u64 %shifted, %data, 64;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %rank, %cluster_ctarank;
    mov.u32 %buf, buf; mov.u32 %bar, bar; mov.u32 %smap, smap; mov.u32 %sum, %rank;
    add.u64 %gmap, %maps, {MAP_BYTES * 15}; mul.wide.u32 %x, %rank, 128; add.u64 %gmap, %gmap, %x;
    mov.u64 %pol, 0;
    xor.b32 %v, %rank, 1;
    mapa.shared::cluster.u32 %peer, %buf, %v; mapa.shared::cluster.u32 %peerbar, %bar, %v;
    cvt.u64.u32 %wide, %peer; cvta.shared::cluster.u64 %peer64, %wide;
    mad.wide.u32 %out, %t, 4, %out; mul.wide.u32 %x, %rank, {SHARED}; add.u64 %out, %out, %x;
    mad.lo.u32 %cell, %t, 4, %smap; mad.wide.u32 %x, %t, 4, %gmap;
    ld.global.u32 %v, [%x]; st.shared.u32 [%cell], %v;
    mad.lo.u32 %cell, %t, 4, %buf;
    @%first mbarrier.init.shared::cta.b64 [%bar], 3;
    barrier.cluster.arrive; barrier.cluster.wait;
    {chr(10).join(lines)}
    add.u32 %cell, %cell, 0; barrier.cluster.arrive; barrier.cluster.wait;
    {shown}
    st.global.u32 [%out], %sum;
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""


def agree(operations: Sequence[Operation], seed: int, policy: str) -> None:
    """Asserts that a program of these operations leaves the same memory and counters on both
    machines."""
    text = program(operations, seed)
    runs: list[wl.Run] = []
    found: list[list[bytes]] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device(cc="10.7", engine=engine, schedule=policy, seed=seed)
        data = gpu.to_device(np.arange(WORDS, dtype=np.uint32))
        known = maps(gpu, data)
        map_table = gpu.to_device(np.frombuffer(known + known[-MAP_BYTES:], np.uint8))
        out = gpu.zeros(2 * SHARED, np.uint8)
        runs.append(gpu.compile(text, "ptx")["k"][2, 32](map_table, data, out))
        # A map holds the address of the tensor, which is another one on the other device.
        own = map_table.copy_to_host().reshape(-1, MAP_BYTES)[:, 8:]
        found.append([data.copy_to_host().tobytes(), out.copy_to_host().tobytes(), own.tobytes()])
    assert found[0] == found[1]
    assert runs[0].counters == runs[1].counters


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("part", some_now(range(4), 3))
def test_both_machines_do_the_same(part: int, policy: str) -> None:
    agree(operations_of(part), part, policy)


def test_every_form_occurs_with_every_modifier() -> None:
    used = [each for part in range(4) for each in operations_of(part)]
    for spec in SPECS:
        of_spec = [operation for operation in used if operation.spec is spec]
        assert of_spec, spec.syntax
        assert choices(spec) <= {("", "")}.union(*map(chosen, of_spec))
        assert all(decode(each.text) is each for each in of_spec)
