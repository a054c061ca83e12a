"""Says what machine work each instruction is on a device, and what it costs."""
