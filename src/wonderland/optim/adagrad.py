"""Adagrad: gradients over the root of the sum of their squares."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import NOT_NEGATIVE, Limits


class Adagrad(Optimizer):
    r"""\(s = s + g^2,\ w \leftarrow w - \eta_t\, g/(\sqrt s + \varepsilon)\), \(\eta_t = \eta/(1 + (t-1)\,\gamma)\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> wl.optim.Adagrad([w], lr=0.5).step([wl.tensor([8.0])])
    >>> w
    parameter([0.5])

    \(\gamma\) is `lr_decay`, and s starts from `initial_accumulator_value`. Book, section 2.3.2.
    """

    _limits: ClassVar[Limits] = {
        "lr_decay": NOT_NEGATIVE,
        "initial_accumulator_value": NOT_NEGATIVE,
        "eps": NOT_NEGATIVE,
    }
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {"sum": arrays.full_like(parameter, group["initial_accumulator_value"])}

    def scalars(self, group: Group) -> Scalars:
        if not group["lr_decay"]:
            return (group.lr,)
        return (group.lr / (1.0 + (arrays.astype(self.count, group.lr.dtype) - 1.0) * group["lr_decay"]),)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        s = state["sum"] = state["sum"] + g * g
        return w - lr * g / (arrays.sqrt(s) + group["eps"])

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        (lr,) = self.scalars(group)
        return lr / (arrays.sqrt(state["sum"]) + group["eps"])
