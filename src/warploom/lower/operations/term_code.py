"""Emits instructions that compute by the terms of their results (`lower.terms`), in 32 lanes or in
one value for each run of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from warploom.abi.nans import is_copy
from warploom.core.types import ScalarType
from warploom.isa.instruction import Instruction, Operand, flatten_operands
from warploom.isa.terms import Term
from warploom.llvm.lanes import Value
from warploom.lower.frame.operands import Operands
from warploom.lower.operations.affine import AffineCode
from warploom.lower.operations.moves import Result
from warploom.lower.terms.terms import ignores_nan_bits


class TermCode:
    """Emits the terms of instructions of one warp function."""

    def __init__(self, operands: Operands, shaped: AffineCode) -> None:
        """Shares the operands and the emitter of affine values; emits nothing."""
        self.operands, self.shaped, self.frame = operands, shaped, operands.frame

    def compute(self, instruction: Instruction) -> list[Result]:
        """Emits the terms of an instruction in 32 lanes, before any result is written; returns the
        results. Open NaNs of sources are made canonical, but for those that
        `_results_to_compute` leaves out."""
        sources, types = self._sources(instruction)
        results: list[Result] = []
        for target, term, root, blind in self._results_to_compute(instruction):
            values = [
                self.operands.read(source, type, blind=number in blind)
                for number, (source, type) in enumerate(zip(sources, types, strict=False))
                if type is not None
            ]
            results.append((target, self.operands.lower(root, values), term.type))
        return results

    def compute_by_shape(
        self, instruction: Instruction, on_wrap: Callable[[Value], None]
    ) -> list[Result]:
        """Emits the terms of an instruction in the width of their vector shapes, and by `on_wrap`
        the handling of an i1, if one arises, that is true where a run wraps around. Returns the
        results; all are computed before the first is written."""
        sources, types = self._sources(instruction)
        results: list[Result] = []
        for target, term, root, blind in self._results_to_compute(instruction):
            readers = [
                partial(self.operands.read, source, type, blind=number in blind)
                for number, (source, type) in enumerate(zip(sources, types, strict=False))
                if type is not None
            ]
            value, wraps = self.shaped.compute(instruction, root, readers)
            if wraps is not None:
                on_wrap(wraps)
            results.append((target, value, term.type))
        return results

    def _sources(
        self, instruction: Instruction
    ) -> tuple[tuple[Operand, ...], tuple[ScalarType | None, ...]]:
        """Returns the source operands of an instruction, vectors as their elements, and the types
        in which they are read; None for one that its terms do not read."""
        count = len(instruction.operation.spec.destinations)
        return tuple(
            flatten_operands(instruction.operands[count:])
        ), instruction.operation.source_types

    def _results_to_compute(
        self, instruction: Instruction
    ) -> Iterator[tuple[Operand, Term, Term, frozenset[int]]]:
        """Yields, for each destination: the destination, its term, the node of the term to compute
        (`_root`), and the numbers of the sources to read without making an open NaN canonical. The
        NaN bits of these sources do not influence the result, or are copied to a register that may
        hold any NaN.
        """
        count = len(instruction.operation.spec.destinations)
        terms = instruction.operation.terms_for(len(self._sources(instruction)[0]))
        for target, term in zip(
            flatten_operands(instruction.operands[:count]), terms, strict=False
        ):
            root = self._root(target, term, instruction)
            blind = ignores_nan_bits(term)
            if root is not term or is_copy(instruction):
                blind = blind | self._copied_nan_sources(target, instruction)
            yield target, term, root, blind

    def _root(self, target: Operand, term: Term, instruction: Instruction) -> Term:
        """Returns the node to compute for a target: its term, or the argument of that if it is a
        `canonical` and the target may hold any NaN (`abi.nans`)."""
        if term.op == "canonical" and target in self.frame.open_nans:
            return term.args[0]
        return term

    def _copied_nan_sources(self, target: Operand, instruction: Instruction) -> frozenset[int]:
        """Returns source 0 of a plain `mov` to a register that may hold any NaN: its bits are
        copied without making a NaN canonical. Empty for anything else."""
        copies = is_copy(instruction) and target in self.frame.open_nans
        return frozenset({0}) if copies else frozenset()
