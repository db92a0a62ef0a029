"""The layer of Elman as the book writes it: a state, an output and a skip. Book, section 13.2.2."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.naming import InitializerLike
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.normalization import LayerNorm
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from .cell import CellStep, RecurrentCell, Shape, State, StateLike
from .start import as_start, state_start, uniform_start

__all__ = ["ElmanCell"]


class ElmanCell(RecurrentCell):
    r"""\(s_i = \phi(A s_{i-1} + B x_i),\ h_i = C s_i + D x_i\). Book, E.13.14 and E.13.15.

    >>> import wonderland as wl
    >>> cell = wl.nn.ElmanCell(3, 5, 2)  # c, e, o
    >>> h, s = cell(wl.ones((4, 3)), wl.zeros((4, 5)))
    >>> h.shape, s.shape, cell.num_parameters()
    ((4, 2), (4, 5), 56)

    c are the features of an input, e is the size of the state and o that of the output. There are
    \(e^2 + ec + oe + oc\) parameters; as everywhere here a matrix stands on the right of a row, so `A` is (e, e), `B`
    (c, e), `C` (e, o) and `D` (c, o), the transposes of the book's. \(\phi\) is any `activation`, None for a linear
    recurrence, and \(s_0 = 0\), so that A does nothing in the first step. `bias` adds one to the state (e,) and one to
    the output (o,). With `norm="layer"` what goes into \(\phi\) is normalized over the state: mean 0 and variance 1
    for each example in each step, then scaled and shifted by 2e trained numbers. `init` is the start of A
    ("orthogonal", "identity", or any of `wl.nn.init`).
    """

    A: Held[Parameter]
    B: Held[Parameter]
    C: Held[Parameter]
    D: Held[Parameter]
    state_bias: Held[Parameter | None]
    output_bias: Held[Parameter | None]

    def __init__(
        self,
        c: int,
        e: int,
        o: int,
        activation: ActivationLike = "tanh",
        bias: bool = False,
        norm: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
    ) -> None:
        name = "ElmanCell"
        self.c, self.e, self.o = as_int(name, "c", c, 0), as_int(name, "e", e, 1), as_int(name, "o", o, 0)
        self.activation = None if activation is None else as_activation(name, activation)
        if norm not in (None, "layer"):
            raise InputError(f"{name}: norm={norm!r}.", '"layer", or None')
        self.dtype: DType = as_weight_dtype(name, dtype)
        self.norm = None if norm is None else LayerNorm(self.e, dtype=self.dtype)
        self.bias, self._init = bool(bias), as_start(name, init)
        self.state_bias = self.output_bias = None
        self.reset_parameters(key)

    def reset_parameters(self, key: KeyLike = None) -> None:
        r"""Draw all parameters anew, from \(U(-1/\sqrt e, 1/\sqrt e)\), and A from `init` if there is one."""
        drawn = take_key("ElmanCell", key)
        shapes: dict[str, Shape] = {
            "A": (self.e, self.e),
            "B": (self.c, self.e),
            "C": (self.e, self.o),
            "D": (self.c, self.o),
        }
        if self.bias:
            shapes |= {"state_bias": (self.e,), "output_bias": (self.o,)}
        with at_once(drawn):
            for (name, shape), part in zip(shapes.items(), split(drawn, len(shapes)), strict=True):
                if name == "A":
                    value = state_start((self.e, self.e), 1, self._init, self.e, part, self.dtype)
                else:
                    value = uniform_start(shape, self.e, part, self.dtype)
                held = isinstance(vars(self).get(name), Parameter)
                setattr(self, name, value if held else Parameter(value))

    def features(self) -> int:
        return self.c

    def state_shapes(self) -> dict[str, Shape]:
        return {"s": (self.e,)}

    def step_cost(self) -> int:
        return sum(p.size for p in (self.A, self.B, self.C, self.D))

    def prepare(self, x: Tensor) -> Tensor:
        u = arrays.matmul(x, self.B)
        return u if self.state_bias is None else u + self.state_bias

    def advance(self, u: Tensor, state: State) -> CellStep:
        u = u + arrays.matmul(state["s"], self.A)
        if self.norm is not None:
            u = self.norm(u)
        s = u if self.activation is None else self.activation(u)
        return CellStep(s, {"s": s}, {})

    def finish(self, kept: Tensor, x: Tensor) -> Tensor:
        y = arrays.matmul(kept, self.C) + arrays.matmul(x, self.D)
        return y if self.output_bias is None else y + self.output_bias

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> tuple[Tensor, Tensor]:
        x = self._input(x)
        step = self.advance(self.prepare(x), self._state(x, state))
        return self.finish(step.kept, x), step.state["s"]

    def extra_repr(self) -> str:
        changed = self._changed(bias=False)
        return ", ".join([f"{self.c}, {self.e}, {self.o}", *changed, *(["norm='layer'"] if self.norm else [])])
