"""All entries of the runtime: importing this registers them."""

from __future__ import annotations

from warploom.clients.runtime import (
    array_copies,
    arrays,
    calls,
    devices,
    driver_calls,
    graph_copies,
    graphs,
    launches,
    memory,
    registration,
    textures,
)
from warploom.clients.runtime.table import registry

__all__ = [
    "array_copies",
    "arrays",
    "calls",
    "devices",
    "driver_calls",
    "graph_copies",
    "graphs",
    "launches",
    "memory",
    "registration",
    "registry",
    "textures",
]
