"""Runs launches, in compiled code (`compiled`) or by the reference machine (`reference`), on the
memory of a device (`memory`); makes the errors that users read (`faults`). It publishes events, and
imports no package that receives them.

In: a `Launch` (program, configuration, arguments) and a device's memory. Out: changed memory, a
`Tally` of raw counts, or an error. Counters by name are left to `observe`.
"""
