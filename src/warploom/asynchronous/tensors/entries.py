"""Defines the codes in an entry, the record of an asynchronous request (TMA or `tcgen05`): kinds of
requests and groups, the mask of all bytes; and the host address where `memory` begins."""

from __future__ import annotations

ORIGIN = 4096
"""The host address of the first byte of `memory`: no process has memory below."""

ALL_BYTES = 0xFFFF
"""The byte mask of a copy of all 16 bytes of each unit."""

BYTES, BOX_COPY, REDUCTION, GROUP_END, RESPONSE = range(5)
"""Kinds of entries: copy of contiguous bytes; tensor box; reduction of contiguous numbers; end of a
group; response in `coordinates` (`asynchronous.tensors.cancel`)."""

NO_GROUP, BULK_GROUP = range(2)
"""Kinds of groups: none (an mbarrier is signalled), of `cp.async.bulk`."""
