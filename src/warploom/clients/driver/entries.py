"""All entries of the driver: importing this registers them."""

from __future__ import annotations

from warploom.clients.driver import (
    arrays,
    capturing,
    contexts,
    copies,
    devices,
    graph_launches,
    graph_nodes,
    graph_structure,
    launches,
    libraries,
    links,
    memory,
    mipmaps,
    modules,
    occupancy,
    old_launches,
    pointers,
    pools,
    streams,
    textures,
    user_objects,
)
from warploom.clients.driver.table import registry

__all__ = [
    "arrays",
    "capturing",
    "contexts",
    "copies",
    "devices",
    "graph_launches",
    "graph_nodes",
    "graph_structure",
    "launches",
    "libraries",
    "links",
    "memory",
    "mipmaps",
    "modules",
    "occupancy",
    "old_launches",
    "pointers",
    "pools",
    "registry",
    "streams",
    "textures",
    "user_objects",
]
