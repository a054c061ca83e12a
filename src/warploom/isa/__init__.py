"""Defines the instructions of PTX: each with its types, modifiers and unit, and what it computes as
a term (`terms`) that both machines, the reference documentation and the test generator read.

Out: a table of `OpSpec` by name (`ops`). An opcode or a modifier that is not in it is an error.

In: nothing but the tables. Which operands an instruction in a text has is left to `ptx`; how a term
is computed to `machine.reference`, how it is emitted to `lower.terms`.
"""
