"""RMSprop: gradients over the root of their mean square."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters
from .settings import NOT_NEGATIVE, UP_TO_ONE, Limits


class RMSprop(Optimizer):
    r"""\(v = \alpha v + (1-\alpha) g^2,\ w \leftarrow w - \eta\, g/(\sqrt v + \varepsilon)\). Book, section 2.3.2.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.RMSprop([w], lr=0.1, alpha=0.75).step([wl.tensor([8.0])])
    >>> w
    parameter([0.8])

    `centered` takes the variance \(v - \bar g^2\) instead of the mean square. With `momentum` \(\mu\) the step is
    \(b = \mu b + g/(\sqrt v + \varepsilon),\ w \leftarrow w - \eta b\).
    """

    _limits: ClassVar[Limits] = {"eps": NOT_NEGATIVE, "momentum": NOT_NEGATIVE, "alpha": UP_TO_ONE}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        kinds = ["square"] + ["mean"] * bool(group["centered"]) + ["momentum"] * bool(group["momentum"])
        return {kind: arrays.zeros_like(parameter) for kind in kinds}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        alpha = group["alpha"]
        v = state["square"] = alpha * state["square"] + (1.0 - alpha) * (g * g)
        if group["centered"]:
            m = state["mean"] = alpha * state["mean"] + (1.0 - alpha) * g
            v = v - m * m
        g = g / (arrays.sqrt(v) + group["eps"])
        if group["momentum"]:
            g = state["momentum"] = group["momentum"] * state["momentum"] + g
        return w - lr * g

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        variance = state["square"] - state["mean"] ** 2 if group["centered"] else state["square"]
        return group.lr / ((1.0 - group["momentum"]) * (arrays.sqrt(variance) + group["eps"]))
