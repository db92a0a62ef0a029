"""Mixed precision: products in sixteen bits, sums in thirty-two, weights as they are."""

from __future__ import annotations

from ..core.dtypes import as_dtype, bfloat16, is_half
from ..core.errors import DTypeError, InputError
from ..core.settings import setting
from ..core.typing import DTypeLike

__all__ = ["autocast"]

_DEVICES = ("cpu", "cuda", "mps", "xpu")  # what PyTorch's function of this name takes first


def autocast(dtype: DTypeLike = bfloat16, *, enabled: bool = True) -> setting:
    """Inside the block, matrix products, convolutions and attention are computed from bfloat16 (or "float16").

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(3, 4), wl.nn.ReLU(), wl.nn.Linear(4, 2))
    >>> x, y = wl.ones((5, 3)), wl.zeros((5,), dtype=wl.int64)
    >>> with wl.autocast("bfloat16"):
    ...     print(model(x).dtype, wl.nn.functional.cross_entropy(model(x), y).dtype)
    bfloat16 float32

    Also a decorator. The rules are those of PyTorch: what enters a product is converted, together with its bias, and
    its sum is made in float32 and rounded once; the rows of an embedding are converted, too, so that what a model hands
    on from layer to layer takes half the memory. Sums, means, softmax and losses are computed and returned in float32;
    normalisations compute their statistics in float32 and return the type of their input. Everything else takes the
    types that it is given, where a parameter beside a tensor of low precision counts as one. float64, integers and
    complex numbers stay as they are.

    Parameters keep their type, and so do their gradients: it is their values that are converted, once in a compiled
    step. Only the forward pass belongs into the block; the backward pass computes in the types that the forward pass
    chose, wherever it is called. float16 has a small range and needs `wl.optim.GradScaler`; bfloat16 does not.
    `enabled=False` turns it off, inside another block, too. Book, section 6.4.2.
    """
    if isinstance(dtype, str) and dtype in _DEVICES:
        raise InputError(f"autocast: {dtype!r} is not a type of numbers.", 'wl.autocast("bfloat16")')
    low = as_dtype(dtype)
    if not is_half(low):
        raise DTypeError(f"autocast: {low} is not a type of low precision.", "bfloat16 or float16")
    return setting("autocast", low if enabled else None)
