"""PyTorch is not installed where the project is checked, and its types say little: all is Any."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any
dtype: TypeAlias = Any

class device:
    type: str
    def __init__(self, type: str, index: int = ...) -> None: ...

def __getattr__(name: str) -> Any: ...
