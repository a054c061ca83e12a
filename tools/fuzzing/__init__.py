"""The fuzzer of Warploom; `tools/fuzz.py` is its command line."""
