from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

class OptimizeResult:
    x: npt.NDArray[np.float64] | None
    message: str

def linprog(
    c: Sequence[float],
    A_ub: object = ...,
    b_ub: Sequence[float] = ...,
    A_eq: object = ...,
    b_eq: Sequence[float] = ...,
    bounds: npt.NDArray[np.float64] = ...,
    method: str = ...,
) -> OptimizeResult: ...
