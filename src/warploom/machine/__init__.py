"""Runs launches in compiled code (`compiled`) or on the reference machine (`reference`). Also
manages device memory (`memory`), and creates the error messages (`faults`). The package publishes
events, and imports no package that receives them.

In: a `Launch` (program, configuration, arguments) and a device's memory. Out: changed memory, a
`Tally` of raw counts, or an error. Counters by name are left to `observe`.
"""
