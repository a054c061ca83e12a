"""Tests that the Warp IR has the facts of each pass, and is read back from its text unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from families import CASES
from pass_kernels import FOLDER, check, kernel_for

import warploom as wl
from warploom.compilation.emission import emit_warp_ir
from warploom.ir.options import PRINT_VARIABLE, VARIABLE, Pass
from warploom.ir.parser import parse_warp_ir
from warploom.ir.text import print_warp_ir
from warploom.ir.warp_ir import WarpIR
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.passes.pipeline import PIPELINE, begin, run_passes

BLOCKS = ((256, 1, 1), (24, 8, 1))
IN_TEXT = sorted(set(Pass) - {Pass.WARP_ORDER})
"""The passes whose facts are in the text. Warp order is decided when code is emitted."""

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.cu"))
SOURCES = sorted({*(case.path for case in CASES), *EXAMPLES})


def made(name: Pass, block: tuple[int, int, int] = (256, 1, 1)) -> WarpIR:
    """Returns the IR of the kernel for a pass."""
    return CompiledEngine().warp_ir(kernel_for(name), Launch((1, 1, 1), block, b""))


def irs(path: Path) -> Iterator[WarpIR]:
    """Yields the IR of each kernel of a source, for two shapes of thread blocks."""
    module = wl.Device("h100").load(path)
    for name in module.kernels:
        for block in BLOCKS:
            launch = Launch((1, 1, 1), block, b"")
            yield CompiledEngine().warp_ir(module[name].program, launch)


@pytest.mark.parametrize("name", IN_TEXT)
def test_each_pass_adds_its_facts(
    name: Pass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    whole = print_warp_ir(made(name))
    monkeypatch.setenv(VARIABLE, name)
    without = print_warp_ir(made(name))
    assert check(whole, name, "IR", tmp_path) == 0
    assert check(without, name, "BARE", tmp_path) == 0
    assert check(whole, name, "BARE", tmp_path) != 0
    assert check(without, name, "IR", tmp_path) != 0


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", Pass)
def test_parsed_ir_emits_the_same_code(name: Pass, block: tuple[int, int, int]) -> None:
    ir = made(name, block)
    parsed = parse_warp_ir(print_warp_ir(ir))
    assert parsed == ir
    assert emit_warp_ir(parsed).text == emit_warp_ir(ir).text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_printed_ir_is_parsed_back(path: Path) -> None:
    """From a parsed IR with which passes begin, they find what they find of the kernel."""
    for ir in irs(path):
        text = print_warp_ir(ir)
        parsed = parse_warp_ir(text)
        assert parsed == ir
        assert print_warp_ir(parsed) == text
        assert run_passes(parse_warp_ir(print_warp_ir(begin(ir.layout, ir.variant)))) == ir


def test_passes_do_not_mutate_their_input() -> None:
    """An IR is frozen data: the input of a pass stays as it was."""
    ir = made(Pass.UNIFORMITY)
    text = print_warp_ir(ir)
    for one in PIPELINE:
        one.run(ir)
    assert print_warp_ir(ir) == text


@pytest.mark.parametrize(
    ("found", "written", "reason"),
    [
        ("branch=split", "branch=sometimes", "sometimes"),
        ("to=b2,b1", "to=b2,b9", "b9"),
        ("  0:", "      0:", "too much indentation"),
        ("block b2", "black b2", "black"),
        ("consecutive/cache", "consecutive", "unpack"),
    ],
)
def test_malformed_text_is_an_error(
    found: str, written: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "predicated-blocks")
    text = print_warp_ir(made(Pass.PREDICATED_BLOCKS))
    assert found in text
    with pytest.raises(wl.WarploomError, match=rf"line \d+ of the Warp IR.*{reason}"):
        parse_warp_ir(text.replace(found, written, 1))


def test_ir_is_printed_after_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PRINT_VARIABLE, "masked-loops, uniformity")
    made(Pass.UNIFORMITY)
    _, printed_loops, shapes = capsys.readouterr().err.split("# after ")
    assert printed_loops.startswith("masked-loops\nkernel k\n")
    assert "%x .u32 affine<1>" not in printed_loops
    assert "%x .u32 affine<1>" in shapes
    monkeypatch.setenv(PRINT_VARIABLE, "all")
    ir = made(Pass.UNIFORMITY)
    printed = capsys.readouterr().err.split("# after ")[1:]
    assert [text.partition("\n")[0] for text in printed] == [one.name for one in PIPELINE]
    assert parse_warp_ir("# after " + printed[-1]) == ir


def test_an_unknown_pass_name_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRINT_VARIABLE, "shape")
    with pytest.raises(wl.WarploomError, match=r"WARPLOOM_PRINT_AFTER=shape: .*shapes.*and all"):
        CompiledEngine()


def test_pass_names_match_options() -> None:
    names = [one.name for one in PIPELINE]
    assert len({*names}) == len(names)
    assert {*Pass} - {*names} == {Pass.STEPS, Pass.WARP_ORDER}
    assert {path.stem for path in FOLDER.iterdir()} == {*Pass}
