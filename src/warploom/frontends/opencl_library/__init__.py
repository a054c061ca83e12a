"""Generates the built-in functions of OpenCL C that a program calls, from tables of their types and
bodies.

Mathematics is NVIDIA's libdevice; `frontends.opencl` compiles the text with the program.
"""
