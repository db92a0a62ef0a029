"""Recurrent layers: a state that is carried along a sequence.

The inputs of all steps meet their weights in one product; only that of the state waits for the step before.
"""

from __future__ import annotations

import math
from typing import Any

from .. import arrays, dtypes
from ..arguments import as_int
from ..arrays.conversion import as_real
from ..errors import InputError, ShapeError
from ..random.continuous import uniform
from ..random.keys import split
from ..random.streams import take_key
from ..tensor import Tensor
from ..transforms.loops import scan
from . import functional as F  # noqa: N812 - as everybody calls it
from .lazy import at_once
from .module import Module
from .parameter import Parameter


class Recurrent(Module):
    """The base of recurrent layers; a subclass has the number of gates, of state tensors, and one step."""

    gates = 1
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
        key: Any = None,
    ) -> None:
        name = type(self).__name__
        self.input_size = as_int(name, "input_size", input_size, 0)
        self.hidden_size = as_int(name, "hidden_size", hidden_size, 1)
        self.num_layers = as_int(name, "num_layers", num_layers, 1)
        if not 0.0 <= dropout <= 1.0:
            raise InputError(f"{name}: dropout={dropout!r} is not a probability.", "a number from 0 to 1")
        self.bias, self.batch_first, self.bidirectional = bool(bias), bool(batch_first), bool(bidirectional)
        self.dropout = dropout
        self._build(dtypes.default_float if dtype is None else dtypes.as_dtype(dtype), take_key(name, key))

    def _build(self, dtype: Any, key: Any) -> None:
        """Make the parameters, uniform between -1/sqrt(hidden) and 1/sqrt(hidden)."""
        bound = 1 / math.sqrt(self.hidden_size)
        columns = self.gates * self.hidden_size
        with at_once(key):
            keys = iter(split(key, 4 * self.num_layers * len(self._directions())))
            for layer in range(self.num_layers):
                rows = self.input_size if layer == 0 else self.hidden_size * len(self._directions())
                for suffix in self._directions():
                    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns)}
                    shapes["weight_hh"] = (self.hidden_size, columns)
                    if self.bias:
                        shapes |= {"bias_ih": (columns,), "bias_hh": (columns,)}
                    for kind, shape in shapes.items():
                        value = uniform(shape, -bound, bound, key=next(keys), dtype=dtype)
                        setattr(self, f"{kind}_l{layer}{suffix}", Parameter(value))

    @property
    def _drops(self) -> bool:
        """Whether it has dropout, for `enable_dropout_only`."""
        return self.dropout > 0.0

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def step(self, u: Any, states: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
        """The states after a step, the output first, from the inputs to the gates u and the states before."""
        raise NotImplementedError

    def _run(self, x: Any, states: tuple[Any, ...], name: str) -> tuple[tuple[Any, ...], Any]:
        """One layer in one direction over x (time, batch, features): the last states and all outputs."""
        weight = getattr(self, f"weight_hh_{name}")
        u = arrays.matmul(x, getattr(self, f"weight_ih_{name}"))
        inner = None
        if self.bias:
            outer, inner = getattr(self, f"bias_ih_{name}"), getattr(self, f"bias_hh_{name}")
            u = u + (outer + inner if self._adds_up() else outer)

        def body(carry: tuple[Any, ...], now: Any) -> tuple[tuple[Any, ...], Any]:
            after = self.step(now, carry, weight, inner)
            return after, after[0]

        return scan(body, states, u, reverse=name.endswith("_reverse"))

    def _adds_up(self) -> bool:
        """Whether both biases are added to the same sum, so that one addition before the loop does it."""
        return True

    def forward(self, x: Any, state: Any = None) -> tuple[Tensor, Any]:
        x = as_real(type(self).__name__, x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            layout = "(batch, time, {0})" if self.batch_first else "(time, batch, {0})"
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape}.",
                f"{layout.format(self.input_size)} or (time, {self.input_size})",
            )
        single = x.ndim == 2
        if single:
            x = x[:, None]
        elif self.batch_first:
            x = arrays.swapaxes(x, 0, 1)
        starts = self._starts(x, state, single)
        last: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for suffix in self._directions():
                states = tuple(start[len(last)] for start in starts)
                final, y = self._run(x, states, f"l{layer}{suffix}")
                last.append(final)
                outputs.append(y)
            x = outputs[0] if len(outputs) == 1 else arrays.concat(outputs, axis=-1)
        ends = tuple(arrays.stack([final[i] for final in last]) for i in range(self.states))
        if single:
            x, ends = x[:, 0], tuple(end[:, 0] for end in ends)
        elif self.batch_first:
            x = arrays.swapaxes(x, 0, 1)
        return x, ends if self.states > 1 else ends[0]

    def _starts(self, x: Any, state: Any, single: bool) -> tuple[Any, ...]:
        """The states (layers and directions, batch, hidden) before the first step."""
        shape = (self.num_layers * len(self._directions()), x.shape[1], self.hidden_size)
        if state is None:
            return (arrays.zeros(shape, dtype=dtypes.promote_types(x.dtype, self._dtype())),) * self.states
        given = tuple(state) if self.states > 1 and isinstance(state, (tuple, list)) else (state,)
        starts = tuple(arrays.asarray(s)[:, None] if single else arrays.asarray(s) for s in given)
        if len(starts) != self.states or any(s.shape != shape for s in starts):
            wanted = (shape[0], shape[2]) if single else shape
            raise ShapeError(
                f"{self._describe()}: an initial state of {[s.shape for s in map(arrays.asarray, given)]}.",
                f"{'a pair (h, c) of tensors' if self.states > 1 else 'a tensor'} of shape {wanted}",
            )
        return starts

    def _dtype(self) -> Any:
        return self.weight_hh_l0.dtype  # type: ignore[attr-defined]  # made in _build

    def multiply_adds(self, args: tuple[Any, ...], output: Any) -> int | None:
        steps = output[0].size // output[0].shape[-1] if output[0].size else 0
        return steps * sum(p.size for name, p in vars(self).items() if name.startswith("weight_"))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        changed = [f"{n}={getattr(self, n)}" for n, value in defaults.items() if getattr(self, n) != value]
        return ", ".join([text, *changed])


class RNN(Recurrent):
    r"""\(h_t = \tanh(x_t W_{ih} + b_{ih} + h_{t-1} W_{hh} + b_{hh})\), with `nonlinearity="relu"` a relu. Book, 13.2.

    >>> import wonderland as wl
    >>> outputs, h = wl.nn.RNN(3, 5)(wl.ones((7, 2, 3)))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (1, 2, 5))

    The arguments and shapes are those of `LSTM`, with one state h.
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise InputError(f"RNN: nonlinearity={nonlinearity!r}.", '"tanh" or "relu"')
        self.nonlinearity = nonlinearity
        super().__init__(*args, **kwargs)

    def step(self, u: Any, states: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
        u = u + arrays.matmul(states[0], weight)
        return (arrays.tanh(u) if self.nonlinearity == "tanh" else arrays.relu(u),)


class GRU(Recurrent):
    r"""The gated recurrent unit: \(h_t = (1 - z)\,n + z\,h_{t-1}\). Book, section 13.2.3.

    \(r, z = \sigma(x_t W + b + h_{t-1} U + b')\) and \(n = \tanh(x_t W_n + b_n + r\,(h_{t-1} U_n + b'_n))\)

    >>> import wonderland as wl
    >>> outputs, h = wl.nn.GRU(3, 5)(wl.ones((7, 2, 3)))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (1, 2, 5))

    The gates are side by side in the order r, z, n. The arguments and shapes are those of `LSTM`, with one state h.
    """

    gates = 3

    def _adds_up(self) -> bool:
        return False  # the gate r multiplies a part of the second bias

    def step(self, u: Any, states: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
        (h,) = states
        n = self.hidden_size
        v = arrays.matmul(h, weight)
        if bias is not None:
            v = v + bias
        r = arrays.sigmoid(u[..., :n] + v[..., :n])
        z = arrays.sigmoid(u[..., n : 2 * n] + v[..., n : 2 * n])
        new = arrays.tanh(u[..., 2 * n :] + r * v[..., 2 * n :])
        return (new + z * (h - new),)


class LSTM(Recurrent):
    r"""Long short-term memory: \(c_t = f\,c_{t-1} + i\,g,\ h_t = o\tanh c_t\). Book, section 13.2.3.

    \(i, f, o = \sigma(x_t W + b + h_{t-1} U + b')\) and \(g = \tanh(\dots)\) with weights of its own.

    >>> import wonderland as wl
    >>> layer = wl.nn.LSTM(3, 5, num_layers=2, batch_first=True)
    >>> outputs, (h, c) = layer(wl.ones((2, 7, 3)))
    >>> outputs.shape, h.shape, c.shape
    ((2, 7, 5), (2, 2, 5), (2, 2, 5))
    >>> layer.weight_ih_l0.shape, layer.weight_hh_l0.shape
    ((3, 20), (5, 20))

    The input is (time, batch, input_size), with `batch_first` (batch, time, input_size), or (time, input_size) for one
    sequence; so are the outputs of the last layer. The second argument and result are the states (h, c), each (layers,
    batch, hidden_size); without them a sequence starts from 0. With `bidirectional` a second set of weights,
    `..._reverse`, runs backwards, and the outputs of both stand side by side. `dropout` acts between layers, while
    training. The gates are side by side in the order i, f, g, o. Parameters start from \(U(-1/\sqrt h, 1/\sqrt h)\)
    with h = hidden_size.
    """

    gates = 4
    states = 2

    def step(self, u: Any, states: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
        h, c = states
        n = self.hidden_size
        u = u + arrays.matmul(h, weight)
        i, f = arrays.sigmoid(u[..., :n]), arrays.sigmoid(u[..., n : 2 * n])
        g, o = arrays.tanh(u[..., 2 * n : 3 * n]), arrays.sigmoid(u[..., 3 * n :])
        c = f * c + i * g
        return o * arrays.tanh(c), c
