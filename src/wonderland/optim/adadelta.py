"""Adadelta: steps in the units of the parameters."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters
from .settings import NOT_NEGATIVE, UP_TO_ONE, Limits


class Adadelta(Optimizer):
    r"""\(v = \rho v + (1-\rho) g^2,\ \delta = \frac{\sqrt{u + \varepsilon}}{\sqrt{v + \varepsilon}}\, g\),
    \(u = \rho u + (1-\rho)\delta^2,\ w \leftarrow w - \eta\,\delta\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.Adadelta([w], eps=0.01).step([wl.tensor([8.0])])
    >>> print(f"{w.item():.4f}")
    0.6840

    The ratio of the root mean squares of past steps and past gradients takes the place of the learning rate, which is
    1 by default. Like RMSprop it forgets old gradients, where Adagrad adds them up for ever. Book, section 2.3.2.
    """

    _limits: ClassVar[Limits] = {"eps": NOT_NEGATIVE, "rho": UP_TO_ONE}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {kind: arrays.zeros_like(parameter) for kind in ("square", "step_square")}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        rho, eps = group["rho"], group["eps"]
        v = state["square"] = rho * state["square"] + (1.0 - rho) * (g * g)
        step = arrays.sqrt(state["step_square"] + eps) / arrays.sqrt(v + eps) * g
        state["step_square"] = rho * state["step_square"] + (1.0 - rho) * (step * step)
        return w - lr * step

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        eps = group["eps"]
        return group.lr * arrays.sqrt(state["step_square"] + eps) / arrays.sqrt(state["square"] + eps)
