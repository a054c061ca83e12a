"""Analyzes machine code: parses the output of NVIDIA's disassembler for an assembled kernel,
matches the machine code with the PTX, and counts its instructions. The package reads only this
printed output, and does not execute machine code.

In: the text of nvdisasm and a `Program`. Out: instructions with source lines, and counts. Running
the assembler is left to `host.programs.assembly`, time to `timing.machinecode`.
"""
