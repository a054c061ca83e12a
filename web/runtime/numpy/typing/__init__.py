"""The names that annotations use."""

from __future__ import annotations

from typing import Any

from ..arrays import ndarray

ArrayLike = Any
DTypeLike = Any


class NDArray(ndarray):
    def __class_getitem__(cls, item):
        return ndarray
