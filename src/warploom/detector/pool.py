"""Allocates what the race detector retains in the pool, the end of its array, which is never freed
during a launch, except for nodes of lists; and counts findings."""

from __future__ import annotations

from warploom.detector.layout import LOW, MOST_FINDINGS
from warploom.detector.records import AccessNode, DetectorFinding, DetectorState
from warploom.simt.lane_counts import jitable


@jitable
def allocate(state: DetectorState, words: int) -> int:
    """Returns the index of `words` new words of the pool, all zero; 0, with `exhausted` set, if
    none are left."""
    at = state.pool_at
    if at + words > state.pool_end:
        state.exhausted = 1
        return 0
    state.pool_at = at + words
    return int(at)


@jitable
def push_record(
    state: DetectorState,
    head: int,
    interval_word: int,
    thread_word: int,
    access_word: int,
    value: int,
) -> int:
    """Prepends a record of an access to a list and returns the list's new head, a freed node or one
    from the pool; returns `head` itself, the record lost, if the pool is exhausted."""
    node = AccessNode(state, state.free_nodes)
    if node.at != 0:
        state.free_nodes = node.next
    else:
        node = AccessNode(state, allocate(state, AccessNode.WORDS))
        if node.at == 0:
            return head
    node.next = head
    node.interval = interval_word
    node.thread = thread_word
    node.access = access_word
    node.value = value
    return int(node.at)


@jitable
def free_node(state: DetectorState, node: AccessNode) -> None:
    """Puts a node of a list into the list of free ones (`free_nodes`), from which `push_record`
    gets it."""
    node.next = state.free_nodes
    state.free_nodes = node.at


@jitable
def free_lists(state: DetectorState, lists: int) -> None:
    """Frees the nodes of both lists of a cell, of wide accesses (`cells.is_strong_at_gpu_scope`)
    and of all others, whose heads are packed in `lists` as in `ShadowCell.lists`."""
    for node in (lists & LOW, lists >> 32):
        while node:
            following = AccessNode(state, node).next
            free_node(state, AccessNode(state, node))
            node = following


@jitable
def report(
    state: DetectorState,
    kind: int,
    other_instruction: int,
    other_thread: int,
    address: int,
    size: int,
    detail: int,
) -> None:
    """Counts a finding of the current thread and instruction, and retains the first (with its
    thread, address, size, detail and the owner of the memory) for each kind, pair of instructions
    and space; beyond MOST_FINDINGS only their number (`left_out`). `other_instruction` is the other
    instruction, -1 for none; `other_thread` the other block << 32 | thread, -1 for none; `detail`
    depends on the kind."""
    instruction, space = state.current_instruction, state.current_space
    # Equal findings are counted together.
    for index in range(state.findings):
        earlier = DetectorFinding(state, state.findings_at, index)
        same = earlier.kind == kind and earlier.instruction == instruction
        if same and earlier.other_instruction == other_instruction and earlier.space == space:
            earlier.count += 1
            return
    if state.findings >= MOST_FINDINGS:
        state.left_out += 1
        return
    finding = DetectorFinding(state, state.findings_at, state.findings)
    state.findings += 1
    finding.kind = kind
    finding.instruction = instruction
    finding.other_instruction = other_instruction
    finding.space = space
    finding.address = address
    finding.thread = state.current_block << 32 | state.current_thread
    finding.other_thread = other_thread
    finding.count = 1
    finding.size = size
    finding.detail = detail
    finding.owner = state.current_owner
