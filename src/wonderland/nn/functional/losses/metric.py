"""Losses of vectors that should be near or far: pairs, triplets, and one among many."""

from __future__ import annotations

from collections.abc import Callable

from .... import arrays, linalg
from ....core.errors import ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .classification import cross_entropy
from .reduction import check_same, check_setting, check_signs, reduced, scores_of, together

__all__ = [
    "contrastive_loss", "cosine_embedding_loss", "info_nce_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def cosine_embedding_loss(
    input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""\(1 - \cos(x_1, x_2)\) for pairs with label 1, \(\max(0, \cos(x_1, x_2) - m)\) for those with -1.

    >>> import wonderland as wl
    >>> a, b = wl.tensor([[1.0, 0.0], [1.0, 0.0]]), wl.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> wl.nn.functional.cosine_embedding_loss(a, b, wl.tensor([1.0, -1.0]), reduction="none")
    tensor([1., 1.])

    Vectors are (..., d), labels (...).
    """
    name = "cosine_embedding_loss"
    first, second, label = _labelled_pairs(name, input1, input2, target)
    check_setting(name, "margin", margin, -1.0 <= margin <= 1.0, "a cosine, from -1 to 1")
    check_signs(name, label)
    cosine = arrays.cosine_similarity(first, second)
    return reduced(name, arrays.where(label > 0, 1.0 - cosine, arrays.relu(cosine - margin)), reduction)


def contrastive_loss(
    input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    r"""\(y\,d^2 + (1 - y)\max(0, m - d)^2\) with the distance d of vectors: y is 1 for pairs that belong together.

    >>> import wonderland as wl
    >>> a, b = wl.zeros((2, 2)), wl.tensor([[0.0, 0.5], [0.0, 0.5]])
    >>> wl.nn.functional.contrastive_loss(a, b, wl.tensor([1.0, 0.0]), reduction="none")
    tensor([0.25, 0.25])

    Vectors are (..., d), labels (...). Equal vectors of a pair that should differ have derivative 0.
    """
    name = "contrastive_loss"
    first, second, label = _labelled_pairs(name, input1, input2, target)
    check_setting(name, "margin", margin, margin > 0, "margin > 0")
    check(name, "a label", label, lambda v: (v >= 0) & (v <= 1), "labels 1 (alike) and 0 (different)")
    difference = first - second
    near = arrays.sum(difference * difference, axis=-1)
    far = arrays.square(arrays.relu(margin - arrays.norm(difference, axis=-1)))
    return reduced(name, label * near + (1.0 - label) * far, reduction)


def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""\(\max(0,\ d(a, p) - d(a, n) + m)\): the negative should be farther away than the positive by a margin.

    >>> import wonderland as wl
    >>> a, near, far = wl.zeros((1, 2)), wl.tensor([[0.0, 1.0]]), wl.tensor([[0.0, 1.5]])
    >>> print(wl.nn.functional.triplet_margin_loss(a, near, far))
    tensor(0.5)

    Vectors are (..., d), and distances p-norms of differences, to which `eps` is added. `swap` uses the distance of the
    positive and the negative where it is the smaller one.
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return linalg.vector_norm(x - y + eps, ord=p, axis=-1)

    return _of_triplets("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""`triplet_margin_loss` with a distance of one's own, from two tensors (..., d) to (...).

    >>> import wonderland as wl
    >>> a, near, far = wl.zeros((1, 2)), wl.tensor([[0.0, 1.0]]), wl.tensor([[0.0, 1.5]])
    >>> squared = lambda x, y: wl.sum((x - y) ** 2, axis=-1)
    >>> print(wl.nn.functional.triplet_margin_with_distance_loss(a, near, far, squared, margin=2.0))
    tensor(0.75)

    Without one it is the Euclidean distance of `triplet_margin_loss`.
    """
    name = "triplet_margin_with_distance_loss"
    distance = distance_function or (lambda x, y: arrays.norm(x - y + 1e-6, axis=-1))
    return _of_triplets(name, anchor, positive, negative, distance, margin, swap, reduction)


def _of_triplets(
    name: str,
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    a, pos, neg = together(name, anchor, positive, negative)
    _check_vectors(name, a)
    check_same(name, a, pos, "an anchor, a positive and a negative of one shape")
    check_same(name, a, neg, "an anchor, a positive and a negative of one shape")
    check_setting(name, "margin", margin, margin > 0, "margin > 0")
    far = distance(a, neg)
    if swap:
        far = arrays.minimum(far, distance(pos, neg))
    return reduced(name, arrays.relu(distance(a, pos) - far + margin), reduction)


def info_nce_loss(
    query: ArrayLike,
    positive: ArrayLike,
    negatives: ArrayLike | None = None,
    temperature: float = 0.1,
    reduction: str = "mean",
) -> Tensor:
    r"""\(-\ln \frac{e^{\cos(q, k_+)/\tau}}{\sum_k e^{\cos(q, k)/\tau}}\): which of many keys belongs to the query.

    >>> import wonderland as wl
    >>> q = wl.eye(4)
    >>> loss = wl.nn.functional.info_nce_loss(q, q, temperature=1.0)  # ln(1 + 3 / e)
    >>> print(loss)
    tensor(0.743668)

    `query` and `positive` are (n, d). Without `negatives` the positives of the other queries are the wrong keys; with
    them, (m, d) for all queries or (n, m, d) for each, only they are.
    """
    name = "info_nce_loss"
    check_setting(name, "temperature", temperature, temperature > 0, "temperature > 0")
    q, k = together(name, query, positive)
    if q.ndim != 2 or q.shape != k.shape:
        raise ShapeError(f"{name}: queries of shape {q.shape} and positives of shape {k.shape}.", "both (n, d)")
    q, k = arrays.normalize(q, axis=-1), arrays.normalize(k, axis=-1)
    if negatives is None:
        return cross_entropy(q @ k.mT / temperature, arrays.arange(q.shape[0]), reduction=reduction)
    wrong = scores_of(name, negatives)
    if wrong.shape[-1:] != q.shape[-1:] or wrong.ndim not in (2, 3) or (wrong.ndim == 3 and len(wrong) != len(q)):
        raise ShapeError(
            f"{name}: negatives of shape {wrong.shape} for queries of shape {q.shape}.", "(m, d), (n, m, d)"
        )
    wrong = arrays.normalize(wrong, axis=-1)
    right = arrays.sum(q * k, axis=-1, keepdims=True)
    others = q @ wrong.mT if wrong.ndim == 2 else arrays.einsum("n d, n m d -> n m", q, wrong)
    scores = arrays.concat([right, others], axis=-1) / temperature
    return cross_entropy(scores, arrays.zeros(q.shape[0], dtype="int64"), reduction=reduction)


def _check_vectors(name: str, x: Tensor) -> None:
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{name}: inputs of shape {x.shape} are no vectors.", "shape (..., d)")


def _labelled_pairs(name: str, first: ArrayLike, second: ArrayLike, label: ArrayLike) -> list[Tensor]:
    first, second, label = together(name, first, second, label)
    _check_vectors(name, first)
    check_same(name, first, second, "two vectors for every pair")
    if label.shape != first.shape[:-1]:
        raise ShapeError(
            f"{name}: labels of shape {label.shape} for vectors of shape {first.shape}.", f"shape {first.shape[:-1]}"
        )
    return [first, second, label]
