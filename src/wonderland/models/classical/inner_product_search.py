"""Maximum inner product search: the classes with the largest scores, without all scores. Notes, section 4.5.3."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor, Tracer
from ...core.typing import Array, ArrayLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from .kmeans import KMeans
from .points import as_training_points

Array = Array
METHODS = ("exact", "ivf", "lsh")


class Found(NamedTuple):
    """The largest inner products (..., k) and whose they are, the largest first."""

    values: Tensor
    indices: Tensor


class MIPSIndex:
    r"""The k largest \(\langle w_c, z\rangle\) of vectors W (C, d) that are known up front. Notes, section 4.5.3.

    >>> import wonderland as wl
    >>> W = wl.random.normal((1000, 8), key=wl.random.key(0))
    >>> index = wl.models.MIPSIndex(W, method="ivf", n_probe=8, key=wl.random.key(1))
    >>> z = wl.random.normal((5, 8), key=wl.random.key(2))
    >>> index.query(z, k=3).indices.shape, index.recall(z, k=3) > 0.7, index.scored < 0.6
    ((5, 3), True, True)

    The most likely class of a softmax layer is the one with the largest logit, so no probability is needed: W are
    its class vectors, and `bias` (C,) its bias. `method` is

    - "exact": all inner products;
    - "ivf": vectors in `n_lists` clusters, of which the `n_probe` nearest to the query are searched;
    - "lsh": signs of `n_bits` random projections, and the `n_candidates` vectors whose signs differ least from the
      query's.

    Both approximate methods search nearest neighbours: with \(\hat w = (w/M, \sqrt{1 - \|w\|^2/M^2})\), where M is
    the largest norm, and \(\hat z = (z/\|z\|, 0)\), all have norm 1, and \(\|\hat w - \hat z\|^2 = 2 - 2\langle
    w, z\rangle/(M\|z\|)\), so the nearest vector has the largest inner product. Their candidates get exact values.
    `recall(z, k)` is the share of the true k that they find, `scored` the share of vectors that the last query read.
    """

    def __init__(
        self,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        method: str = "exact",
        *,
        n_lists: int | None = None,
        n_probe: int = 4,
        n_bits: int = 64,
        n_candidates: int | None = None,
        key: KeyLike = None,
    ) -> None:
        W = as_training_points("MIPSIndex", weight)
        if bias is not None:
            b = as_real("MIPSIndex", arrays.asarray(bias))
            if b.shape != W.shape[:1]:
                raise ShapeError(f"MIPSIndex: a bias of shape {b.shape} for {W.shape[0]} vectors.", f"({W.shape[0]},)")
            W = arrays.concat([W, arrays.astype(b, W.dtype)[:, None]], axis=1)
        if method not in METHODS:
            raise InputError(f"MIPSIndex: method={method!r}.", "one of " + ", ".join(map(repr, METHODS)))
        self.weight, self.has_bias, self.method = W, bias is not None, method
        self.scored = 1.0
        classes, d = W.shape
        if method == "exact":
            return
        key = take_key("MIPSIndex", key)
        self._augmented = augmented(W.numpy())
        if method == "ivf":
            lists = round(classes**0.5) if n_lists is None else as_int("MIPSIndex", "n_lists", n_lists, 1)
            self.n_probe = as_int("MIPSIndex", "n_probe", n_probe, 1)
            model = KMeans(min(lists, classes), n_init=1, max_iter=25, key=key).fit(self._augmented)
            self._centers = np.asarray(model.cluster_centers_)
            labels = model.labels_.numpy()
            self._lists = [np.flatnonzero(labels == i) for i in range(len(self._centers))]
        else:
            bits = as_int("MIPSIndex", "n_bits", n_bits, 1)
            wanted = max(50, classes // 10) if n_candidates is None else n_candidates
            self.n_candidates = as_int("MIPSIndex", "n_candidates", wanted, 1)
            self._planes = normal((d + 1, bits), key=key, dtype=W.dtype).numpy()
            self._signs = np.packbits(self._augmented @ self._planes > 0, axis=1)

    def __len__(self) -> int:
        return self.weight.shape[0]

    def query(self, z: ArrayLike, k: int = 1) -> Found:
        """The k largest inner products with codes z (..., d), and their numbers, both (..., k)."""
        z = self._codes(z)
        k = as_int("MIPSIndex.query", "k", k, 1)
        if k > len(self):
            raise InputError(f"MIPSIndex.query: k={k} of {len(self)} vectors.", "a smaller k")
        if self.method == "exact":
            return Found(*arrays.top_k(z @ self.weight.mT, k))
        if isinstance(z, Tracer):
            raise InputError(f"MIPSIndex: {self.method!r} looks at numbers, and cannot be traced.", 'method="exact"')
        flat, W = z.numpy().reshape(-1, z.shape[-1]), self.weight.numpy()
        values = np.empty((len(flat), k), np.result_type(flat, W))
        indices = np.empty((len(flat), k), np.int64)
        seen = 0
        for i, code in enumerate(flat):
            candidates = self._candidates(code, k)
            seen += len(candidates)
            scores = W[candidates] @ code
            best = np.argsort(-scores, kind="stable")[:k]
            values[i], indices[i] = scores[best], candidates[best]
        self.scored = seen / max(1, len(flat) * len(self))
        shape = (*z.shape[:-1], k)
        return Found(arrays.asarray(values.reshape(shape)), arrays.asarray(indices.reshape(shape)))

    def _codes(self, z: ArrayLike) -> Tensor:
        z = as_real("MIPSIndex", arrays.asarray(z))
        d = self.weight.shape[1] - self.has_bias
        if not z.ndim or z.shape[-1] != d:
            raise ShapeError(f"MIPSIndex: codes of shape {z.shape}.", f"(..., {d})")
        if self.has_bias:
            z = arrays.concat([z, arrays.ones((*z.shape[:-1], 1), dtype=z.dtype)], axis=-1)
        return z

    def _candidates(self, code: Array, k: int) -> Array:
        query = np.append(code / max(float(np.linalg.norm(code)), 1e-30), 0.0)
        if self.method == "ivf":
            order = np.argsort(-(self._centers @ query) + 0.5 * (self._centers**2).sum(axis=1), kind="stable")
            sizes = np.cumsum([len(self._lists[i]) for i in order])
            lists = max(self.n_probe, int(np.searchsorted(sizes, k)) + 1)  # more, if there are not k in these
            return np.sort(np.concatenate([self._lists[i] for i in order[:lists]]))
        signs = np.packbits(query @ self._planes > 0)
        apart = _BITS[self._signs ^ signs].sum(axis=1)
        count = min(len(self), max(k, self.n_candidates))
        return np.sort(np.argsort(apart, kind="stable")[:count])

    def recall(self, z: ArrayLike, k: int = 1) -> float:
        """The share of the k largest inner products of each code that `query` finds."""
        z = arrays.asarray(z)
        found = self.query(z, k).indices.numpy().reshape(-1, k)
        true = arrays.top_k(self._codes(z) @ self.weight.mT, k).indices.numpy().reshape(-1, k)
        return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(found, true, strict=True)]))


_BITS = np.array([bin(byte).count("1") for byte in range(256)], np.int64)


def augmented(W: Array) -> Array:
    r"""\((w/M, \sqrt{1 - \|w\|^2/M^2})\), vectors of norm 1, where M is the largest norm.

    >>> augmented(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8, 0. ],
           [0. , 0. , 1. ]])
    """
    squares = (W**2).sum(axis=1)
    largest = max(float(squares.max()), 1e-30)
    last = np.sqrt(np.maximum(1.0 - squares / largest, 0.0))
    return np.concatenate([W / np.sqrt(largest), last[:, None]], axis=1).astype(W.dtype)
