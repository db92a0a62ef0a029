"""Attention to what is learned or stored instead of to other tokens. Book, sections 10.1.3 and 11.1.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Held, Parameter

__all__ = ["NeuralMemory", "SoftDictionary", "TopActivations", "top_activations"]


class NeuralMemory(Module):
    r"""\(\operatorname{softmax}(X W_q K/\sqrt{k})\,V\) with trained keys and values: a memory of m slots. Book, E.11.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.NeuralMemory(16, 8, 100, 32)
    >>> layer(wl.ones((2, 7, 16))).shape, layer.num_parameters()  # e k + k m + m v
    ((2, 7, 32), 4128)

    `keys` K is (k, m), one column for each slot, and `values` V is (m, v). Tokens do not see each other, so the cost is
    linear in their number. With another function in the place of the softmax, `normalize`, there is neither a
    projection nor the divisor, and k must be e: \(\phi(X K)\,V\), the MLP of a transformer (E.11.3).

    >>> wl.nn.NeuralMemory(16, 16, 64, 16, normalize="relu")(wl.ones((7, 16))).shape
    (7, 16)
    """

    keys: Held[Parameter]
    values: Held[Parameter]

    def __init__(
        self,
        e: int,
        k: int,
        m: int,
        v: int,
        normalize: ActivationLike = "softmax",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.e, self.k, self.m, self.v = (
            as_int(name, what, size, 1) for what, size in (("e", e), ("k", k), ("m", m), ("v", v))
        )
        key = take_key(name, key)
        first, second, third = split(key, 3)
        self.query: Linear | None = None
        self.normalize: Module | None = None
        if normalize == "softmax":
            self.query = Linear(self.e, self.k, False, dtype, first)
        elif self.k != self.e:
            raise InputError(f"{name}: keys of {k} features for tokens of {e}, and no projection.", f"k = e = {e}")
        else:
            self.normalize = as_activation(name, normalize)
        kind = dtypes.default_float if dtype is None else dtype
        with at_once(key):
            self.keys = Parameter(normal((self.k, self.m), key=second, dtype=kind) / math.sqrt(self.k))
            self.values = Parameter(normal((self.m, self.v), key=third, dtype=kind) / math.sqrt(self.m))

    def scores(self, x: ArrayLike) -> Tensor:
        """How well tokens (..., e) fit the keys, (..., m), before the softmax or the function."""
        x = as_real(type(self).__name__, x)
        if not x.ndim or x.shape[-1] != self.e:
            raise ShapeError(f"{self._describe()}: tokens of shape {x.shape}.", f"(..., {self.e})")
        if self.query is None:
            return x @ self.keys
        return (self.query(x) @ self.keys) / math.sqrt(self.k)

    def forward(self, x: ArrayLike) -> Tensor:
        scores = self.scores(x)
        weights = arrays.softmax(scores, axis=-1) if self.normalize is None else self.normalize(scores)
        return weights @ self.values

    def extra_repr(self) -> str:
        return f"{self.e}, {self.k}, {self.m}, {self.v}"


class SoftDictionary:
    r"""\(\sum_j \operatorname{softmax}_j(q \cdot k_j/T)\,v_j\): a dictionary that answers every query. Book, C.10.1.

    >>> import wonderland as wl
    >>> d = wl.nn.SoftDictionary(keys=wl.eye(3), values=[[2.0], [5.0], [7.0]], temperature=0.01)
    >>> d[[1.0, 0.0, 0.0]], d[[0.1, 0.9, 0.0]]
    (tensor([2.]), tensor([5.]))

    Python's own dictionary knows its keys only, and raises at "Alce". This one has keys (m, k) and values (m, v), and
    answers a query (..., k) by a mean of the values, with more weight for keys that are closer; with a `temperature` T
    of 0 by the value of the closest key, as hard attention does. Larger temperatures mix more.
    """

    def __init__(self, keys: ArrayLike, values: ArrayLike, temperature: float = 1.0) -> None:
        self.keys, self.values = (as_real("SoftDictionary", arrays.asarray(x)) for x in (keys, values))
        if self.keys.ndim != 2 or self.values.ndim < 1 or self.keys.shape[0] != self.values.shape[0]:
            raise ShapeError(
                f"SoftDictionary: keys {self.keys.shape} and values {self.values.shape}.", "(m, k) and (m, v)"
            )
        self.temperature = float(as_number("SoftDictionary", "temperature", temperature))
        if not self.temperature >= 0:
            raise InputError(f"SoftDictionary: temperature={temperature}.", "0 or more")

    def __len__(self) -> int:
        return self.keys.shape[0]

    def weights(self, query: ArrayLike) -> Tensor:
        """How much each key counts for queries (..., k): (..., m)."""
        return self._found(query)[1]

    def __getitem__(self, query: ArrayLike) -> Tensor:
        return self._found(query)[0]

    def _found(self, query: ArrayLike) -> tuple[Tensor, Tensor]:
        q = as_real("SoftDictionary", arrays.asarray(query))
        if not q.ndim or q.shape[-1] != self.keys.shape[1]:
            raise ShapeError(f"SoftDictionary: a query of shape {q.shape}.", f"(..., {self.keys.shape[1]})")
        rows = arrays.reshape(q, (-1, q.shape[-1]))
        values = arrays.reshape(self.values, (len(self), -1))
        mode, scale = ("hard", 1.0) if self.temperature == 0 else ("soft", 1.0 / self.temperature)
        out, weights = F.attention_with_weights(rows, self.keys, values, scale=scale, mode=mode)
        return (
            arrays.reshape(out, (*q.shape[:-1], *self.values.shape[1:])),
            arrays.reshape(weights, (*q.shape[:-1], len(self))),
        )


class TopActivations(NamedTuple):
    """For each unit its largest values, falling, (units, k), and where they are: indices (units, k, axes)."""

    values: Array
    places: Array


def top_activations(
    layer: Callable[[Tensor], Tensor], dataset: ArrayLike | Iterable[ArrayLike], k: int, batch_size: int = 64
) -> TopActivations:
    """The k inputs that move every unit of a layer most, with which one can read what it stands for. Book, 11.1.2.

    >>> import wonderland as wl
    >>> memory = wl.nn.NeuralMemory(4, 4, 10, 4)
    >>> tokens = wl.random.normal((100, 7, 4))  # 100 sequences of 7 tokens
    >>> found = wl.nn.top_activations(memory.scores, tokens, k=3)
    >>> found.values.shape, found.places.shape  # of each of 10 keys: three sequences, and the tokens in them
    ((10, 3), (10, 3, 2))

    `layer` takes a batch of examples and gives (batch, ..., units). The dataset is an array whose first axis are the
    examples, or gives batches one after another. A place is the number of an example and what follows of the axes.
    Where values are equal the first place comes first.
    """
    k = as_int("top_activations", "k", k, 1)
    batches: Iterable[ArrayLike]
    if isinstance(dataset, (Tensor, np.ndarray, list, tuple)):
        whole, size = arrays.asarray(dataset), as_int("top_activations", "batch_size", batch_size, 1)
        batches = (whole[i : i + size] for i in range(0, whole.shape[0], size))
    else:
        batches = dataset  # type: ignore[assignment]
    values, places, seen = None, None, 0
    for batch in batches:
        found = np.asarray(layer(arrays.asarray(batch)))
        if found.ndim < 2:
            raise ShapeError(f"top_activations: the layer gave {found.shape}.", "(batch, ..., units)")
        where = np.indices(found.shape[:-1]).reshape(found.ndim - 1, -1).T  # (inputs, axes)
        where[:, 0] += seen
        seen += found.shape[0]
        rows = found.reshape(-1, found.shape[-1]).T  # (units, inputs)
        own = np.broadcast_to(where, (rows.shape[0], *where.shape))
        if values is not None and places is not None:
            rows, own = np.concatenate([values, rows], axis=1), np.concatenate([places, own], axis=1)
        order = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        values = np.take_along_axis(rows, order, axis=1)
        places = np.take_along_axis(own, order[..., None], axis=1)
    if values is None or places is None or values.shape[1] < k:
        count = 0 if values is None else values.shape[1]
        raise InputError(f"top_activations: {count} inputs, and k={k}.", "a larger dataset, or a smaller k")
    return TopActivations(values, places)
