"""`warploom litmus`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.core.errors import WarploomError

BUFFERING = """PTX SB
{ }
 P0@cta 0,gpu 0   | P1@cta 1,gpu 0   ;
 st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 ;
 fence.sc.gpu | fence.sc.gpu ;
 ld.relaxed.gpu r0, y | ld.relaxed.gpu r1, x ;
exists (P0:r0 == 0 /\\ P1:r1 == 0)
"""
KERNEL = """extern "C" __global__ void sb(volatile int *x, volatile int *y, int *seen) {
  if (blockIdx.x == 0) { *x = 1; seen[0] = *y; } else { *y = 1; seen[1] = *x; }
}
"""


def reported(folder: Path, name: str, text: str, *args: str) -> tuple[int, str]:
    """Returns the exit status and the output of the verb on a file with that text."""
    (folder / name).write_text(text, "utf-8")
    result = CliRunner().invoke(app, ["litmus", str(folder / name), *args])
    if isinstance(result.exception, WarploomError):
        raise result.exception
    return result.exit_code, result.output


def test_a_question_is_answered(tmp_path: Path) -> None:
    code, text = reported(tmp_path, "sb.litmus", BUFFERING.replace("fence.sc", "fence.acq_rel"))
    assert code == 0
    assert "SB: 4 outcomes, 1 weak." in text
    assert "The condition holds: yes." in text
    assert "a: st.relaxed.gpu x, 1   writes 1" in text
    code, text = reported(tmp_path, "sb.litmus", BUFFERING)
    assert code == 1
    assert "The condition holds: no." in text


def test_a_kernel_and_its_graphs(tmp_path: Path) -> None:
    args = [f"--arg={name}:i32[{n}]=zeros" for name, n in (("x", 1), ("y", 1), ("seen", 2))]
    shape = ["--grid", "2", "--block", "1"]
    graphs = tmp_path / "graphs"
    code, text = reported(tmp_path, "sb.cu", KERNEL, *shape, *args, "--json", "--dot", str(graphs))
    found = json.loads(text)
    assert code == 0
    weak = [one["values"] for one in found["outcomes"] if not one["interleaved"]]
    assert weak == [{"seen[0]": 0, "seen[1]": 0, "x": 1, "y": 1}]
    assert len(list(graphs.glob("*.dot"))) == 4


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    """A model without axioms allows everything."""
    model = tmp_path / "any.cat"
    parts = ("fence-sc-before", "fence-sc-either", "co-before", "co-either")
    model.write_text("ANY " + " ".join(f"let {part} = 0" for part in parts), "utf-8")
    text = BUFFERING
    assert reported(tmp_path, "sb.litmus", text, "--model", str(model))[0] == 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("PTX SB { }", "not a litmus test"),
        (
            BUFFERING.replace("fence.sc.gpu", "fense"),
            "'fense': litmus tests do not support this instruction",
        ),
        (BUFFERING.replace("P1:r1 ==", "P2:r1 =="), "there is no thread P2"),
        (BUFFERING.replace("@cta 1", ""), "does not name a thread"),
        (BUFFERING.replace("{ }", "{ x: 3 }"), "is not an initial value"),
        (BUFFERING.replace("/\\", "&"), "is not valid in a condition"),
        (BUFFERING.replace("fence.sc.gpu |", ""), "has 1 columns instead of 2"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(WarploomError, match=wrong):
        reported(tmp_path, "wrong.litmus", text)
