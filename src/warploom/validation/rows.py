"""Rows of the table, kept in the user's cache: a run that was cut off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files

from warploom.host.programs.ptxas import find_tool, identity
from warploom.llvm import disk_cache
from warploom.validation.benchmarks import modelled
from warploom.validation.figures import Figure
from warploom.validation.table import Row

_SOURCES = (*disk_cache.SOURCES, "machinecode", "timing")
"""Parts of the package on which a modelled figure depends."""
_DATA = (
    ("warploom.validation", "benchmarks.py"),
    ("warploom.validation", "kernels.cu"),
    ("warploom.validation", "counted.cu"),
    *(
        ("warploom.devices", f"data/{name}.json")
        for name in ("architectures", "products", "timing", "work")
    ),
)


def rows_of(figures: Sequence[Figure], workers: int = 1) -> Iterator[Row]:
    """Yields the rows of these figures, in their order, made by so many processes."""
    if workers == 1:
        yield from map(row_of, figures)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(row_of, figures)


def row_of(figure: Figure) -> Row:
    """Returns the row of a figure: the stored one, where nothing has changed on which it
    depends."""
    key = disk_cache.key_of_sources(_parts(figure), _SOURCES)
    kept = disk_cache.find("validation", key)
    if kept is not None:
        return Row(figure, *json.loads(kept))
    values: list[float] = modelled(figure).tolist()
    disk_cache.store("validation", key, json.dumps(values).encode())
    return Row(figure, *values)


def _parts(figure: Figure) -> list[str]:
    """Returns what identifies a figure and its model: but for the published value, which
    takes no part in modelling it."""
    tools = (find_tool("ptxas"), find_tool("nvdisasm"))
    identities = [part for tool in tools if tool is not None for part in identity(tool)]
    data = [files(package).joinpath(name).read_text("utf-8") for package, name in _DATA]
    asked = (figure.device, figure.clock_mhz, figure.kernel, sorted(figure.parameters.items()))
    return [repr(asked), *identities, *data]
