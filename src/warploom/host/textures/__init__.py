"""Implements the textures, surfaces and tensor maps that users create.

In: arrays of the host, and options. Out: objects that are arguments of kernels, with handles in the
device's tables. Fetches are left to `texture`, copies of tensors to `asynchronous`.
"""
