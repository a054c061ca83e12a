"""The machine instructions that are copies of a PTX instruction."""

from __future__ import annotations

import pytest
from listings import listing

from warploom.machinecode.copies import computing

ROUTINE = {"rem_u64": 16 * 9}


@pytest.mark.parametrize(
    ("operation", "nodes", "copies"),
    [
        # The test of a loop that ptxas unrolled has the line of the last product.
        ("dp4a", [["IDP.4A.S8.S8 R0, R1, R2, R0"], ["ISETP.NE.OR P0, PT, R8, RZ, P0"]], (1, 0)),
        # Four products of a turn, and the test of the turn.
        (
            "dp4a",
            [["IDP.4A.S8.S8 R0, R1, R2, R0"] * 4 + ["ISETP.GT.AND P1, PT, R8, 0xc, PT"]],
            (4,),
        ),
        # A sum of 64 bits, whose constant is loaded again elsewhere.
        ("add", [["ULDC.64 UR8, c[0x0][0x210]"], ["IADD3 R2, P0, R4, UR8, RZ"]], (0, 1)),
        # A flag that says that a loop was used is no comparison; the loop's test is one.
        (
            "setp",
            [["PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0"], ["ISETP.NE.AND P0, PT, R8, RZ, PT"]],
            (0, 1),
        ),
        # A conversion that only copies: nothing else computes it.
        ("cvt", [["MOV R2, R4"], ["BSYNC B0"]], (1, 0)),
        # A remainder is computed by the routine that is called for it, not by moves to and from it.
        ("rem", [["MOV R14, 0x210", "CALL.REL.NOINC >9"], ["MOV R4, R10", "BRA >1"]], (1, 0)),
        # Behind a call of other code than such a routine nothing is computed.
        ("div", [["FFMA R0, R1, R2, R3"], ["CALL.REL.NOINC >5"]], (1, 0)),
        ("add", [["BSYNC B1"], ["BRA >1"]], (0, 0)),
    ],
)
def test_copies_are_counted_by_what_computes_the_result(
    operation: str, nodes: list[list[str]], copies: tuple[int, ...]
) -> None:
    code = iter(listing([(text, 1) for node in nodes for text in node]).instructions)
    made = {number: [next(code) for _ in node] for number, node in enumerate(nodes)}
    found = computing(made, operation, ROUTINE)
    assert tuple(len(one) for one in found.values()) == copies
