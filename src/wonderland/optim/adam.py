"""Adam and AdamW: steps of the mean gradient over the root of the mean square."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import BETAS, NOT_NEGATIVE, Limits


class Adam(Optimizer):
    r"""Adaptive moments: \(m = \beta_1 m + (1-\beta_1) g,\ v = \beta_2 v + (1-\beta_2) g^2\), and
    \(w \leftarrow w - \eta\,\hat m / (\sqrt{\hat v} + \varepsilon)\) with \(\hat m = m/(1-\beta_1^t)\),
    \(\hat v = v/(1-\beta_2^t)\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0, -2.0])
    >>> wl.optim.Adam([w], lr=0.5).step([wl.tensor([0.1, 1e3])])  # the first step has the size of the rate
    >>> w
    parameter([ 0.5, -2.5])

    `amsgrad` divides by the largest v so far, so that the steps can only shrink; with a constant \(\beta_1\) the AdamX
    of Tran and Phong (2019) is the same. `weight_decay` is added to the gradient; `AdamW` keeps it apart. Book,
    section 2.3.2.
    """

    _limits: ClassVar[Limits] = {"eps": NOT_NEGATIVE, "betas": BETAS}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        kinds = ["mean", "square", "largest_square"] if group["amsgrad"] else ["mean", "square"]
        return {kind: arrays.zeros_like(parameter) for kind in kinds}

    def scalars(self, group: Group) -> Scalars:
        lr, t = group.lr, arrays.astype(self.count, group.lr.dtype)
        first, second = (1.0 - arrays.pow(beta, t) for beta in group["betas"])
        return lr / first, arrays.rsqrt(second)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        rate, correction = scalars
        beta1, beta2 = group["betas"]
        m = state["mean"] = beta1 * state["mean"] + (1.0 - beta1) * g
        v = state["square"] = beta2 * state["square"] + (1.0 - beta2) * (g * g)
        if group["amsgrad"]:
            v = state["largest_square"] = arrays.maximum(state["largest_square"], v)
        return w - rate * m / (arrays.sqrt(v) * correction + group["eps"])

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        t = arrays.maximum(self.count, 1)
        square = state["largest_square" if group["amsgrad"] else "square"]
        return group.lr / (arrays.sqrt(square / (1.0 - group["betas"][1] ** t)) + group["eps"])


class AdamW(Adam):
    r"""Adam with decoupled weight decay: \(w \leftarrow (1 - \eta\lambda)\,w\) beside Adam's step.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([2.0])
    >>> wl.optim.AdamW([w], lr=0.1, weight_decay=0.5).step([wl.tensor([0.0])])
    >>> w
    parameter([1.9])

    So the decay does not pass through the moments, and large gradients do not hide it. The book (section 9.2.1) prints
    \(w \leftarrow (1 - \lambda)\,w\), without the learning rate: `decay="independent"`.
    """

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        decay: str = "decoupled",
        maximize: bool = False,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, amsgrad, decay=decay, maximize=maximize)
