"""Runs launches in a page that has no server: what a process of the server does for the served
page, by the reference machine, in the Python of a browser (`worker.js`).

Modelled time, compiled code and the sanitizers need LLVM; a request for one of them is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import stand_ins

sys.meta_path.insert(0, stand_ins.Finder(("llvmlite", "numba")))

from msgspec import json  # noqa: E402
from msgspec.structs import replace  # noqa: E402

from warploom.cost.device_rules import RULES  # noqa: E402
from warploom.helpers import table  # noqa: E402


def count_in_python(rule: str, *given: Any) -> None:
    """Counts an access by the Python function of a rule."""
    RULES[rule](*given)


table.count_compiled = count_in_python  # before `machine.access_costs` imports it

from warploom.host import requests  # noqa: E402, F401
from warploom.host.programs.confinement import Confinement  # noqa: E402
from warploom.ui import record  # noqa: E402, F401
from warploom.ui.child import REFUSAL, Job, answer_to  # noqa: E402
from warploom.ui.schema import LaunchRequest, Refusal  # noqa: E402

MEMORY = 64 << 20
"""Bytes of memory of the device."""


def answer(text: str) -> bytes:
    """Returns the trace of a request in JSON, or why there is none, as a process of the server
    writes it: a byte that says which, then the trace or the JSON of a refusal."""
    request = json.decode(text, type=LaunchRequest)
    if request.timed or request.sanitize or request.engine == "compiled":
        reason = (
            "The machine in the page has no LLVM, which modelled time, compiled code and checks for"
            " races need: `warploom view` and `warploom learn` have it."
        )
        return REFUSAL + json.encode(Refusal("usage", reason))
    job = Job.of(replace(request, engine="reference"), Confinement())
    return answer_to(job, MEMORY)
