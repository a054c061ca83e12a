"""Lowers instructions on matrices, tensor copies, tensor memory and textures."""
