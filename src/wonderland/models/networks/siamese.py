"""Siamese networks: one encoder for both sides of a comparison, and learning from one example. Notes, section 8.5.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, KeyLike
from ...nn.functional import contrastive_loss, info_nce_loss, triplet_margin_loss
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key
from ..classical.descent import Callback, descend
from ..classical.neighbors import similarities
from ..classical.points import as_labels

LOSSES = ("contrastive", "triplet", "info_nce")


class Siamese(Module):
    r"""\(s(a, b) = \cos(f(a), f(b))\) with one encoder f for both inputs (a bi-encoder). Notes, section 8.5.4.

    >>> import wonderland as wl
    >>> model = wl.models.Siamese(wl.nn.Linear(8, 3))
    >>> a, b = wl.random.normal((2, 5, 8), key=wl.random.key(0))
    >>> model(a, b).shape, model.embed(a).shape
    ((5,), (5, 3))

    `fit(X, y)` learns from labels which inputs belong together; `fit_pairs(A, B)` from pairs alone. `loss` is

    - "contrastive": pairs of one class together, pairs of two at least `margin` apart;
    - "triplet": each input nearer to one of its class than to one of another, by `margin`;
    - "info_nce": which of one right and several wrong inputs belongs to this one, with `temperature`.
    """

    def __init__(
        self,
        encoder: Callable[..., Tensor],
        loss: str = "contrastive",
        *,
        margin: float = 1.0,
        temperature: float = 0.1,
    ) -> None:
        if loss not in LOSSES:
            raise InputError(f"Siamese: loss={loss!r}.", "one of " + ", ".join(map(repr, LOSSES)))
        if not (margin > 0 and temperature > 0):
            raise InputError(f"Siamese: margin={margin}, temperature={temperature}.", "both above 0")
        self.encoder = encoder
        self.loss = loss
        self.margin = margin
        self.temperature = temperature
        self.history: tuple[float, ...] = ()

    def embed(self, x: ArrayLike) -> Tensor:
        """The codes f(x)."""
        return self.encoder(arrays.asarray(x))

    def forward(self, a: ArrayLike, b: ArrayLike) -> Tensor:
        return arrays.cosine_similarity(self.embed(a), self.embed(b))

    def comparison_loss(self, anchor: ArrayLike, positive: ArrayLike, negatives: Tensor) -> Tensor:
        """The loss of inputs (n, ...), of one of the same class each (n, ...), and of m others each (n, m, ...)."""
        a, p = self.embed(anchor), self.embed(positive)
        n, m = negatives.shape[:2]
        wrong = self.embed(arrays.reshape(negatives, (n * m, *negatives.shape[2:])))
        if self.loss == "info_nce":
            return info_nce_loss(a, p, arrays.reshape(wrong, (n, m, -1)), temperature=self.temperature)
        others = arrays.repeat(a, m, axis=0)
        if self.loss == "triplet":
            return triplet_margin_loss(others, arrays.repeat(p, m, axis=0), wrong, margin=self.margin)
        together, apart = arrays.ones(n, dtype=a.dtype), arrays.zeros(n * m, dtype=a.dtype)
        near = contrastive_loss(a, p, together, margin=self.margin)
        return 0.5 * (near + contrastive_loss(others, wrong, apart, margin=self.margin))

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        negatives: int = 1,
        draws: int = 4,
        epochs: int = 20,
        batch_size: int | None = 64,
        lr: float = 1e-3,
        callback: Callback | None = None,
        key: KeyLike = None,
    ) -> Self:
        """Train on inputs (n, ...) with labels (n,): each input with `draws` partners and `negatives` others each."""
        X = arrays.asarray(X)
        labels = as_labels("Siamese.fit", y, X.shape[0] if X.ndim else 0).numpy()
        first, second = split(take_key("Siamese", key), 2)
        anchors, positives, wrong = _comparisons(labels, draws, as_int("Siamese.fit", "negatives", negatives, 1), first)
        parts = [arrays.take(X, arrays.asarray(i), axis=0) for i in (anchors, positives, wrong)]
        settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "callback": callback}
        self.history = ()
        compared = type(self).comparison_loss
        self.history = tuple(descend(self, compared, *parts, **settings, key=second, name="Siamese.fit"))
        return self

    def fit_pairs(
        self,
        A: ArrayLike,
        B: ArrayLike,
        *,
        epochs: int = 20,
        batch_size: int | None = 64,
        lr: float = 1e-3,
        callback: Callback | None = None,
        key: KeyLike = None,
    ) -> Self:
        """Train on pairs (n, ...) that belong together, by InfoNCE: the other pairs of a batch are the wrong ones."""
        settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "callback": callback}
        self.history = ()
        self.history = tuple(descend(self, _pair_loss, A, B, **settings, key=key, name="Siamese.fit_pairs"))
        return self


def _pair_loss(model: Siamese, a: Tensor, b: Tensor) -> Tensor:
    return info_nce_loss(model.embed(a), model.embed(b), temperature=model.temperature)


def _comparisons(labels: Array, draws: int, negatives: int, key: Tensor) -> tuple[Array, Array, Array]:
    """Numbers of anchors (n,), of another of the same class (n,), and of some of other classes (n, negatives)."""
    rng = np.random.default_rng(np.asarray(key).tolist())
    members = {c: np.flatnonzero(labels == c) for c in np.unique(labels)}
    if len(members) < 2 or all(len(m) < 2 for m in members.values()):
        raise InputError(
            f"Siamese.fit: {len(members)} classes, the largest with {max(map(len, members.values()), default=0)}.",
            "at least two classes, and two inputs of one of them",
        )
    anchors, positives, wrong = [], [], []
    for c, own in members.items():
        if len(own) < 2:
            continue  # it has no partner, and serves as a negative only
        others = np.flatnonzero(labels != c)
        for _ in range(as_int("Siamese.fit", "draws", draws, 1)):
            anchors.append(own)
            positives.append(own[(np.arange(len(own)) + rng.integers(1, len(own), len(own))) % len(own)])
            wrong.append(rng.choice(others, (len(own), negatives)))
    return np.concatenate(anchors), np.concatenate(positives), np.concatenate(wrong)


def one_shot_predict(
    model: Callable[..., Tensor], support: ArrayLike, labels: ArrayLike, query: ArrayLike, metric: str = "cosine"
) -> Tensor:
    """The label of the most similar support example, for each query. Notes, section 8.5.4.

    >>> import wonderland as wl
    >>> support = wl.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> one_shot_predict(lambda x: x, support, wl.tensor([7, 9]), wl.tensor([[0.2, 3.0]]))
    tensor([9])

    `model` is a `Siamese`, or any encoder. `support` (n, ...) holds an example or a few of each class, which need not
    have been there in training; `query` (m, ...) are the inputs to classify.
    """
    encode = model.embed if isinstance(model, Siamese) else model
    support, query = arrays.asarray(support), arrays.asarray(query)
    labels = as_labels("one_shot_predict", labels, support.shape[0] if support.ndim else 0)
    if not support.shape[:1] or not support.shape[0] or support.shape[1:] != query.shape[1:]:
        raise ShapeError(
            f"one_shot_predict: support of shape {support.shape}, queries of shape {query.shape}.",
            "examples (n, ...) and queries (m, ...) alike, n from 1 on",
        )
    scores = similarities(encode(query), encode(support), metric)
    return arrays.take(labels, arrays.argmax(scores, axis=-1), axis=0)


def n_way_accuracy(
    model: Callable[..., Tensor],
    X: ArrayLike,
    y: ArrayLike,
    n_way: int = 5,
    k_shot: int = 1,
    *,
    queries: int = 5,
    episodes: int = 20,
    metric: str = "cosine",
    key: KeyLike = None,
) -> float:
    """The mean accuracy of `one_shot_predict` in episodes of n classes with k examples each; chance is 1/n.

    >>> import wonderland as wl
    >>> X, y = wl.eye(4)[wl.arange(4).repeat(6)], wl.arange(4).repeat(6)
    >>> n_way_accuracy(lambda x: x, X, y, n_way=3, key=wl.random.key(0))
    1.0
    """
    X = arrays.asarray(X)
    labels = as_labels("n_way_accuracy", y, X.shape[0] if X.ndim else 0).numpy()
    n, k = as_int("n_way_accuracy", "n_way", n_way, 2), as_int("n_way_accuracy", "k_shot", k_shot, 1)
    queries = as_int("n_way_accuracy", "queries", queries, 1)
    usable = [c for c in np.unique(labels) if (labels == c).sum() >= k + queries]
    if len(usable) < n:
        raise InputError(
            f"n_way_accuracy: {len(usable)} classes have {k} + {queries} examples, of {n} needed.", "a smaller n_way"
        )
    rng = np.random.default_rng(np.asarray(take_key("n_way_accuracy", key)).tolist())
    hits = []
    for _ in range(as_int("n_way_accuracy", "episodes", episodes, 1)):
        support, query = [], []
        for c in rng.choice(usable, n, replace=False):
            drawn = rng.permutation(np.flatnonzero(labels == c))[: k + queries]
            support.append(drawn[:k])
            query.append(drawn[k:])
        s, q = np.concatenate(support), np.concatenate(query)
        examples, asked = (arrays.take(X, arrays.asarray(i), axis=0) for i in (s, q))
        hits.append(one_shot_predict(model, examples, labels[s], asked, metric).numpy() == labels[q])
    return float(np.mean(hits))
