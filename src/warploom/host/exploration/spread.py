"""Work that is spread over processes of this computer, or over the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from warploom.core.errors import WarploomError


@contextmanager
def spread(workers: int, cluster: str | None = None) -> Generator[tuple[Executor, int], None, None]:
    """Yield an executor, and how many share its work: so many processes, or the workers of the Dask
    scheduler at the address `cluster`. Raises WarploomError where there is no Dask."""
    if cluster is None:
        # Forked processes would share locks that threads of this one may hold.
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            yield pool, workers
        return
    try:
        from distributed import Client
    except ImportError:
        raise WarploomError(
            'a cluster needs Dask: `pip install "warploom[cluster]"`, here and where the workers'
            " run"
        ) from None
    with Client(cluster) as client, client.get_executor(pure=False) as executor:
        yield executor, len(client.nthreads())
