"""Implements the CUDA driver API (libcuda) on the software GPU, with one module for each part of
the API.

Work is done when it is asked for, in every stream: so streams are in order, events are complete
when they are recorded, and what the API calls asynchronous has happened on return. Every handle is
looked up, never followed; pointers of the host are trusted, as CUDA trusts them.

In: integers and pointers of C, from the library that `tools/build_driver.py` makes. Out: error
codes, and results at the caller's pointers. The runtime API, PyTorch and Numba are thin layers over
it.
"""
