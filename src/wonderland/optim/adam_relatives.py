"""Relatives of Adam: NAdam looks ahead, RAdam rectifies the first steps, Adamax takes the largest gradient."""

from __future__ import annotations

import math
from typing import ClassVar

from .. import arrays
from ..core import dtypes
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import BETAS, NOT_NEGATIVE, Limits


class NAdam(Optimizer):
    r"""Adam with Nesterov's look ahead: \(\hat m = \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i} m +
    \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i} g\), where \(\mu_t = \beta_1 (1 - \tfrac12 0.96^{t\psi})\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.NAdam([w], lr=0.1).step([wl.tensor([8.0])])
    >>> print(f"{w.item():.4f}")
    0.8944

    \(\psi\) is `momentum_decay`; all else is as in `Adam`. Book, section 2.3.2.
    """

    _limits: ClassVar[Limits] = {"eps": NOT_NEGATIVE, "momentum_decay": NOT_NEGATIVE, "betas": BETAS}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {kind: arrays.zeros_like(parameter) for kind in ("mean", "square")}

    def init_shared(self, group: Group) -> dict[str, Tensor]:
        return {"mu_product": arrays.ones((), dtype=dtypes.float64)}

    def scalars(self, group: Group) -> Scalars:
        beta1, beta2 = group["betas"]
        t = arrays.astype(self.count, dtypes.float64)
        now, following = (beta1 * (1.0 - 0.5 * 0.96 ** ((t + i) * group["momentum_decay"])) for i in (0.0, 1.0))
        product = group.shared["mu_product"] * now
        group.shared["mu_product"].assign(product)
        of_gradient = group.lr * (1.0 - now) / (1.0 - product)
        of_mean = group.lr * following / (1.0 - product * following)
        return of_gradient, of_mean, arrays.rsqrt(1.0 - beta2**t)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        of_gradient, of_mean, correction = scalars
        beta1, beta2 = group["betas"]
        m = state["mean"] = beta1 * state["mean"] + (1.0 - beta1) * g
        v = state["square"] = beta2 * state["square"] + (1.0 - beta2) * (g * g)
        return w - (of_gradient * g + of_mean * m) / (arrays.sqrt(v) * correction + group["eps"])


class RAdam(Optimizer):
    r"""Rectified Adam: plain momentum while the mean square rests on too few gradients, then Adam's step times
    \(r_t = \sqrt{\frac{(\rho_t - 4)(\rho_t - 2)\rho_\infty}{(\rho_\infty - 4)(\rho_\infty - 2)\rho_t}}\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.RAdam([w], lr=0.1).step([wl.tensor([8.0])])  # the first steps are those of momentum
    >>> w
    parameter([0.2])

    \(\rho_\infty = 2/(1-\beta_2) - 1\), \(\rho_t = \rho_\infty - 2t\beta_2^t/(1-\beta_2^t)\), and the change is at
    \(\rho_t > 5\). It does by itself what a warm-up of the learning rate does for Adam.
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
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {kind: arrays.zeros_like(parameter) for kind in ("mean", "square")}

    def scalars(self, group: Group) -> Scalars:
        beta1, beta2 = group["betas"]
        t = arrays.astype(self.count, dtypes.float64)
        last = 2.0 / (1.0 - beta2) - 1.0
        second = 1.0 - beta2**t
        length = last - 2.0 * t * (1.0 - second) / second
        rate = group.lr / (1.0 - beta1**t)
        if last <= 5:
            return rate, arrays.zeros_like(rate)
        adapts = length > 5.0
        length = arrays.where(adapts, length, last)  # no root of a negative number
        rectified = arrays.sqrt((length - 4.0) * (length - 2.0) / length) * math.sqrt(last / ((last - 4) * (last - 2)))
        return arrays.where(adapts, 0.0, rate), arrays.where(adapts, rate * rectified * arrays.sqrt(second), 0.0)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        plain, adaptive = scalars  # one of them is zero
        beta1, beta2 = group["betas"]
        m = state["mean"] = beta1 * state["mean"] + (1.0 - beta1) * g
        v = state["square"] = beta2 * state["square"] + (1.0 - beta2) * (g * g)
        return w - m * (plain + adaptive / (arrays.sqrt(v) + group["eps"]))


class Adamax(Optimizer):
    r"""Adam with the largest gradient instead of the mean square: \(u = \max(\beta_2 u, |g| + \varepsilon)\),
    \(w \leftarrow w - \frac{\eta}{1-\beta_1^t}\, m/u\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.Adamax([w], lr=0.25).step([wl.tensor([8.0])])
    >>> w
    parameter([0.75])

    The maximum is the limit of the p-norm of past gradients for \(p \to \infty\), where Adam has p = 2. Some lists call
    it AdamX. A method published under that name (Tran and Phong, 2019) is another one: AMSGrad for a \(\beta_1\) that
    falls with time, and `Adam(amsgrad=True)` for a constant one.
    """

    _limits: ClassVar[Limits] = {"eps": NOT_NEGATIVE, "betas": BETAS}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {kind: arrays.zeros_like(parameter) for kind in ("mean", "largest")}

    def scalars(self, group: Group) -> Scalars:
        return (group.lr / (1.0 - group["betas"][0] ** arrays.astype(self.count, dtypes.float64)),)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (rate,) = scalars
        beta1, beta2 = group["betas"]
        m = state["mean"] = beta1 * state["mean"] + (1.0 - beta1) * g
        u = state["largest"] = arrays.maximum(beta2 * state["largest"], arrays.abs(g) + group["eps"])
        return w - rate * m / u
