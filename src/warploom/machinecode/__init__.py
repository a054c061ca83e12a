"""Reads machine code as evidence: parses what NVIDIA's disassembler prints for a kernel that the
assembler has compiled, matches it with the PTX, and counts its instructions. No machine code is
executed here, and only the printed output is read.

In: the text of nvdisasm and a `Program`. Out: instructions with source lines, and counts. Running
the assembler is left to `host.programs.assembly`, time to `timing.machinecode`.
"""
