"""Machine code as evidence: what NVIDIA's assembler makes of a kernel, as its disassembler prints
it, read, matched with the PTX, counted. Nothing here is executed, and nothing but printed output is
read."""
