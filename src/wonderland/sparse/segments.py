"""Reductions over the entries of every line: sums over neighbours, readouts over the nodes of a graph.

With e (m, ...), one for every entry, they give (lines, ...); `gather` goes back. Book, section 12.2.4.
"""

from __future__ import annotations

from ..arrays.activations import safe_log
from ..arrays.conversion import as_inexact, as_ordered, as_real, as_tensor
from ..arrays.logic import isfinite, where
from ..arrays.manipulation import reshape
from ..arrays.stopping import stop_gradient
from ..core.dtypes import bool_, int64
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import segments as p
from ..primitives.elementwise import astype, exp
from .patterns import Incidence


def _of(name: str, e: Tensor, lines: Incidence) -> tuple[Tensor, Tensor, Tensor]:
    if e.ndim < 1 or e.shape[0] != lines.entries:
        raise ShapeError(f"{name}: shape {e.shape} for {lines.entries} entries.", f"shape ({lines.entries}, ...)")
    return lines.ptr, lines.owner, lines.order


def gather(x: ArrayLike, incidence: Incidence) -> Tensor:
    """Every entry gets what its line has: x (lines, ...) gives (m, ...), with `segment_sum` as its transpose.

    >>> import wonderland as wl
    >>> wl.sparse.gather(wl.tensor([5.0, 7.0]), wl.sparse.Incidence.of([1, 0, 1]))
    tensor([7., 5., 7.])
    """
    x = as_tensor("sparse.gather", x)
    if x.ndim < 1 or x.shape[0] != incidence.lines:
        raise ShapeError(
            f"sparse.gather: x of shape {x.shape} for {incidence.lines} lines.", f"x of shape ({incidence.lines}, ...)"
        )
    return p.take_lines(x, incidence.ptr, incidence.owner, incidence.order, in_order=incidence.sorted)


def segment_sum(e: ArrayLike, incidence: Incidence) -> Tensor:
    r"""\(\mathrm{out}_i = \sum_{e \in i} x_e\); 0 for a line without entries.

    >>> import wonderland as wl
    >>> wl.sparse.segment_sum(wl.tensor([1.0, 2.0, 3.0]), wl.sparse.Incidence.of([0, 2, 0], 4))
    tensor([4., 0., 2., 0.])
    """
    e = as_tensor("sparse.segment_sum", e)
    e = astype(e, dtype=int64) if e.dtype == bool_ else e
    return p.segment_sum(e, *_of("sparse.segment_sum", e, incidence), in_order=incidence.sorted)


def segment_mean(e: ArrayLike, incidence: Incidence) -> Tensor:
    """The mean of the entries of each line; 0 for a line without entries.

    >>> import wonderland as wl
    >>> wl.sparse.segment_mean(wl.tensor([1.0, 2.0, 3.0]), wl.sparse.Incidence.of([0, 2, 0], 4))
    tensor([2., 0., 2., 0.])
    """
    e = as_inexact("sparse.segment_mean", e)
    counts = incidence.counts
    counts = reshape(where(counts == 0, 1, counts), (incidence.lines,) + (1,) * (e.ndim - 1))
    return segment_sum(e, incidence) / counts


def segment_max(e: ArrayLike, incidence: Incidence) -> Tensor:
    """The largest of the entries of each line; -inf (or the least integer) for a line without entries.

    Several largest entries share the derivative evenly.

    >>> import wonderland as wl
    >>> wl.sparse.segment_max(wl.tensor([1.0, 2.0, 3.0]), wl.sparse.Incidence.of([0, 2, 0]))
    tensor([  3., -inf,   2.])
    """
    e = as_ordered("sparse.segment_max", e)
    return p.segment_max(e, *_of("sparse.segment_max", e, incidence), in_order=incidence.sorted)


def segment_min(e: ArrayLike, incidence: Incidence) -> Tensor:
    """The smallest of the entries of each line; inf (or the largest integer) for a line without entries.

    >>> import wonderland as wl
    >>> wl.sparse.segment_min(wl.tensor([1.0, 2.0, 3.0]), wl.sparse.Incidence.of([0, 2, 0]))
    tensor([ 1., inf,  2.])
    """
    e = as_ordered("sparse.segment_min", e)
    return p.segment_min(e, *_of("sparse.segment_min", e, incidence), in_order=incidence.sorted)


def _finite_max(e: Tensor, incidence: Incidence) -> Tensor:
    """The maximum to subtract before exponentiating, no derivative through it; 0 where it is infinite."""
    top = segment_max(stop_gradient(e), incidence)
    return where(isfinite(top), top, 0)


def segment_softmax(e: ArrayLike, incidence: Incidence) -> Tensor:
    r"""\(e^{x_e} / \sum_{e' \in i} e^{x_{e'}}\) among the entries of the line i of e, (m, ...). Book, section 12.3.1.

    The largest entry of each line is subtracted first, so nothing overflows. A line without entries has no weights; one
    whose entries are all -inf has weights 0.

    >>> import wonderland as wl
    >>> wl.sparse.segment_softmax(wl.tensor([0.0, 5.0, 0.0]), wl.sparse.Incidence.of([0, 2, 0]))
    tensor([0.5, 1. , 0.5])
    """
    e = as_real("sparse.segment_softmax", e)
    terms = exp(e - gather(_finite_max(e, incidence), incidence))
    total = segment_sum(terms, incidence)
    return terms / gather(where(total == 0, 1, total), incidence)


def segment_logsumexp(e: ArrayLike, incidence: Incidence) -> Tensor:
    r"""\(\ln \sum_{e \in i} e^{x_e}\) without overflow; -inf for a line without entries.

    >>> import wonderland as wl
    >>> wl.sparse.segment_logsumexp(wl.tensor([1000.0, 5.0]), wl.sparse.Incidence.of([0, 2]))
    tensor([1000.,  -inf,    5.])
    """
    e = as_real("sparse.segment_logsumexp", e)
    top = _finite_max(e, incidence)
    total = segment_sum(exp(e - gather(top, incidence)), incidence)
    return safe_log(total) + top
