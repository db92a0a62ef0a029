"""Passes through PyTorch's attention and transformers, forth and back, in our names, layout and sense of masks."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]  # not in the project's environment

from .cases import drawn, plain
from .transformers import CASES, HEADS, Case, E

RENAMED = {
    "self_attn": "attention", "multihead_attn": "cross", "linear1": "feed_forward.up", "linear2": "feed_forward.down",
    "in_proj_weight": "qkv.weight", "in_proj_bias": "qkv.bias", "out_proj": "output", "q_proj_weight": "query.weight",
    "k_proj_weight": "key.weight", "v_proj_weight": "value.weight",
}  # fmt: skip


def computed() -> dict[str, list[Any]]:
    return {"cases": [plain(_computed(case)) for case in CASES]}


def _computed(case: Case) -> dict[str, Any]:
    shapes = [repr(m) for m in case.masks.values()]
    rng = np.random.default_rng(zlib.crc32(repr((case.heading(), case.inputs, shapes)).encode()))
    module = _made(case).train()  # the fast path of evaluation gives zeros at padded places
    for _, value in module.named_parameters():
        value.data.copy_(torch.tensor(drawn(rng, tuple(value.shape), 0.7)))
    state = dict(_ours(case, path, value) for path, value in module.named_parameters())
    first = case.settings.get("batch_first", case.settings.get("layer", {}).get("batch_first", False))
    arrays = [drawn(rng, shape) for shape in case.inputs]
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    turned = [x if first or x.ndim == 2 else x.transpose(0, 1) for x in tensors]
    masks = {name: torch.tensor(~m if m.dtype == bool else m) for name, m in case.masks.items()}
    found = module(*turned, **masks, **case.calls)
    outputs = [y for y in (found if isinstance(found, tuple) else (found,)) if y is not None]
    if not first and outputs[0].ndim == 3:
        outputs[0] = outputs[0].transpose(0, 1)
    cotangents = [drawn(rng, tuple(y.shape)) for y in outputs]
    if case.real is not None:
        cotangents[0] = np.where(case.real[..., None], cotangents[0], 0.0)
        outputs[0] = torch.where(torch.tensor(case.real)[..., None], outputs[0], 0.0)
    sum((y * torch.tensor(v)).sum() for y, v in zip(outputs, cotangents, strict=True)).backward()
    return {
        **case.heading(),
        "state": state,
        "inputs": arrays,
        "masks": {name: _plain_mask(m) for name, m in case.masks.items()},
        "real": None if case.real is None else case.real,
        "cotangents": cotangents,
        "outputs": [y.detach().numpy() for y in outputs],
        "input_grads": [x.grad.numpy() for x in tensors],
        "grads": dict(_ours(case, path, p.grad) for path, p in module.named_parameters()),
    }


def _plain_mask(mask: np.ndarray) -> Any:
    """JSON has no infinity."""
    return mask if mask.dtype == bool else np.where(np.isinf(mask), "-inf", mask.astype(str)).tolist()


def _made(case: Case) -> Any:
    if not case.name.endswith("coder"):
        return getattr(torch.nn, case.name)(*case.args, **case.settings)
    layer = getattr(torch.nn, f"{case.name}Layer")(E, HEADS, **case.settings["layer"])
    norm = torch.nn.LayerNorm(E) if case.settings["norm"] else None
    extra = {"enable_nested_tensor": False} if case.name == "TransformerEncoder" else {}
    return getattr(torch.nn, case.name)(layer, case.settings["layers"], norm, **extra)


def _ours(case: Case, path: str, value: Any) -> tuple[str, np.ndarray]:
    """A parameter or its gradient under our name, in our layout."""
    x = value.detach().numpy()
    names = [RENAMED.get(part, part) for part in path.split(".")]
    decodes = "decoder.layers" in path or case.name.startswith("TransformerDecoder")
    if (decodes and "layers" in path) or case.name == "TransformerDecoderLayer":
        names = [{"norm2": "norm_cross", "norm3": "norm2"}.get(name, name) for name in names]
    found = ".".join(names)
    if case.name == "MultiheadAttention" and case.settings.get("kdim") and path == "in_proj_bias":
        return found, x  # the test cuts it in three
    return found, x.T.copy() if x.ndim == 2 else x
