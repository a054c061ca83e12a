"""Rules of the architecture: the cost of one warp-wide memory access and the like, as pure
functions of 32 addresses and a mask.

Every rule has the signature `rule(addresses, mask, size, row)`: `addresses` is an array of 32
uint64, bit l of `mask` says whether lane l takes part (at least one does), `size` is bytes a lane,
and the costs are added to `row`, an array of RECORD_WIDTH int64, in the order of FIELDS (both
`rules.fields`). Lanes'
addresses are multiples of `size` (the machines fault otherwise), a power of two up to 32.
`rules.choice` says which rules a device goes by.

The bodies stay within what Numba compiles without its runtime (integers and array elements; no
exceptions, no new arrays), so that compiled kernels and plain Python call the same functions. When
compiled, `mask` and `size` are int64.
"""
