"""Implements the debugger, which stops a launch at any point, shows its state, and steps forward
and back.

The core knows positions, breakpoints, values and source places; its faces, `debug.terminal` and
`debug.dap`, know each other not at all (docs/decisions/0040-the-debugger.md).

In: a launch that is ready (`host.ready_launch`), or a core file. Out: positions, values and source
places, for a face to show. Executing instructions is left to the machines.
"""
