"""CUDA arrays, mipmaps, texture objects and tensor maps in the driver API.

In: calls of C, as in the rest of the driver. Out: handles and results. Texels and tensor maps
themselves are those of `host.textures`.
"""
