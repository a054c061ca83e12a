"""CUDA arrays, mipmaps, texture objects and tensor maps in the driver API.

In and out as for the rest of the driver. Texels and tensor maps themselves are those of
`host.textures`.
"""
