"""Adam and its relatives: steps of the mean gradient over the root of the mean square."""

from __future__ import annotations

from typing import Any

from .. import array
from ..errors import InputError
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .optimizer import Group, Optimizer, Scalars, check_not_negative, check_range, refuse_complex
from .sgd import descent


class Adam(Optimizer):
    r"""Adaptive moments: \(m = \beta_1 m + (1-\beta_1) g,\ v = \beta_2 v + (1-\beta_2) g^2\), and
    \(w \leftarrow w - \eta\,\hat m / (\sqrt{\hat v} + \varepsilon)\) with \(\hat m = m/(1-\beta_1^t)\),
    \(\hat v = v/(1-\beta_2^t)\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0, -2.0])
    >>> wl.optim.Adam([w], lr=0.5).step([wl.tensor([0.1, 1e3])])  # the first step has the size of the rate
    >>> w
    parameter([ 0.5, -2.5])

    `weight_decay` \(\lambda\) adds \(\lambda w\) to the gradient (`AdamW` keeps it apart), `amsgrad` divides by the
    largest \(\hat v\) so far, and `maximize` ascends. Book, section 2.3.2.
    """

    decoupled = False  # whether weight decay acts on the parameters instead of the gradients

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize
        )

    def check(self, group: Group) -> None:
        name, betas = type(self).__name__, group["betas"]
        check_not_negative(group, name, "eps", "weight_decay")
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise InputError(f"{name}: betas={betas!r}.", "two numbers, such as betas=(0.9, 0.999)")
        for beta in betas:
            check_range(name, "betas", beta, lambda v: 0 <= v < 1, "numbers from 0 to below 1")
        group["betas"] = tuple(betas)

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        refuse_complex(type(self).__name__, parameter)
        kinds = ["mean", "square", "largest_square"] if group["amsgrad"] else ["mean", "square"]
        return {kind: array.zeros_like(parameter) for kind in kinds}

    def scalars(self, group: Group) -> Scalars:
        lr, t = group.lr, array.astype(self.count, group.lr.dtype)
        first, second = (1.0 - array.pow(beta, t) for beta in group["betas"])
        shared = lr / first, array.rsqrt(second)
        return (*shared, 1.0 - lr * group["weight_decay"]) if self._shrinks(group) else shared

    def _shrinks(self, group: Group) -> bool:
        return self.decoupled and bool(group["weight_decay"])

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        rate, correction, *keep = scalars
        beta1, beta2 = group["betas"]
        if self.decoupled:
            g = -g if group["maximize"] else g
        else:
            g = descent(group, w, g)
        m = state["mean"] = beta1 * state["mean"] + (1.0 - beta1) * g
        v = state["square"] = beta2 * state["square"] + (1.0 - beta2) * (g * g)
        if group["amsgrad"]:
            v = state["largest_square"] = array.maximum(state["largest_square"], v)
        return (keep[0] * w if keep else w) - rate * m / (array.sqrt(v) * correction + group["eps"])


class AdamW(Adam):
    r"""Adam with decoupled weight decay: \(w \leftarrow (1 - \eta\lambda)\,w\) before Adam's step.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([2.0])
    >>> wl.optim.AdamW([w], lr=0.1, weight_decay=0.5).step([wl.tensor([0.0])])
    >>> w
    parameter([1.9])

    So the decay does not pass through the moments, and large gradients do not hide it. Book, section 2.3.2.
    """

    decoupled = True

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
