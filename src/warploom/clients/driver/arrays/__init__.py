"""CUDA arrays, mipmaps, texture objects and tensor maps in the driver API."""
