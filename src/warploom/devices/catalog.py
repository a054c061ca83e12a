"""The devices that Warploom knows, by product name and by compute capability.

The facts are in `data/`: architectures.json by compute capability, products.json by product, each
fact beside the tag of its source.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, cast

from warploom.core.errors import OptionTypeError, OptionValueError
from warploom.devices.spec import DeviceSpec, FactSource

DEFAULT = "h100"


def find_device(name: str | None = None, cc: str | None = None) -> DeviceSpec:
    """Returns the device of that product name, or the first product of that compute capability.

    Without either, the H100. Raises OptionValueError for a name that the catalog does not have.
    """
    if name is not None and cc is not None:
        raise OptionTypeError(f"name a device ({name}) or a compute capability ({cc}), not both")
    devices = catalog()
    if cc is not None:
        return _first_of(cc)
    wanted = (name or DEFAULT).strip().lower().replace(" ", "-").replace("_", "-")
    if wanted in devices:
        return devices[wanted]
    close = get_close_matches(wanted, devices, n=3, cutoff=0.5)
    near = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(devices)}."
    raise OptionValueError(f"there is no device {name!r} in the catalog. {near}")


def _first_of(cc: str) -> DeviceSpec:
    for spec in catalog().values():
        if spec.cc == cc:
            return spec
    known = dict.fromkeys(spec.cc for spec in catalog().values())
    raise OptionValueError(
        f"no device in the catalog has compute capability {cc!r}; choose one of {', '.join(known)}."
    )


@cache
def catalog() -> dict[str, DeviceSpec]:
    """Returns every device by name, in order of compute capability."""
    tables = _load("architectures.json")
    sources = {
        tag: FactSource(text, verified) for tag, (text, verified) in tables["sources"].items()
    }
    made: dict[str, DeviceSpec] = {}
    for name, product in _load("products.json").items():
        cc = cast(str, product["compute_capability"])
        facts = {**tables["architectures"][cc], "sms": product["sms"]}
        facts["l2_bytes"], facts["memory_bytes"] = product["l2_bytes"], product["memory_bytes"]
        major, minor = (int(part) for part in cc.split("."))
        made[name] = DeviceSpec(
            name=name,
            title=product["title"],
            compute_capability=(major, minor),
            sources={fact: sources[tag] for fact, (_, tag) in facts.items()},
            **{fact: _frozen(value) for fact, (value, _) in facts.items()},
        )
    return made


def _load(name: str) -> dict[str, Any]:
    return json.loads(files("warploom.devices").joinpath("data", name).read_text("utf-8"))


def _frozen(value: Any) -> Any:
    """Lists of the data files as tuples."""
    return tuple(cast("list[int]", value)) if isinstance(value, list) else value
