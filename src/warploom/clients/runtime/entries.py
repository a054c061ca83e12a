"""All entries of the runtime: importing this registers them."""

from __future__ import annotations

from warploom.clients.runtime import calls, devices, graphs, launches, memory, registration
from warploom.clients.runtime.table import registry

__all__ = ["calls", "devices", "graphs", "launches", "memory", "registration", "registry"]
