"""States the tools that tests need, how to get them, and skips tests where they are missing.

NVRTC is needed by every test that compiles CUDA C++, so that few are marked: a test that fails
because NVRTC is missing becomes a skipped one, whose reason is the error that users read. With
WARPLOOM_NVRTC=required, as `.ci/run` sets it, it fails. `NEEDS_NVRTC` marks tests of processes
whose error is not shown.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from warploom.frontends import cuda_cpp
from warploom.host.programs.ptxas import find_tool

PTXAS_IS_MISSING = (
    ""
    if find_tool("ptxas") and find_tool("nvdisasm")
    else 'ptxas or nvdisasm is missing: pip install "warploom[ptxas]"'
)
NEEDS_PTXAS = pytest.mark.skipif(bool(PTXAS_IS_MISSING), reason=PTXAS_IS_MISSING)

NVRTC_IS_MISSING = os.environ.get("WARPLOOM_NVRTC") != "required" and not cuda_cpp.has_nvrtc()
NEEDS_NVRTC = pytest.mark.skipif(NVRTC_IS_MISSING, reason=cuda_cpp.without_nvrtc())


class SkipsWithoutNvrtc:
    """Plugin of pytest that skips what fails because NVRTC is missing.

    Such a failure shows the error's text, or came after this process composed it.
    """

    def __init__(self) -> None:
        self._reason = cuda_cpp.without_nvrtc()
        self._was_composed = False
        compose = cuda_cpp.without_nvrtc

        def noted() -> str:
            self._was_composed = True
            return compose()

        cuda_cpp.without_nvrtc = noted

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and self._is_cause(report):
            report.outcome = "skipped"
            report.longrepr = (*item.location[:1], item.location[1] or 0, self._reason)
        if report.when == "teardown":
            self._was_composed = False
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, pytest.CollectReport]:
        report: pytest.CollectReport = yield
        if report.failed and self._is_cause(report):
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, self._reason)
        self._was_composed = False
        return report

    def _is_cause(self, report: pytest.TestReport | pytest.CollectReport) -> bool:
        shown = " ".join(f"{report.longreprtext} {report.capstdout} {report.capstderr}".split())
        return self._was_composed or self._reason in shown


def skip_without_nvrtc(config: pytest.Config) -> None:
    """Registers the plugin where NVRTC is missing and not required."""
    if NVRTC_IS_MISSING:
        config.pluginmanager.register(SkipsWithoutNvrtc())
