"""Momentum as the book writes it: the learning rate is inside the velocity. Book, section 2.3.2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from .. import arrays
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from ..transforms.imperative import no_grad
from .optimizer import Group, Optimizer, Parameters
from .settings import BELOW_ONE, Limits


class HeavyBall(Optimizer):
    r"""\(v_t = \gamma v_{t-1} - \eta_t g_t,\ w \leftarrow w + v_t,\ v_0 = 0\). Book, section 2.3.2.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> optimizer = wl.optim.HeavyBall([w], lr=0.1, momentum=0.9)
    >>> for _ in range(3):
    ...     optimizer.step(wl.grad(lambda p: (p[0] ** 2).sum())([w]))
    >>> w
    parameter([0.062])

    An old gradient keeps the rate of its own time, \(v_t = -\sum_n \gamma^n \eta_{t-n} g_{t-n}\). `SGD(momentum=...)`,
    as PyTorch has it, gives all of them the rate of now; the two differ as soon as the rate changes. A constant
    gradient ends at the speed \(\eta/(1-\gamma)\).
    """

    _limits: ClassVar[Limits] = {"momentum": BELOW_ONE}

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        *,
        decay: str = "coupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {"velocity": arrays.zeros_like(parameter)}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        (lr,) = scalars
        v = state["velocity"] = group["momentum"] * state["velocity"] - lr * g
        return w + v

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        return group.lr / (1.0 - group["momentum"])


class Nesterov(HeavyBall):
    r"""Momentum with the gradient at the point ahead: \(v \leftarrow \gamma v - \eta\,\nabla J(w + \gamma v)\),
    \(w \leftarrow w + v\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> optimizer = wl.optim.Nesterov([w], lr=0.1, momentum=0.9)
    >>> for _ in range(3):
    ...     with optimizer.ahead():
    ...         grads = wl.grad(lambda p: (p[0] ** 2).sum())([w])
    ...     optimizer.step(grads)
    >>> w
    parameter([0.17792])

    `SGD(nesterov=True)` is the same rule rewritten so that the parameters themselves are the point ahead. On convex
    functions without noise the error falls like \(1/t^2\) instead of \(1/t\).
    """

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Inside, the parameters are at the point ahead, \\(w + \\gamma v\\), to compute the gradients there."""
        with no_grad():
            before = [(p, read(p)) for group in self.groups for p in group.params.values()]
            for group in self.groups:
                for name, p in group.params.items():
                    p.assign(arrays.astype(p + group["momentum"] * group.state["velocity"][name], p.dtype))
        try:
            yield
        finally:
            with no_grad():
                for p, value in before:
                    p.assign(value)
