"""What the project uses of Dask's client; the library's own annotations leave most open."""

from collections.abc import Mapping
from concurrent.futures import Executor
from types import TracebackType

class Client:
    def __init__(self, address: str) -> None: ...
    def __enter__(self) -> Client: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def nthreads(self) -> Mapping[str, int]: ...
    def get_executor(self, *, pure: bool = ...) -> Executor: ...

class LocalCluster:
    scheduler_address: str
    def __init__(
        self, *, n_workers: int, threads_per_worker: int, dashboard_address: str | None
    ) -> None: ...
    def __enter__(self) -> LocalCluster: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
