"""Gradient descent with momentum in its usual form. Book, section 2.3.2."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import NOT_NEGATIVE, Limits


class SGD(Optimizer):
    r"""Gradient descent, \(w \leftarrow w - \eta g\), on batches it is stochastic. Book, sections 2.3.2 and 5.3.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0, -2.0])
    >>> wl.optim.SGD([w], lr=0.1).step([wl.tensor([10.0, 10.0])])
    >>> w
    parameter([ 0., -3.])

    With `momentum` \(\mu\) the step follows \(b_t = \mu b_{t-1} + (1 - \tau)\,g\), where \(\tau\) is `dampening` and
    \(b_1 = g_1\): \(w \leftarrow w - \eta b_t\). With `nesterov` it looks ahead:
    \(w \leftarrow w - \eta(g + \mu b_t)\). The learning rate is outside \(b\), as in PyTorch; `HeavyBall` and
    `Nesterov` have it inside, as in the book. While the rate is constant both take the same path.
    """

    _limits: ClassVar[Limits] = {"momentum": NOT_NEGATIVE}

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def check(self, group: Group) -> None:
        if group["nesterov"] and (not group["momentum"] or group["dampening"]):
            raise InputError(
                f"SGD: nesterov with momentum={group['momentum']} and dampening={group['dampening']}.",
                "a momentum above 0 and no dampening",
            )

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {"momentum": arrays.zeros_like(parameter)} if group["momentum"] else {}

    def scalars(self, group: Group) -> Scalars:
        if not group["dampening"] or not group["momentum"]:
            return (group.lr,)
        first = arrays.astype(self.count == 1, group.lr.dtype)
        return group.lr, 1.0 - group["dampening"] * (1.0 - first)  # the first gradient enters whole

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        lr, *share = scalars
        if group["momentum"]:
            b = group["momentum"] * state["momentum"] + (share[0] * g if share else g)
            state["momentum"] = b
            g = g + group["momentum"] * b if group["nesterov"] else b
        return w - lr * g

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        return group.lr * (1.0 - group["dampening"] if group["momentum"] else 1.0) / (1.0 - group["momentum"])
