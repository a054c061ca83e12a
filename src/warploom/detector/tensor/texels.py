"""Records accesses to textures and surfaces in the race detector: the texels that each lane reads
or writes, as accesses of its thread to global memory.

Texture caches are not coherent during a launch: a texel that the launch has written must not be
read as one (CUDA C++ Programming Guide, "Texture and Surface Memory", "Read/Write Coherency").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.detector.detect import begin_event
from warploom.detector.knowledge import set_current_lane, set_current_thread
from warploom.detector.layout import ATOMIC as UPDATES
from warploom.detector.layout import GLOBAL
from warploom.detector.layout import LOAD as READS
from warploom.detector.layout import STORE as WRITES
from warploom.detector.records import DetectorEvent, DetectorState
from warploom.detector.tensor.tensor_copies import PIECE, record_bytes
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.descriptors import (
    ELEMENT,
    FETCH,
    GATHER,
    GEOMETRY_AT,
    HAS_SAMPLER,
    IS_TYPE,
    LOAD,
    OP,
    PARTS,
    QUERY,
    STORE,
    STORE_FORMATTED,
    SURFACE,
    TEXTURE,
    TexelIssue,
    TexelOperands,
    TextureHeader,
    corner_of,
)
from warploom.texture.fetch import fetch, gather
from warploom.texture.handles import descriptor_row, lane_handle, matches_request, sampler_at
from warploom.texture.surface import access_bytes, locate_access
from warploom.texture.texels import format_bytes

LANES = 32


def detect_texels(
    state_words: Any, event_words: Any, schedule: Any, all_memory: Any, table_words: Any,
    memory: Any, data_words: Any, issue_words: Any, values: Any,
) -> int:  # fmt: skip
    """Records which texels the lanes of an event read or write by a texture or surface instruction,
    whose arguments are those of `texture.requests.serve_texels`; nothing for queries. A fetch is
    executed to find its texels, which it leaves in `issue` as corners; those outside of the texture
    read nothing. `all_memory` is the host's memory by address; `values` is a buffer for stored
    bytes. Returns 0; faults are reported by the code that executes the request: a lane out of
    bounds is skipped here, and the first whose handle is invalid or of another geometry ends the
    recording."""
    state, event = DetectorState(state_words, 0), DetectorEvent(event_words, 0)
    table, data = TextureHeader(table_words, 0), TexelOperands(data_words, 0)
    issue = TexelIssue(issue_words, 0)
    request = issue.request
    op = request >> OP & 15
    if op in (QUERY, IS_TYPE):
        return 0
    begin_event(state, event, Plan(schedule, 0))
    set_current_thread(state, event.warp << 5)
    for lane in range(LANES):
        if event.lanes >> lane & 1 == 0:
            continue
        texture = descriptor_row(table, lane_handle(table, memory, data.handle, lane))
        kind = TEXTURE if op in (FETCH, GATHER) else SURFACE
        if texture.at == 0 or not matches_request(texture, kind, request >> GEOMETRY_AT & 15):
            return 0
        set_current_lane(state, (event.warp << 5) + lane)
        if kind == TEXTURE:
            sampler = texture.sampler
            if request >> HAS_SAMPLER & 1:
                sampler = sampler_at(table, memory, data, lane)
            issue.touched = issue.corners = 0
            if op == GATHER:
                gather(texture, sampler, memory, data, lane, issue, issue.counts)
            else:
                fetch(texture, sampler, memory, data, lane, issue, issue.counts)
            size = format_bytes(texture.format) * texture.components
            for corner in range(issue.corners):
                address = corner_of(issue, corner).address
                if address >= 0:
                    at = table.base + address
                    record_bytes(state, event, all_memory, values, lane, (GLOBAL, READS), at, size)
        elif locate_access(texture, data, lane, request) == 0:
            address = int(np.int64(data.address[lane]))
            if address >= 0:
                size, access_op = access_bytes(texture, request), UPDATES
                if op == LOAD:
                    access_op = READS
                elif op in (STORE, STORE_FORMATTED):
                    access_op = WRITES
                    stage_stored_bytes(state, data, values, lane, size, request)
                at = table.base + address
                record_bytes(state, event, all_memory, values, lane, (GLOBAL, access_op), at, size)
    return 0


@jitable
def stage_stored_bytes(
    state: DetectorState, data: TexelOperands, values: Any, lane: int, size: int, request: int
) -> None:
    """Writes the first bytes (up to PIECE) that a lane stores to a surface into `values`, from
    index lane * `size` on; the detector compares them with a racing write's. For `sust.p`, whose
    format converts them, writes bytes of the thread's number instead, which differ between
    threads."""
    element = request >> ELEMENT & 31
    for byte in range(min(size, PIECE)):
        value = state.current_thread >> 8 * (byte & 3)
        if request >> OP & 15 == STORE and byte // element < request >> PARTS & 7:
            word = int(np.int64(data.value[LANES * (byte // element) + lane]))
            value = word >> 8 * (byte % element)
        values[lane * size + byte] = value & 255
