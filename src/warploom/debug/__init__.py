"""The debugger: stops a launch anywhere, shows its state, and goes forward and back.

The core knows positions, breakpoints, values and source places; its faces, `debug.terminal` and
`debug.dap`, know each other not at all (docs/decisions/0040-the-debugger.md).
"""
