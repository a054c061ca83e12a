"""Tensor memory and the fifth generation of tensor cores: what `tcgen05` does, for both machines.

PTX ISA, "TensorCore 5th Generation Family Instructions". `issue.issue_tensor_memory` does what one
warp instruction wants; the modules beside it say where things stand and what they mean.
"""
