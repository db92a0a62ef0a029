"""Writes tests/nn/torch_normalization.json: what PyTorch's normalization layers compute, in float64.

Run with a Python that has torch: `python tools/torch_normalization.py`. The tests only read the file. Everything is
stored channels-last and with weights (in, out), as this package has it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
SHAPES = {1: (3, 2, 4), 2: (2, 3, 1, 4), 3: (2, 1, 2, 2, 4)}  # spatial axes -> a batch, channels last

# name, arguments, settings, shape of the input, whether torch has the channels along axis 1
CASES: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...], bool]] = [
    ("BatchNorm1d", [4], {}, (5, 4), True),
    ("BatchNorm1d", [4], {"eps": 0.1, "momentum": None}, SHAPES[1], True),
    ("BatchNorm2d", [4], {"momentum": 0.3}, SHAPES[2], True),
    ("BatchNorm2d", [4], {"track_running_stats": False}, SHAPES[2], True),
    ("BatchNorm3d", [4], {"affine": False}, SHAPES[3], True),
    ("InstanceNorm1d", [4], {"affine": True}, SHAPES[1], True),
    ("InstanceNorm2d", [4], {"track_running_stats": True, "momentum": 0.3}, SHAPES[2], True),
    ("InstanceNorm3d", [4], {"affine": True, "track_running_stats": True}, SHAPES[3], True),
    ("GroupNorm", [2, 4], {}, (5, 4), True),
    ("GroupNorm", [4, 4], {"eps": 0.1}, SHAPES[2], True),
    ("LocalResponseNorm", [3], {"alpha": 0.5, "beta": 0.6, "k": 2.0}, SHAPES[2], True),
    ("LocalResponseNorm", [4], {"alpha": 0.5}, SHAPES[1], True),
    ("LayerNorm", [4], {}, SHAPES[2], False),
    ("LayerNorm", [[1, 4]], {"eps": 0.1, "bias": False}, SHAPES[2], False),
    ("RMSNorm", [4], {"eps": 1e-3}, SHAPES[1], False),
    ("RMSNorm", [4], {}, SHAPES[1], False),
]


def computed(name: str, args: list[Any], settings: dict[str, Any], shape: tuple[int, ...], first: bool) -> Any:
    """Two outputs in training and one in inference, the gradients of the second, and the running statistics."""
    layer = getattr(torch.nn, name)(*args, **settings)
    record: dict[str, Any] = {"name": name, "args": args, "settings": settings, "parameters": {}, "grads": {}}
    for path, parameter in layer.named_parameters():
        parameter.data = torch.tensor(rng.normal(1.0, 0.5, size=tuple(parameter.shape)))
        record["parameters"][path] = parameter.tolist()

    def run(x: torch.Tensor) -> torch.Tensor:
        return layer(x.movedim(-1, 1)).movedim(1, -1) if first else layer(x)

    inputs = [rng.normal(2.0, 3.0, size=shape) for _ in range(2)]
    cotangent = rng.normal(size=shape)
    record["inputs"], record["cotangent"] = [x.tolist() for x in inputs], cotangent.tolist()
    x = torch.tensor(inputs[1], requires_grad=True)
    outputs = [run(torch.tensor(inputs[0])), run(x)]
    (outputs[1] * torch.tensor(cotangent)).sum().backward()
    record["outputs"] = [y.tolist() for y in outputs]
    record["grads"] = {path: p.grad.tolist() for path, p in layer.named_parameters()} | {"input": x.grad.tolist()}
    record["buffers"] = {path: b.tolist() for path, b in layer.named_buffers()}
    layer.eval()
    record["inference"] = run(torch.tensor(inputs[0])).tolist()
    return record


def weight_normed() -> Any:
    """A linear layer with weight normalization, in our layout."""
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3))
    g, v = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    weight, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    lengths = rng.uniform(0.5, 2.0, size=(3, 1))
    g.data, v.data, layer.bias.data = (torch.tensor(a) for a in (lengths, weight, bias))
    x = torch.tensor(rng.normal(size=(5, 4)), requires_grad=True)
    y = layer(x)
    (y**2).sum().backward()
    return {
        "g": lengths[:, 0].tolist(),
        "v": weight.T.tolist(),
        "bias": bias.tolist(),
        "input": x.tolist(),
        "output": y.tolist(),
        "grads": {
            "g": g.grad[:, 0].tolist(),
            "v": v.grad.T.tolist(),
            "layer.bias": layer.bias.grad.tolist(),
            "input": x.grad.tolist(),
        },
    }


if __name__ == "__main__":
    reference = {"layers": [computed(*case) for case in CASES], "weight_norm": weight_normed()}
    (Path(__file__).parents[1] / "tests/nn/torch_normalization.json").write_text(json.dumps(reference) + "\n")
