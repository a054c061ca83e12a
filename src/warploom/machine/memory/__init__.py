"""Manages the memory of a device: allocations, module globals, the heap, textures, and snapshots of
the memory.

In: sizes, bytes, handles. Out: addresses of the host's memory, which kernels use directly. Arrays
and their types are left to `host`, checks of accesses to each machine.
"""
