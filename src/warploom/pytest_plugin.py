"""Provides the pytest plugin: with `pytest --warploom[=DEVICE]`, GPU tests run on the software GPU.

With the option, tests that use PyTorch, numba-cuda, cuda.core or another client of the driver find
a device; their kernels are summarized at the end (`--warploom-report FILE` writes all of it as
JSON). With `--warploom-check`, sanitizers check each launch, and a test in which they find an error
fails. With `--warploom-debug`, a launch that does something wrong stops in the debugger. The
fixture `gpu` is a `warploom.Device`, `warploom_run` runs whole programs; the marker
`warploom(device=..., schedules=8)` repeats a test under several legal orders, and `check="race"`
chooses the tools.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from warploom.clients.environment import LIBRARIES, OPENCL, PRELOADED, environment_for
from warploom.clients.import_hook import watch_imports
from warploom.clients.session import Session, session, use
from warploom.clients.settings import Settings
from warploom.core.errors import WarploomError
from warploom.core.output_files import write_text
from warploom.devices.catalog import DEFAULT, find_device
from warploom.host.debugging import Quit, attach
from warploom.host.device import Device
from warploom.sanitize.findings import ERROR, TOOLS
from warploom.sanitize.summary import Summary, merge_findings

OPTION, CHECK = "--warploom", "--warploom-check"
ORDER = "_warploom_order"

_others: list[dict[str, Any]] = []
"""What the workers of pytest-xdist ran."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("warploom", "GPU tests on the software GPU")
    group.addoption(
        OPTION,
        nargs="?",
        const=DEFAULT,
        metavar="DEVICE",
        help=f"run GPU tests on this software GPU (default: {DEFAULT})",
    )
    group.addoption(
        "--warploom-report",
        metavar="FILE",
        help="write the counters of all kernels to a JSON file",
    )
    group.addoption(
        CHECK,
        nargs="?",
        const=",".join(TOOLS),
        metavar="TOOLS",
        help=f"check each launch with these tools ({', '.join(TOOLS)}); a test fails if a tool "
        "finds an error",
    )
    group.addoption(
        "--warploom-debug",
        nargs="?",
        const="",
        metavar="COMMANDS",
        help="stop in the debugger at the first error of a launch; with COMMANDS (separated by "
        "semicolons), run them there instead of prompting",
    )


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Installs the libraries before any conftest imports a client of them."""
    device = _chosen_device(early_config.known_args_namespace.warploom, args)
    if device:
        tools = _chosen_tools(early_config.known_args_namespace.warploom_check, args)
        use(device, sanitize=tools, sanitize_exitcode=0)
        environment = environment_for(session().settings)
        os.environ.update({k: v for k, v in environment.items() if k != "LD_PRELOAD"})
        for name in PRELOADED:
            ctypes.CDLL(str(LIBRARIES / name), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(LIBRARIES / OPENCL))  # loaders have functions of the same names
        if "torch" in sys.modules:
            raise pytest.UsageError(
                "another plugin imported PyTorch before --warploom could take effect: load "
                "Warploom's plugin first, with `-p warploom.pytest_plugin`"
            )
        watch_imports()


def _chosen_device(given: str | None, args: list[str]) -> str | None:
    """Returns the device that the option names; for `--warploom FILE`, where the word after the
    option names tests, the default one, and makes pytest read the file. Raises UsageError for what
    is neither."""
    if given is None:
        return None
    try:
        find_device(given)
    except WarploomError as unknown:
        at = next((n for n, arg in enumerate(args) if arg == OPTION), None)
        if at is None or not Path(given.partition("::")[0]).exists():
            raise pytest.UsageError(f"{OPTION} {given}: no such file, and {unknown}") from None
        args[at] = f"{OPTION}={DEFAULT}"
        return DEFAULT
    return given


def _chosen_tools(given: str | None, args: list[str]) -> str:
    """Returns the tools that the option names; for `--warploom-check FILE` all of them, and makes
    pytest read the file. Raises UsageError for what is neither."""
    at = next((n for n, arg in enumerate(args) if arg == CHECK), None)
    names = {*map(str.strip, (given or "").split(","))}
    is_file = bool(given) and Path(str(given).partition("::")[0]).exists()
    if at is not None and is_file and not names <= {*TOOLS}:
        given = ",".join(TOOLS)
        args[at] = f"{CHECK}={given}"
    _known_tools(given or "")
    return given or ""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "warploom(device=None, schedules=1, check=None): set the device of the `gpu` fixture, run "
        "the test under this number of legal execution orders, and check its launches with these "
        "tools (comma-separated; empty for none)",
    )


# ---- the debugger ---


@pytest.fixture(autouse=True)
def _warploom_debugger(request: pytest.FixtureRequest) -> Generator[None]:
    """Stops in the debugger where a launch of the test does something wrong, if that is wanted."""
    given: str | None = request.config.getoption("--warploom-debug")
    if given is None:
        yield
        return
    from warploom.debug.terminal.face import TerminalOptions

    commands = [command.strip() for command in given.split(";") if command.strip()]
    options = TerminalOptions(commands, batch=bool(commands), failing=True)
    capture: Any = request.config.pluginmanager.getplugin("capturemanager")
    attach(options.debugger(_quit, capture.global_and_fixture_disabled))
    yield
    attach(None)


def _quit(quit: Quit) -> None:
    """Ends the tests where the user wants no more."""
    pytest.exit("quit from the debugger", quit.code)


# ---- findings -----------------------------------------------------------------------------------


def _known_tools(text: str) -> tuple[str, ...]:
    """Returns the tools of a text with commas between them; pytest.UsageError for one that is
    none."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in TOOLS:
            raise pytest.UsageError(f"there is no tool {name!r}; choose from {', '.join(TOOLS)}")
    return names


def _mend_device() -> None:
    """Lets a device that a fault has ended be used again, if a client of the driver used it."""
    driver = sys.modules.get("warploom.clients.driver.state")
    runtime = sys.modules.get("warploom.clients.runtime.table")
    if driver is not None:
        driver.state.mend()
    if runtime is not None:
        runtime.forget_errors()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test in which a launch has an error that a tool found; after a test whose kernel did
    something wrong, the device is whole again."""
    here = session()
    before = len(here.findings)
    try:
        result = yield
    finally:
        _mend_device()
    found = [one for one in merge_findings(here.findings[before:]) if one.severity == ERROR]
    if found:
        pytest.fail(Summary(found).text(), pytrace=False)
    return result


# ---- the orders of a test ------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats a test under the orders that its marker asks for: the default, then random ones."""
    marker = metafunc.definition.get_closest_marker("warploom")
    count = int(marker.kwargs.get("schedules", 1)) if marker else 1
    if count > 1:
        orders = [("converge", 0), *(("random", seed) for seed in range(1, count))]
        metafunc.fixturenames.insert(0, ORDER)
        names = [f"{schedule}-{seed}" for schedule, seed in orders]
        metafunc.parametrize(ORDER, orders, indirect=True, ids=names)


@pytest.fixture(name=ORDER)
def _order(request: pytest.FixtureRequest) -> Generator[tuple[str, int] | None]:
    """Who goes first in this test, for every launch of the process."""
    here = session()
    before, here.order = here.order, request.param
    yield here.order
    here.order = before


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Device:
    """Returns a software GPU of its own for each test; its kernels are in the summary."""
    marker = request.node.get_closest_marker("warploom")
    asked = marker.kwargs.get("device") if marker else None
    name = asked or request.config.getoption("--warploom") or DEFAULT
    callspec = getattr(request.node, "callspec", None)
    parameters: dict[str, Any] = callspec.params if callspec else {}
    schedule, seed = parameters.get(ORDER, ("converge", 0))
    check = marker.kwargs.get("check") if marker else None
    tools = request.config.getoption("--warploom-check") or "" if check is None else check
    order: dict[str, Any] = {"schedule": schedule, "seed": seed}
    here = session()
    return Device(
        name,
        **order,
        on_run=here.record,
        sanitize=_known_tools(tools),
        capture=here.capture,
    )


@pytest.fixture
def warploom_run(
    request: pytest.FixtureRequest,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`warploom_run("program.py", *args, **settings)` runs a program of its own process with the
    software GPU: settings are those of `warploom run`. Gives subprocess.CompletedProcess."""

    def run(
        program: str | Path | Sequence[str], *args: str, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        device = settings.pop("device", request.config.getoption("--warploom") or DEFAULT)
        chosen = Settings(device=device, **settings).checked()
        single = isinstance(program, (str, Path))
        command = [sys.executable, str(program)] if single else list(program)
        return subprocess.run(
            [*command, *args],
            env=environment_for(chosen),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )

    return run


# ---- the summary ---------------------------------------------------------------------------------


class _Workers:
    """Hears what the workers of pytest-xdist ran."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        if "warploom" in output:
            _others.append(json.loads(output["warploom"]))


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    if type(plugin).__name__ == "DSession" and not manager.has_plugin("warploom-workers"):
        manager.register(_Workers(), "warploom-workers")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands over what it ran; the one in charge writes the file."""
    here = _here()
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["warploom"] = json.dumps({**here.data(), "lines": here.lines()})
    elif file := session.config.getoption("--warploom-report"):
        everyone: list[dict[str, Any]] = [here.data(), *_others]
        kernels = [kernel for one in everyone for kernel in one["kernels"]]
        write_text(file, json.dumps({"kernels": kernels}, indent=2))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [*_here().lines(), *(line for one in _others for line in one["lines"])]
    if lines:
        terminalreporter.section("kernels on the software GPU")
        for line in lines:
            terminalreporter.write_line(line)


def _here() -> Session:
    return session()
