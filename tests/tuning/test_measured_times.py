"""Measured times: keys, Kernel Tuner's cache files, T4 results, and the files that are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warploom.core.errors import WarploomError
from warploom.tuning.measured import Measurement, read_measured
from warploom.tuning.result import Tuned
from warploom.tuning.space import Configuration
from warploom.tuning.trial import About, Costs, Trial

SPACE = {"block_size_x": [64, 128], "TILE": [1, 2]}

CACHE = """{
"device_name": "NVIDIA RTX A4000", "kernel_name": "scale", "problem_size": 100,
"tune_params_keys": ["block_size_x", "TILE"],
"tune_params": {"block_size_x": [64, 128], "TILE": [1, 2]}, "objective": "time",
"cache": {
"64,1": {"block_size_x": 64, "TILE": 1, "time": 0.25, "times": [0.25], "compile_time": 440.9},
"64,2": {"block_size_x": 64, "TILE": 2, "time": "RuntimeFailedConfig", "times": []},
"128,1": {"block_size_x": 128, "TILE": 1, "time": 1e20, "times": []},
"128,2": {"block_size_x": 128, "TILE": 2, "time": 0.5, "times": [0.5]},"""
"""As Kernel Tuner leaves it while it tunes; the third is how older versions wrote failures."""

READ = [
    Measurement({"block_size_x": 64, "TILE": 1}, 0.25e-3),
    Measurement({"block_size_x": 128, "TILE": 2}, 0.5e-3),
]


def costs(seconds: float) -> Costs:
    return Costs(1, 0, seconds, 1.0, 1.0, 1.0, (), 32, "ptxas", 0, 0, 0, 0, {}, "bound by tests")


def tuned(*seconds: float | None) -> Tuned:
    chosen: list[Configuration] = [
        {"block_size_x": x, "TILE": t} for x in (64, 128) for t in (1, 2)
    ]
    trials = [
        Trial(c, None if s is None else costs(s), "" if s else "refused")
        for c, s in zip(chosen, seconds, strict=True)
    ]
    about = About("scale", "a100", (100,), SPACE)
    return Tuned(tuple(trials), about=about)


@pytest.mark.parametrize("end", ["", "}\n}"])
def test_a_cache_file_is_read_also_while_it_is_written(tmp_path: Path, end: str) -> None:
    file = tmp_path / "cache.json"
    file.write_text(CACHE.removesuffix(",") + end if end else CACHE, "utf-8")
    assert read_measured(file, SPACE) == READ


def test_t4_results_are_read_in_their_unit(tmp_path: Path) -> None:
    def row(tile: int, value: Any, unit: str, invalidity: str = "correct") -> dict[str, Any]:
        return {
            "configuration": {"block_size_x": 64, "TILE": tile},
            "objectives": ["time"],
            "times": {"runtimes": []},
            "invalidity": invalidity,
            "correctness": 1,
            "measurements": [
                {"name": "GB/s", "value": 9.0, "unit": ""},
                {"name": "time", "value": value, "unit": unit},
            ],
        }

    rows = [row(1, 3.0, "ms"), row(2, 2.0, ""), row(2, 1.0, "ms", "compile")]
    file = tmp_path / "t4.json"
    content = {"results": rows, "schema_version": "1.0.0", "metadata": {"timeunit": "seconds"}}
    file.write_text(json.dumps(content), "utf-8")
    assert [one.seconds for one in read_measured(file, SPACE)] == [3.0e-3, 2.0]


def test_keys_are_tuples_or_texts() -> None:
    found = read_measured({(64, 1): 0.25e-3, "128,2": 0.5e-3}, SPACE)
    assert found == READ
    assert read_measured({64: 1.0}, {"block": [64]}) == [Measurement({"block": 64}, 1.0)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({(64,): 1.0}, "has 1 values, but the space has 2 parameters"),
        ({(64, 3): 1.0}, "3 is not a value of TILE"),
        ({(64, 1): -1.0}, "not a positive number"),
        ({(64, 1): "fast"}, "not a positive number"),
    ],
)
def test_what_is_no_measurement_is_an_error(given: Any, said: str) -> None:
    with pytest.raises(WarploomError, match=said):
        read_measured(given, SPACE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ("{}", "neither a Kernel Tuner cache file"),
        (
            '{"cache": {"1": {"TILE": 1, "time": 1.0}}}',
            "parameters of the search space: block_size_x",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text, "utf-8")
    with pytest.raises(WarploomError, match=said):
        read_measured(file, SPACE)


@pytest.mark.parametrize("form", ["kernel-tuner", "t4"])
def test_what_is_written_is_read_again(tmp_path: Path, form: str) -> None:
    file = tmp_path / "out.json"
    tuned(0.25e-3, None, None, 0.5e-3).write(file, form)
    read = read_measured(file, SPACE)
    assert [one.configuration for one in read] == [one.configuration for one in READ]
    assert [one.seconds for one in read] == pytest.approx([0.25e-3, 0.5e-3])


def test_a_cache_file_has_what_kernel_tuner_checks(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    tuned(0.25e-3, None, None, 0.5e-3).write(file)
    text = file.read_text("utf-8")
    assert text.strip().endswith("}\n}")  # by which Kernel Tuner knows that it is complete
    content = json.loads(text)
    assert content["tune_params_keys"] == ["block_size_x", "TILE"]
    assert content["cache"]["64,2"]["time"] == "RuntimeFailedConfig"
    assert content["cache"]["64,1"]["time"] == 0.25


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WarploomError, match="no format 'csv'"):
        tuned(1.0, 1.0, 1.0, 1.0).write(tmp_path / "x", "csv")


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "\udcff",
        "[]",
        '{"cache": 3}',
        '{"cache": {"a": 3}}',
        '{"cache": {"a": {"block_size_x": {}, "TILE": 1, "time": 1}}}',
        '{"cache": {"a": {"block_size_x": 64, "TILE": 1, "time": 1' + "0" * 400 + "}}}",
        '{"results": 3}',
        '{"results": [3]}',
        '{"results": [{"configuration": 1e300, "measurements": [{"name": "time", "value": 2}]}]}',
        '{"results": [{"configuration": {}, "measurements": 3}]}',
        '{"results": [{"configuration": {}, "measurements": [{"name": "time", "value": 2}]}]}',
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "cache.json"
    file.write_text(content, "utf-8", errors="surrogateescape")
    with pytest.raises(WarploomError):
        read_measured(file, SPACE)
