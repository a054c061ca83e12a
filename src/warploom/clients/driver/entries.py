"""All entries of the driver: importing this registers them."""

from __future__ import annotations

from warploom.clients.driver import (
    contexts,
    copies,
    devices,
    green_contexts,
    launches,
    libraries,
    links,
    logs,
    memory,
    modules,
    occupancy,
    old_launches,
    pointers,
    pools,
    streams,
)
from warploom.clients.driver.arrays import arrays, mipmaps, tensor_maps, textures
from warploom.clients.driver.graphs import (
    capturing,
    graph_launches,
    graph_memory,
    graph_nodes,
    graph_structure,
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
    "graph_memory",
    "graph_nodes",
    "graph_structure",
    "green_contexts",
    "launches",
    "libraries",
    "links",
    "logs",
    "memory",
    "mipmaps",
    "modules",
    "occupancy",
    "old_launches",
    "pointers",
    "pools",
    "registry",
    "streams",
    "tensor_maps",
    "textures",
    "user_objects",
]
