"""PTX of the lessons and examples, compiled ahead of time: for installations without NVRTC, or, for
OpenCL C, without clang.

`precompiled.zip` has a member `DIGEST/ARCHITECTURE.ptx` for each source and architecture;
`tools/precompile.py` writes it.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

ARCHIVE = Path(__file__).parent / "precompiled.zip"

PLACEHOLDER = "/warploom/source.cu"
"""Path of the source in stored PTX."""

_MEMBER = re.compile(r"(?P<digest>\w+)/(?P<architecture>\d+)\.ptx")


def digest_of(text: str, options: Sequence[str]) -> str:
    """Returns the digest of a source and its options; surrounding white space does not count."""
    return sha256("\0".join((text.strip(), *options)).encode()).hexdigest()[:32]


def member_of(text: str, options: Sequence[str], architecture: int) -> str:
    """Returns the name of the archive's member for a source and an architecture, such as 90."""
    return f"{digest_of(text, options)}/{architecture}.ptx"


def precompiled_ptx(
    text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str]
) -> str | None:
    """Returns the stored PTX of a source, or None if there is none.

    Of several architectures, return that of the newest one that the device can run; if all are
    newer, the oldest. `name` is the path of the source that the PTX's line table names.
    """
    known = _architectures().get(digest_of(text, options), ())
    if not known:
        return None
    wanted = 10 * compute_capability[0] + compute_capability[1]
    chosen = max((one for one in known if one <= wanted), default=min(known))
    with zipfile.ZipFile(ARCHIVE) as archive:
        stored = archive.read(member_of(text, options, chosen)).decode()
    return stored.replace(f'"{PLACEHOLDER}"', f'"{Path(name).absolute().as_posix()}"')


@lru_cache
def _architectures() -> dict[str, tuple[int, ...]]:
    """Returns the stored architectures by the digest of their source."""
    if not ARCHIVE.exists():
        return {}
    found: dict[str, tuple[int, ...]] = {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        for member in archive.namelist():
            if stored := _MEMBER.fullmatch(member):
                digest = stored["digest"]
                found[digest] = (*found.get(digest, ()), int(stored["architecture"]))
    return found
