"""Executes texture and surface instructions: addressing, filtering, format conversion, and the
count of the sectors that they touch.

In: descriptors, coordinates and memory. Out: texels, changed memory, counted sectors. Handles and
their arrays are `machine.memory.textures`'.
"""
