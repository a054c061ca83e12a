"""Prepares a replay of machine code from the record of a launch in PTX: finds the path that each
warp follows through the machine code, the operations that issue there, and the accesses that they
make.

In: a `Record`, a `Program` and its machine code. Out: a `Record` and work in machine instructions.
Reading machine code is left to `machinecode`, time to the engine.
"""
