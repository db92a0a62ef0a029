"""Models with weights of few bits: smaller, and faster where reading the weights is what takes time."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ... import arrays
from ...core.cell import Cell
from ...core.errors import InputError
from ...core.tensor import Tensor
from ..layers.embedding import Embedding
from ..layers.linear import LazyLinear, Linear
from ..layers.quantized import Quantized, QuantizedEmbedding, QuantizedLinear, as_group, as_kind
from ..module.module import Module
from .surgery import is_place

__all__ = ["Quantization", "QuantizedWeight", "quantize"]

M = TypeVar("M", bound=Module)


@dataclass(frozen=True)
class QuantizedWeight:
    """What became of a layer's matrix."""

    path: str
    layer: str
    shape: tuple[int, ...]
    error: float  # the norm of the difference by the norm of the weights
    bytes_before: int
    bytes: int


@dataclass(frozen=True)
class Quantization:
    """What `wl.quantize` did: each layer with its error, and the bytes of the whole model. Prints as a table."""

    dtype: str
    weights: tuple[QuantizedWeight, ...]
    bytes_before: int  # of all parameters and buffers
    bytes: int

    @property
    def error(self) -> float:
        """The largest relative error of a layer."""
        return max(weight.error for weight in self.weights)

    @property
    def summary(self) -> str:
        """One line: bytes, and the largest error."""
        sizes = f"{self.bytes / 1e6:,.1f} MB instead of {self.bytes_before / 1e6:,.1f} MB"
        return f"{self.dtype} weights: {sizes}, with a relative error of at most {self.error:.2%} in a layer"

    def __str__(self) -> str:
        head = ("path", "layer", "shape", "error", "bytes before", "bytes")
        rows = [
            (w.path or "(the model)", w.layer, str(w.shape), f"{w.error:.2%}", f"{w.bytes_before:,}", f"{w.bytes:,}")
            for w in self.weights
        ]
        rows.append(("all of the model", "", "", "", f"{self.bytes_before:,}", f"{self.bytes:,}"))
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        texts = [[c.ljust(n) if k < 3 else c.rjust(n) for k, (c, n) in enumerate(zip(row, widths, strict=True))]
                 for row in (head, *rows)]  # fmt: skip
        return "\n".join("  ".join(row).rstrip() for row in texts)


def quantize(model: M, dtype: str = "int8", *, group_size: int | None = None, places: str | Iterable[str] = "*") -> M:
    r"""A copy of a model whose linear layers and embeddings have weights of few bits: "int8", "int4" or "bfloat16".

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=65, context=128, embed_dim=64, num_heads=4, depth=1, key=wl.random.key(0))
    >>> small = wl.quantize(model, "int8")
    >>> small.quantization.bytes_before, small.quantization.bytes, small.quantization.error < 0.02
    (249856, 92484, True)
    >>> print(str(small.quantization).splitlines()[1].split()[:2])
    ['tokens', 'QuantizedEmbedding']

    Integers stand for \(w_{ij} \approx s_{ig} q_{ij}\), with a scale \(s\) for each output ("per channel") or, with
    `group_size`, for each so many of its inputs; four bits have groups of 32 unless it is said, and -1 means one scale
    for all inputs. The weights stay small in memory: a product makes numbers of them in registers, as it reads them,
    and computes with x as it is. A head that is tied to the embedding shares its table as before.

    The error of every layer, \(\|\hat W - W\| / \|W\|\), and the bytes before and after are in `quantization`, which
    prints as a table. `places` are patterns of paths; other layers stay as they are. Biases stay, too, and can be
    trained; derivatives with respect to inputs are those of the small weights.

    `wl.save(small, path)` writes a file of the small size. To read it, quantize a model of the same
    sizes in the same way, and give it the state.

    >>> small.load_state_dict(wl.quantize(model, "int8").state_dict())
    Loaded(missing=[], unexpected=[])
    """
    whole, told = quantized(model, dtype, group_size, places)
    object.__setattr__(whole, "quantization", told)
    return whole


def quantized(
    model: M, dtype: str, group_size: int | None = None, places: str | Iterable[str] = "*"
) -> tuple[M, Quantization]:
    """A copy of a model in few bits, and what was done."""
    kind = as_kind("quantize", dtype)
    as_group("quantize", kind, group_size, 1)
    if not isinstance(model, Module):
        raise InputError(f"quantize: a {type(model).__name__} is no module.", "wl.quantize(model, 'int8')")
    made: dict[int, object] = {}
    weights: list[QuantizedWeight] = []
    for path, layer in model.named_modules():
        if is_place(path, places) and (small := _small(layer, kind, group_size)) is not None:
            made[id(layer)] = small
            weights.append(_told(path, small, arrays.asarray(layer.weight)))  # type: ignore[attr-defined]
    if not weights:
        raise InputError(
            f"quantize: no linear layer or embedding of this {type(model).__name__} is at {places!r}.",
            "patterns of paths, as model.named_modules() gives them",
        )
    # the copy takes the small layers for those that they were made of, wherever these are
    whole: M = copy.deepcopy(model, made)
    sizes = [_bytes_of([*m.parameters(), *m.buffers()]) for m in (model, whole)]
    return whole, Quantization(kind, tuple(weights), *sizes)


def _small(layer: Module, kind: str, group_size: int | None) -> Quantized | None:
    """The same layer in few bits, if it is one that can be: no other has the meaning of its base alone."""
    small: Quantized
    if type(layer) in (Linear, LazyLinear) and isinstance(layer, Linear) and layer.in_features is not None:
        small = QuantizedLinear(layer, kind, group_size)
    elif type(layer) is Embedding and layer.max_norm is None:
        small = QuantizedEmbedding(layer, kind, group_size)
    else:
        return None
    return small.train(layer.training)


def _told(path: str, small: Quantized, before: Tensor) -> QuantizedWeight:
    was, found = (np.asarray(w).astype(np.float32) for w in (before, small.weight))
    norm = float(np.linalg.norm(was))
    error = float(np.linalg.norm(found - was)) / norm if norm else 0.0
    return QuantizedWeight(path, type(small).__name__, was.shape, error, before.nbytes, _bytes_of(small.buffers()))


def _bytes_of(cells: Iterable[Cell]) -> int:
    return sum(cell.nbytes for cell in cells)
