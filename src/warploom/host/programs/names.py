"""The names of kernels: which one a user means."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.core.errors import LaunchError
from warploom.core.mangled import read_symbol
from warploom.core.options import nearest


def source_name(symbol: str) -> str:
    """Returns the name that stood in the C++ source ("space::kernel"), without template arguments.

    A symbol that is not mangled is its own name.
    """
    return read_symbol(symbol).name


def find_kernel(wanted: str, symbols: Sequence[str], module: str) -> str:
    """Returns the symbol of the kernel that `wanted` names, as PTX or as C++ does: "copy",
    "space::copy", "copy<float>" or "copy(float*, int)".

    Raises LaunchError where none or several fit.
    """
    if wanted in symbols:
        return wanted
    plain = _squeezed(wanted)
    fit = [symbol for symbol in symbols if plain and _means(plain, symbol)]
    if len(fit) == 1:
        return fit[0]
    if fit:
        raise LaunchError(
            f"{module} has {len(fit)} kernels named {wanted}: "
            f"{', '.join(map(kernel_title, fit))}. Choose one of these."
        )
    kernels = ", ".join(map(kernel_title, symbols)) or "it has none"
    close = nearest(wanted, dict.fromkeys(map(source_name, symbols))) if symbols else ""
    hint = f" {close}" if close.startswith("Did you mean") else ""
    raise LaunchError(f"{module} has no kernel named {wanted}. Its kernels: {kernels}.{hint}")


def _means(wanted: str, symbol: str) -> bool:
    spellings = map(_squeezed, read_symbol(symbol).spellings)
    return any(name == wanted or name.endswith("::" + wanted) for name in spellings)


def _squeezed(name: str) -> str:
    """Returns the name without spaces that mean nothing."""
    return "".join(name.split())


def kernel_title(symbol: str) -> str:
    """Returns a kernel as messages name it: with its C++ parameters, then its symbol if that is
    mangled."""
    name = str(read_symbol(symbol))
    return symbol if name == symbol else f"{name} ({symbol})"
