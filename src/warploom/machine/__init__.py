"""Runs launches in compiled code (`compiled`) or on the reference machine (`reference`), with the
memory of a device (`memory`), and creates the errors that users read (`faults`). The package
publishes events, and imports no package that receives them.

In: a `Launch` (program, configuration, arguments) and a device's memory. Out: changed memory, a
`Tally` of raw counts, or an error. Counters by name are left to `observe`.
"""
