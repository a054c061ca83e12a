"""The discrete-event engine of the timing model: SMs, their units and caches, L2 and DRAM, over
flat arrays that compiled code steps through.
"""
