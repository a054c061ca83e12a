"""Measures how long `import torch` takes, in seconds."""

import time

start = time.perf_counter()
import torch  # noqa: E402, F401

print(time.perf_counter() - start)
