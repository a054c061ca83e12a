"""Places of the state spaces among generic addresses.

A generic address in a window means a byte of the block's shared or the thread's local memory; every
other generic address is a global one. PTX leaves the windows' places open (PTX ISA, "Generic
Addressing"); these lie where no host allocation can.
"""

from __future__ import annotations

WINDOW_BITS = 32
SHARED_WINDOW = 1 << WINDOW_BITS
LOCAL_WINDOW = 2 << WINDOW_BITS
WINDOW_SIZE = 1 << WINDOW_BITS

BLOCK_BITS = 24
"""Bits of an offset in a block's shared memory. Above them, an address of shared memory has the
rank of a block in its cluster plus 1, or 0 for the block's own (PTX ISA, "mapa" leaves the form
open)."""
