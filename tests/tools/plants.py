"""Errors that the tests of the fuzzer plant in Warploom: `tools/fuzz.py --plant tests.tools.plants:
NAME` calls one of these functions in each worker."""

from __future__ import annotations

import os
import time
from typing import Any

from fuzzing.targets import files

from warploom.clients import fatbin
from warploom.core import zstd
from warploom.llvm import disk_cache
from warploom.llvm.lanes import I64
from warploom.lower.access import access_check
from warploom.lower.terms import terms
from warploom.observe import trace


def compile_anew() -> None:
    """Leaves compiled kernels out of the cache, which holds those without the error."""
    find, store = disk_cache.find, disk_cache.store

    def find_helpers(kind: str, key: str) -> bytes | None:
        return None if kind == "kernel" else find(kind, key)

    def keep_helpers(kind: str, key: str, content: bytes) -> None:
        if kind != "kernel":
            store(kind, key, content)

    disk_cache.find, disk_cache.store = find_helpers, keep_helpers


def wrong_result() -> None:
    """Compiles `xor` as `or`."""
    compile_anew()
    nodes: Any = terms.NODES
    nodes["xor"] = nodes["or"]


def wrong_reversal() -> None:
    """Compiles the reversal of bits, which only `brev` does, as their inversion."""
    compile_anew()
    nodes: Any = terms.NODES
    nodes["brev"] = nodes["not"]


def missing_bounds_check() -> None:
    """Compiles accesses of memory without the check of their addresses."""
    compile_anew()
    access_check.AccessCheck.fault = lambda self, bits: I64(0)


def damaged_files() -> None:
    """Lets compressed PTX that is damaged raise zstd's exception, a trace that is damaged take
    for ever, and an entry of the cache that is damaged end the process."""

    def unpack(data: bytes, size: int) -> bytes:
        return zstd.ZstdDecompressor().decompress(data, size)

    def gunzip(data: bytes, most_bytes: int) -> bytes:
        time.sleep(3600)
        return data

    find = disk_cache.find

    def find_or_end(kind: str, key: str) -> bytes | None:
        if kind == "fuzz":
            os.abort()
        return find(kind, key)

    fatbin.unpack_zstd = unpack
    trace.gunzip = gunzip
    files.find = find_or_end
