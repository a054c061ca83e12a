"""The scalar types of OpenCL C, and NumPy's of the same bits."""

from __future__ import annotations

import numpy as np

DTYPES = {
    "char": np.int8,
    "short": np.int16,
    "int": np.int32,
    "long": np.int64,
    "uchar": np.uint8,
    "ushort": np.uint16,
    "uint": np.uint32,
    "ulong": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
FLOATS = ("float", "double")
