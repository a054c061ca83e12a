"""Executes the texture and surface instructions of a warp, for the interpreter and compiled
kernels: resolves handles, executes lane by lane, counts sectors.

Both machines call `serve_texels` with the same arrays (`texture.descriptors`): `table`: the
textures; `memory`: device memory as bytes; `data`: operands and results of 32 lanes; `issue`:
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
    FETCH,
    GATHER,
    GEOMETRY_AT,
    HAS_SAMPLER,
    IS_TYPE,
    LOAD,
    NO_PATH,
    OP,
    OTHER_GEOMETRY,
    OUTSIDE_SURFACE,
    QUERY,
    REDUCE,
    REDUCE_FORMATTED,
    STORE,
    STORE_FORMATTED,
    SURFACE,
    TEXTURE,
    TexelIssue,
    TexelOperands,
    TextureHeader,
    TextureRow,
)
from warploom.texture.fetch import fetch, gather, signed_at
from warploom.texture.handles import (
    descriptor_code,
    descriptor_row,
    fail,
    lane_handle,
    matches_request,
    sampler_at,
)
from warploom.texture.queries import serve_query
from warploom.texture.surface import (
    access_bytes,
    load_lane,
    locate_access,
    reduce_lane,
    store_lane,
    store_texel,
)
from warploom.texture.texels import Memory, count_sector, format_bytes


@jitable
def serve_texels(
    table_words: Ints, memory: Memory, data_words: Addresses, issue_words: Ints, record: Ints,
    caches: Ints, schedule: Ints,
) -> int:  # fmt: skip
    """Executes a texture or surface instruction: stores results in `data`, and counts the request
    and its sectors, one transaction each, in `record` and, if `path` is not NO_PATH, in the
    simulated caches. Queries and an empty mask count nothing. Returns 0, or 1 with the fault of the
    lowest faulting lane in `issue`: the request is then not counted, but the sectors of the lanes
    before that lane are."""
    table, data = TextureHeader(table_words, 0), TexelOperands(data_words, 0)
    issue = TexelIssue(issue_words, 0)
    issue.fault_kind = 0
    issue.touched = 0
    if issue.mask == 0:
        return 0
    op, path = issue.request >> OP & 15, issue.path
    if op in (QUERY, IS_TYPE):
        return serve_query(table, memory, data, issue)
    costs = CostRecord(record, 0)
    sectors = costs.sectors
    if op in (FETCH, GATHER):
        failed = fetch_lanes(table, memory, data, issue, record)
    else:
        failed = surface_lanes(table, memory, data, issue, record, Plan(schedule, 0))
    if failed:
        return 1
    moved = costs.sectors - sectors
    costs.requests += 1
    costs.transactions += moved
    costs.transactions_32 += moved
    costs.bytes_moved += 32 * moved
    if path != NO_PATH:
        hierarchy = CacheHierarchy(caches, 0)
        sm = issue.block % hierarchy.sms
        for index in range(issue.touched):
            sector = int(issue.sectors[index])
            look_up_sector(hierarchy, sm, sector >> 2, 1 << (sector & 3), path, record)
    return 0


@jitable
def fetch_lanes(
    table: TextureHeader, memory: Memory, data: TexelOperands, issue: TexelIssue, record: Ints
) -> int:
    """Executes `tex` or `tld4`, in order of lanes, with the sampler
    operand or, without one, the texture's own sampler, and adds the bytes of one texel per lane to
    `bytes_requested`. Returns 0, or 1 at the first lane with a fault, recorded in `issue`: a handle
    or sampler that is invalid, or a texture of another geometry; the lanes before it have been
    executed and counted."""
    request = issue.request
    for lane in range(32):
        if issue.mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if texture.at == 0:
                return fail(issue, BAD_HANDLE, lane, handle, 0)
            if not matches_request(texture, TEXTURE, request >> GEOMETRY_AT & 15):
                return fail(issue, OTHER_GEOMETRY, lane, handle, descriptor_code(texture))
            sampler = texture.sampler
            if request >> HAS_SAMPLER & 1:
                sampler = sampler_at(table, memory, data, lane)
                if sampler == 0:
                    return fail(issue, BAD_HANDLE, lane, handle, 1)
            if request >> OP & 15 == GATHER:
                gather(texture, sampler, memory, data, lane, issue, record)
            else:
                fetch(texture, sampler, memory, data, lane, issue, record)
            texel = format_bytes(texture.format) * texture.components
            CostRecord(record, 0).bytes_requested += texel
    return 0


@jitable
def surface_lanes(
    table: TextureHeader, memory: Memory, data: TexelOperands, issue: TexelIssue, record: Ints,
    plan: Plan,
) -> int:  # fmt: skip
    """Executes `suld`, `sust` or `sured` in the lanes that issue. First checks each lane, stores
    its offset in `address` (`locate_access`) and the index of its surface's row in `handle`,
    instead of the handle, and counts its bytes and sectors. Only then does `access_surfaces` access
    memory: a fault (an invalid handle, another geometry, out of bounds, misaligned) leaves memory
    unchanged. Returns 0, or 1 with the fault in `issue`."""
    addressed, size, request = 0, 0, issue.request
    for lane in range(32):
        if issue.mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if texture.at == 0:
                return fail(issue, BAD_HANDLE, lane, handle, 0)
            if not matches_request(texture, SURFACE, request >> GEOMETRY_AT & 15):
                return fail(issue, OTHER_GEOMETRY, lane, handle, descriptor_code(texture))
            size = access_bytes(texture, request)
            kind = locate_access(texture, data, lane, request)
            if kind != 0:
                x, y = signed_at(data.x, lane), signed_at(data.y, lane)
                return fail(issue, kind, lane, x, y if kind == OUTSIDE_SURFACE else size)
            CostRecord(record, 0).bytes_requested += size
            address = int(np.int64(data.address[lane]))
            if address >= 0:
                addressed |= 1 << lane
                count_sector(address, issue, record)
                count_sector(address + size - 1, issue, record)
            data.handle[lane] = texture.at
    access_surfaces(table, memory, data, issue, record, plan, addressed)
    return 0


@jitable
def access_surfaces(
    table: TextureHeader, memory: Memory, data: TexelOperands, issue: TexelIssue, record: Ints,
    plan: Plan, addressed: int,
) -> None:  # fmt: skip
    """Loads, stores or reduces in the checked lanes, in an order that the policy chooses for
    reductions; of stores to one address, only the one that the policy lets last is executed. Only
    the lanes `addressed` of those that issue are in bounds: others load zeros and store nothing.
    `handle` holds the index of each lane's table row. Adds the passes of reductions to `record`,
    and counts changes of memory in `plan`: one for the stores, one for each reduction that changes
    a value."""
    request, block = issue.request, issue.block
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
            if issue.mask >> lane & 1:
                load_lane(memory, data, lane, address, request)
        elif addressed >> lane & 1:
            if op == STORE:
                store_lane(memory, data, lane, address, request)
            elif op == STORE_FORMATTED:
                store_texel(texture, memory, data, lane, address, request)
            else:
                plan.changes += reduce_lane(texture, memory, data, lane, address, request)
