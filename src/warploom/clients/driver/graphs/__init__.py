"""CUDA graphs and stream capture in the driver API."""
