"""The replay of machine code: the way through it that a warp would have gone, what it issues there,
and the accesses that it makes."""
