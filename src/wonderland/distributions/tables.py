"""Probabilities of several outcomes at once, as tables: marginals, conditionals, independence, Bayes' rule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .. import arrays
from ..arrays.conversion import as_real
from ..core.dtypes import float64
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..random.arguments import check, known


class JointTable:
    r"""The joint distribution p(a, b, ...) of named variables as a table with an axis for each. Book, section A.1.

    >>> import wonderland as wl
    >>> tickets = wl.distributions.JointTable([[58, 27, 2], [2, 3, 8]], ("real", "win"))
    >>> tickets.marginal("win").probs
    tensor([0.6, 0.3, 0.1], dtype=float64)
    >>> tickets.condition(win=2).probs  # the sum rule and the product rule
    tensor([0.2, 0.8], dtype=float64)

    Counts or weights are divided by their sum; outcomes are numbered from 0.
    """

    def __init__(self, counts: ArrayLike, names: Iterable[str] | None = None) -> None:
        counts = arrays.astype(as_real("JointTable", arrays.asarray(counts)), float64)
        self.names: tuple[str, ...] = tuple("abcdefghij"[: counts.ndim] if names is None else names)
        if len(self.names) != counts.ndim or len(set(self.names)) != counts.ndim:
            raise ShapeError(f"JointTable: names {self.names} for {counts.ndim} axes.", "a name for each")
        check("JointTable", "an entry", counts, lambda v: (v >= 0) & np.isfinite(v), "counts of at least 0")
        total = arrays.sum(counts)
        check("JointTable", "the sum", total, lambda v: v > 0, "at least one count")
        self.probs: Tensor = counts / total

    def __repr__(self) -> str:
        return f"JointTable({', '.join(self.names)})\n{self.probs}"

    def _axes(self, names: Iterable[str]) -> tuple[int, ...]:
        for name in names:
            if name not in self.names:
                raise InputError(f"JointTable: there is no variable {name!r}.", ", ".join(self.names))
        return tuple(self.names.index(name) for name in names)

    def marginal(self, *names: str) -> JointTable:
        r"""The table of some of the variables: \(p(a) = \sum_b p(a, b)\)."""
        keep = self._axes(names)
        rest = tuple(i for i in range(self.probs.ndim) if i not in keep)
        table = arrays.sum(self.probs, axis=rest) if rest else self.probs
        order = [sorted(keep).index(axis) for axis in keep]
        return JointTable(arrays.permute_dims(table, order), names)

    def condition(self, **outcomes: int) -> JointTable:
        r"""The table of the other variables, given outcomes of some: \(p(a \mid b) = p(a, b)/p(b)\)."""
        chosen = dict(zip(self._axes(outcomes), outcomes.values(), strict=True))
        index = tuple(chosen.get(i, slice(None)) for i in range(self.probs.ndim))
        table = self.probs[index]
        if float(arrays.sum(table)) == 0:
            listed = ", ".join(f"{k}={v}" for k, v in outcomes.items())
            raise InputError(f"JointTable: the condition {listed} has probability 0.", "something that can happen")
        return JointTable(table, [n for i, n in enumerate(self.names) if i not in chosen])

    def conditional(self, *given: str) -> Tensor:
        """p(others | given) for all outcomes: the table divided by the marginal of `given`."""
        rest = tuple(i for i in range(self.probs.ndim) if i not in self._axes(given))
        below = arrays.sum(self.probs, axis=rest, keepdims=True)
        return self.probs / arrays.where(below == 0, 1.0, below)

    def entropy(self) -> Tensor:
        """The entropy of all variables together, in nats."""
        return -arrays.sum(arrays.xlogy(self.probs, self.probs))

    def mutual_information(self, first: str | None = None, second: str | None = None) -> Tensor:
        r"""\(\sum p(a, b)\ln\frac{p(a, b)}{p(a)\,p(b)}\) in nats: 0 if and only if the two are independent."""
        if first is None and self.probs.ndim != 2:
            raise InputError(f"JointTable: {self.probs.ndim} variables.", "the names of two of them")
        a, b = self.names[:2] if first is None or second is None else (first, second)
        both = self.marginal(a, b)
        return self.marginal(a).entropy() + self.marginal(b).entropy() - both.entropy()

    def is_independent(self, tolerance: float = 1e-9) -> bool:
        r"""Whether \(p(a, b, \dots) = p(a)\,p(b)\cdots\) up to a tolerance."""
        product = arrays.ones((), dtype=float64)
        for name in self.names:
            product = product[..., None] * self.marginal(name).probs
        return bool(arrays.max(arrays.abs(product - self.probs)) <= tolerance)


def bayes(likelihood: ArrayLike, prior: ArrayLike) -> Tensor:
    r"""\(p(h \mid d) = \frac{p(d \mid h)\,p(h)}{\sum_{h'} p(d \mid h')\,p(h')}\) over the last axis. Book, A.1.

    >>> import wonderland as wl
    >>> print(wl.distributions.bayes(wl.tensor([2 / 87, 8 / 13]), wl.tensor([0.87, 0.13])))
    tensor([0.2, 0.8])

    `likelihood` (..., h) is the probability (or density) of what was seen under each hypothesis, `prior` (h,) or
    (..., h) what was believed before. Logarithms of tiny likelihoods go to `GridPosterior`.
    """
    seen, prior = as_real("bayes", arrays.asarray(likelihood)), as_real("bayes", arrays.asarray(prior))
    if not seen.ndim or seen.shape[-1:] != prior.shape[-1:]:
        raise ShapeError(f"bayes: likelihoods of shape {seen.shape} and a prior of shape {prior.shape}.", "(..., h)")
    check("bayes", "a likelihood", seen, lambda v: v >= 0, "at least 0")
    check("bayes", "a prior probability", prior, lambda v: v >= 0, "at least 0")
    value = known(prior)
    if value is not None and not np.allclose(value.sum(-1), 1, atol=1e-4):
        raise InputError("bayes: the prior does not sum to 1.", "prior / prior.sum()")
    joint = seen * prior
    evidence = arrays.sum(joint, axis=-1, keepdims=True)
    check("bayes", "the probability of what was seen", evidence, lambda v: v > 0, "a hypothesis that allows it")
    return joint / evidence
