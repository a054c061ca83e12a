"""The names of kernels: what C++ compilers make of them, and which one a user means.

Source: Itanium C++ ABI, "Mangling".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warploom.core.errors import LaunchError

_PART = re.compile(r"(\d+)")


def source_name(symbol: str) -> str:
    """The name that stood in the C++ source ("space::kernel"), without template arguments.

    A symbol that is not mangled is its own name.
    """
    if not symbol.startswith("_Z"):
        return symbol
    at = 3 if symbol.startswith("_ZN") else 2
    parts: list[str] = []
    while found := _PART.match(symbol, at):
        start = found.end()
        at = start + int(found[1])
        part = symbol[start:at]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    return "::".join(parts) or symbol


def find_kernel(wanted: str, symbols: Sequence[str], module: str) -> str:
    """The symbol of the kernel that `wanted` names, as PTX or as C++ calls it.

    Raises LaunchError where none or several fit.
    """
    if wanted in symbols:
        return wanted
    fit = [s for s in symbols if _means(wanted, source_name(s))]
    if len(fit) == 1:
        return fit[0]
    listed = ", ".join(_shown(symbol) for symbol in symbols) or "it has none"
    if fit:
        raise LaunchError(
            f"{module} has {len(fit)} kernels named {wanted}: {', '.join(fit)}. Name one of these."
        )
    raise LaunchError(f"{module} has no kernel named {wanted}. Its kernels: {listed}.")


def _means(wanted: str, name: str) -> bool:
    return name == wanted or name.endswith("::" + wanted)


def _shown(symbol: str) -> str:
    name = source_name(symbol)
    return symbol if name == symbol else f"{name} ({symbol})"
