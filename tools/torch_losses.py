"""Writes tests/nn/torch_losses.json: what PyTorch's losses and their gradients are, in float64.

Run with a Python that has torch: `python tools/torch_losses.py`. The tests only read the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
P, Q = (np.exp(v) / np.exp(v).sum(-1, keepdims=True) for v in (X, Y))
VECTORS = rng.normal(size=(3, 4, 3))
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
CLASSES = np.array([0, 2, 1, 2])
WEIGHT = np.array([0.5, 1.0, 2.0])
HITS = rng.integers(0, 2, size=(4, 3)).astype(float)
COUNTS = rng.poisson(3.0, size=(4, 3)).astype(float)
LISTS = np.array([[0, 2, -1], [1, -1, 0], [-1, -1, -1], [2, 1, 0]])
IGNORED = np.array([0, -100, 1, 2])

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("CrossEntropyLoss", [X, CLASSES], {}),
    ("CrossEntropyLoss", [X, IGNORED], {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", [X, Q], {"weight": WEIGHT, "label_smoothing": 0.2}),
    ("NLLLoss", [np.log(P), IGNORED], {"weight": WEIGHT}),
    ("BCELoss", [P, HITS], {"weight": WEIGHT}),
    ("BCEWithLogitsLoss", [X, HITS], {"weight": WEIGHT, "pos_weight": WEIGHT}),
    ("MSELoss", [X, Y], {}),
    ("L1Loss", [X, Y], {}),
    ("HuberLoss", [X, Y], {"delta": 0.7}),
    ("SmoothL1Loss", [X, Y], {"beta": 0.7}),
    ("GaussianNLLLoss", [X, Y, P], {"full": True}),
    ("GaussianNLLLoss", [X, Y, P], {"eps": 0.3}),
    ("PoissonNLLLoss", [X, COUNTS], {"full": True}),
    ("PoissonNLLLoss", [P, COUNTS], {"log_input": False}),
    ("KLDivLoss", [np.log(P), Q], {}),
    ("KLDivLoss", [np.log(P), np.log(Q)], {"log_target": True}),
    ("SoftMarginLoss", [X[:, 0], SIGNS], {}),
    ("HingeEmbeddingLoss", [X[:, 0], SIGNS], {"margin": 0.8}),
    ("MarginRankingLoss", [X[:, 0], Y[:, 0], SIGNS], {"margin": 0.3}),
    ("MultiMarginLoss", [X, CLASSES], {"margin": 0.8}),
    ("MultiMarginLoss", [X, CLASSES], {"p": 2, "weight": WEIGHT}),
    ("MultiLabelMarginLoss", [X, LISTS], {}),
    ("MultiLabelSoftMarginLoss", [X, HITS], {"weight": WEIGHT}),
    ("CosineEmbeddingLoss", [VECTORS[0], VECTORS[1], SIGNS], {"margin": 0.1}),
    ("TripletMarginLoss", list(VECTORS), {}),
    ("TripletMarginWithDistanceLoss", list(VECTORS), {"margin": 0.7, "swap": True}),
    ("TripletMarginLoss", list(VECTORS), {"margin": 0.5, "p": 3.0, "swap": True}),
]


def computed(name: str, inputs: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The losses with every reduction, and the gradient of the mean with respect to the first input."""
    options = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
    record: dict[str, Any] = {
        "name": name,
        "inputs": [v.tolist() for v in inputs],
        "settings": {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in settings.items()},
    }
    for reduction in ("mean", "sum", "none"):
        tensors = [torch.tensor(v) for v in inputs]
        tensors[0].requires_grad_()
        loss = getattr(torch.nn, name)(reduction=reduction, **options)(*tensors)
        record[reduction] = loss.detach().tolist()
        if reduction == "mean":
            loss.backward()
            record["grad"] = tensors[0].grad.tolist()
    return record


if __name__ == "__main__":
    reference = [computed(*case) for case in CASES]
    (Path(__file__).parents[1] / "tests/nn/torch_losses.json").write_text(json.dumps(reference) + "\n")
