"""Threads of a PTX kernel, run on paths: each thread by itself, its loads to be decided later.

What depends on other threads in another way than through memory and barriers (shuffles, votes, the
clock) is refused, and so are local memory and asynchronous copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.core.errors import WarploomError
from warploom.core.types import B32, U64, ScalarType
from warploom.isa.instruction import Address, Instruction, Operand, Sink, Space, Vector
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Operation, Unit
from warploom.machine.launch import Launch
from warploom.memory_model.accesses import Memory, order_of, strength_of
from warploom.memory_model.events import Arrival, Coordinates, Event, Kind, Place, Strength
from warploom.memory_model.paths import Path
from warploom.memory_model.registers import Refused, Registers, term_value
from warploom.memory_model.values import Loaded, Value, combined, loads_of
from warploom.program.program import Program

WARP_BARRIER = -2
"""The number that the barrier of a warp has among barriers; its instance is the warp's number."""


@dataclass(frozen=True)
class KernelThread:
    """Thread `thread` of block `block` of a launch."""

    program: Program
    launch: Launch
    memory: Memory
    block: int
    thread: int

    @property
    def name(self) -> str:
        """Returns the thread as messages name it."""
        return f"block {self.block} thread {self.thread}"

    @property
    def coordinates(self) -> Coordinates:
        """Returns where it runs."""
        return Coordinates(self.block, self.block - self.launch.rank_of(self.block))

    def run(self, path: Path) -> None:
        """Runs the thread on a path. Raises WarploomError for what is not explored."""
        registers = Registers(self.program, self.launch, self.block, self.thread)
        _Run(self, path, registers).run()


@dataclass
class _Run:
    """A thread on its way along one path."""

    thread: KernelThread
    path: Path
    registers: Registers
    index: int = 0
    guarded: frozenset[int] = frozenset()
    """The reads on which it depends whether the instruction at hand happens."""

    def run(self) -> None:
        """Executes until the thread ends."""
        program = self.thread.program
        block = 0
        while block != program.exit:
            self.path.visit(block)
            block = self._block(block)

    def _block(self, number: int) -> int:
        """Executes a basic block; returns the next."""
        program = self.thread.program
        block = program.blocks[number]
        for self.index in range(block.start, block.stop):
            instruction = program.instructions[self.index]
            operation = instruction.operation
            ends = operation.has(Effect.ENDS_THREAD)
            if ends or operation.kind is OpKind.BRANCH:
                if not self._branches(instruction):
                    return block.successors[-1]
                return program.exit if ends else block.successors[0]
            if self._happens(instruction):
                try:
                    self._execute(instruction)
                except Refused as reason:
                    raise self._refused(reason) from None
        return block.successors[0]

    def _branches(self, instruction: Instruction) -> bool:
        """Returns whether a branch is taken; what follows depends on it."""
        if instruction.guard is None:
            return True
        return self.path.branch(self._guard(instruction))

    def _happens(self, instruction: Instruction) -> bool:
        """Returns whether the guard of an instruction lets it happen."""
        if instruction.guard is None:
            self.guarded = frozenset()
            return True
        value = self._guard(instruction)
        self.guarded = loads_of(value)
        return bool(self.path.decide(value, (0, 1)))

    def _guard(self, instruction: Instruction) -> Value:
        assert instruction.guard is not None
        register = instruction.guard.register
        if instruction.guard.negated:
            return self.registers.negated(register)
        return self.registers.values.get(register.name, 0)

    def _refused(self, reason: object) -> WarploomError:
        line = self.thread.program.line(self.index)
        text = self.thread.program.instructions[self.index].operation.text
        return WarploomError(f"{line}: {text}: {reason} by the memory model")

    def _execute(self, instruction: Instruction) -> None:
        """Executes one instruction that happens."""
        operation = instruction.operation
        execute = _EXECUTE.get(operation.kind)
        if operation.kind is OpKind.MOVE and _packs(instruction):
            self.registers.move_vector(instruction)
        elif execute is not None:
            execute(self, instruction)
        elif operation.spec.semantics is not None and operation.spec.unit not in UNEXPLORED:
            self.registers.compute(instruction)
        elif not operation.has(Effect.ISSUE_ONLY):
            raise Refused("it is not supported")

    # ---- what others see --------------------------------------------------------------------

    def load(self, instruction: Instruction) -> None:
        destination, address = instruction.operands[:2]
        type = instruction.operation.modifiers.scalar()
        elements = destination.elements if isinstance(destination, Vector) else (destination,)
        space = _space(instruction.operation)
        where, on = self._where(address)
        for place, element in enumerate(elements):
            at = where + place * type.bytes
            if space is Space.PARAM:
                held = self.thread.launch.parameters[at : at + type.bytes]
                self.registers.write(element, int.from_bytes(held, "little"), type)
                continue
            event = self._event(Kind.READ, instruction, self._place(space, at, type), on)
            self.registers.write(element, Loaded(self.path.add(event)), type)

    def store(self, instruction: Instruction) -> None:
        if instruction.operation.kind is OpKind.ASYNC_STORE:
            raise Refused("an asynchronous store is not supported")
        address, source = instruction.operands[:2]
        type = instruction.operation.modifiers.scalar()
        elements = source.elements if isinstance(source, Vector) else (source,)
        where, on = self._where(address)
        space = _space(instruction.operation)
        for place, element in enumerate(elements):
            value = self.registers.read(element, type)
            at = self._place(space, where + place * type.bytes, type)
            self.path.add(self._event(Kind.WRITE, instruction, at, on, value))

    def atomic(self, instruction: Instruction) -> None:
        """Executes `atom` or `red`: a read and, but for a compare that fails, a write."""
        operation = instruction.operation
        if operation.modifiers["vec"] is not None:
            raise Refused("a vector atomic is not supported")
        operands = instruction.operands
        target, address, *given = (
            operands if operation.kind is OpKind.ATOMIC else (Sink(), *operands)
        )
        type = operation.modifiers.scalar()
        values = [self.registers.read(each, type) for each in given[: operation.value_count]]
        where, on = self._where(address)
        space = _space(operation)
        place = self._place(space, where, type)
        strength = strength_of(operation)
        reads = Strength(order_of(strength, "release"), strength.scope)
        writes = Strength(order_of(strength, "acquire"), strength.scope)
        read = self.path.add(self._event(Kind.READ, instruction, place, on, strength=reads))
        old = Loaded(read)
        pairs = [(value, type) for value in (old, *values)]
        answer = operation.answer(len(values))
        self.registers.write(target, term_value(answer, pairs), answer.type)
        if operation.modifiers["op"] == "cas":
            same = combined(lambda a, b: int(a == b), old, values[0])
            if not self.path.decide(same, (0, 1)):
                return
        new = term_value(operation.combine(len(values), space.value), pairs)
        event = self._event(Kind.WRITE, instruction, place, on, new, writes, read)
        self.path.add(event)

    def fence(self, instruction: Instruction) -> None:
        operation, modifiers = instruction.operation, instruction.operation.modifiers
        if "proxy" in operation.text.split("."):
            kind = modifiers["kind"]
            if kind != "alias":
                return  # nothing here goes through another proxy
            strength = Strength("weak", "cta", "alias")
        else:
            strength = strength_of(operation)
        self.path.add(self._event_at(Kind.FENCE, strength))

    def barrier(self, instruction: Instruction) -> None:
        operation, launch = instruction.operation, self.thread.launch
        if operation.kind is OpKind.WARP_BARRIER:
            mask = self.registers.read(instruction.operands[0], B32)
            if not isinstance(mask, int):
                raise Refused("a mask that depends on a loaded value is not supported")
            warp = self.thread.thread // launch.warp_size
            arrival = Arrival(WARP_BARRIER, mask.bit_count(), True, warp)
        elif "red" in operation.modifiers or operation.kind is OpKind.CLUSTER_BARRIER:
            raise Refused("this kind of barrier is not supported")
        else:
            number, *count = (self.registers.read(each, B32) for each in instruction.operands)
            threads = count[0] if count else launch.threads_per_block
            arrival = Arrival(number, threads, "arrive" not in operation.modifiers)
        self.path.add(self._event_at(Kind.BARRIER, Strength("weak", "cta"), arrival))

    def _where(self, address: Operand) -> tuple[int, frozenset[int]]:
        """Returns an address on this path, and the reads on which it depends."""
        assert isinstance(address, Address)
        base: Value = 0 if address.base is None else self.registers.read(address.base, U64)
        on = loads_of(base)
        if on:
            raise Refused("an address that depends on a loaded value is not supported")
        assert isinstance(base, int)
        return base + address.offset, on

    def _place(self, space: Space, address: int, type: ScalarType) -> Place:
        """Returns the location of an access. Raises WarploomError where there is none."""
        found = self.thread.memory.place(space, self.thread.block, address, type.bytes)
        if isinstance(found, str):
            raise Refused(found)
        return found

    def _event(
        self,
        kind: Kind,
        instruction: Instruction,
        place: Place,
        address: frozenset[int],
        value: Value = 0,
        strength: Strength | None = None,
        partner: int | None = None,
    ) -> Event:
        return Event(
            kind,
            strength or strength_of(instruction.operation),
            place,
            value,
            partner,
            address,
            loads_of(value),
            self.path.control | self.guarded,
            None,
            f"{instruction.operation.text} {place.physical}",
            self.thread.program.line(self.index),
        )

    def _event_at(self, kind: Kind, strength: Strength, arrival: Arrival | None = None) -> Event:
        """Returns an event that accesses no memory."""
        program = self.thread.program
        return Event(
            kind,
            strength,
            control=self.path.control | self.guarded,
            arrival=arrival,
            text=program.instructions[self.index].operation.text,
            line=program.line(self.index),
        )


_EXECUTE: dict[OpKind, Callable[[_Run, Instruction], None]] = {
    OpKind.LOAD: _Run.load,
    OpKind.STORE: _Run.store,
    OpKind.ASYNC_STORE: _Run.store,
    OpKind.FENCE: _Run.fence,
    OpKind.BLOCK_BARRIER: _Run.barrier,
    OpKind.CLUSTER_BARRIER: _Run.barrier,
    OpKind.WARP_BARRIER: _Run.barrier,
    OpKind.ATOMIC: _Run.atomic,
    OpKind.REDUCTION: _Run.atomic,
    OpKind.ASYNC_REDUCTION: _Run.atomic,
    OpKind.CONVERT_ADDRESS: lambda run, instruction: run.registers.convert_address(instruction),
}
"""The function that executes each kind of instruction that does more than compute."""

UNEXPLORED = (Unit.WARP, Unit.MATRIX, Unit.TEXTURE, Unit.ATOMIC, Unit.MEMORY, Unit.CONTROL)
"""Classes of instructions that are no function of the thread's own registers."""


def _space(operation: Operation) -> Space:
    """Returns the state space that an access names, generic where it names none."""
    named = operation.modifiers["space"]
    return Space(named.partition("::")[0]) if named else Space.GENERIC


def _packs(instruction: Instruction) -> bool:
    """Returns whether a `mov` has a vector on one side and its whole on the other."""
    packed = any(isinstance(operand, Vector) for operand in instruction.operands)
    return packed and "vec" not in instruction.operation.modifiers
