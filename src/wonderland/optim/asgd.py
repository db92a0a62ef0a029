"""ASGD: gradient descent whose answer is the average of its path."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core import dtypes
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import NOT_NEGATIVE, Limits


class ASGD(Optimizer):
    r"""Averaged SGD: \(w \leftarrow (1 - \lambda\eta_t) w - \eta_t g\) with \(\eta_t = \eta/(1 +
    \lambda\eta(t-1))^\alpha\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> optimizer = wl.optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    >>> for _ in range(3):
    ...     optimizer.step([wl.tensor([1.0])])  # w = 0.5, 0, -0.5
    >>> optimizer.averages()["0"]
    tensor([0.])

    From step `t0` on the average of w counts, in `averages()`; before, it is w itself. For models whose other state is
    to be averaged too see `wl.optim.SWA` and `wl.optim.EMA`.
    """

    _limits: ClassVar[Limits] = {"lambd": NOT_NEGATIVE, "alpha": NOT_NEGATIVE, "t0": NOT_NEGATIVE}

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {"average": arrays.asarray(parameter)}

    def scalars(self, group: Group) -> Scalars:
        t = arrays.astype(self.count, dtypes.float64) - 1.0
        rate = group.lr / (1.0 + group["lambd"] * group.lr * t) ** group["alpha"]
        return rate, 1.0 - group["lambd"] * rate, 1.0 / arrays.maximum(t - group["t0"], 1.0)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        rate, keep, share = scalars
        w = keep * w - rate * g
        # a share of one is the weight itself, to the last bit
        state["average"] = arrays.where(share == 1.0, w, state["average"] + (w - state["average"]) * share)
        return w

    def averages(self) -> dict[str, Tensor]:
        """The averaged parameters by name."""
        return {name: read(cell) for group in self.groups for name, cell in group.state["average"].items()}
