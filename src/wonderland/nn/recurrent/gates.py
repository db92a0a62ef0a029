"""Gates: values between 0 and 1 that decide what of a state is kept. Book, section 13.2.3."""

from __future__ import annotations

from collections.abc import Mapping

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Held, Parameter
from ..sequences.token_masks import as_token_mask
from .start import uniform_start

__all__ = ["Gate", "gate_regularizer"]

KINDS = ("product", "entropy")


class Gate(Module):
    r"""\(\gamma(s, x) = \sigma(V s + U x)\), a soft mask with values in [0, 1]. Book, section 13.2.3.

    >>> import wonderland as wl
    >>> gate = wl.nn.Gate(3, 5)  # c, e
    >>> gate(wl.ones((2, 3)), wl.zeros((2, 5))).shape, gate.V.shape, gate.U.shape
    ((2, 5), (5, 5), (3, 5))

    It is called with an input (..., c) and a state (..., e), like a cell, and says for each number of the state how
    much of something passes. As everywhere here the matrices stand on the right of rows: `V` (e, e), `U` (c, e), and
    with `bias` a vector (e,); without it there are \(e^2 + ec\) parameters.
    """

    V: Held[Parameter]
    U: Held[Parameter]
    bias: Held[Parameter | None]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.input_size = as_int("Gate", "input_size", input_size, 0)
        self.hidden_size = e = as_int("Gate", "hidden_size", hidden_size, 1)
        kind, drawn = as_weight_dtype("Gate", dtype), take_key("Gate", key)
        with at_once(drawn):
            keys = split(drawn, 3)
            self.V = Parameter(uniform_start((e, e), e, keys[0], kind))
            self.U = Parameter(uniform_start((self.input_size, e), e, keys[1], kind))
            self.bias = Parameter(uniform_start((e,), e, keys[2], kind)) if bias else None

    def forward(self, x: ArrayLike, state: ArrayLike) -> Tensor:
        x, s = as_real("Gate", x), as_real("Gate", state)
        sizes = (x.shape[-1:], s.shape[-1:])
        if sizes != ((self.input_size,), (self.hidden_size,)) or x.shape[:-1] != s.shape[:-1]:
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape} and a state of shape {s.shape}.",
                f"(batch, {self.input_size}) and (batch, {self.hidden_size})",
            )
        u = arrays.matmul(s, self.V) + arrays.matmul(x, self.U)
        return arrays.sigmoid(u if self.bias is None else u + self.bias)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias is not None}"


def gate_regularizer(
    gates: ArrayLike | Mapping[str, ArrayLike],
    kind: str = "product",
    token_mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
) -> Tensor:
    r"""The mean of \(\gamma(1 - \gamma)\), a loss that pushes gates to 0 or 1. Book, section 13.2.3.

    >>> import wonderland as wl
    >>> [wl.nn.gate_regularizer(wl.tensor([gamma])).item() for gamma in (0.0, 0.5, 1.0)]
    [0.0, 0.25, 0.0]
    >>> layer = wl.nn.Recurrent(wl.nn.GRUCell(3, 5))
    >>> y, state, gates = layer.unroll(wl.ones((2, 7, 3)), lengths=[7, 4], gates=True)
    >>> loss = (y ** 2).mean() + 0.01 * wl.nn.gate_regularizer(gates, lengths=[7, 4])

    `gates` are values from 0 to 1, or a dict of them, of which each counts alike. `kind` is "product", or "entropy":
    \(-\gamma\log\gamma - (1 - \gamma)\log(1 - \gamma)\), up to \(\log 2\), which is steeper near 0 and 1. Both are 0 at
    0 and 1 and largest at 1/2. With `token_mask` (..., time) or `lengths` only real tokens count, of gates
    (..., time, e).
    """
    name = "gate_regularizer"
    if kind not in KINDS:
        raise InputError(f"{name}: kind={kind!r}.", " or ".join(map(repr, KINDS)))
    found = list(gates.values()) if isinstance(gates, Mapping) else [gates]
    if not found:
        raise InputError(f"{name}: no gates.", "cell.gates(x, state) or layer.gates(x) of a cell that has some")
    return arrays.mean(arrays.stack([_mean(as_real(name, gate), kind, token_mask, lengths) for gate in found]))


def _mean(gate: Tensor, kind: str, token_mask: ArrayLike | None, lengths: ArrayLike | None) -> Tensor:
    if kind == "product":
        values = gate * (1 - gate)
    else:
        values = -_xlogx(gate) - _xlogx(1 - gate)
    if token_mask is None and lengths is None:
        return arrays.mean(values)
    if gate.ndim < 2:
        raise ShapeError(f"gate_regularizer: gates of shape {gate.shape} with a mask.", "gates (..., time, e)")
    real = as_token_mask("gate_regularizer", gate.shape[:-1], token_mask, lengths)
    assert real is not None  # one of the two was given
    means = arrays.where(real, arrays.mean(values, axis=-1), 0.0)
    return arrays.sum(means) / arrays.maximum(arrays.sum(arrays.astype(real, values.dtype)), 1)


def _xlogx(x: Tensor) -> Tensor:
    """x log(x), which is 0 at 0, with a slope there that is large but finite."""
    return x * arrays.log(arrays.maximum(x, float(arrays.finfo(x.dtype).smallest_normal)))
