"""Runs PyTorch programs on the software GPU. ATen's operators run on the host CPU and process data
in the memory of the software GPU.

PyTorch's wheels hold machine code for GPUs and no PTX, so that ATen's own CUDA kernels cannot be
executed. Device memory is memory of this process: an operator on CUDA tensors is computed by
PyTorch's own CPU kernel on the same bytes, below autograd. Kernels that come as PTX (Triton,
`torch.compile`, NVRTC) are simulated like those of any client.

In: operators of ATen that PyTorch dispatches to CUDA. Out: their results in device memory.
Launches, streams and memory are left to `clients.driver`.
"""
