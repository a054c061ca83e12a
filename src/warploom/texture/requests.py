"""Executes the texture and surface instructions of a warp, for the interpreter and compiled
kernels: resolves handles, executes lane by lane, counts sectors.

Both machines call `serve_texels` with the same arrays (`texture.descriptors`): `table`: the
textures; `memory`: device memory as bytes; `data`: operands and results of 32 lanes; `scratch`:
fault and work space; `record`: the counters of the access. Functions that can fault return 0, or 1
with the fault recorded. `texture` is the row of a texture; at index 0, where the header is, for
none."""

from __future__ import annotations

import numpy as np

from warploom.cost.atomics import count_passes, lane_order
from warploom.cost.caches import CacheHierarchy, look_up_sector
from warploom.cost.fields import CostRecord
from warploom.cost.writes import lasting
from warploom.simt.lane_counts import Addresses, Ints, jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.descriptors import (
    BAD_HANDLE,
    COMPONENT,
    CUBE,
    CUBE_ARRAY,
    DEPTH_OF,
    FETCH,
    FILTER_OF,
    FREE,
    GATHER,
    GEOMETRY_AT,
    HANDLE_TAG,
    HAS_SAMPLER,
    HEIGHT_OF,
    IS_SAMPLER,
    IS_SURFACE,
    IS_TYPE,
    LAYERS_OF,
    LAYOUT_OF,
    LEVELS_OF,
    LINEAR,
    LOAD,
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
    SAMPLER_TAG,
    SAMPLES_OF,
    STORE,
    STORE_FORMATTED,
    SURFACE,
    TEXTURE,
    TWO_ARRAY,
    UNNORMALIZED_OF,
    WIDTH_OF,
    TexelOperands,
    TexelScratch,
    TextureHeader,
    TextureRow,
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
from warploom.texture.texels import Memory, count_sector, format_bytes, read_bytes

NO_PATH = -1
"""The value of `path` if no caches are simulated (`cost.caches`)."""


@jitable
def serve_texels(
    table_words: Ints, memory: Memory, data_words: Addresses, scratch_words: Ints, record: Ints,
    caches: Ints, schedule: Ints, mask: int, request: int, path: int, block: int,
) -> int:  # fmt: skip
    """Executes a texture or surface instruction, which `request` encodes as bit fields, in the
    lanes of `mask` of a block with grid index `block`: stores results in `data`, and counts the
    request and its sectors, one transaction each, in `record` and, if `path` is not NO_PATH, in the
    simulated caches. Queries and an empty `mask` count nothing. Returns 0, or 1 with the fault of
    the lowest lane in `scratch`; then the request is not counted, but the sectors of the lanes
    before that one are."""
    table, data = TextureHeader(table_words, 0), TexelOperands(data_words, 0)
    scratch = TexelScratch(scratch_words, 0)
    scratch.fault_kind = 0
    scratch.touched = 0
    if mask == 0:
        return 0
    op = request >> OP & 15
    if op in (QUERY, IS_TYPE):
        return serve_query(table, memory, data, scratch, mask, request)
    costs = CostRecord(record, 0)
    sectors = costs.sectors
    if op in (FETCH, GATHER):
        failed = fetch_lanes(table, memory, data, scratch, record, mask, request)
    else:
        plan = Plan(schedule, 0)
        failed = surface_lanes(table, memory, data, scratch, record, plan, mask, request, block)
    if failed:
        return 1
    moved = costs.sectors - sectors
    costs.requests += 1
    costs.transactions += moved
    costs.transactions_32 += moved
    costs.bytes_moved += 32 * moved
    if path != NO_PATH:
        hierarchy = CacheHierarchy(caches, 0)
        sm = block % hierarchy.sms
        for index in range(scratch.touched):
            sector = int(scratch.sectors[index])
            look_up_sector(hierarchy, sm, sector >> 2, 1 << (sector & 3), path, record)
    return 0


@jitable
def fail(scratch: TexelScratch, kind: int, lane: int, address: int, size: int) -> int:
    """Records the kind, lane, address and size of a fault (for some kinds, other details of its
    message in place of the last two) in the scratch array; returns 1."""
    scratch.fault_kind, scratch.fault_lane = kind, lane
    scratch.fault_address, scratch.fault_size = address, size
    return 1


# ---- handles ------------------------------------------------------------------------------------


@jitable
def resolve_handle(table: TextureHeader, memory: Memory, value: int) -> int:
    """Returns the handle or sampler that an operand `value` stands for: the value itself or, if it
    is an address in device memory, the 8 bytes there (a `.texref` variable in global memory)."""
    offset = value - table.base
    if offset >= 0 and offset + 8 <= table.size:
        return read_bytes(memory, offset, 8)
    return value


@jitable
def descriptor_row(table: TextureHeader, value: int) -> TextureRow:
    """Returns the row of a texture or surface handle; a record at offset 0 (`at`), where no row is,
    if the handle is invalid or freed, or if `value` is a sampler."""
    # Other values, as those of samplers, give an index that is negative or too large.
    index = value - HANDLE_TAG
    if index < 0 or index >= table.count:
        return TextureRow(table, 0)
    texture = TextureRow(table, TextureHeader.WORDS, index)
    return TextureRow(table, 0) if texture.kind == FREE else texture


@jitable
def lane_handle(table: TextureHeader, memory: Memory, row: Addresses, lane: int) -> int:
    """Returns the handle or sampler of a lane in a row of operands: the operand itself or, if it is
    an address in device memory, the 8 bytes there (`resolve_handle`)."""
    return resolve_handle(table, memory, int(np.int64(row[lane])))


@jitable
def sampler_at(table: TextureHeader, memory: Memory, data: TexelOperands, lane: int) -> int:
    """Returns the sampler operand of a lane as its encoded integer; for a texture's handle, that
    texture's sampler; 0 if it is neither."""
    value = lane_handle(table, memory, data.sampler, lane)
    return sampler_of(descriptor_row(table, value), value)


@jitable
def sampler_of(texture: TextureRow, value: int) -> int:
    """Returns the encoded sampler that the handle or sampler `value`, whose table row is `texture`,
    stands for: that of its texture, or the value itself; 0 if it is neither."""
    if texture.at:
        return texture.sampler
    return value if is_sampler(value) else 0


@jitable
def is_sampler(value: int) -> bool:
    """Returns whether a value is an encoded sampler: SAMPLER_TAG is its highest bit (of handles
    HANDLE_TAG, one above)."""
    return SAMPLER_TAG <= value < HANDLE_TAG


@jitable
def matches_request(texture: TextureRow, kind: int, expected: int) -> bool:
    """Returns whether a row has the kind and geometry that an instruction expects. A cube surface
    counts as a layered one (CUDA compiles surfCubemapread to `suld.a2d`)."""
    if texture.kind != kind:
        return False
    geometry = texture.geometry
    if kind == SURFACE and (geometry in (CUBE, CUBE_ARRAY)):
        geometry = TWO_ARRAY
    return geometry == expected


@jitable
def descriptor_code(texture: TextureRow) -> int:
    """Encodes kind and geometry of a row for a fault's record: the geometry, plus 16 for a
    surface."""
    return 16 * (texture.kind - TEXTURE) + texture.geometry


# ---- lanes --------------------------------------------------------------------------------------


@jitable
def fetch_lanes(
    table: TextureHeader,
    memory: Memory,
    data: TexelOperands,
    scratch: TexelScratch,
    record: Ints,
    mask: int,
    request: int,
) -> int:
    """Executes `tex` or `tld4`, by `request`, in the lanes of `mask`, in order, with the sampler
    operand or, without one, the texture's own sampler, and adds the bytes of one texel per lane to
    `bytes_requested`. Returns 0, or 1 at the first lane with a fault, recorded in `scratch`: a
    handle or sampler that is invalid, or a texture of another geometry; the lanes before it have
    been executed and counted."""
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if texture.at == 0:
                return fail(scratch, BAD_HANDLE, lane, handle, 0)
            if not matches_request(texture, TEXTURE, request >> GEOMETRY_AT & 15):
                return fail(scratch, OTHER_GEOMETRY, lane, handle, descriptor_code(texture))
            sampler = texture.sampler
            if request >> HAS_SAMPLER & 1:
                sampler = sampler_at(table, memory, data, lane)
                if sampler == 0:
                    return fail(scratch, BAD_HANDLE, lane, handle, 1)
            if request >> OP & 15 == GATHER:
                gather(texture, sampler, memory, data, lane, request, scratch, record)
            else:
                fetch(texture, sampler, memory, data, lane, request, scratch, record)
            texel = format_bytes(texture.format) * texture.components
            CostRecord(record, 0).bytes_requested += texel
    return 0


@jitable
def surface_lanes(
    table: TextureHeader, memory: Memory, data: TexelOperands, scratch: TexelScratch, record: Ints,
    plan: Plan, mask: int, request: int, block: int,
) -> int:  # fmt: skip
    """Executes `suld`, `sust` or `sured` in the lanes of `mask`. First checks each lane, stores its
    offset in `address` (`locate_access`) and the index of its surface's row in `handle`, in
    place of the handle, and counts its bytes and sectors; only then `access_surfaces` accesses
    memory, so that a fault (an invalid handle, another geometry, out of bounds, misaligned) leaves
    it unchanged. Returns 0, or 1 with the fault in `scratch`."""
    addressed, size = 0, 0
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if texture.at == 0:
                return fail(scratch, BAD_HANDLE, lane, handle, 0)
            if not matches_request(texture, SURFACE, request >> GEOMETRY_AT & 15):
                return fail(scratch, OTHER_GEOMETRY, lane, handle, descriptor_code(texture))
            size = access_bytes(texture, request)
            kind = locate_access(texture, data, lane, request)
            if kind != 0:
                x, y = signed_at(data.x, lane), signed_at(data.y, lane)
                return fail(scratch, kind, lane, x, y if kind == OUTSIDE_SURFACE else size)
            CostRecord(record, 0).bytes_requested += size
            address = int(np.int64(data.address[lane]))
            if address >= 0:
                addressed |= 1 << lane
                count_sector(address, scratch, record)
                count_sector(address + size - 1, scratch, record)
            data.handle[lane] = texture.at
    access_surfaces(table, memory, data, record, plan, mask, addressed, request, block)
    return 0


@jitable
def access_surfaces(
    table: TextureHeader, memory: Memory, data: TexelOperands, record: Ints, plan: Plan,
    mask: int, addressed: int, request: int, block: int,
) -> None:  # fmt: skip
    """Loads, stores or reduces in the checked lanes, in an order that the policy chooses for
    reductions; of stores to one address, only the one that the policy lets last is executed. Only
    the lanes `addressed` of `mask` are in bounds: others load zeros and store nothing. `handle`
    holds the index of each lane's table row. Adds the passes of reductions to `record`, and counts
    changes of memory in `plan`: one for the stores, one for each reduction that changes a value."""
    op = request >> OP & 15
    if op in (STORE, STORE_FORMATTED):
        plan.changes += 1
        addressed = lasting(data.address, addressed, plan, block)
    order = 32
    if op in (REDUCE, REDUCE_FORMATTED) and addressed != 0:
        count_passes(data.address, addressed, 1, record)
        order = lane_order(data.address, addressed, plan, block)
    for turn in range(32):
        lane = (order + turn * (order >> 5)) % 32
        address = int(np.int64(data.address[lane]))
        texture = TextureRow(table, int(np.int64(data.handle[lane])))
        if op == LOAD:
            if mask >> lane & 1:
                load_lane(memory, data, lane, address, request)
        elif addressed >> lane & 1:
            if op == STORE:
                store_lane(memory, data, lane, address, request)
            elif op == STORE_FORMATTED:
                store_texel(texture, memory, data, lane, address, request)
            else:
                plan.changes += reduce_lane(texture, memory, data, lane, address, request)


# ---- queries ------------------------------------------------------------------------------------


@jitable
def serve_query(
    table: TextureHeader,
    memory: Memory,
    data: TexelOperands,
    scratch: TexelScratch,
    mask: int,
    request: int,
) -> int:
    """Executes `txq`, `suq` or `istypep` in the lanes of `mask`, and stores each result in
    `result`. Returns 0, or 1 after a fault: an invalid handle, but not for `istypep`. Queries of
    sampler properties (from NORMALIZED_OF on) are of a sampler, or of a texture's own one; the
    others need a texture or surface. The level operand is clamped to 0 to MOST_LEVELS."""
    query = request >> COMPONENT & 15
    for lane in range(32):
        if mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if request >> OP & 15 == IS_TYPE:
                result = is_kind(texture, handle, query)
            else:
                sampler = sampler_of(texture, handle)
                if sampler == 0 or (texture.at == 0 and query < NORMALIZED_OF):
                    return fail(scratch, BAD_HANDLE, lane, handle, 0)
                if query >= NORMALIZED_OF:
                    result = query_sampler(sampler, query)
                else:
                    level = min(max(signed_at(data.lod, lane), 0), MOST_LEVELS)
                    result = query_texture(texture, level, query)
            data.result[lane] = result
    return 0


@jitable
def is_kind(texture: TextureRow, value: int, query: int) -> int:
    """Returns 1 if the handle or sampler `value`, whose table row is `texture`, is a texture,
    surface or sampler, as `query` (IS_TEXTURE, ...) names (PTX ISA, istypep), else 0."""
    if query == IS_SAMPLER:
        return 1 if is_sampler(value) else 0
    kind = SURFACE if query == IS_SURFACE else TEXTURE
    return 1 if texture.at and texture.kind == kind else 0


@jitable
def query_sampler(sampler: int, query: int) -> int:
    """Returns a property of an encoded sampler: NORMALIZED_OF, 1 if coordinates are normalized;
    UNNORMALIZED_OF, 1 if they are not; FILTER_OF, 1 if it filters linearly, each else 0; or the
    address mode of an axis (MODE_OF plus the axis; PTX ISA, txq)."""
    if query == FILTER_OF:
        return sampler & LINEAR
    if query >= MODE_OF:
        return mode_of(sampler, query - MODE_OF)
    normalized = 1 if sampler & NORMALIZED else 0
    return 1 - normalized if query == UNNORMALIZED_OF else normalized


@jitable
def query_texture(texture: TextureRow, level: int, query: int) -> int:
    """Returns a property of a texture or surface, by `query` (WIDTH_OF, ...): width, height or
    depth of mipmap level `level`, number of layers or levels, channel order or type; 1 for number
    of samples and memory layout (PTX ISA, txq and suq)."""
    if query == WIDTH_OF:
        return extent(texture.width, level)
    if query == HEIGHT_OF:
        return extent(texture.height, level)
    if query == DEPTH_OF:
        return extent(texture.depth, level)
    if query == LAYERS_OF:
        return texture.layers
    if query == LEVELS_OF:
        return texture.levels
    if query == ORDER_OF:
        return channel_order(texture.components)
    if query in (SAMPLES_OF, LAYOUT_OF):
        return 1
    return channel_type(texture.format, texture.as_float)


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
