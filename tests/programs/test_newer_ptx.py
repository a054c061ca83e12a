"""Instructions that PTX 8.7 to 9.5 brought do what the manual says, on both machines."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import PtxSyntaxError
from warploom.isa.spec import Release, decode
from warploom.isa.targets import needed
from warploom.isa.versions import needed_version

ENGINES = ("reference", "compiled")


def run(engine: str, body: str, version: str = "9.5") -> np.ndarray:
    """Returns what 32 threads of a B200 store to `%out`, a word each, of an array of -1."""
    text = f"""
.version {version}
.target sm_100
.address_size 64
.visible .entry k(.param .u64 results)
{{
    .reg .b32 %r<4>;
    .reg .b64 %out, %at, %state;
    .reg .pred %p, %q;
    .shared .align 8 .b64 barrier;
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %at, %r0, 4;
    ld.param.u64 %out, [results];
    add.u64 %out, %out, %at;
    {body}
    ret;
}}
"""
    results = np.full(32, -1, np.int32)
    wl.Device("b200", engine=engine).compile(text, "ptx")["k"][1, 32](results)
    return results


def check_since(opcode: str, version: Release, target: Release) -> None:
    """Checks the version of PTX and the compute capability that an opcode needs."""
    assert (needed_version(decode(opcode)), needed(decode(opcode))) == (version, target)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fence_of_aliases_with_an_order_changes_no_value(engine: str) -> None:
    """PTX ISA, fence.proxy.alias: orders accesses by different virtual addresses of one place."""
    body = """
    st.global.u32 [%out], %r0;
    fence.proxy.alias.release.sys;
    fence.proxy.alias.acquire.sys;
    ld.global.u32 %r1, [%out];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%out], %r1;"""
    assert run(engine, body).tolist() == list(range(1, 33))


def test_a_fence_of_aliases_with_an_order_is_of_ptx_9_4() -> None:
    for order in ("acquire", "release"):
        check_since(f"fence.proxy.alias.{order}.sys", (9, 4), (9, 0))
    with pytest.raises(PtxSyntaxError, match=r"9\.4"):
        run("reference", "fence.proxy.alias.acquire.sys;", "9.3")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("space", "type"), [(".global", "u32"), ("", "b32"), (".global", "s16")])
def test_an_asynchronous_store_to_global_memory_stores(engine: str, space: str, type: str) -> None:
    """PTX ISA, st.async with .mmio: a store to global memory, of one element. Of 16 bits, the upper
    half of the word of ones remains: 0xffff0000 + tid."""
    source, base = ("%h", -65536) if type == "s16" else ("%r0", 0)
    body = f"""
    .reg .b16 %h;
    cvt.u16.u32 %h, %r0;
    st.async.mmio.release.sys{space}.{type} [%out], {source};"""
    assert run(engine, body).tolist() == [base + lane for lane in range(32)]


def test_an_asynchronous_store_to_global_memory_is_of_ptx_8_7() -> None:
    check_since("st.async.mmio.release.sys.global.u32", (8, 7), (10, 0))
    with pytest.raises(PtxSyntaxError, match=r"8\.7"):
        run("reference", "st.async.mmio.release.sys.global.u32 [%out], %r0;", "8.6")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wait", ["test_wait", "try_wait"])
def test_a_wait_for_the_primary_phase_is_a_wait_for_the_phase(engine: str, wait: str) -> None:
    """PTX ISA, mbarrier.test_wait: false before all 32 threads have arrived (bit 0), true
    for the phase of the token afterwards (bit 1), and for its parity 0 (bit 2)."""
    body = f"""
    .reg .pred %before, %token, %parity;
    setp.eq.u32 %q, %r0, 0;
    @%q mbarrier.init.shared::cta.b64 [barrier], 32;
    bar.sync 0;
    mbarrier.{wait}.parity.phase_type::primary.acquire.cta.shared::cta.b64 %before, [barrier], 0;
    bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %state, [barrier];
    bar.sync 0;
    mbarrier.{wait}.phase_type::primary.relaxed.cluster.shared::cta.b64 %token, [barrier], %state;
    mbarrier.{wait}.parity.phase_type::primary.shared::cta.b64 %parity, [barrier], 0;
    selp.u32 %r1, 1, 0, %before;
    selp.u32 %r2, 2, 0, %token;
    selp.u32 %r3, 4, 0, %parity;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%out], %r1;"""
    assert run(engine, body).tolist() == [6] * 32


def test_a_wait_for_the_primary_phase_is_of_ptx_9_3() -> None:
    for form in ("", ".parity"):
        check_since(f"mbarrier.try_wait{form}.phase_type::primary.b64", (9, 3), (9, 0))
