"""Rprop: the signs of gradients, each with a step of its own."""

from __future__ import annotations

from typing import ClassVar

from .. import arrays
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters
from .settings import Limits, check_range, in_range, pair_of

ETAS = pair_of(
    "two numbers",
    in_range(lambda v: 0 < v < 1, "a first eta between 0 and 1"),
    in_range(lambda v: v > 1, "a second eta above 1"),
)


class Rprop(Optimizer):
    r"""Resilient propagation: \(w \leftarrow w - \mathrm{sign}(g)\,\Delta\), where \(\Delta\) grows by \(\eta_+\) while
    the sign of g stays and shrinks by \(\eta_-\) when it turns.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([1.0])
    >>> optimizer = wl.optim.Rprop([w], lr=0.1)
    >>> for _ in range(2):
    ...     optimizer.step([wl.tensor([8.0])])  # steps of 0.1 and 0.12
    >>> w
    parameter([0.78])

    After a turn the weight rests for a step. `lr` is the first \(\Delta\), `etas` are \((\eta_-, \eta_+)\),
    `step_sizes` the smallest and the largest \(\Delta\). It is for whole batches: the noise of small ones turns signs.
    """

    _limits: ClassVar[Limits] = {"etas": ETAS, "step_sizes": pair_of("two numbers")}
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def check(self, group: Group) -> None:
        smallest, largest = group["step_sizes"]
        check_range("Rprop", "step_sizes", smallest, lambda v: 0 <= v <= largest, "the smallest, then the largest")

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        steps = arrays.full_like(parameter, group.lr.item())
        return {"before": arrays.zeros_like(parameter), "step_size": steps}

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        shrink, grow = group["etas"]
        agreement = arrays.sign(g) * arrays.sign(state["before"])
        factors = [arrays.full_like(w, f) for f in (grow, shrink, 1.0)]
        factor = arrays.where(agreement > 0, factors[0], arrays.where(agreement < 0, factors[1], factors[2]))
        size = state["step_size"] = arrays.clip(state["step_size"] * factor, *group["step_sizes"])
        g = state["before"] = arrays.where(agreement < 0, arrays.zeros_like(g), g)
        return w - arrays.sign(g) * size

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        return state["step_size"]
