"""Passes through PyTorch's modules and functions, forth and back, in our layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]  # not in the project's environment

from .cases import Case, drawn, plain

TRANSPOSED = ("Linear", "Conv", "RNN", "GRU", "LSTM")  # their weights are (out, in, *kernel) there
STARTS_AS_MADE = ("running_", "num_batches_tracked")
# What a wrapped layer calls its parameters and buffers, here and there.
RENAMED = {
    "weight_norm": {"original0": "g", "original1": "v"},
    "spectral_norm": {"original": "v", "0._u": "right", "0._v": "left"},
}


def computed(case: Case) -> dict[str, Any]:
    """The record of a case: what both libraries are told, the state before, every pass, and the buffers after."""
    rng = case.rng()
    module, record = None, case.heading()
    if case.name[0].isupper():
        module = _made(case)
        for path, value in _state(module).items():
            if not path.startswith(STARTS_AS_MADE) and not case.name.endswith("Loss"):
                value.copy_(torch.tensor(drawn(rng, tuple(value.shape), 0.7)))
        record["state"] = {_path(case, path): _ours(case, path, value) for path, value in _state(module).items()}
    record["passes"] = [_passed(case, module, rng, mode == "t") for mode in case.modes]
    if module is not None:
        record["buffers"] = {_path(case, path): _ours(case, path, value) for path, value in module.named_buffers()}
        if case.name.startswith("InstanceNorm"):
            record["buffers"].pop("num_batches_tracked", None)
    return plain(record)


def _made(case: Case) -> Any:
    settings = {k: torch.tensor(v) if k in ("weight", "pos_weight") else _tuple(v) for k, v in case.settings.items()}
    module = getattr(torch.nn, case.name)(*map(_tuple, case.args), **settings)
    return getattr(torch.nn.utils.parametrizations, case.wrapped_by)(module) if case.wrapped_by else module


def _state(module: Any) -> dict[str, Any]:
    """Parameters and buffers, to change in place."""
    return {path: value.detach() for path, value in [*module.named_parameters(), *module.named_buffers()]}


def _passed(case: Case, module: Any, rng: np.random.Generator, training: bool) -> dict[str, Any]:
    """Inputs, outputs, and the gradients of the outputs' sum weighted by cotangents."""
    arrays = [drawn(rng, x) if isinstance(x, tuple) else np.asarray(x) for x in case.inputs]
    wrt = [i for i, x in enumerate(arrays) if x.dtype.kind == "f" and (case.wrt is None or i in case.wrt)]
    tensors = [torch.tensor(x, requires_grad=i in wrt) for i, x in enumerate(arrays)]
    moved = [
        _moved(case, x, -1, 1) if x.is_floating_point() and i not in case.kept else x for i, x in enumerate(tensors)
    ]
    if case.before:
        moved[0] = getattr(torch.nn.functional, case.before)(moved[0], dim=-1)
    positional = len(moved) - len(case.names)
    named = dict(zip(case.names, moved[positional:], strict=True))
    if module is None:
        outputs = getattr(torch.nn.functional, case.name)(*moved[:positional], **case.settings, **named)
    else:
        module.train(training).zero_grad()
        if case.name in ("LSTM", "LSTMCell") and positional == 3:
            moved, positional = [moved[0], (moved[1], moved[2])], 2
        outputs = module(*moved[:positional], **named)
    leaves = [_moved(case, y, 1, -1) for y in _leaves(outputs)]
    cotangents = [drawn(rng, tuple(y.shape)) for y in leaves]
    sum((y * torch.tensor(v)).sum() for y, v in zip(leaves, cotangents, strict=True)).backward()
    parameters = dict(module.named_parameters()) if module is not None else {}
    return {
        "training": training,
        "inputs": arrays,
        "wrt": wrt,
        "cotangents": cotangents,
        "outputs": [y.detach().numpy() for y in leaves],
        "input_grads": [tensors[i].grad.numpy() for i in wrt],
        "grads": {_path(case, path): _ours(case, path, p.grad) for path, p in parameters.items()},
    }


def _moved(case: Case, x: Any, start: int, end: int) -> Any:
    return x.movedim(start, end) if case.channels_first and x.ndim > 2 else x


def _path(case: Case, path: str) -> str:
    """Our name of a parameter or buffer."""
    if not case.wrapped_by:
        return path
    return RENAMED[case.wrapped_by].get(path.removeprefix("parametrizations.weight."), f"layer.{path}")


def _ours(case: Case, path: str, value: Any) -> np.ndarray:
    """A parameter, buffer or gradient in our layout."""
    x = value.detach().numpy().copy()
    if case.name == "Bilinear" and x.ndim == 3:
        return x.transpose(1, 2, 0)
    if not case.name.startswith(TRANSPOSED):
        return x
    if path.endswith("original0"):
        return x.ravel()
    if path.endswith("_v"):  # as long as all axes of the weight but the first
        kernel = case.args[2:3] if case.name.startswith("Conv") else ()
        return x.reshape(-1, *kernel).transpose(*range(1, 1 + len(kernel)), 0).ravel()
    return x.transpose(*range(2, x.ndim), 1, 0) if x.ndim > 1 else x


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [tree]


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
