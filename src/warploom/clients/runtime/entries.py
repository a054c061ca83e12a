"""All entries of the runtime: importing this registers them."""

from __future__ import annotations

from warploom.clients.runtime import (
    arrays,
    calls,
    devices,
    graphs,
    launches,
    memory,
    registration,
    textures,
)
from warploom.clients.runtime.table import registry

__all__ = [
    "arrays",
    "calls",
    "devices",
    "graphs",
    "launches",
    "memory",
    "registration",
    "registry",
    "textures",
]
