"""The linear recurrent unit: a diagonal complex recurrence that starts on a ring. Book, sections 13.3.1 and 13.3.3."""

from __future__ import annotations

import math
from typing import Self

from ... import arrays
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..module.parameter import Parameter
from .diagonal import DiagonalSSM

__all__ = ["LRU"]


class LRU(DiagonalSSM):
    r"""\(s_i = \lambda \odot s_{i-1} + \gamma \odot B x_i,\; y_i = \operatorname{Re}(C s_i) + D x_i\). Book, 13.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.LRU(8, 32, 8)
    >>> layer(wl.ones((2, 100, 8))).shape, layer.num_parameters()  # 3 e + 2 e c + 2 o e + o c
    ((2, 100, 8), 1184)

    (..., time, c) to (..., time, o). \(\lambda = \exp(-e^\nu + i\theta)\) starts on the ring between `r_min` and
    `r_max`, uniform in area, with angles up to `max_phase`; a small one lets a model begin with slow modes alone, as
    long sequences need. \(\gamma\), a parameter by its logarithm, starts at \(\sqrt{1 - \lvert\lambda\rvert^2}\): then
    white inputs of variance 1 give states of variance 1, however long they are remembered. Modes and the rest are those
    of `DiagonalSSM`. It is a linear layer: `SSMBlock` puts what is not linear around it.
    """

    def __init__(
        self,
        c: int,
        e: int,
        o: int,
        *,
        r_min: float = 0.0,
        r_max: float = 0.99,
        max_phase: float = 2 * math.pi,
        skip: bool = True,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(
            c, e, o, r_min=r_min, r_max=r_max, max_phase=max_phase, skip=skip, mode=mode, dtype=dtype, key=key
        )

    def _complete(self) -> None:
        size = arrays.abs(self.eigenvalues)
        self.gamma_log = Parameter(arrays.log(arrays.sqrt(1 - size * size)))

    @classmethod
    def from_eigenvalues(cls, eigenvalues: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None) -> Self:
        layer = super().from_eigenvalues(arrays.asarray(eigenvalues) + 0j, B, C, D)
        layer.gamma_log = Parameter(arrays.zeros_like(layer.nu))  # the matrix that was given is the whole of B
        return layer

    def input_matrix(self) -> Tensor:
        return arrays.exp(self.gamma_log)[:, None] * self.B
