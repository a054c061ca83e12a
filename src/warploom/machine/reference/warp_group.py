"""Executes `wgmma` on the reference machine: products of a warp group, of which each warp computes
its own 16 rows.

A product completes when it is issued, or when the warp waits for it (`simt.product_groups`); only
then are its registers and shared memory read. Descriptors and scalar operands are read at issue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.core.types import B32, PRED, U32, U64
from warploom.isa.instruction import Immediate, Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.isa.shared_matrices import UNIT_BYTES, SharedOperand, unit_address
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.access import gather, part
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lane_access import AccessRequest
from warploom.machine.reference.lanes import Values, collect, lanes_of
from warploom.machine.reference.matrix import (
    Matrix,
    Metadata,
    assemble,
    matrix_product,
    read_matrix,
    read_metadata,
    write_matrix,
)
from warploom.machine.reference.operands import read
from warploom.machine.reference.state import Warp
from warploom.program.warp_groups import GroupOperands, group_operands
from warploom.simt.product_groups import CAPACITY, completes_late
from warploom.simt.schedule_layout import GROUP_WARPS

WORDS = UNIT_BYTES // U32.bytes


@dataclass(frozen=True)
class Issued:
    """A product that was issued in the lanes `on` and may be in flight (`Warp.in_flight`):
    instruction `index`, in the warp's commit group number `group`. `descriptors` are the words of
    `GroupOperands.descriptors`; `scaled` is true in the lanes whose elements of D are added."""

    index: int
    group: int
    on: Values
    operands: GroupOperands
    descriptors: tuple[int, int]
    scaled: Values
    metadata: Metadata | None


def execute_warp_group(
    warp: Warp, index: int, instruction: Instruction, mask: int, on: Values
) -> None:
    """Executes any `wgmma` but the fence, in the lanes of `mask` (`on`: the same set as a
    predicate): issues a product, closes the open group (`commit_group`), or completes the products
    of all but the newest n closed groups (`wait_group n`)."""
    kind = instruction.operation.kind
    if kind is OpKind.GROUP_PRODUCT:
        _issue_product(warp, index, instruction, mask, on)
    elif kind is OpKind.GROUP_COMMIT:
        warp.group += 1
    else:
        # `wait_group n`: the newest n of the closed groups, numbered up to `warp.group` - 1, may
        # stay in flight.
        pending = instruction.operands[0]
        assert isinstance(pending, Immediate)
        while warp.in_flight and warp.in_flight[0].group + pending.value < warp.group:
            _complete(warp, warp.in_flight.popleft())


def _issue_product(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Reads the scalar operands of a product, descriptors as the lowest lane of `mask` has them,
    and completes it at once, or puts it in flight if the schedule completes it late. Raises the
    fault of a warp group that is not whole, or of too many products in flight."""
    operands = group_operands(instruction)
    lane = lanes_of(mask)[0]
    # The last warps of a block may be fewer than a group.
    if warp.number // GROUP_WARPS * GROUP_WARPS + GROUP_WARPS > warp.run.launch.warps_per_block:
        _fault(warp, FaultKind.PART_OF_A_WARP_GROUP, index, lane)
    a, b = (int(read(warp, operand, U64)[lane]) for operand in operands.descriptors)
    issued = Issued(
        index,
        warp.group,
        on,
        operands,
        (a, b),
        read(warp, operands.scale_d, PRED),
        None if operands.metadata is None else read_metadata(warp, *operands.metadata),
    )
    if not completes_late(warp.run.plan, warp.block.number, warp.number):
        _complete(warp, issued)
        return
    if len(warp.in_flight) == CAPACITY:
        _fault(warp, FaultKind.TOO_MANY_IN_FLIGHT, index, lane)
    warp.in_flight.append(issued)


def _fault(warp: Warp, kind: FaultKind, index: int, lane: int) -> None:
    """Raises the fault of a lane of the warp at instruction `index`."""
    fault = Fault(kind, index, warp.block.number, warp.number, lane)
    raise fault_error(fault, warp.run.program, warp.run.launch, None)


def _complete(warp: Warp, issued: Issued) -> None:
    """Computes the warp's rows of a product, from registers and shared memory as they are now, and
    writes them to the registers of D: A * B, negated if the immediates state it, plus the old D in
    the lanes where `scale-d` is true."""
    operands, group_product = issued.operands, issued.operands.product
    product = group_product.product
    if group_product.shared_a is None:
        a = read_matrix(warp, product.a, operands.a)
    else:
        a = _read_shared_matrix(
            warp, issued, group_product.shared_a, issued.descriptors[0], warp.number % GROUP_WARPS
        )
    b = _read_shared_matrix(
        warp, issued, group_product.shared_b, issued.descriptors[1], first_block=0
    )
    c = read_matrix(warp, product.d, operands.d)
    adds_d = _spread_lanes(product.d.holders, issued.scaled, c.shape)
    # `imm-scale-a` and `imm-scale-b` of -1 negate the product.
    a = -a if group_product.negated else a
    total = matrix_product(product, a, b, np.where(adds_d, c, np.zeros_like(c)), issued.metadata)
    write_matrix(warp, product.d, operands.d, total, issued.on)


def _spread_lanes(
    holders: dict[tuple[int, int], tuple[int, int]], lanes: Values, shape: tuple[int, ...]
) -> Matrix:
    """Returns a matrix of booleans of that shape: each element has the value in `lanes` of the lane
    that holds it (`holders`: (row, column) to (lane, element)), false if no lane holds it."""
    result = np.zeros(shape, np.bool_)
    for position, (lane, _) in holders.items():
        result[position] = lanes[lane]
    return result


def _read_shared_matrix(
    warp: Warp, issued: Issued, operand: SharedOperand, descriptor: int, first_block: int
) -> Matrix:
    """Returns the rows of the matrix in shared memory that a descriptor names, `operand.rows` of
    them, from block of rows `first_block` on: of A, each warp has the block of its number."""
    blocks = [
        _read_block(warp, issued, operand, descriptor, (first_block + block, block))
        for block in range(operand.blocks)
    ]
    return np.concatenate(blocks)[: operand.rows]


def _read_block(
    warp: Warp, issued: Issued, operand: SharedOperand, descriptor: int, blocks: tuple[int, int]
) -> Matrix:
    """Returns one block of rows of the matrix in shared memory that `descriptor` names, read in
    requests of one 16-byte unit per lane; `blocks` are its number in memory and in the part that
    the warp reads."""
    block_in_memory, block_in_matrix = blocks
    first_line, first_position = operand.step(block_in_memory)
    request = AccessRequest(issued.index, Space.SHARED, "load", UNIT_BYTES)
    words: list[Values] = []
    for number in range(operand.requests):
        units = [operand.unit_of(number, lane) for lane in range(warp.size)]
        arguments = [
            collect([descriptor] * warp.size, U64),
            collect([first_line + line for line, _ in units], U32),
            collect([first_position + position_in_line for _, position_in_line in units], U32),
        ]
        addresses_by_lane = evaluate(
            unit_address(operand.transposed), arguments, warp.size
        ).tolist()
        mask = sum(operand.has(block_in_matrix, number, lane) << lane for lane in range(warp.size))
        data = gather(warp, request, addresses_by_lane, mask)
        words += [part(data, word, B32) for word in range(WORDS)]
    return assemble(operand.fragment, words)
