"""Holds the memory of a device: its allocations, module globals, heap, textures, and snapshots of
it."""
