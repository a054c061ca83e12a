"""Defines the windows of generic addresses that map to shared and to local memory.

A generic address in a window denotes a byte of the block's shared or the thread's local memory;
every other generic address is global. PTX does not specify where the windows begin (PTX ISA,
"Generic Addressing"); these lie where no host allocation can.
"""

from __future__ import annotations

WINDOW_BITS = 32
SHARED_WINDOW = 1 << WINDOW_BITS
LOCAL_WINDOW = 2 << WINDOW_BITS
WINDOW_SIZE = 1 << WINDOW_BITS

BLOCK_BITS = 24
"""Bits of an offset in a block's shared memory. The bits above hold the rank of a block in its
cluster plus 1, or 0 for the executing block itself (the encoding is ours: PTX ISA, "mapa",
specifies none)."""
