"""Activation functions.

Left out: Softplus above its `threshold`, where PyTorch takes x itself, and CELU with an alpha that is no float32, to
which PyTorch rounds it for the gradient.
"""

from __future__ import annotations

import numpy as np

from .cases import Case

# Both tails, and numbers between the kinks of all of them.
X = np.array([[-30.0, -6.5, -3.5, -2.25], [-1.3, -0.75, -0.4, -0.1], [0.2, 0.45, 0.8, 1.2], [2.9, 4.5, 6.1, 18.0]])
# The kinks, where the derivative is a choice.
KINKS = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0])
EXTREMES = np.array([-800.0, -90.0, 90.0, 800.0])
IMAGES = (2, 3, 2, 4)

CASES = [
    *[
        Case(name, (x,))
        for name in ("ReLU", "ReLU6", "Hardtanh", "Hardswish", "Softshrink", "Hardshrink", "LeakyReLU")
        for x in (X, KINKS)
    ],
    *[
        Case(name, (x,))
        for name in ("ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "LogSigmoid", "Softplus")
        for x in (X, EXTREMES)
    ],
    *[Case(name, (X,)) for name in ("Softsign", "Tanhshrink", "RReLU", "Identity")],
    *[Case(name, (np.zeros(2),)) for name in ("ELU", "CELU", "SELU", "Softsign")],
    *[Case("Hardsigmoid", (x,), tolerance=1e-7) for x in (X, KINKS)],  # the slope 1/6 is a float32 there
    Case("Softmax2d", (IMAGES,), channels_first=True),
    Case("LeakyReLU", (X,), (0.3,)),
    Case("ELU", (X,), (0.7,)),
    Case("CELU", (X,), (2.0,)),
    *[Case("GELU", (x,), settings={"approximate": "tanh"}) for x in (X, EXTREMES)],
    Case("Softplus", (X,), (0.5,)),
    Case("Hardtanh", (X,), (-2.0, 0.5)),
    Case("Softshrink", (X,), (0.7,)),
    Case("Hardshrink", (X,), (0.7,)),
    Case("Threshold", (X,), (0.3, -2.0)),
    Case("RReLU", (X,), (0.2, 0.2), modes="t"),  # one slope, so nothing is random
    Case("RReLU", (X,), (0.1, 0.5)),
    Case("PReLU", (X,)),
    Case("PReLU", (IMAGES,), (4,), channels_first=True),
    *[Case(name, (X,), (axis,)) for name in ("Softmax", "Softmin", "LogSoftmax") for axis in (-1, 0)],
    *[Case(name, (EXTREMES,), (-1,)) for name in ("Softmax", "Softmin", "LogSoftmax")],
    Case("GLU", (X,)),
    Case("GLU", (IMAGES,), (-2,)),
]
