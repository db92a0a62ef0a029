"""Lion: the sign of a momentum."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .optimizer import Group, Optimizer
from .settings import check_betas, refuse_complex


class Lion(Optimizer):
    r"""\(w \leftarrow w - \eta\,\mathrm{sign}(\beta_1 m + (1-\beta_1) g)\), then \(m = \beta_2 m + (1-\beta_2) g\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0, -2.0])
    >>> wl.optim.Lion([w], lr=0.5).step([wl.tensor([0.1, -1e3])])
    >>> w
    parameter([ 0.5, -1.5])

    Every step moves every weight by the learning rate, so it wants a rate three to ten times smaller than AdamW's and a
    weight decay that much larger. It remembers one number per weight, half of what Adam does.
    """

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        decay: str = "decoupled",
        maximize: bool = False,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, weight_decay=weight_decay, decay=decay, maximize=maximize)

    def check(self, group: Group) -> None:
        check_betas(group, "Lion")

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        refuse_complex("Lion", parameter)
        return {"mean": arrays.zeros_like(parameter)}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        beta1, beta2 = group["betas"]
        m = state["mean"]
        state["mean"] = beta2 * m + (1.0 - beta2) * g
        return w - lr * arrays.sign(beta1 * m + (1.0 - beta1) * g)
