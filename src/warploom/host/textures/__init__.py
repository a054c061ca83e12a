"""Textures, surfaces and tensor maps as users create them.

In: arrays of the host, and options. Out: objects that are arguments of kernels, with handles in the
device's tables. Fetches are left to `texture`, copies of tensors to `asynchronous`.
"""
