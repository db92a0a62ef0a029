"""Muon: momentum whose matrices are made orthogonal; AdamW for everything that is not a matrix."""

from __future__ import annotations

import math
from typing import ClassVar

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..nn.module.parameter import Parameter
from .adam import Adam
from .optimizer import Group, Optimizer, Parameters
from .settings import BELOW_ONE, Limits

ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Adam):
    r"""Orthogonalised momentum: \(b = \mu b + (1-\mu) g,\ w \leftarrow w - \eta\, s\,\mathrm{orth}((1-\mu) g + \mu
    b)\).

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(8, 16), wl.relu, wl.nn.Linear(16, 4))
    >>> optimizer = wl.optim.Muon(model, lr=1e-3)  # weights by Muon, biases by AdamW
    >>> optimizer.state_size() - model.num_parameters() == 16 + 4  # AdamW keeps two numbers, Muon one
    True

    \(\mathrm{orth}(U S V^\top) \approx U V^\top\): all directions of a matrix move by the same amount. It takes weights
    with two axes or more (all but the last are one, as in the kernels of a convolution); vectors and numbers follow
    AdamW. Embeddings and the last layer usually do, too, by a group of their own:
    `[{"params": body}, {"params": head, "use_muon": False, "lr": 3e-4}]`.

    `adjust_lr_fn` is the scale s of a step for a matrix (n, m): "match_rms_adamw", \(0.2\sqrt{\max(n, m)}\), makes it
    as large as a step of AdamW, so that one learning rate serves both; "original" is \(\sqrt{\max(1, m/n)}\). Weight
    decay is decoupled.
    """

    _limits: ClassVar[Limits] = {**Adam._limits, "momentum": BELOW_ONE}

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
        adjust_lr_fn: str = "match_rms_adamw",
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        *,
        use_muon: bool = True,
        decay: str = "decoupled",
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(
            self,
            parameters,
            lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
            betas=betas,
            eps=eps,
            amsgrad=False,
            use_muon=use_muon,
            decay=decay,
            maximize=maximize,
        )

    def check(self, group: Group) -> None:
        as_int("Muon", "ns_steps", group["ns_steps"], 1)
        if group["adjust_lr_fn"] not in ADJUSTMENTS:
            raise InputError(f"Muon: adjust_lr_fn={group['adjust_lr_fn']!r}.", " or ".join(map(repr, ADJUSTMENTS)))

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        made = super().init(group, parameter)
        return {"momentum": made["mean"]} if group["use_muon"] and parameter.ndim >= 2 else made

    def scalars(self, group: Group) -> tuple[Tensor, ...]:
        return (*super().scalars(group), group.lr)

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        *of_adam, lr = scalars
        if "momentum" not in state:
            return super().update(group, w, g, state, *of_adam)
        mu = group["momentum"]
        b = state["momentum"] = mu * state["momentum"] + (1.0 - mu) * g
        direction = (1.0 - mu) * g + mu * b if group["nesterov"] else b
        if not w.size:
            return w
        direction = arrays.reshape(direction, (-1, w.shape[-1]))
        n, m = direction.shape
        scale = math.sqrt(max(1.0, m / n)) if group["adjust_lr_fn"] == "original" else 0.2 * math.sqrt(max(n, m))
        return w - lr * scale * arrays.reshape(orthogonalize(direction, group["ns_steps"]), w.shape)

    def effective(self, group: Group, state: dict[str, Tensor]) -> Tensor:
        return read(group.lr) if "momentum" in state else super().effective(group, state)


def orthogonalize(x: Tensor, steps: int = 5) -> Tensor:
    r"""Roughly \(U V^\top\) for a matrix \(x = U S V^\top\), by Newton-Schulz steps \(x \leftarrow a x + (b A + c A^2)
    x\), \(A = x x^\top\).

    >>> import wonderland as wl
    >>> x = wl.random.normal((4, 6), key=wl.random.key(0))
    >>> values = wl.linalg.svdvals(wl.optim.orthogonalize(x))
    >>> bool(((values > 0.5) & (values < 1.5)).all())
    True

    The coefficients are those that raise small singular values fastest; all end between about 0.7 and 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = arrays.matrix_transpose(x)
    x = x / arrays.maximum(arrays.norm(x, axis=(-2, -1), keepdims=True), 1e-7)
    for _ in range(steps):
        gram = x @ arrays.matrix_transpose(x)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return arrays.matrix_transpose(x) if tall else x
