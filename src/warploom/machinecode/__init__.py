"""Machine code as evidence: what NVIDIA's assembler makes of a kernel, as its disassembler prints
it, read, matched with the PTX, counted. Nothing here is executed, and nothing but printed output is
read.

In: the text of nvdisasm and a `Program`. Out: instructions with source lines, and counts. Running
the assembler is left to `host.programs.assembly`, time to `timing.machinecode`.
"""
