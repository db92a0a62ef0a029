"""Adafactor: the mean squares of a matrix from those of its rows and columns."""

from __future__ import annotations

import math
from typing import ClassVar

from .. import arrays
from ..core import dtypes
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .optimizer import Group, Optimizer, Parameters, Scalars
from .settings import NOT_NEGATIVE, Limits, in_range, pair_of


def _none_or_not_negative(name: str, what: str, value: object) -> None:
    if value is not None:
        NOT_NEGATIVE(name, what, value)


class Adafactor(Optimizer):
    r"""\(v \approx r\,c^\top / \bar r\), with r and c the running mean squares of the rows and columns of a gradient:
    \(u = g/\sqrt v,\ w \leftarrow w - \alpha_t\, u / \max(1, \mathrm{RMS}(u)/d)\).

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(100, 50, bias=False)
    >>> wl.optim.Adafactor(model).state_size()  # 100 rows and 50 columns instead of 5000 numbers
    150

    \(\alpha_t = \max(\varepsilon_2, \mathrm{RMS}(w))\,\min(\eta, 1/\sqrt t)\): steps are relative to the size of the
    weights. The mean squares decay by \(\beta_t = 1 - t^{\mathrm{beta2\_decay}}\), and vectors keep theirs whole. There
    is no momentum, and weight decay is decoupled.
    """

    _limits: ClassVar[Limits] = {
        "beta2_decay": in_range(lambda v: v <= 0, "beta2_decay <= 0"),
        "d": in_range(lambda v: v >= 1, "d >= 1"),
        "eps": pair_of("two numbers, or None and a number", _none_or_not_negative, _none_or_not_negative),
    }
    _takes_complex = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        decay: str = "decoupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(**locals())

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        if parameter.ndim < 2:
            return {"square": arrays.zeros_like(parameter)}
        *rest, rows, columns = parameter.shape
        return {
            "rows": arrays.zeros((*rest, rows, 1), dtype=parameter.dtype),
            "columns": arrays.zeros((*rest, 1, columns), dtype=parameter.dtype),
        }

    def scalars(self, group: Group) -> Scalars:
        t = arrays.astype(self.count, dtypes.float64)
        return arrays.minimum(group.lr, arrays.rsqrt(t)), t ** group["beta2_decay"], *super().kept(group)

    def kept(self, group: Group) -> Scalars:
        return ()  # the size of the weights before they decay counts, so that `update` does it

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        rate, new, *keep = scalars
        if not w.size:
            return w
        tiny, least = group["eps"]
        tiny = float(arrays.finfo(w.dtype).eps) if tiny is None else tiny

        def moved(kind: str, value: Tensor) -> Tensor:
            state[kind] = state[kind] + new * (value - state[kind])
            return state[kind]

        if w.ndim < 2:
            v = moved("square", g * g)
        else:
            rows = moved("rows", arrays.mean(g * g, axis=-1, keepdims=True))
            columns = moved("columns", arrays.mean(g * g, axis=-2, keepdims=True))
            v = rows * columns / arrays.maximum(arrays.mean(rows, axis=-2, keepdims=True), tiny)
        u = g * arrays.rsqrt(arrays.maximum(v, tiny * tiny))
        step = rate * arrays.maximum(_rms(w), least) / arrays.maximum(_rms(u) / group["d"], 1.0) * u
        return (keep[0] * w if keep else w) - step


def _rms(x: Tensor) -> Tensor:
    return arrays.norm(x) / math.sqrt(x.size)
