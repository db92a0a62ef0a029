"""Learning from few labels and many neighbours: losses of labelled nodes, smoothness, spreading. Book, 12.1.4."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...graphs import Graph, laplacian_quadratic
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.graphs.shift import GraphLike, as_shift

__all__ = ["label_spreading", "manifold_loss", "masked_cross_entropy"]


def masked_cross_entropy(logits: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> Tensor:
    r"""\(\frac{1}{|T|} \sum_{i \in T} \mathrm{CE}(y_i, \hat y_i)\) over the nodes of a mask (n,). Book, section 12.2.3.

    >>> import wonderland as wl
    >>> logits = wl.tensor([[2.0, 0.0], [0.0, 0.0], [9.0, 0.0]])
    >>> print(f"{wl.models.masked_cross_entropy(logits, [0, 1, 1], [True, True, False]):.4f}")
    0.4100
    >>> print(f"{wl.nn.functional.cross_entropy(logits[:2], wl.tensor([0, 1])):.4f}")
    0.4100

    All nodes are in the forward pass, those with labels in the loss; it is divided by their number, not by n. Without
    any it is 0.
    """
    mask, y = arrays.asarray(mask), arrays.asarray(labels)
    found = arrays.asarray(logits)
    if mask.shape != y.shape or found.shape[:-1] != y.shape:
        raise ShapeError(
            f"masked_cross_entropy: logits {found.shape}, labels {y.shape}, a mask {mask.shape}.",
            "(n, classes), (n,) and (n,)",
        )
    keep = mask != 0
    each = F.cross_entropy(found, arrays.where(keep, y, 0), reduction="none")
    chosen = arrays.where(keep, each, arrays.zeros_like(each))  # labels of the others are not looked at
    return arrays.sum(chosen) / arrays.maximum(arrays.sum(arrays.astype(keep, each.dtype)), 1.0)


def manifold_loss(loss: Callable[[Tensor], Tensor], outputs: ArrayLike, graph: Graph, weight: float = 1.0) -> Tensor:
    r"""\(\mathcal{L}(f) + \lambda\,f^\top L f\): neighbours should have similar outputs. Book, section 12.1.4.

    >>> import wonderland as wl
    >>> f = wl.tensor([0.0, 1.0, 1.0])
    >>> wl.models.manifold_loss(lambda f: (f[0] - 1) ** 2, f, wl.graphs.path_graph(3), weight=0.5)
    tensor(1.5)

    `loss` is a function of all outputs (n,) or (n, c), which looks at those with labels; the second term needs none.
    Predictions depend on a node's own features afterwards, and the graph can be left away.
    """
    f = arrays.asarray(outputs)
    strength = as_number("manifold_loss", "weight", weight)
    if strength < 0:
        raise InputError(f"manifold_loss: weight={strength}.", "0 or more")
    return loss(f) + strength * laplacian_quadratic(graph, f)


def label_spreading(
    graph: GraphLike, labels: ArrayLike, mask: ArrayLike, classes: int, alpha: float = 0.9, steps: int = 50
) -> Tensor:
    r"""\(F \leftarrow \alpha S F + (1 - \alpha) Y\) from few labels, \(S = D^{-1/2} A D^{-1/2}\): scores (n, classes).

    >>> import wonderland as wl
    >>> path = wl.graphs.path_graph(5)
    >>> F = wl.models.label_spreading(path, [0, 0, 0, 1, 1], [True, False, False, False, True], 2)
    >>> wl.argmax(F, axis=1).tolist()
    [0, 0, 0, 1, 1]

    A baseline without features and without training (Zhou et al.): what a graph network has to beat. The middle of the
    path is a tie.
    """
    name = "label_spreading"
    shift = as_shift(graph, "sym")
    y, keep = arrays.asarray(labels), arrays.asarray(mask) != 0
    if y.shape != (shift.n,) or keep.shape != y.shape or not dtypes.is_integer(y.dtype):
        raise ShapeError(f"{name}: labels {y.dtype}{list(y.shape)}, a mask {keep.shape}.", f"({shift.n},) each")
    share = float(as_number(name, "alpha", alpha))
    if not 0 <= share < 1:
        raise InputError(f"{name}: alpha={alpha}.", "a number from 0 to below 1")
    k = as_int(name, "classes", classes, 1)
    start = arrays.astype((arrays.where(keep, y, -1)[:, None] == arrays.arange(k)), dtypes.default_float)
    found = start
    for _ in range(as_int(name, "steps", steps, 0)):
        found = share * shift.apply(found) + (1 - share) * start
    return found
