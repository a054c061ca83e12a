"""Declarations hold what they can hold, at the alignment that they ask for."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

HEAD = ".version {version}\n.target {target}\n.address_size 64\n"
KERNEL = "\n.visible .entry k({parameters}) {{ {body} ret; }}\n"


def compiled(
    variables: str = "",
    parameters: str = "",
    body: str = "",
    version: str = "8.0",
    target: str = "sm_80",
    engine: str = "compiled",
) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100", engine=engine)
    text = HEAD.format(version=version, target=target) + variables
    return gpu, gpu.compile(text + KERNEL.format(parameters=parameters, body=body), "ptx")


@pytest.mark.parametrize(
    ("declared", "values", "elements"),
    [
        ("g[2] = {1, 2, 3}", 3, 2),
        ("g[2][2] = {{1, 2}, {3, 4}, {5, 6}}", 3, 2),
        ("g[2][2] = {{1, 2, 3}, {4}}", 3, 2),
        ("g[2][2] = {1, 2, 3, 4, 5}", 5, 4),
    ],
)
def test_more_initial_values_than_elements_are_refused(
    declared: str, values: int, elements: int
) -> None:
    """ptxas: "Greater number of elements in array initializer"."""
    with pytest.raises(wl.PtxSyntaxError) as caught:
        compiled(f".global .align 4 .b32 {declared};")
    assert f"`g` has {values} initial values for {elements} elements" in str(caught.value)
    assert caught.value.span.line == 4


@pytest.mark.parametrize("declared", ["g[2][2] = {{1, 2}, {3}}", "g[2][2] = {{1, 2}}", "g[] = {1}"])
def test_as_many_or_fewer_are_taken(declared: str) -> None:
    _, module = compiled(f".global .align 4 .b32 {declared};")
    assert module.kernels == ("k",)


@pytest.mark.parametrize("alignment", [512, 4096, 65536])
def test_variables_stand_at_the_alignment_that_they_ask_for(alignment: int) -> None:
    variables = "".join(f".global .align {alignment} .b8 v{n}[8];\n" for n in range(3))
    gpu, module = compiled(variables)
    addresses = module.image.addresses(("v0", "v1", "v2"))
    assert len(set(addresses)) == 3
    assert all(address % alignment == 0 for address in addresses)
    before = gpu.zeros(64, np.uint8)  # goes into the gap before one of them
    assert before.address % 256 == 0
    assert all(not a <= before.address < a + 8 for a in addresses)


@pytest.mark.parametrize(
    ("size", "version", "target", "limit"),
    [
        (4352, "8.0", "sm_80", None),
        (4353, "8.0", "sm_80", "4,352 (PTX 8.1 for sm_70 or later: 32,764)"),
        (4353, "8.1", "sm_60", "4,352 (PTX 8.1 for sm_70 or later: 32,764)"),
        (32764, "8.1", "sm_70", None),
        (32765, "8.1", "sm_70", "32,764"),
        (1 << 40, "8.1", "sm_70", "32,764"),
    ],
)
def test_a_kernel_has_so_many_bytes_of_parameters(
    size: int, version: str, target: str, limit: str | None
) -> None:
    parameters = f".param .align 1 .b8 p[{size}]"
    if limit is None:
        compiled(parameters=parameters, version=version, target=target)
        return
    with pytest.raises(wl.PtxSyntaxError) as caught:
        compiled(parameters=parameters, version=version, target=target)
    assert f"take {size:,} bytes, but the limit is {limit}." in str(caught.value)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("body", ["", "X:", "{ }"])
def test_an_empty_kernel_runs_and_counts_nothing_that_is_not_there(body: str, engine: str) -> None:
    gpu = wl.Device("h100", engine=engine)
    text = HEAD.format(version="8.0", target="sm_80") + f".visible .entry k() {{ {body} }}"
    run = gpu.compile(text, "ptx")["k"][3, 40]()
    assert run.counters.warp_instructions == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("st.param.u64 [0], 5;", "requires the name of a parameter"),
        ("ld.param.u64 %d, [8];", "requires the name of a parameter, or a register"),
        ("mov.u64 %d, 0; st.param.u64 [%d], 5;", "other parameters are read-only"),
        ("st.param.u64 [o], 5;", "parameter `o` can only be read"),
    ],
)
def test_parameters_of_a_kernel_are_read_by_their_names(body: str, reason: str) -> None:
    """ptxas: "Immediate addresses allowed only for .local state space"."""
    with pytest.raises(wl.PtxSyntaxError, match=reason):
        compiled(parameters=".param .u64 o", body=".reg .b64 %d; " + body)


@pytest.mark.parametrize("directive", [".maxntid 64, 0", ".reqntid 1- 1", ".maxnreg 0"])
def test_limits_of_a_launch_are_above_0(directive: str) -> None:
    """ptxas: "Positive non-zero value expected"."""
    head = HEAD.format(version="8.0", target="sm_80")
    reason = f"{directive.split()[0]} requires numbers greater than 0"
    with pytest.raises(wl.PtxSyntaxError, match=reason):
        wl.Device("h100").compile(f"{head}.visible .entry k() {directive} {{ ret; }}", "ptx")
