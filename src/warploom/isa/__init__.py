"""Defines the instructions of PTX: each with its types, modifiers and unit, and what it computes as
a term (`terms`) that both machines, the reference documentation and the test generator read.

Out: a table of `OpSpec` by name (`ops`). An opcode or a modifier that is not in it is an error.
"""
