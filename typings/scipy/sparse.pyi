from collections.abc import Sequence

class csr_array: ...

class coo_array:
    def __init__(
        self,
        content: tuple[Sequence[float], tuple[Sequence[int], Sequence[int]]],
        shape: tuple[int, int],
    ) -> None: ...
    def tocsr(self) -> csr_array: ...
