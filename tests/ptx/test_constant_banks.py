"""Constant banks of PTX before 2.2 (PTX ISA, "Banked Constant State Space")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import LinkError, MemoryFault, PtxSyntaxError
from warploom.ptx.link import link
from warploom.ptx.module import Module
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module
from warploom.ptx.verify import verify

BANKS = """.version 2.1
.target sm_20
.extern .const[2] .b32 words[];
.extern .const[2] .align 8 .b8 bytes[];
.extern .const[10] .f32 last[];
.const .u32 plain[2] = {5, 6};
.visible .entry k(.param .u64 out) {
.reg .u32 %t, %x, %y, %z; .reg .u64 %o, %c;
ld.param.u64 %o, [out];
mov.u32 %t, %tid.x;
mad.wide.u32 %o, %t, 16, %o;
ld.const[2].u32 %x, [words+4];
st.global.u32 [%o], %x;
mov.u64 %c, bytes;
mad.wide.u32 %c, %t, 4, %c;
ld.const[2].b32 %y, [%c];
st.global.u32 [%o+4], %y;
ld.const[10].b32 %z, [last+OFFSET];
st.global.u32 [%o+8], %z;
ld.const[0].u32 %x, [plain];
ld.const.u32 %y, [plain+4];
add.u32 %x, %x, %y;
st.global.u32 [%o+12], %x;
ret;
}
"""


def module(text: str) -> Module:
    found = parse(text)
    verify(found)
    return found


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_arrays_of_a_bank_begin_where_it_does(engine: str) -> None:
    gpu = wl.Device(cc="5.0", engine=engine)
    program = gpu.compile(BANKS.replace("OFFSET", "65532"), "ptx")
    places = {name: program.image.find_variable(name) for name in ("words", "bytes", "last")}
    assert places["words"] == places["bytes"]
    for name, values in (("words", [10, 11, 12, 13]), ("last", [0] * 16383 + [99])):
        place = places[name]
        assert place is not None
        assert place[1] == 65536
        gpu.memory.write(place[0], np.array(values, np.uint32).tobytes())
    out = np.zeros((4, 4), np.uint32)
    program["k"][1, 4](out)
    assert out.tolist() == [[11, 10 + lane, 99, 11] for lane in range(4)]


def test_nothing_is_behind_a_bank() -> None:
    program = wl.Device(cc="5.0").compile(BANKS.replace("OFFSET", "65536"), "ptx")
    with pytest.raises(MemoryFault, match=r"const\[10\]"):
        program["k"][1, 4](np.zeros((4, 4), np.uint32))


def test_a_printed_module_keeps_its_banks() -> None:
    found = module(BANKS.replace("OFFSET", "0"))
    assert [v.bank for v in found.variables] == [2, 2, 10, 0]
    assert parse(print_module(found)) == found


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (".version 2.1", ".version 2.2", "constant banks were removed after PTX 2.1"),
        (".const[10] .f32 last", ".const[11] .f32 last", "no constant bank 11"),
        (".extern .const[10] .f32 last[]", ".extern .const[10] .f32 last[4]", "without a length"),
        (".extern .const[10] .f32 last[]", ".const[10] .f32 last[1] = {1.0}", "without a length"),
        ("ld.const[2].u32 %x", "ld.const[3].u32 %x", "`words` is in constant bank 2"),
        ("ld.const[0].u32 %x", "ld.const[10].u32 %x", "`plain` is in constant bank 0"),
        ("ld.const[2].u32 %x", "ld.const[2].u31 %x", r"`\.u31` is not valid here"),
        ("ld.const[2].u32 %x", "ld.global[2].u32 %x", "needs more"),
    ],
)
def test_what_no_bank_holds_is_an_error(before: str, after: str, message: str) -> None:
    with pytest.raises(wl.WarploomError, match=message):
        module(BANKS.replace("OFFSET", "0").replace(before, after))


def test_a_module_with_banks_is_not_linked() -> None:
    found = module(BANKS.replace("OFFSET", "0"))
    with pytest.raises(LinkError, match="constant bank "):
        link([found, found])


def test_constants_take_64_kb_at_most() -> None:
    """ptxas: "File uses too much global constant data (0x10004 bytes, 0x10000 max)"."""
    head = ".version 8.0\n.target sm_75\n.address_size 64\n.const .b8 first;\n"
    module(head + ".const .b32 x[16383];")
    with pytest.raises(PtxSyntaxError, match="65540 bytes, but the limit is 65536"):
        module(head + ".const .b32 x[16384];")
