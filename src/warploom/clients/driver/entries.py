"""All entries of the driver: importing this registers them."""

from __future__ import annotations

from warploom.clients.driver import (
    arrays,
    contexts,
    copies,
    devices,
    launches,
    libraries,
    links,
    memory,
    modules,
    occupancy,
    pointers,
    pools,
    streams,
    textures,
)
from warploom.clients.driver.table import registry

__all__ = [
    "arrays",
    "contexts",
    "copies",
    "devices",
    "launches",
    "libraries",
    "links",
    "memory",
    "modules",
    "occupancy",
    "pointers",
    "pools",
    "registry",
    "streams",
    "textures",
]
