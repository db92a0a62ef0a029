"""PyTorch's recurrent layers: several in a stack, in one direction or both. Book, section 13.2; notes, 5.1 and 5.2.

The inputs of all steps meet their weights in one product; only that of the state waits for the step before.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..init.naming import InitializerLike
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Parameter
from ..sequences.cache import StateCache
from ..sequences.token_masks import as_lengths, as_token_mask, silenced
from .cell import as_parts
from .cells import NONLINEARITIES, as_proj_size, one_of
from .start import as_start, state_start, uniform_start
from .steps import gru_step, lstm_step, simple_step

__all__ = ["RNN", "GRU", "LSTM"]

State = TypeVar("State", bound=Tensor | tuple[Tensor, ...])  # between steps: h, or (h, c)
Parts = tuple[Tensor, ...]


class RecurrentLayers(Module, Generic[State]):
    """The base of PyTorch's layers; a subclass has the number of gates, of state tensors, and one step."""

    gates = 1
    states = 1
    adds_up = True  # both biases are added to the same sum, so that one addition before the loop does it

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        proj_size: int = 0,
        init: InitializerLike | None = None,
    ) -> None:
        name = type(self).__name__
        self.input_size = as_int(name, "input_size", input_size, 0)
        self.hidden_size = as_int(name, "hidden_size", hidden_size, 1)
        self.num_layers = as_int(name, "num_layers", num_layers, 1)
        self.proj_size = as_proj_size(name, proj_size, self.hidden_size)
        if self.proj_size and self.states == 1:
            raise InputError(f"{name}: proj_size={proj_size}; it has no memory beside its output.", "LSTM, or 0")
        if not 0.0 <= dropout <= 1.0:
            raise InputError(f"{name}: dropout={dropout!r} is not a probability.", "a number from 0 to 1")
        self.bias, self.batch_first, self.bidirectional = bool(bias), bool(batch_first), bool(bidirectional)
        self.dropout = dropout
        self._init = as_start(name, init)
        self._build(dtypes.default_float if dtype is None else dtypes.as_dtype(dtype), take_key(name, key))

    def _build(self, dtype: DType, key: Tensor) -> None:
        """Make the parameters."""
        shapes = self._parameter_shapes()
        with at_once(key):
            keys = split(key, (5 if self.proj_size else 4) * self.num_layers * len(self._directions()))
            for (name, shape), part in zip(shapes.items(), keys, strict=False):
                if name.startswith("weight_hh"):
                    value = state_start((shape[0], shape[1]), self.gates, self._init, self.hidden_size, part, dtype)
                else:
                    value = uniform_start(shape, self.hidden_size, part, dtype)
                held = isinstance(vars(self).get(name), Parameter)
                setattr(self, name, value if held else Parameter(value))

    def reset_parameters(self, key: KeyLike = None) -> None:
        """Draw all parameters anew, with `key` or one from the global stream."""
        self._build(self._dtype(), take_key(type(self).__name__, key))

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        columns, width = self.gates * self.hidden_size, self._width()
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(self.num_layers):
            rows = self.input_size if layer == 0 else width * len(self._directions())
            for suffix in self._directions():
                name = f"l{layer}{suffix}"
                shapes |= {f"weight_ih_{name}": (rows, columns), f"weight_hh_{name}": (width, columns)}
                if self.bias:
                    shapes |= {f"bias_ih_{name}": (columns,), f"bias_hh_{name}": (columns,)}
                if self.proj_size:
                    shapes[f"weight_hr_{name}"] = (self.hidden_size, self.proj_size)
        return shapes

    @property
    def _drops(self) -> bool:
        """Whether it has dropout, for `enable_dropout_only`."""
        return self.dropout > 0.0

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _width(self) -> int:
        """The size of h, which is fed back and comes out."""
        return self.proj_size or self.hidden_size

    def _advance(self, u: Tensor, states: Parts, name: str) -> Parts:
        """The states after a step, the output first, from the inputs to the gates u and the states before."""
        raise NotImplementedError

    def _run(self, x: Tensor, states: Parts, name: str, real: Tensor | None) -> tuple[Parts, Tensor]:
        """One layer in one direction over x (time, batch, features): the last states and all outputs."""
        u = arrays.matmul(x, getattr(self, f"weight_ih_{name}"))
        if self.bias:
            outer, inner = getattr(self, f"bias_ih_{name}"), getattr(self, f"bias_hh_{name}")
            u = u + (outer + inner if self.adds_up else outer)

        def body(carry: Parts, now: Tensor) -> tuple[Parts, Tensor]:
            after = self._advance(now, carry, name)
            return after, after[0]

        def padded(carry: Parts, now: tuple[Tensor, Tensor]) -> tuple[Parts, Tensor]:
            after = self._advance(now[0], carry, name)
            after = tuple(arrays.where(now[1], new, old) for new, old in zip(after, carry, strict=True))
            return after, after[0]

        backward = name.endswith("_reverse")
        if real is None:
            return scan(body, states, u, reverse=backward)
        last, y = scan(padded, states, (u, arrays.expand_dims(real, -1)), reverse=backward)
        return last, silenced(y, real)

    def forward(
        self,
        x: ArrayLike,
        state: State | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> tuple[Tensor, State]:
        x = self._input(x)
        single = x.ndim == 2
        real = self._real(x, token_mask, lengths)
        x = silenced(x, real)
        if single:
            x, real = x[:, None], None if real is None else real[:, None]
        elif self.batch_first:
            x, real = arrays.swapaxes(x, 0, 1), None if real is None else arrays.swapaxes(real, 0, 1)
        x, ends = self._layers(x, self._starts(x, state, single), real)
        if single:
            x, ends = x[:, 0], tuple(end[:, 0] for end in ends)
        elif self.batch_first:
            x = arrays.swapaxes(x, 0, 1)
        return x, ends if self.states > 1 else ends[0]  # type: ignore[return-value]  # a subclass says which

    def _input(self, x: ArrayLike) -> Tensor:
        x = as_real(type(self).__name__, x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            layout = "(batch, time, {0})" if self.batch_first else "(time, batch, {0})"
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape}.",
                f"{layout.format(self.input_size)} or (time, {self.input_size})",
            )
        return x

    def _real(self, x: Tensor, token_mask: ArrayLike | None, lengths: ArrayLike | None) -> Tensor | None:
        """Which tokens are real, in the layout of the input."""
        name, shape = self._describe(), x.shape[:-1]
        if lengths is None or x.ndim == 2 or self.batch_first:
            return as_token_mask(name, shape, token_mask, lengths)
        real = as_token_mask(name, shape[::-1], token_mask, lengths)
        return None if real is None else arrays.swapaxes(real, 0, 1)

    def _layers(self, x: Tensor, starts: Parts, real: Tensor | None) -> tuple[Tensor, Parts]:
        """All layers over x (time, batch, features): the outputs of the last one and the last states of all."""
        last: list[Parts] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for suffix in self._directions():
                states = tuple(start[len(last)] for start in starts)
                final, y = self._run(x, states, f"l{layer}{suffix}", real)
                last.append(final)
                outputs.append(y)
            x = outputs[0] if len(outputs) == 1 else arrays.concat(outputs, axis=-1)
        return x, tuple(arrays.stack([final[i] for final in last]) for i in range(self.states))

    def _state_shapes(self, rows: int) -> dict[str, tuple[int, ...]]:
        count = self.num_layers * len(self._directions())
        sizes = {"h": self._width(), "c": self.hidden_size}
        return {name: (count, rows, size) for name, size in list(sizes.items())[: self.states]}

    def _starts(self, x: Tensor, state: State | None, single: bool) -> Parts:
        """The states (layers and directions, batch, size) before the first step."""
        shapes, kind = self._state_shapes(x.shape[1]), dtypes.promote_types(x.dtype, self._dtype())
        if state is None:
            zeros = {shape: arrays.zeros(shape, dtype=kind) for shape in shapes.values()}
            return tuple(zeros[shape] for shape in shapes.values())
        several = self.states > 1 and isinstance(state, (tuple, list))
        given: Parts = tuple(state) if several else (state,)  # type: ignore[assignment]  # a subclass says which
        if len(given) != self.states:
            raise ShapeError(
                f"{self._describe()}: {len(given)} tensors as the initial state.",
                "a pair (h, c) of tensors" if self.states > 1 else "a tensor",
            )
        wanted = {name: (shape[0], shape[2]) if single else shape for name, shape in shapes.items()}
        starts = as_parts(self._describe(), dict(zip(shapes, given, strict=True)), wanted, kind).values()
        return tuple(start[:, None] if single else start for start in starts)

    def _dtype(self) -> DType:
        return self.weight_hh_l0.dtype  # type: ignore[attr-defined]  # made in _build

    # --- reading on, see nn/sequences/state_layer.py

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The states (rows, layers, size) before sequences begin; it holds any `capacity`."""
        if self.bidirectional:
            raise InputError(
                f"{self._describe()}: what runs backwards begins at the end, so it cannot read on.",
                "bidirectional=False",
            )
        shapes = self._state_shapes(rows)
        return StateCache(rows, **{n: arrays.zeros((rows, s[0], s[2]), dtype=self._dtype()) for n, s in shapes.items()})

    def extend(
        self, x: ArrayLike, cache: StateCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, StateCache]:
        """The outputs for further tokens of a batch, in the layout of the input, and the cache.

        >>> import wonderland as wl
        >>> layer = wl.nn.LSTM(3, 5, batch_first=True)
        >>> y, cache = layer.extend(wl.ones((2, 7, 3)), None, [7, 4])
        >>> y.shape, cache.lengths.tolist(), cache.c.shape
        ((2, 7, 5), [7, 4], (2, 1, 5))
        """
        x = self._input(x)
        if x.ndim != 3:
            raise ShapeError(f"{self._describe()}: tokens of shape {x.shape} to read on.", "those of a batch")
        rows, time = x.shape[:2] if self.batch_first else x.shape[1::-1]
        kept = self.new_cache(rows) if cache is None else cache
        names = self._check_cache(kept, rows)
        counts = None if lengths is None else as_lengths(self._describe(), lengths, (rows, time))
        before = tuple(arrays.swapaxes(getattr(kept, name), 0, 1) for name in names)
        y, after = self.forward(x, before if self.states > 1 else before[0], lengths=counts)  # type: ignore[arg-type]
        ends: Parts = after if isinstance(after, tuple) else (after,)
        for name, value in zip(names, ends, strict=True):
            setattr(kept, name, arrays.astype(arrays.swapaxes(value, 0, 1), getattr(kept, name).dtype))
        kept.advance(time if counts is None else counts)
        return y, kept

    def step(self, x: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The output (batch, out) for one more token (batch, input_size), and the cache with it."""
        x = as_real(self._describe(), x)
        if x.ndim != 2:
            raise ShapeError(f"{self._describe()}: a token of shape {x.shape}.", f"(batch, {self.input_size})")
        axis = 1 if self.batch_first else 0
        y, cache = self.extend(arrays.expand_dims(x, axis), cache)
        return y[:, 0] if self.batch_first else y[0], cache

    def _check_cache(self, cache: StateCache, rows: int) -> list[str]:
        if not isinstance(cache, StateCache):
            raise InputError(f"{self._describe()}: a {type(cache).__name__} as cache.", "layer.new_cache(rows)")
        wanted = {n: (rows, s[0], s[2]) for n, s in self._state_shapes(rows).items()}
        found = {name: cell.shape for name, cell in cache._kept()}
        if found != wanted or self.bidirectional:
            raise ShapeError(
                f"{self._describe()}: a cache of {found} for {rows} rows.",
                f"that of a call before, {wanted}, or None",
            )
        return list(wanted)

    # --- whole sequences as vectors

    def thought_vector(
        self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        r"""The last layer's \(h_\tau\), of both directions side by side: (batch, out). Notes, section 5.3.

        >>> import wonderland as wl
        >>> layer = wl.nn.GRU(3, 5, batch_first=True, bidirectional=True)
        >>> layer.thought_vector(wl.ones((2, 7, 3)), lengths=[7, 4]).shape
        (2, 10)

        The backward direction ends at the first token; a sequence without tokens gives zeros, its first state.
        """
        _, state = self.forward(x, None, token_mask, lengths)
        h = state[0] if isinstance(state, tuple) else state
        ends = [h[i] for i in range(h.shape[0] - len(self._directions()), h.shape[0])]
        return ends[0] if len(ends) == 1 else arrays.concat(ends, axis=-1)

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        steps = output[0].size // output[0].shape[-1] if output[0].size else 0
        return steps * sum(p.size for name, p in vars(self).items() if name.startswith("weight_"))

    def extra_repr(self) -> str:
        changed = self._changed(num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed, *self._changed(proj_size=0)])


class RNN(RecurrentLayers[Tensor]):
    r"""\(h_t = \tanh(x_t W_{ih} + b_{ih} + h_{t-1} W_{hh} + b_{hh})\), with `nonlinearity="relu"` a relu. Book, 13.2.

    >>> import wonderland as wl
    >>> outputs, h = wl.nn.RNN(3, 5)(wl.ones((7, 2, 3)))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (1, 2, 5))

    The arguments and shapes are those of `LSTM`, with one state h.
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        self.nonlinearity = one_of("RNN", "nonlinearity", nonlinearity, NONLINEARITIES)
        super().__init__(*args, **kwargs)

    def _advance(self, u: Tensor, states: Parts, name: str) -> Parts:
        return (simple_step(u, states[0], getattr(self, f"weight_hh_{name}"), self.nonlinearity),)


class GRU(RecurrentLayers[Tensor]):
    r"""The gated recurrent unit: \(h_t = (1 - z)\,n + z\,h_{t-1}\). Book, section 13.2.3.

    \(r, z = \sigma(x_t W + b + h_{t-1} U + b')\) and \(n = \tanh(x_t W_n + b_n + r\,(h_{t-1} U_n + b'_n))\)

    >>> import wonderland as wl
    >>> outputs, h = wl.nn.GRU(3, 5)(wl.ones((7, 2, 3)))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (1, 2, 5))

    The gates are side by side in the order r, z, n. The arguments and shapes are those of `LSTM`, with one state h.
    """

    gates = 3
    adds_up = False  # the gate r multiplies a part of the second bias

    def _advance(self, u: Tensor, states: Parts, name: str) -> Parts:
        bias = getattr(self, f"bias_hh_{name}") if self.bias else None
        return (gru_step(u, states[0], getattr(self, f"weight_hh_{name}"), bias)[0],)


class LSTM(RecurrentLayers[tuple[Tensor, Tensor]]):
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
    with h = hidden_size; with `init` ("orthogonal", "identity", or any of `wl.nn.init`) the matrices of the state, gate
    by gate, start from that. With `proj_size` p the outputs are \(h_t W_{hr}\) with `weight_hr_l0` (hidden_size, p).

    Of padded sequences `lengths` (batch,) or a `token_mask` in the layout of the input tells what is real: outputs are
    0 at padding, the last state is that of the last real step, and the backward direction begins there.

    >>> outputs, (h, c) = layer(wl.ones((2, 7, 3)), lengths=[7, 4])
    >>> bool((h[1, 1] == outputs[1, 3]).all()), bool((outputs[1, 4:] == 0).all())
    (True, True)

    In one direction the layer also reads on: `new_cache`, `extend` and `step` are those of all layers with a state.
    """

    gates = 4
    states = 2

    def _advance(self, u: Tensor, states: Parts, name: str) -> Parts:
        project = getattr(self, f"weight_hr_{name}") if self.proj_size else None
        h, c = states
        return lstm_step(u, h, c, getattr(self, f"weight_hh_{name}"), projection=project)[:2]
