"""Holds the memory of a device: its allocations, module globals, heap, textures, and snapshots of
it.

In: sizes, bytes, handles. Out: addresses of the host's memory, which kernels use directly. Arrays
and their types are left to `host`, checks of accesses to each machine.
"""
