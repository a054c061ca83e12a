"""Gives `compression.zstd` of Python 3.14, or its backport to older releases, under one name."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError, compress
else:
    from backports.zstd import ZstdDecompressor, ZstdError, compress

__all__ = ["ZstdDecompressor", "ZstdError", "compress"]
