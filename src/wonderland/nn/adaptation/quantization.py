"""Models with weights of few bits: smaller, and faster where reading the weights is what takes time."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ... import arrays
from ...core.cell import Cell
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array
from ...primitives.rounded import rounded
from ..layers.embedding import Embedding
from ..layers.linear import LazyLinear, Linear
from ..layers.quantized import Quantized, QuantizedEmbedding, QuantizedLinear, as_activations, as_group, as_kind
from ..module.module import Module
from .surgery import is_place

__all__ = ["Quantization", "QuantizedWeight", "quantize"]

M = TypeVar("M", bound=Module)

TRIED_ROWS = 16  # of normal numbers, which tell what rounding rows costs


@dataclass(frozen=True)
class QuantizedWeight:
    """What became of a layer's matrix."""

    path: str
    layer: str
    shape: tuple[int, ...]
    error: float  # the norm of the difference by the norm of the weights
    bytes_before: int
    bytes: int
    activation_error: float = 0.0  # what rounding rows of normal numbers adds, by the norm of their products

    @property
    def total(self) -> float:
        """Both errors together: they have nothing to do with each other."""
        return math.hypot(self.error, self.activation_error)


@dataclass(frozen=True)
class Quantization:
    """What `wl.quantize` did: each layer with its error, and the bytes of the whole model. Prints as a table."""

    dtype: str
    weights: tuple[QuantizedWeight, ...]
    bytes_before: int  # of all parameters and buffers
    bytes: int
    activations: str = "float"

    @property
    def error(self) -> float:
        """The largest relative error of a layer, with that of activations if they are rounded."""
        return max(weight.total for weight in self.weights)

    @property
    def summary(self) -> str:
        """One line: bytes, and the largest error."""
        sizes = f"{self.bytes / 1e6:,.1f} MB instead of {self.bytes_before / 1e6:,.1f} MB"
        what = "weights" if self.activations == "float" else f"weights and {self.activations} activations"
        return f"{self.dtype} {what}: {sizes}, with a relative error of at most {self.error:.2%} in a layer"

    def __str__(self) -> str:
        table = [("path", "layer", "shape", "error", "of activations", "bytes before", "bytes")]
        for w in self.weights:
            errors = f"{w.error:.2%}", f"{w.activation_error:.2%}"
            table.append(
                (w.path or "(the model)", w.layer, str(w.shape), *errors, f"{w.bytes_before:,}", f"{w.bytes:,}")
            )
        table.append(("all of the model", "", "", "", "", f"{self.bytes_before:,}", f"{self.bytes:,}"))
        shown = [k for k in range(len(table[0])) if k != 4 or self.activations != "float"]
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        texts = [[row[k].ljust(widths[k]) if k < 3 else row[k].rjust(widths[k]) for k in shown] for row in table]
        return "\n".join("  ".join(row).rstrip() for row in texts)


def quantize(
    model: M,
    dtype: str = "int8",
    *,
    group_size: int | None = None,
    activations: str = "float",
    places: str | Iterable[str] = "*",
) -> M:
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
    and computes with x as it is. Compiled products of more than eight rows read a copy in another order, which they
    keep: it has as few bits, or a byte for a number of four. A head that is tied to the embedding shares its table.

    With weights of int8 and `activations="int8"`, each row of x is rounded to integers, too, as it comes ("dynamic
    quantization"): \(y_j = s_x s_j \sum_i r_i q_{ij}\), where \(s_x = \max_i |x_i| / 127\) and \(r_i\) is the integer
    that is nearest to \(x_i / s_x\). The sum is exact, and processors have fast instructions for it: many rows, as
    those of a prompt or a batch, take a third to a quarter of the time. The price is an error of up to \(s_x / 2\) in
    each \(x_i\): products with normal numbers change by less than 1 %, as by rounding the weights, and rows with a
    few large elements lose more. A row that is not finite gives NaN. Derivatives are those without the rounding of x.

    >>> wl.quantize(model, "int8", activations="int8").quantization.error < 0.02
    True

    The error of every layer, \(\|\hat W - W\| / \|W\|\), and the bytes before and after are in `quantization`, which
    prints as a table; with rounded activations also what these add, by rows of normal numbers. `places` are patterns of
    paths; other layers stay as they are. Biases stay, too, and can be trained; derivatives with respect to inputs are
    those of the small weights.

    `wl.save(small, path)` writes a file of the small size. To read it, quantize a model of the same
    sizes in the same way, and give it the state.

    >>> small.load_state_dict(wl.quantize(model, "int8").state_dict())
    Loaded(missing=[], unexpected=[])
    """
    whole, told = quantized(model, dtype, group_size, places, activations)
    object.__setattr__(whole, "quantization", told)
    return whole


def quantized(
    model: M,
    dtype: str,
    group_size: int | None = None,
    places: str | Iterable[str] = "*",
    activations: str = "float",
) -> tuple[M, Quantization]:
    """A copy of a model in few bits, and what was done."""
    kind = as_kind("quantize", dtype)
    as_group("quantize", kind, group_size, 1)
    activations = as_activations("quantize", activations, kind, group_size)
    if not isinstance(model, Module):
        raise InputError(f"quantize: a {type(model).__name__} is no module.", "wl.quantize(model, 'int8')")
    made: dict[int, object] = {}
    weights: list[QuantizedWeight] = []
    for path, layer in model.named_modules():
        if is_place(path, places) and (small := _small(layer, kind, group_size, activations)) is not None:
            made[id(layer)] = small
            weights.append(_told(path, small, arrays.asarray(layer.weight)))  # type: ignore[attr-defined]
    if not weights:
        raise InputError(
            f"quantize: no linear layer or embedding of this {type(model).__name__} is at {places!r}.",
            "patterns of paths, as model.named_modules() gives them",
        )
    # the copy takes the small layers for those that they were made of, wherever these are
    whole: M = copy.deepcopy(model, made)
    before, after = (_bytes_of([*m.parameters(), *m.buffers()]) for m in (model, whole))
    return whole, Quantization(kind, tuple(weights), before, after, activations)


def _small(layer: Module, kind: str, group_size: int | None, activations: str) -> Quantized | None:
    """The same layer in few bits, if it is one that can be: no other has the meaning of its base alone."""
    small: Quantized
    if type(layer) in (Linear, LazyLinear) and isinstance(layer, Linear) and layer.in_features is not None:
        small = QuantizedLinear(layer, kind, group_size, activations)
    elif type(layer) is Embedding and layer.max_norm is None:
        small = QuantizedEmbedding(layer, kind, group_size, activations)
    else:
        return None
    return small.train(layer.training)


def _told(path: str, small: Quantized, before: Tensor) -> QuantizedWeight:
    was, found = (np.asarray(w).astype(np.float32) for w in (before, small.weight))
    norm = float(np.linalg.norm(was))
    error = float(np.linalg.norm(found - was)) / norm if norm else 0.0
    added = 0.0 if small.activations == "float" else _added(found.T if isinstance(small, QuantizedLinear) else found)
    sizes = before.nbytes, _bytes_of(small.buffers())
    return QuantizedWeight(path, type(small).__name__, was.shape, error, *sizes, added)


def _added(matrix: Array) -> float:
    """The error of products with rows of normal numbers that are rounded, by the norm of the products."""
    rows = np.random.default_rng(0).normal(size=(TRIED_ROWS, matrix.shape[-1])).astype(np.float32)
    integers, steps = rounded(rows)
    norm = float(np.linalg.norm(rows @ matrix.T))
    return float(np.linalg.norm((integers * steps - rows) @ matrix.T)) / norm if norm else 0.0


def _bytes_of(cells: Iterable[Cell]) -> int:
    return sum(cell.nbytes for cell in cells)
