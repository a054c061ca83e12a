"""`warploom tune`: the table, the JSON, spaces in files, what is refused."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from warploom.cli.main import main

SAXPY = Path(__file__).parents[2] / "examples" / "saxpy.cu"
ARGUMENTS = [
    "--arg",
    "256",
    "--arg",
    "2.0",
    "--arg",
    "f32[256]=arange",
    "--arg",
    "y:f32[256]=ones",
    "--workers",
    "1",
]


def tune(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["warploom", "tune", str(SAXPY), *words, *ARGUMENTS])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_table_ranks_and_says_why(monkeypatch, capsys) -> None:
    words = "--space block=32:96:32,2048 --elements 256 --device v100"
    assert tune(monkeypatch, *words.split()) == 0
    text = capsys.readouterr().out
    assert text.startswith("4 configurations, 1 did not run\n")
    assert "block=2048 did not run: a block of 2048" in text
    assert "The best by seconds: block=" in text
    sectors = next(line for line in text.splitlines() if line.split()[:2] == ["Global", "Sectors"])
    assert sectors.split()[2:] == ["96", "96", "96", "counted"]  # 3 * 256 * 4 / 32


def test_the_json_has_every_trial(monkeypatch, capsys, tmp_path: Path) -> None:
    space = tmp_path / "space.json"
    space.write_text('{"block_size_x": [64, 128], "shared": [0]}', "utf-8")
    words = f"--space {space} --elements 256 --objective dram_bytes,registers --json"
    assert tune(monkeypatch, *words.split()) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["objectives"] == ["dram_bytes", "registers"]
    assert [t["configuration"]["block_size_x"] for t in output["trials"]] == [64, 128]
    assert output["best"] in output["pareto"]
    assert all(t["costs"]["global_sectors"] == 96 for t in output["trials"])


def test_it_says_what_to_measure_and_takes_it_back(monkeypatch, capsys, tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    words = f"--space block=32,64 --elements 256 --device v100 --measure 1 --write {file}"
    assert tune(monkeypatch, *words.split()) == 0
    assert "Measure these configurations on the device" in capsys.readouterr().out
    again = f"--space block=32,64 --elements 256 --device v100 --measured {file} --json"
    assert tune(monkeypatch, *again.split()) == 0
    output = json.loads(capsys.readouterr().out)
    assert all(t["measured"] == pytest.approx(t["costs"]["seconds"]) for t in output["trials"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--space block=", "cannot be parsed"),
        ("--space block=64 --objective speed", "no objective 'speed'"),
        ("--space block=2048", "none of the 1 configurations ran"),
        ("--space nowhere.json", "cannot be read"),
        ("--space block=64 --format csv", "no format 'csv'"),
        ("--space block=64 --measured nowhere.json", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(monkeypatch, capsys, words: str, said: str) -> None:
    assert tune(monkeypatch, *words.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"[]", b'{"block": 3}', b"{"])
def test_a_damaged_space_is_bad_usage(monkeypatch, capsys, tmp_path, content: bytes) -> None:
    file = tmp_path / "space.json"
    file.write_bytes(content)
    assert tune(monkeypatch, "--space", str(file)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: --space {file} ")


def test_a_row_for_each_configuration_as_csv(monkeypatch, capsys) -> None:
    words = "--space block=32:96:32,2048 --elements 256 --device v100 --csv"
    assert tune(monkeypatch, *words.split()) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["block"] for row in rows} == {"32", "64", "96", "2048"}
    times = [float(row["seconds"]) for row in rows if row["seconds"]]
    assert times == sorted(times)
    assert rows[-1]["block"] == "2048"
    assert "a block of 2048" in rows[-1]["refused"]
    # 256 elements of two arrays are 64 sectors read, those of one 32 written.
    assert {row["global_sectors"] for row in rows[:-1]} == {"96"}
