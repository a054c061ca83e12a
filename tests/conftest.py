"""Options of the whole suite: how random tests draw, how much LLVM optimizes, what is left out."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path
from typing import Any

import example_counts
import pytest
from hypothesis import HealthCheck, settings
from needs import skip_without_nvrtc

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
"""Compiling a kernel for an example takes as long as it takes."""

settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=SLOW
)
settings.register_profile("new seeds", database=None, deadline=None, suppress_health_check=SLOW)
settings.load_profile("new seeds" if os.environ.get("WARPLOOM_NEW_SEEDS") else "fixed")

VARIABLE = "WARPLOOM_OPT_LEVEL"
LEVEL = os.environ.get(VARIABLE)
"""The level that all tests are to run with, if one is given."""

OPTIMISED = {
    *("helpers", "ir", "passes", "lower", "compilation", "machine", "programs", "regressions"),
    "sanitize",
}
"""The folders whose kernels are optimized before their first launch, with LLVM's least effort: they
hold optimized code against the reference machine, or check launches, which have no baseline code.
Other tests run as users do, in baseline code until a kernel is worth more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--random-examples",
        type=int,
        default=4,
        help="how many kernels the two machines are compared on",
    )
    parser.addoption(
        "--all", action="store_true", help="run the tests that are marked `nightly`, too"
    )
    parser.addoption(
        "--seconds", type=float, help="skip the tests that have not begun after so many seconds"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuses two files of tests with one name, of which only one would be collected; skips what
    cannot run without NVRTC; says whether all tests run."""
    if config.getoption("--all"):
        os.environ[example_counts.VARIABLE] = "1"
    skip_without_nvrtc(config)
    seen: dict[str, Path] = {}
    for file in sorted(Path(__file__).parent.rglob("test_*.py")):
        if file.name in seen:
            raise pytest.UsageError(f"{file} and {seen[file.name]} have one name: rename one")
        seen[file.name] = file


NO_TIME = "no time was left (--seconds)"
BEGIN = time.monotonic()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes the time at which the tests began to a worker of xdist."""
    node.workerinput["begin"] = BEGIN


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sets how much kernels are optimized in a test, before any of its fixtures compile one; skips
    the test if there is no time left for it."""
    seconds = item.config.getoption("--seconds")
    begin = getattr(item.config, "workerinput", {"begin": BEGIN})["begin"]
    if seconds is not None and time.monotonic() - begin > seconds:
        pytest.skip(NO_TIME)
    if LEVEL is None:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        os.environ.pop(VARIABLE, None)
        if folder in OPTIMISED:
            os.environ[VARIABLE] = "0"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked `nightly`; begins with what takes longest, so that two workers end
    at about the same time."""
    if not config.getoption("--all"):
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    items.sort(key=lambda item: item.get_closest_marker("heavy") is None)


def pytest_collection_finish() -> None:
    """Lets Python's collector of cycles pass over the tests themselves, and look more rarely: it
    took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many tests were skipped because there was no time left for them."""
    skipped = terminalreporter.getreports("skipped")
    if late := sum(NO_TIME in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{late} tests did not begin: no time was left for them")


@pytest.fixture
def full_optimisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles as well as can be, before the first launch."""
    monkeypatch.setenv(VARIABLE, "3")


@pytest.fixture
def share_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has as many workers as a device allows run each launch from its start, whatever that saves,
    if its blocks are independent."""
    from warploom.machine.compiled.block_times import BlockTimes
    from warploom.machine.compiled.sharing import SharedLaunch

    is_long = property(lambda _: True, lambda *_: None)
    monkeypatch.setattr(BlockTimes, "is_long", is_long)
    monkeypatch.setattr(SharedLaunch, "_loss", lambda *_: "")


@pytest.fixture(scope="session")
def random_examples(request: pytest.FixtureRequest) -> int:
    """The number of kernels that a random test draws."""
    return int(request.config.getoption("--random-examples") or 0)
