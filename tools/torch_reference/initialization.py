"""Initial values that are not random, and the gains and fans that scale random ones."""

from __future__ import annotations

from typing import Any

# Arguments of calculate_gain.
GAINS: list[list[Any]] = [
    *[[name] for name in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")],
    ["leaky_relu", 0.2],
    ["conv_transpose2d"],
]
# Shapes (out, in, *kernel), for the numbers of inputs and outputs.
SHAPES = [(3, 5), (4, 2, 3), (6, 2, 3, 2)]
# The function's name, the shape (out, in, *kernel) and arguments.
FILLED: list[tuple[str, tuple[int, ...], list[float]]] = [
    ("eye_", (3, 4), []),
    ("dirac_", (3, 2, 3), []),
    ("dirac_", (2, 3, 3, 4), []),
    ("dirac_", (4, 2, 3), [2]),
    ("constant_", (2, 3), [0.7]),
    ("zeros_", (2, 2), []),
    ("ones_", (2, 2), []),
]
