"""Programs written for a GPU, run on the software one: what stands in for NVIDIA's libraries."""
