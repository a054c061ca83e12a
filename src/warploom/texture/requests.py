"""Executes the texture and surface instructions of a warp, for the interpreter and compiled
kernels: resolves handles, executes lane by lane, counts sectors.

Both machines call `serve_texels` with the same arrays (`texture.descriptors`): `table`: the
textures; `memory`: device memory as bytes; `data`: operands and results of 32 lanes; `scratch`:
fault and work space; `record`: the counters of the access. Functions that can fault return 0, or 1
with the fault recorded. `start` is the index of a texture's row in the table.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.atomics import count_passes, lane_order
from warploom.cost.caches import SMS, look_up_sector
from warploom.cost.fields import (
    BYTES_MOVED,
    BYTES_REQUESTED,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    TRANSACTIONS_32,
)
from warploom.cost.writes import lasting
from warploom.simt.lane_counts import Addresses, Ints, jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.descriptors import (
    ADDRESS_ROW,
    AS_FLOAT,
    BAD_HANDLE,
    BASE,
    COMPONENT,
    COMPONENTS,
    COUNT,
    CUBE,
    CUBE_ARRAY,
    DEPTH,
    DEPTH_OF,
    FAULT_ADDRESS,
    FAULT_KIND,
    FAULT_LANE,
    FAULT_SIZE,
    FETCH,
    FILTER_OF,
    FORMAT,
    FREE,
    GATHER,
    GEOMETRY,
    GEOMETRY_AT,
    HANDLE_ROW,
    HANDLE_TAG,
    HAS_SAMPLER,
    HEADER_WORDS,
    HEIGHT,
    HEIGHT_OF,
    IS_SAMPLER,
    IS_SURFACE,
    IS_TYPE,
    KIND,
    LAYERS,
    LAYERS_OF,
    LAYOUT_OF,
    LEVELS,
    LEVELS_OF,
    LINEAR,
    LOAD,
    LOD_ROW,
    MODE_OF,
    MOST_LEVELS,
    NORMALIZED,
    NORMALIZED_OF,
    OP,
    ORDER_OF,
    OTHER_GEOMETRY,
    OUTSIDE_SURFACE,
    QUERY,
    REDUCE,
    REDUCE_FORMATTED,
    RESULT_ROW,
    ROW_WORDS,
    SAMPLER,
    SAMPLER_ROW,
    SAMPLER_TAG,
    SAMPLES_OF,
    SIZE,
    STORE,
    STORE_FORMATTED,
    SURFACE,
    TEXTURE,
    TOUCHED,
    TWO_ARRAY,
    UNNORMALIZED_OF,
    WIDTH,
    WIDTH_OF,
    X_ROW,
    Y_ROW,
)
from warploom.texture.fetch import extent, fetch, gather, mode_of, signed_at
from warploom.texture.surface import (
    access_bytes,
    load_lane,
    locate_access,
    reduce_lane,
    store_lane,
    store_texel,
)
from warploom.texture.texels import Memory, format_bytes, read_bytes, touch

NO_PATH = -1
"""The value of `path` if no caches are simulated (`cost.caches`)."""


@jitable
def serve_texels(
    table: Ints, memory: Memory, data: Addresses, scratch: Ints, record: Ints, caches: Ints,
    plan_words: Ints, mask: int, request: int, path: int, block: int,
) -> int:  # fmt: skip
    """Executes a texture or surface instruction, which `request` encodes, in the lanes of `mask` of
    a block with grid index `block`: stores results in `data`, and counts the request and its
    sectors in `record` and, if `path` is not NO_PATH, in the simulated caches. Queries count
    nothing. Returns 0, or 1 with the fault of the lowest lane in `scratch`."""
    scratch[FAULT_KIND] = 0
    scratch[TOUCHED] = 0
    if mask == 0:
        return 0
    op = request >> OP & 15
    if op in (QUERY, IS_TYPE):
        return serve_query(table, memory, data, scratch, mask, request)
    sectors = int(record[SECTORS])
    if op in (FETCH, GATHER):
        failed = fetch_lanes(table, memory, data, scratch, record, mask, request)
    else:
        plan = Plan(plan_words, 0)
        failed = surface_lanes(table, memory, data, scratch, record, plan, mask, request, block)
    if failed:
        return 1
    moved = int(record[SECTORS]) - sectors
    record[REQUESTS] += 1
    record[TRANSACTIONS] += moved
    record[TRANSACTIONS_32] += moved
    record[BYTES_MOVED] += 32 * moved
    if path != NO_PATH:
        sm = block % int(caches[SMS])
        for index in range(1, int(scratch[TOUCHED]) + 1):
            sector = int(scratch[TOUCHED + index])
            look_up_sector(caches, sm, sector >> 2, 1 << (sector & 3), path, record)
    return 0


@jitable
def fail(scratch: Ints, kind: int, lane: int, address: int, size: int) -> int:
    """Records the kind, lane, address and size of a fault in the scratch array; returns 1."""
    scratch[FAULT_KIND] = kind
    scratch[FAULT_LANE] = lane
    scratch[FAULT_ADDRESS] = address
    scratch[FAULT_SIZE] = size
    return 1


# ---- handles ------------------------------------------------------------------------------------


@jitable
def resolve_handle(table: Ints, memory: Memory, value: int) -> int:
    """Returns the handle or sampler that an operand `value` stands for: the value itself or, if it
    is an address in device memory, the 8 bytes there (a `.texref` variable in global memory)."""
    offset = value - int(table[BASE])
    if offset >= 0 and offset + 8 <= table[SIZE]:
        return read_bytes(memory, offset, 8)
    return value


@jitable
def descriptor_row(table: Ints, value: int) -> int:
    """Returns the table index of the row of a handle; -1 if the handle is invalid or freed."""
    # Other values, as those of samplers, give an index that is negative or too large.
    index = value - HANDLE_TAG
    if index < 0 or index >= table[COUNT]:
        return -1
    start = HEADER_WORDS + int(index) * ROW_WORDS
    return -1 if table[start + KIND] == FREE else start


@jitable
def lane_handle(table: Ints, memory: Memory, data: Addresses, at: int, lane: int) -> int:
    """Returns the handle or sampler in row `at` of a lane's operands."""
    return resolve_handle(table, memory, int(np.int64(data[32 * at + lane])))


@jitable
def sampler_at(table: Ints, memory: Memory, data: Addresses, lane: int) -> int:
    """Returns the sampler operand of a lane as its encoded integer; for a texture's handle, that
    texture's sampler; 0 if it is neither."""
    value = lane_handle(table, memory, data, SAMPLER_ROW, lane)
    return sampler_of(table, descriptor_row(table, value), value)


@jitable
def sampler_of(table: Ints, start: int, value: int) -> int:
    """Returns the encoded sampler that the handle or sampler `value`, whose table row is `start`
    (negative: none), stands for: that of its texture, or the value itself; 0 if it is neither."""
    if start >= 0:
        return int(table[start + SAMPLER])
    return value if is_sampler(value) else 0


@jitable
def is_sampler(value: int) -> bool:
    """Returns whether a value is an encoded sampler: SAMPLER_TAG is its highest bit (of handles
    HANDLE_TAG, one above)."""
    return SAMPLER_TAG <= value < HANDLE_TAG


@jitable
def matches_request(table: Ints, start: int, kind: int, expected: int) -> bool:
    """Returns whether a row has the kind and geometry that an instruction expects. A cube surface
    counts as a layered one (CUDA compiles surfCubemapread to `suld.a2d`)."""
    if table[start + KIND] != kind:
        return False
    geometry = int(table[start + GEOMETRY])
    if kind == SURFACE and (geometry in (CUBE, CUBE_ARRAY)):
        geometry = TWO_ARRAY
    return geometry == expected


@jitable
def descriptor_code(table: Ints, start: int) -> int:
    """Encodes kind and geometry of a row for a fault's record: the geometry, plus 16 for a
    surface."""
    return 16 * (int(table[start + KIND]) - TEXTURE) + int(table[start + GEOMETRY])


# ---- lanes --------------------------------------------------------------------------------------


@jitable
def fetch_lanes(
    table: Ints,
    memory: Memory,
    data: Addresses,
    scratch: Ints,
    record: Ints,
    mask: int,
    request: int,
) -> int:
    """Executes `tex` or `tld4` in the lanes of `mask`, in order, and adds the bytes of one texel
    per lane to BYTES_REQUESTED. Returns 0, or 1 after a fault, recorded in `scratch`: a handle or
    sampler that is invalid, or a texture of another geometry."""
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data, HANDLE_ROW, lane)
            start = descriptor_row(table, handle)
            if start < 0:
                return fail(scratch, BAD_HANDLE, lane, handle, 0)
            if not matches_request(table, start, TEXTURE, request >> GEOMETRY_AT & 15):
                return fail(scratch, OTHER_GEOMETRY, lane, handle, descriptor_code(table, start))
            sampler = int(table[start + SAMPLER])
            if request >> HAS_SAMPLER & 1:
                sampler = sampler_at(table, memory, data, lane)
                if sampler == 0:
                    return fail(scratch, BAD_HANDLE, lane, handle, 1)
            if request >> OP & 15 == GATHER:
                gather(table, start, sampler, memory, data, lane, request, scratch, record)
            else:
                fetch(table, start, sampler, memory, data, lane, request, scratch, record)
            texel = format_bytes(int(table[start + FORMAT])) * int(table[start + COMPONENTS])
            record[BYTES_REQUESTED] += texel
    return 0


@jitable
def surface_lanes(
    table: Ints, memory: Memory, data: Addresses, scratch: Ints, record: Ints, plan: Plan,
    mask: int, request: int, block: int,
) -> int:  # fmt: skip
    """Executes `suld`, `sust` or `sured` in the lanes of `mask`. First checks each lane, stores its
    offset in ADDRESS_ROW (`locate_access`) and the index of its surface's row in HANDLE_ROW, in
    place of the handle, and counts its bytes and sectors; only then `access_surfaces` accesses
    memory, so that a fault (an invalid handle, another geometry, out of bounds, misaligned) leaves
    it unchanged. Returns 0, or 1 with the fault in `scratch`."""
    addressed, size = 0, 0
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data, HANDLE_ROW, lane)
            start = descriptor_row(table, handle)
            if start < 0:
                return fail(scratch, BAD_HANDLE, lane, handle, 0)
            if not matches_request(table, start, SURFACE, request >> GEOMETRY_AT & 15):
                return fail(scratch, OTHER_GEOMETRY, lane, handle, descriptor_code(table, start))
            size = access_bytes(table, start, request)
            kind = locate_access(table, start, data, lane, request)
            if kind != 0:
                x, y = signed_at(data, X_ROW, lane), signed_at(data, Y_ROW, lane)
                return fail(scratch, kind, lane, x, y if kind == OUTSIDE_SURFACE else size)
            record[BYTES_REQUESTED] += size
            address = int(np.int64(data[32 * ADDRESS_ROW + lane]))
            if address >= 0:
                addressed |= 1 << lane
                touch(address, scratch, record)
                touch(address + size - 1, scratch, record)
            data[32 * HANDLE_ROW + lane] = start
    access_surfaces(table, memory, data, record, plan, mask, addressed, request, block)
    return 0


@jitable
def access_surfaces(
    table: Ints, memory: Memory, data: Addresses, record: Ints, plan: Plan,
    mask: int, addressed: int, request: int, block: int,
) -> None:  # fmt: skip
    """Loads, stores or reduces in the checked lanes, in an order that the policy chooses for
    reductions; of stores to one address, only the one that the policy lets last is executed. Only
    the lanes `addressed` of `mask` are in bounds: others load zeros and store nothing. HANDLE_ROW
    holds the index of each lane's table row. Adds the passes of reductions to `record`, and counts
    changes of memory in `plan`: one for the stores, one for each reduction that changes a value."""
    op = request >> OP & 15
    if op in (STORE, STORE_FORMATTED):
        plan.changes += 1
        addressed = lasting(data, addressed, plan, block)
    order = 32
    if op in (REDUCE, REDUCE_FORMATTED) and addressed != 0:
        # ADDRESS_ROW is row 0, so the cost rules take `data` as the array of addresses.
        count_passes(data, addressed, 1, record)
        order = lane_order(data, addressed, plan, block)
    for turn in range(32):
        lane = (order + turn * (order >> 5)) % 32
        address = int(np.int64(data[32 * ADDRESS_ROW + lane]))
        start = int(np.int64(data[32 * HANDLE_ROW + lane]))
        if op == LOAD:
            if mask >> lane & 1:
                load_lane(memory, data, lane, address, request)
        elif addressed >> lane & 1:
            if op == STORE:
                store_lane(memory, data, lane, address, request)
            elif op == STORE_FORMATTED:
                store_texel(table, start, memory, data, lane, address, request)
            else:
                plan.changes += reduce_lane(table, start, memory, data, lane, address, request)


# ---- queries ------------------------------------------------------------------------------------


@jitable
def serve_query(
    table: Ints, memory: Memory, data: Addresses, scratch: Ints, mask: int, request: int
) -> int:
    """Executes `txq`, `suq` or `istypep` in the lanes of `mask`, and stores each result in
    RESULT_ROW. Returns 0, or 1 after a fault: an invalid handle, but not for `istypep`. Queries of
    sampler properties (from NORMALIZED_OF on) are of a sampler, or of a texture's own one; the
    others need a texture or surface. The level operand is clamped to 0 to MOST_LEVELS."""
    query = request >> COMPONENT & 15
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data, HANDLE_ROW, lane)
            start = descriptor_row(table, handle)
            if request >> OP & 15 == IS_TYPE:
                result = is_kind(table, start, handle, query)
            else:
                sampler = sampler_of(table, start, handle)
                if sampler == 0 or (start < 0 and query < NORMALIZED_OF):
                    return fail(scratch, BAD_HANDLE, lane, handle, 0)
                if query >= NORMALIZED_OF:
                    result = query_sampler(sampler, query)
                else:
                    level = min(max(signed_at(data, LOD_ROW, lane), 0), MOST_LEVELS)
                    result = query_texture(table, start, level, query)
            data[32 * RESULT_ROW + lane] = result
    return 0


@jitable
def is_kind(table: Ints, start: int, value: int, query: int) -> int:
    """Returns 1 if the handle or sampler `value`, whose table row is `start` (negative: none), is a
    texture, surface or sampler, as `query` (IS_TEXTURE, ...) names (PTX ISA, istypep), else 0."""
    if query == IS_SAMPLER:
        return 1 if is_sampler(value) else 0
    kind = SURFACE if query == IS_SURFACE else TEXTURE
    return 1 if start >= 0 and table[start + KIND] == kind else 0


@jitable
def query_sampler(sampler: int, query: int) -> int:
    """Returns a property of an encoded sampler: 1 or 0 for normalized and unnormalized coordinates
    and for linear filtering, or the address mode of an axis (PTX ISA, txq)."""
    if query == FILTER_OF:
        return sampler & LINEAR
    if query >= MODE_OF:
        return mode_of(sampler, query - MODE_OF)
    normalized = 1 if sampler & NORMALIZED else 0
    return 1 - normalized if query == UNNORMALIZED_OF else normalized


@jitable
def query_texture(table: Ints, start: int, level: int, query: int) -> int:
    """Returns a property of a texture or surface: width, height or depth of mipmap level `level`,
    number of layers or levels, channel order or type; 1 for number of samples and memory layout
    (PTX ISA, txq and suq)."""
    if query == WIDTH_OF:
        return extent(table, start, WIDTH, level)
    if query == HEIGHT_OF:
        return extent(table, start, HEIGHT, level)
    if query == DEPTH_OF:
        return extent(table, start, DEPTH, level)
    if query == LAYERS_OF:
        return int(table[start + LAYERS])
    if query == LEVELS_OF:
        return int(table[start + LEVELS])
    if query == ORDER_OF:
        return channel_order(int(table[start + COMPONENTS]))
    if query in (SAMPLES_OF, LAYOUT_OF):
        return 1
    return channel_type(int(table[start + FORMAT]), int(table[start + AS_FLOAT]))


@jitable
def channel_order(components: int) -> int:
    """Returns the OpenCL code of the channel order of 1, 2 or 4 components: R, RG or RGBA (PTX ISA,
    "Channel Data Type and Channel Order")."""
    if components == 1:
        return 0x10B0
    return 0x10B2 if components == 2 else 0x10B5


@jitable
def channel_type(format: int, as_float: int) -> int:
    """Returns the OpenCL code of the type of a component (PTX ISA, "Channel Data Type and Channel
    Order"): a normalized one for integers that are read as floats."""
    numbers = (0x10DA, 0x10D7, 0x10DB, 0x10D8, 0x10DD, 0x10DC, 0x10D9, 0x10DE)
    normalized = (0x10D2, 0x10D0, 0x10D3, 0x10D1)
    return normalized[format] if as_float and format < 4 else numbers[format]
