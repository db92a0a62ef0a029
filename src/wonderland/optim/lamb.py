"""LAMB: Adam's direction at a length in proportion to each layer's weights."""

from __future__ import annotations

from .. import arrays
from ..core import dtypes
from ..core.tensor import Tensor
from .adam import AdamW
from .optimizer import Group, Scalars


class LAMB(AdamW):
    r"""\(u = \hat m/(\sqrt{\hat v} + \varepsilon) + \lambda w,\ w \leftarrow w - \eta\,\frac{\|w\|}{\|u\|}\,u\).

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([3.0, 4.0])
    >>> wl.optim.LAMB([w], lr=0.1, weight_decay=0.0).step([wl.tensor([7.0, 0.0])])
    >>> w  # 0.1 of the length 5
    parameter([2.5, 4. ])

    Every parameter moves by the same part of its own length, which keeps training with very large batches stable. If
    either norm is zero the ratio is one. The weight decay \(\lambda\) is a part of the direction.
    """

    def kept(self, group: Group) -> Scalars:
        return ()

    def decayed(self, group: Group, w: Tensor, g: Tensor, *keep: Tensor) -> tuple[Tensor, Tensor]:
        return w, -g if group["maximize"] else g

    def scalars(self, group: Group) -> Scalars:
        t = arrays.astype(self.count, dtypes.float64)
        first, second = (1.0 - beta**t for beta in group["betas"])
        return 1.0 / first, arrays.rsqrt(second), group.lr

    def update(self, group: Group, w: Tensor, g: Tensor, state: dict[str, Tensor], *scalars: Tensor) -> Tensor:
        *corrections, lr = scalars
        u = group["weight_decay"] * w - super().update(group, arrays.zeros_like(w), g, state, *corrections)
        long, short = arrays.norm(w), arrays.norm(u)
        usable = (long > 0) & (short > 0)
        ratio = arrays.where(usable, long / arrays.where(usable, short, 1.0), 1.0)
        return w - lr * ratio * u
