"""Work that is spread over processes of this computer, or over the workers of a Dask cluster."""

from __future__ import annotations

import socket
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from urllib.parse import urlsplit

from warploom.core.errors import WarploomError
from warploom.core.host_cores import share_cores

CONNECT_SECONDS = 5.0
"""The longest time that a scheduler has to accept a connection."""


@contextmanager
def spread(workers: int, cluster: str | None = None) -> Generator[tuple[Executor, int], None, None]:
    """Yields an executor, and how many share its work: so many processes, or the workers of the
    Dask scheduler at the address `cluster`. Raises WarploomError where there is no Dask."""
    if cluster is None:
        # Forked processes would share locks that threads of this one may hold.
        spawn = get_context("spawn")
        with ProcessPoolExecutor(workers, spawn, share_cores, (workers,)) as pool:
            yield pool, workers
        return
    try:
        from distributed import Client
    except ImportError:
        raise WarploomError(
            'to use a Dask cluster, run `pip install "warploom[cluster]"` here and on the workers'
        ) from None
    _check_address(cluster)
    with Client(cluster) as client, client.get_executor(pure=False) as executor:
        yield executor, len(client.nthreads())


def _check_address(cluster: str) -> None:
    """Raises WarploomError if nothing listens at an address, to which Dask would try to connect for
    long."""
    address = urlsplit(cluster if "://" in cluster else f"tcp://{cluster}")
    try:
        if address.scheme == "inproc":
            return
        if not address.hostname or not address.port:
            raise ValueError("an address must be HOST:PORT, such as 10.0.0.1:8786")
        socket.create_connection((address.hostname, address.port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WarploomError(
            f"no Dask scheduler responds at {cluster!r}: {reason}. Start a scheduler there (`dask "
            "scheduler`), or give the address that the scheduler prints."
        ) from None
