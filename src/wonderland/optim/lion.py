"""Lion: the sign of a momentum."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters
from .settings import BETAS, Limits


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

    _limits: ClassVar[Limits] = {"betas": BETAS}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        decay: str = "decoupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {"mean": arrays.zeros_like(parameter)}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        beta1, beta2 = group["betas"]
        m = state["mean"]
        state["mean"] = beta2 * m + (1.0 - beta2) * g
        return w - lr * arrays.sign(beta1 * m + (1.0 - beta1) * g)
