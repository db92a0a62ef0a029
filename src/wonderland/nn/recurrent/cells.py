"""PyTorch's cells, one step each, and their relatives: simple units, GRU, LSTM. Book, section 13.2; notes, 5.2."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..init.naming import InitializerLike
from ..module.parameter import Held, Parameter
from .cell import CellStep, Shape, State, StateLike
from .start import with_forget_bias
from .steps import Peepholes, gru_step, lstm_step, simple_step
from .weighted_cell import WeightedCell

__all__ = ["RNNCell", "GRUCell", "LSTMCell"]

NONLINEARITIES = ("tanh", "relu")


def one_of(name: str, what: str, value: str, choices: Sequence[str]) -> str:
    """A setting that has one of a few values."""
    if value not in choices:
        raise InputError(f"{name}: {what}={value!r}.", " or ".join(f'"{choice}"' for choice in choices))
    return value


class RNNCell(WeightedCell):
    r"""\(h_t = \tanh(x_t W_{ih} + b_{ih} + h_{t-1} W_{hh} + b_{hh})\). Book, section 13.2.2, box C.13.1.

    >>> import wonderland as wl
    >>> x = wl.random.normal((8, 20, 3))  # batch, time, features
    >>> s = wl.zeros((8, 5))
    >>> cell = wl.nn.RNNCell(3, 5)
    >>> for i in range(x.shape[1]):
    ...     s = cell(x[:, i, :], s)
    >>> s.shape
    (8, 5)

    Inputs are (batch, input_size), or have any axes in front; so has the state (batch, hidden_size), which is 0 if none
    is given. `nonlinearity` is "tanh" or "relu". There are \(e^2 + ec + 2e\) parameters for c inputs and a state of
    size e, with \(W_{ih}\) = `weight_ih` (c, e) and `weight_hh` (e, e); without `bias` \(e^2 + ec\). They start from
    \(U(-1/\sqrt e, 1/\sqrt e)\); with `init` ("orthogonal", "identity", or any of `wl.nn.init`) the matrix of the state
    starts from that. `nn.Recurrent(cell)` runs it along sequences, and `nn.RNN` is the layer of PyTorch.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
    ) -> None:
        self.nonlinearity = one_of("RNNCell", "nonlinearity", nonlinearity, NONLINEARITIES)
        super().__init__(input_size, hidden_size, bias, dtype, key, init=init)

    def advance(self, u: Tensor, state: State) -> CellStep:
        h = simple_step(u, state["h"], self.weight_hh, self.nonlinearity)
        return CellStep(h, {"h": h}, {})

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> Tensor:
        return self.take(x, state).state["h"]

    def extra_repr(self) -> str:
        return ", ".join([super().extra_repr(), *self._changed(nonlinearity="tanh")])


class GRUCell(WeightedCell):
    r"""The gated recurrent unit: \(h_t = (1 - z)\,n + z\,h_{t-1}\). Book, section 13.2.3; notes, section 5.2.3.

    \(r, z = \sigma(x_t W + b + h_{t-1} U + b')\) and \(n = \tanh(x_t W_n + b_n + r\,(h_{t-1} U_n + b'_n))\)

    >>> import wonderland as wl
    >>> cell = wl.nn.GRUCell(3, 5)
    >>> cell(wl.ones((2, 3)), wl.zeros((2, 5))).shape, cell.weight_ih.shape
    ((2, 5), (3, 15))

    Two conventions differ between papers and libraries, and trained weights do not pass from one to the other. `reset`
    is "after" as above, where r multiplies the product (PyTorch, cuDNN), or "before", where it multiplies the state:
    \((r\,h_{t-1}) U_n + b'_n\) (Cho et al. 2014). `update` is "keeps", where z = 1 keeps the old state (PyTorch), or
    "updates", where z = 1 takes the candidate: \(h_t = (1 - z)\,h_{t-1} + z\,n\) (Chung et al. 2014). The parts stand
    side by side in the order r, z, n. There are \(3(e^2 + ec)\) weights, and \(6e\) numbers in two biases, as in
    PyTorch; the rest is as in `RNNCell`.
    """

    blocks = 3
    adds_up = False  # the gate r multiplies a part of the second bias

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        reset: str = "after",
        update: str = "keeps",
        init: InitializerLike | None = None,
    ) -> None:
        self.reset = one_of("GRUCell", "reset", reset, ("after", "before"))
        self.update = one_of("GRUCell", "update", update, ("keeps", "updates"))
        super().__init__(input_size, hidden_size, bias, dtype, key, init=init)

    def advance(self, u: Tensor, state: State) -> CellStep:
        h, gates = gru_step(u, state["h"], self.weight_hh, self.bias_hh, self.reset, self.update)
        return CellStep(h, {"h": h}, gates)

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> Tensor:
        return self.take(x, state).state["h"]

    def extra_repr(self) -> str:
        return ", ".join([super().extra_repr(), *self._changed(reset="after", update="keeps")])


class LSTMCell(WeightedCell):
    r"""Long short-term memory: \(c_t = f\,c_{t-1} + i\,g,\ h_t = o\tanh c_t\). Book, 13.2.3; notes, section 5.2.

    \(i, f, o = \sigma(x_t W + b + h_{t-1} U + b')\) and \(g = \tanh(\dots)\) with weights of its own.

    >>> import wonderland as wl
    >>> cell = wl.nn.LSTMCell(3, 5)
    >>> h, c = cell(wl.ones((2, 3)))
    >>> h, c = cell(wl.ones((2, 3)), (h, c))
    >>> h.shape, c.shape, cell.weight_ih.shape
    ((2, 5), (2, 5), (3, 20))

    The memory c is added to rather than replaced: with f = 1 and i = 0 it stays as it is. The gates see the input and
    \(h_{t-1}\), not the memory, unless `peephole=True`: then i and f also see \(c_{t-1}\) and o sees \(c_t\), each by a
    weight for each unit (`weight_ci`, `weight_cf`, `weight_co`). With `coupled=True` \(i = 1 - f\) has no weights of
    its own. With `proj_size` p the output is \(h_t W_{hr}\) of that size, `weight_hr` (hidden_size, p), and it is what
    is fed back. `forget_bias` is a start of the bias of f, such as 1, so that memories last from the beginning.

    The parts stand side by side in the order i, f, g, o, or f, g, o. There are \(4(e^2 + ec)\) weights and \(8e\)
    numbers in two biases, as in PyTorch; the rest is as in `RNNCell`.
    """

    weight_hr: Held[Parameter | None]
    weight_ci: Held[Parameter | None]
    weight_cf: Held[Parameter | None]
    weight_co: Held[Parameter | None]

    blocks = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        proj_size: int = 0,
        peephole: bool = False,
        coupled: bool = False,
        forget_bias: float | None = None,
        init: InitializerLike | None = None,
    ) -> None:
        self.proj_size = as_proj_size("LSTMCell", proj_size, hidden_size)
        self.peephole, self.coupled = bool(peephole), bool(coupled)
        self.forget_bias = forget_bias
        self.blocks = 3 if self.coupled else 4
        self.weight_hr = self.weight_ci = self.weight_cf = self.weight_co = None
        super().__init__(input_size, hidden_size, bias, dtype, key, init=init)

    def reset_parameters(self, key: KeyLike = None) -> None:
        super().reset_parameters(key)
        if self.forget_bias is not None:
            block = 0 if self.coupled else 1
            for name, value in (("bias_ih", self.forget_bias), ("bias_hh", 0.0)):  # added up as asked for
                held = getattr(self, name)
                self._place(name, with_forget_bias("LSTMCell", held, self.hidden_size, block, value))

    def _parameter_shapes(self) -> dict[str, Shape]:
        shapes = super()._parameter_shapes()
        if self.proj_size:
            shapes["weight_hr"] = (self.hidden_size, self.proj_size)
        if self.peephole:
            shapes |= {f"weight_c{gate}": (self.hidden_size,) for gate in ("f", "o")}
        if self.peephole and not self.coupled:
            shapes["weight_ci"] = (self.hidden_size,)
        return shapes

    def _fed_back(self) -> int:
        return self.proj_size or self.hidden_size

    def state_shapes(self) -> dict[str, Shape]:
        return {"h": (self._fed_back(),), "c": (self.hidden_size,)}

    def advance(self, u: Tensor, state: State) -> CellStep:
        seen = Peepholes(self.weight_ci, self.weight_cf, self.weight_co)
        h, c, gates = lstm_step(u, state["h"], state["c"], self.weight_hh, seen, self.coupled, self.weight_hr)
        return CellStep(h, {"h": h, "c": c}, gates)

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> tuple[Tensor, Tensor]:
        after = self.take(x, state).state
        return after["h"], after["c"]

    def extra_repr(self) -> str:
        changed = self._changed(proj_size=0, peephole=False, coupled=False, forget_bias=None)
        return ", ".join([super().extra_repr(), *changed])


def as_proj_size(name: str, proj_size: int, hidden_size: int) -> int:
    """The size of a projected state, smaller than that of the memory; 0 if there is none."""
    found = as_int(name, "proj_size", proj_size, 0)
    if found and found >= hidden_size:
        raise InputError(f"{name}: proj_size={found} for hidden_size={hidden_size}.", "a smaller one, or 0 for none")
    return found
