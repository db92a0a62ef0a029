"""Derivatives that users define: `stop_gradient`, `custom_jvp`, `custom_vjp`. Book, section 6 (exercises)."""

from __future__ import annotations

from typing import Any

from ..primitives.primitive import ZERO, Aval, Primitive
from ..tensor import Tensor

_stop = Primitive(
    "stop_gradient",
    lambda x: x,
    lambda x: Aval(x.shape, x.dtype),
    jvp=(ZERO,),
    batch=lambda args, batched: _stop(args[0]),
)


def stop_gradient(x: Any) -> Any:
    """x as a constant: its derivative is zero. Works on trees.

    >>> import wonderland as wl
    >>> print(wl.grad(lambda x: x * wl.stop_gradient(x))(3.0))
    tensor(3.)
    """
    if isinstance(x, Tensor):
        out = _stop(x)
        if type(out) is Tensor and out._node is not None:
            out = wrap(out._data)
        return out
    return trees.map(lambda leaf: stop_gradient(leaf) if isinstance(leaf, Tensor) else leaf, x)


from .. import trees  # noqa: E402 - trees know tensors
from ..tensor import wrap  # noqa: E402
