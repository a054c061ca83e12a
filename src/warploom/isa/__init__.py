"""Defines the PTX instructions: the types, modifiers and unit of each instruction, and the term
(`terms`) that describes its result. These definitions are read by both machines, by the test
generator and by the tool that writes the instruction reference.

Out: a table of `OpSpec` by name (`ops`). An opcode or a modifier that is not in it is an error.

In: nothing but the tables. Which operands an instruction in a text has is left to `ptx`; how a term
is computed to `machine.reference`, how it is emitted to `lower.terms`.
"""
