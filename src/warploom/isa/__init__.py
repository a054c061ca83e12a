"""Defines the PTX instructions: the types, modifiers and unit of each instruction, and the term
(`terms`) that describes its result. The compiled engine, the reference machine, the test generator
and the tool that writes the instruction reference all read these definitions.

Out: a table of `OpSpec` by name (`ops`). An opcode or a modifier that is not in it is an error.

In: nothing but the tables. Which operands an instruction in a text has is left to `ptx`; how a term
is computed to `machine.reference`, how it is emitted to `lower.terms`.
"""
