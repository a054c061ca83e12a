"""Executes texture and surface instructions: addressing, filtering, format conversion, and counting
of the sectors that they access.

In: descriptors, coordinates and memory. Out: texels, changed memory, counted sectors. Handles and
their arrays are `machine.memory.textures`'.
"""
