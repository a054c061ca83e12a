"""Executes one instruction of one warp at a time on the reference machine, an interpreter:
dispatches it, and computes arithmetic in all lanes.

Arithmetic instructions are defined by terms (`isa.terms`), which `evaluate` computes; control flow
is in `control`, memory in `access`, and so on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warploom.core.types import B32, PRED, TYPES, U32, U64
from warploom.isa.instruction import (
    Immediate,
    Instruction,
    Operand,
    Pair,
    Space,
    Vector,
    flatten_operands,
)
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.routines import ordinary_results
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference import (
    access,
    collective,
    copies,
    matrix,
    matrix_rows,
    service,
    tensor_memory,
    tensors,
    texture,
    warp_group,
)
from warploom.machine.reference.control import CONTROL, advance
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.interrupts import interrupt, resume
from warploom.machine.reference.lanes import Values, collect, from_mask, lanes_of, resized, splat
from warploom.machine.reference.members import count_exited
from warploom.machine.reference.operands import WINDOWS, guard_mask, read, write
from warploom.machine.reference.preconditions import check_operands
from warploom.machine.reference.state import Warp
from warploom.program.program import PARAMETERS
from warploom.program.uses import member_mask
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.register_pool import set_registers
from warploom.simt.schedule_layout import RUNNABLE, TURN_END, WarpState


def begin_turn(warp: Warp) -> int:
    """Begins a turn of a warp: resets `used` and `failed_wait`, and continues where its lanes
    stopped (`resume`); returns RUNNABLE, or why it cannot run (`simt.scheduling`)."""
    warp.used, warp.failed_wait = 0, False
    return resume(warp)


def step_in_turn(warp: Warp) -> int:
    """Executes one instruction of a turn; returns RUNNABLE while the turn continues, else why it
    has ended: also TURN_END before an instruction of the schedule's `interrupts`, at which the
    lanes then resume."""
    status = step(warp)
    if status == RUNNABLE and warp.next in warp.run.launch.schedule.interrupts:
        interrupt(warp)
        status = TURN_END
    return status


def step(warp: Warp) -> int:
    """Executes the next instruction of a runnable warp in the active lanes whose guard holds;
    returns the warp's status (`simt.scheduling`), RUNNABLE if it can go on.

    First it counts the instruction, in the launch (`count_issue`, which raises InstructionLimit and
    LaunchCancelled) and in the turn (`warp.used`), unless it is hidden (maintains the stack of
    calls), and exited lanes in its member mask (`count_exited`). It reports the instruction: to the
    listener, to the observer (of branches) and, if the guard holds in any lane, to the sanitizer.
    If no guard holds, only control flow has an effect, and the warp advances.
    """
    index, run = warp.next, warp.run
    instruction = run.program.instructions[index]
    active = warp.splits.active
    warp.used += index not in run.program.hidden
    mask = active & guard_mask(warp, instruction)
    run.count_issue(index, active, mask)
    if run.listener is not None:
        run.listener.issued(warp, index, mask)
    if run.sanitizer is not None and mask:
        run.sanitizer.passes(warp, index, mask)
    if run.observer is not None:
        run.observer.branch(warp, index, instruction, mask)
    count_exited(warp, index, instruction, mask)
    control = CONTROL.get(instruction.operation.kind)
    if control is not None:
        return control(warp, index, instruction, mask)
    if mask:
        _execute(warp, index, instruction, mask)
    return advance(warp)


def _execute(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Executes an instruction that is not control flow in the lanes of `mask`, which is not empty,
    by the function for its kind (none if it is only issued); first checks its operands and
    completes asynchronous operations that it waits for."""
    check_operands(warp, index, instruction, mask)
    tensors.commit_or_wait(warp, instruction, mask)
    tensors.before_wait(warp, instruction, mask)
    tensor_memory.wait(warp, instruction)
    if not instruction.operation.has(Effect.ISSUE_ONLY):
        on = from_mask(mask, warp.size)
        EXECUTE[instruction.operation.kind](warp, index, instruction, mask, on)


# ---- values -------------------------------------------------------------------------------------


def _compute(warp: Warp, index: int, instruction: Instruction, _mask: int, on: Values) -> None:
    """Executes an instruction that computes the same function in each lane: evaluates its terms,
    writes the results in the lanes of `on`, and counts it if machine code calls a routine for some
    result."""
    operation = instruction.operation
    destination_count = len(operation.spec.destinations)
    targets = tuple(flatten_operands(instruction.operands[:destination_count]))
    sources = tuple(flatten_operands(instruction.operands[destination_count:]))
    arguments = [
        read(warp, source, type)
        for source, type in zip(sources, operation.source_types, strict=False)
        if type is not None
    ]
    terms = operation.terms_for(len(sources))[: len(targets)]
    results = [evaluate(term, arguments, warp.size) for term in terms]
    for target, term, result in zip(targets, terms, results, strict=True):
        write(warp, target, result, term.type, on)
    _count_routine(warp, index, instruction, on)


def _count_routine(warp: Warp, index: int, instruction: Instruction, on: Values) -> None:
    """Adds 1 to the instruction's `routine_calls` if machine code calls a routine for some lane of
    the predicate `on` (a square root of a subnormal, for example): one whose f32 result, already in
    the destination register, has a magnitude outside of `ordinary_results`. Nothing for operations
    without such bounds."""
    bounds = ordinary_results(instruction.operation)
    if bounds is not None:
        magnitude = read(warp, instruction.operands[0], U32) & np.uint32(0x7FFF_FFFF)
        special = (magnitude < bounds[0]) | (magnitude > bounds[1])
        warp.run.tally.routine_calls[index] += bool((special & on).any())


def _targets(destination: Operand) -> tuple[Operand, ...]:
    """Returns the destinations of an operand that may be a pair `d|p`."""
    if isinstance(destination, Pair):
        return destination.first, destination.second
    return (destination,)


def _is_packing(instruction: Instruction) -> bool:
    """Returns true if a `mov` packs a vector into a scalar or unpacks it: it has a vector operand
    and no modifier `vec`."""
    if "vec" in instruction.operation.modifiers:
        return False
    return any(isinstance(operand, Vector) for operand in instruction.operands)


def _move(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes a `mov` in the lanes of `mask` (`on`: the same set as a predicate): packs a vector
    into a register or unpacks it, else copies."""
    if _is_packing(instruction):
        _move_vector(warp, instruction, on)
    else:
        _compute(warp, index, instruction, mask, on)


def _move_vector(warp: Warp, instruction: Instruction, on: Values) -> None:
    """Executes a `mov` that packs a vector's elements into a scalar or unpacks a scalar into them,
    lowest element first, in the lanes where the predicate `on` is true."""
    destination, source = instruction.operands
    type = instruction.operation.modifiers.scalar()
    if isinstance(source, Vector):
        part = TYPES[f"b{type.bits // len(source.elements)}"]
        whole = splat(0, type, warp.size)
        for index, element in enumerate(source.elements):
            bits = resized(read(warp, element, part), type.bits)
            whole = whole | (bits << resized(splat(index * part.bits, B32, warp.size), type.bits))
        write(warp, destination, whole, type, on)
        return
    assert isinstance(destination, Vector)
    part = TYPES[f"b{type.bits // len(destination.elements)}"]
    value = read(warp, source, type)
    for index, element in enumerate(destination.elements):
        bits = value >> resized(splat(index * part.bits, B32, warp.size), type.bits)
        write(warp, element, resized(bits, part.bits), part, on)


def _convert_address(
    warp: Warp, _index: int, instruction: Instruction, _mask: int, on: Values
) -> None:
    """Executes `cvta` in the lanes of `on`: converts an address in a space to a generic one by
    adding the start of the space's window (0 for global, for parameters their address). With `.to`,
    converts a generic one back by subtracting it."""
    modifiers = instruction.operation.modifiers
    type = modifiers.scalar("size")
    space = Space(modifiers.text("space", "").partition("::")[0])
    window = _parameter_base(warp) if space is Space.PARAM else WINDOWS.get(space, 0)
    start = window * (-1 if "to" in modifiers else 1)
    converted = (a + start for a in read(warp, instruction.operands[1], type).tolist())
    write(warp, instruction.operands[0], collect(converted, type), type, on)


def _parameter_base(warp: Warp) -> int:
    """Returns the generic address of the kernel's parameters."""
    return warp.run.launch.globals[warp.run.program.slots[PARAMETERS].offset]


def _is_parameter(
    warp: Warp, _index: int, instruction: Instruction, _mask: int, on: Values
) -> None:
    """Executes `isspacep.param` in the lanes of `on`: true where a generic address is in the
    kernel's parameters."""
    destination, source = instruction.operands
    start, size = _parameter_base(warp), warp.run.program.parameter_bytes
    is_inside = (start <= a < start + size for a in read(warp, source, U64).tolist())
    write(warp, destination, collect(is_inside, PRED), PRED, on)


def _cluster_rank(
    warp: Warp, _index: int, instruction: Instruction, _mask: int, on: Values
) -> None:
    """Executes `getctarank` in the lanes of `on`: the rank in the cluster of the block in whose
    shared memory an address is; the own rank for an address that names no block."""
    destination, source = instruction.operands
    block_fields = (a % WINDOW_SIZE >> BLOCK_BITS for a in read(warp, source, U64).tolist())
    # A shared address with 0 in the block field is the block's own; others have the rank plus 1.
    ranks = (field - 1 if field else warp.block.rank for field in block_fields)
    write(warp, destination, collect(ranks, B32), B32, on)


def _set_registers(
    warp: Warp, index: int, instruction: Instruction, mask: int, _on: Values
) -> None:
    """Executes `setmaxnreg`: sets or requests the registers of the warp's threads; nothing if the
    kernel's directives give no count. Raises the fault (in the lowest lane of `mask`) of a count
    that `inc` would lower or `dec` raise."""
    count = instruction.operands[0]
    assert isinstance(count, Immediate)
    run, grows = warp.run, int("inc" in instruction.operation.modifiers.values.values())
    states = run.states[run.plan.slot * run.plan.warps * WarpState.WORDS :]
    error = set_registers(run.plan, states, warp.number, count.value, grows)
    if error:
        position = index, warp.block.number, warp.number, lanes_of(mask)[0], count.value, error
        fault = Fault(FaultKind.REGISTER_COUNT, *position)
        raise fault_error(fault, run.program, run.launch, None)


def _member_groups(warp: Warp, instruction: Instruction, mask: int) -> list[int]:
    """Returns the masks of lanes of `mask` that name the same members: each group executes an
    instruction across lanes by itself. One group of all lanes without a member mask, and for a
    shuffle, for which the groups make no difference."""
    members = member_mask(instruction)
    # A shuffle reads from a source lane by number; other instructions combine the lanes of one
    # mask.
    if members is None or instruction.operation.kind is OpKind.SHUFFLE:
        return [mask]
    groups: dict[int, int] = {}
    masks = read(warp, members, B32)
    for lane in lanes_of(mask):
        groups[int(masks[lane])] = groups.get(int(masks[lane]), 0) | 1 << lane
    return list(groups.values())


def _by_members(warp: Warp, _index: int, instruction: Instruction, mask: int, _on: Values) -> None:
    """Executes an instruction across lanes once for each group of lanes of `mask` that name the
    same member mask, among the lanes of the group."""
    for group in _member_groups(warp, instruction, mask):
        _collective(warp, instruction, group, from_mask(group, warp.size))


def _collective(warp: Warp, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes a shuffle, vote, match, reduction, `activemask` or `elect` among the lanes of `mask`
    (`on`: the same set as a predicate), and writes its result there: shuffles, `elect` and
    `match.all` write a pair of a value and a predicate."""
    operation, operands = instruction.operation, instruction.operands
    mode = operation.modifiers.text("mode", "")
    match operation.kind:
        case OpKind.SHUFFLE:
            a, b, c = (read(warp, operand, B32) for operand in operands[1:4])
            _write_pair(warp, operands[0], collective.shuffle(mode, a, b, c, mask), on)
        case OpKind.VOTE:
            result = collective.vote(mode, read(warp, operands[1], PRED), mask)
            write(warp, operands[0], result, B32 if mode == "ballot" else PRED, on)
        case OpKind.ACTIVE_MASK:
            write(warp, operands[0], splat(mask, B32, warp.size), B32, on)
        case OpKind.ELECT:
            _write_pair(warp, operands[0], collective.elect(mask), on)
        case OpKind.WARP_REDUCTION:
            type = operation.modifiers.scalar()
            a = read(warp, operands[1], type)
            write(warp, operands[0], collective.reduction(operation.modifiers, a, mask), type, on)
        case OpKind.MATCH:
            a = read(warp, operands[1], operation.modifiers.scalar())
            if "any" in operation.modifiers:
                write(warp, operands[0], collective.match_any(a, mask), B32, on)
            else:
                _write_pair(warp, operands[0], collective.match_all(a, mask), on)
        case kind:
            raise AssertionError(f"no case for {kind}")


def _write_pair(
    warp: Warp, destination: Operand, results: tuple[Values, Values], on: Values
) -> None:
    """Writes the 32-bit values `results[0]` and, if the destination is a pair `d|p`, the predicate
    `results[1]`, in the lanes where the predicate `on` is true."""
    for target, value, type in zip(_targets(destination), results, (B32, PRED), strict=False):
        write(warp, target, value, type, on)


EXECUTE: dict[OpKind, Callable[[Warp, int, Instruction, int, Values], None]] = {
    **dict.fromkeys((OpKind.COMPUTE, OpKind.COMPARE, OpKind.MAP_ADDRESS), _compute),
    OpKind.MOVE: _move,
    OpKind.CONVERT_ADDRESS: _convert_address,
    OpKind.TEST_PARAMETER: _is_parameter,
    OpKind.BLOCK_RANK: _cluster_rank,
    OpKind.LOAD: access.load,
    **dict.fromkeys((OpKind.STORE, OpKind.FILL, OpKind.ASYNC_STORE), copies.store),
    **dict.fromkeys(
        (OpKind.ATOMIC, OpKind.REDUCTION, OpKind.ASYNC_REDUCTION), copies.update_memory
    ),
    **dict.fromkeys(
        (OpKind.MBARRIER, OpKind.MBARRIER_INIT, OpKind.MBARRIER_WAIT), copies.update_memory
    ),
    **dict.fromkeys((OpKind.COPY, OpKind.BULK_COPY), copies.copy_async),
    OpKind.COPY_ARRIVE: copies.update_memory,
    OpKind.CALL: service.serve,
    OpKind.REGISTER_COUNT: _set_registers,
    **dict.fromkeys((OpKind.SHUFFLE, OpKind.VOTE, OpKind.MATCH), _by_members),
    **dict.fromkeys((OpKind.WARP_REDUCTION, OpKind.ELECT, OpKind.ACTIVE_MASK), _by_members),
    **dict.fromkeys((OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER), texture.texels),
    **dict.fromkeys((OpKind.TEXTURE_QUERY, OpKind.SURFACE_QUERY), texture.texels),
    **dict.fromkeys((OpKind.SURFACE_LOAD, OpKind.SURFACE_STORE), texture.texels),
    OpKind.SURFACE_REDUCTION: texture.texels,
    **dict.fromkeys((OpKind.MATRIX_PRODUCT, OpKind.WARP_MATRIX_PRODUCT), matrix.multiply),
    **dict.fromkeys((OpKind.WARP_MATRIX_LOAD, OpKind.WARP_MATRIX_STORE), matrix.move_fragment),
    OpKind.MATRIX_LOAD: matrix_rows.load_rows,
    OpKind.MATRIX_STORE: matrix_rows.store_rows,
    OpKind.MATRIX_TRANSPOSE: matrix_rows.transpose,
    **dict.fromkeys((OpKind.GROUP_PRODUCT, OpKind.GROUP_COMMIT), warp_group.execute_warp_group),
    OpKind.GROUP_WAIT: warp_group.execute_warp_group,
    **{kind: tensors.execute_tensor_request for kind in OpKind if kind.has(Effect.USES_TMA)},
    **{
        kind: tensor_memory.execute_tensor_memory
        for kind in OpKind
        if kind.has(Effect.USES_TENSOR_MEMORY)
    },
}
"""The function that executes each kind of instruction that is not control flow.

All have the parameters (`warp`, `index`, `instruction`, `mask`, `on`), and many use only some of
them: `index` is the instruction's number in the program, `mask` the executing lanes as bits, at
least one, and `on` the same lanes as a predicate."""
