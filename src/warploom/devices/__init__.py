"""Contains the catalog of devices: facts and limits by compute capability and product, each with
its source.

In: JSON files (`data`), each figure with its source. Out: frozen data: `DeviceSpec`, `TimingSpec`,
and the occupancy of launches. What a kernel takes is left to `host.programs.resources`.
"""
