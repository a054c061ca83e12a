"""tinygrad against NumPy."""

from __future__ import annotations

import numpy as np
from tinygrad import Device, Tensor

assert Device.DEFAULT == "CUDA", Device.DEFAULT
rng = np.random.default_rng(0)


def close(name, got, wanted):
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)
    print(name)


a = rng.standard_normal((16, 20)).astype(np.float32)
b = rng.standard_normal((20, 12)).astype(np.float32)
close("elementwise", (Tensor(a) * 2 + 1).relu(), np.maximum(a * 2 + 1, 0))
close("matmul", Tensor(a) @ Tensor(b), a @ b)
powers = np.exp(a - a.max(1, keepdims=True))
close("softmax", Tensor(a).softmax(), powers / powers.sum(1, keepdims=True))
close("argmax", Tensor(a).argmax(1), a.argmax(1))

image = rng.standard_normal((1, 2, 8, 8)).astype(np.float32)
kernel = rng.standard_normal((3, 2, 3, 3)).astype(np.float32)
windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
close("conv", Tensor(image).conv2d(Tensor(kernel)), np.einsum("ncyxij,kcij->nkyx", windows, kernel))
