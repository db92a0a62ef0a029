"""What cells with PyTorch's parameters share: one product for the inputs and one for the state. Book, 13.2.2."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.naming import InitializerLike
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from .cell import RecurrentCell, Shape
from .start import as_start, state_start, uniform_start


class WeightedCell(RecurrentCell):
    """A cell with `weight_ih` (input, blocks x hidden), `weight_hh` (state, blocks x hidden) and a bias for each.

    A block is a gate or a candidate; they stand side by side. Subclasses say how many there are, whether the second
    bias is added to the same sum as the first, and which vectors or matrices they have besides.
    """

    weight_ih: Held[Parameter]
    weight_hh: Held[Parameter]
    bias_ih: Held[Parameter | None]
    bias_hh: Held[Parameter | None]

    blocks = 1
    adds_up = True  # both biases are added to the same sum, so that one addition before the loop does it

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
    ) -> None:
        name = type(self).__name__
        self.input_size = as_int(name, "input_size", input_size, 0)
        self.hidden_size = as_int(name, "hidden_size", hidden_size, 1)
        self.bias = bool(bias)
        self.dtype: DType = as_weight_dtype(name, dtype)
        self._init: Callable[..., Tensor] | None = as_start(name, init)
        self.bias_ih = self.bias_hh = None
        self.reset_parameters(key)

    def reset_parameters(self, key: KeyLike = None) -> None:
        """Draw all parameters anew, with `key` or one from the global stream.

        >>> import wonderland as wl
        >>> cell = wl.nn.RNNCell(2, 3, key=wl.random.key(0))
        >>> before = cell.weight_hh.tolist()
        >>> cell.reset_parameters(wl.random.key(0))
        >>> cell.weight_hh.tolist() == before
        True
        """
        drawn = take_key(type(self).__name__, key)
        with at_once(drawn):
            shapes = self._parameter_shapes()
            for (name, shape), part in zip(shapes.items(), split(drawn, len(shapes)), strict=True):
                self._place(name, self._start(name, shape, part))

    def _parameter_shapes(self) -> dict[str, Shape]:
        columns = self.blocks * self.hidden_size
        shapes: dict[str, Shape] = {"weight_ih": (self.input_size, columns), "weight_hh": (self._fed_back(), columns)}
        return shapes | {"bias_ih": (columns,), "bias_hh": (columns,)} if self.bias else shapes

    def _start(self, name: str, shape: Shape, key: Tensor) -> Tensor:
        if name == "weight_hh":
            return state_start((shape[0], shape[1]), self.blocks, self._init, self.hidden_size, key, self.dtype)
        return uniform_start(shape, self.hidden_size, key, self.dtype)

    def _place(self, name: str, value: Tensor) -> None:
        if isinstance(vars(self).get(name), Parameter):
            setattr(self, name, value)
        else:
            setattr(self, name, Parameter(value))

    def _fed_back(self) -> int:
        """How many numbers of the state meet `weight_hh`."""
        return self.hidden_size

    def features(self) -> int:
        return self.input_size

    def state_shapes(self) -> dict[str, Shape]:
        return {"h": (self.hidden_size,)}

    def prepare(self, x: Tensor) -> Tensor:
        u = arrays.matmul(x, self.weight_ih)
        if self.bias_ih is None or self.bias_hh is None:
            return u
        return u + (self.bias_ih + self.bias_hh if self.adds_up else self.bias_ih)

    def step_cost(self) -> int:
        return sum(p.size for p in self.parameters() if p.ndim > 1)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *self._changed(bias=True)])
