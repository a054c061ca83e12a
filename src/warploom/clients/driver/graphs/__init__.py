"""CUDA graphs and stream capture in the driver API.

In: calls, and what a stream captures. Out: handles of graphs, and work in streams. The nodes' work
is left to the modules of the driver that do it outside of graphs.
"""
