"""The schema of the Debug Adapter Protocol, of which debugpy has a copy."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator

COPY = "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"
"""The schema in debugpy's package."""


@cache
def _schema() -> dict[str, Any]:
    spec = find_spec("debugpy")
    assert spec is not None
    assert spec.origin is not None
    return json.loads((Path(spec.origin).parent / COPY).read_text("utf-8"))


@cache
def _validator(name: str) -> Draft4Validator:
    return Draft4Validator({**_schema(), "$ref": f"#/definitions/{name}"})


def validate(message: dict[str, Any]) -> None:
    """Raise jsonschema's ValidationError for a message that is not as the protocol has it. Requests
    of our own (`warploom/...`) only have to be requests."""
    kind = message["type"]
    subject = message["event"] if kind == "event" else message["command"]
    name = f"{subject[0].upper()}{subject[1:]}{kind.capitalize()}"
    if kind == "response" and not message["success"]:
        name = "ErrorResponse"
    if name not in _schema()["definitions"]:
        assert "/" in subject, f"the protocol has no {kind} {subject}"
        name = kind.capitalize()
    _validator(name).validate(message)
