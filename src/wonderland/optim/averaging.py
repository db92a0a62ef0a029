"""Averages of a model's weights on their way, which are often better than the last ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_number
from ..core.cell import Cell
from ..core.errors import InputError, ModuleError
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer, Parameter
from ..transforms.imperative import no_grad


class Averaged(Module):
    """The base of averages: a copy of a model's parameters and state that follows them."""

    averages: dict[str, Buffer]
    count: Buffer  # the updates so far

    def __init__(self, model: Module) -> None:
        self.averages = {path: Buffer(_state_of(cell)) for path, cell in _cells(model)}
        if not self.averages:
            raise InputError(f"{type(self).__name__}: the model has no parameters and no state.", "a model to average")
        self.count = Buffer(0, dtypes.int64)

    def share(self) -> Tensor:
        """How much of the way to the newest weights the average goes, in float64; `count` includes this update."""
        raise ModuleError(f"{type(self).__name__}: has no rule.", "wl.optim.EMA or wl.optim.SWA")

    def update(self, model: Module) -> None:
        """Take the weights of now into the average. State that is not floating, such as counts, is copied."""
        found = dict(_cells(model))
        self._check("update", found)
        with no_grad():
            self.count.assign(self.count + 1)
            share = self.share()
            for path, cell in self.averages.items():
                new = arrays.astype(found[path], cell.dtype)
                if isinstance(found[path], Parameter) and dtypes.is_inexact(cell.dtype):
                    new = cell + arrays.astype(share, dtypes.real_of(cell.dtype)) * (new - cell)
                cell.assign(new)

    def values(self) -> dict[str, Tensor]:
        """The averages by path."""
        return {path: read(cell) for path, cell in self.averages.items()}

    def apply_to(self, model: Module) -> None:
        """Put the averages into the model."""
        found = dict(_cells(model))
        self._check("apply_to", found)
        for path, value in self.values().items():
            found[path].assign(arrays.astype(value, found[path].dtype))

    @contextmanager
    def swapped(self, model: Module) -> Iterator[Module]:
        """Inside, the model has the averages; afterwards its own weights again, even after an error."""
        before = [(cell, read(cell)) for _, cell in _cells(model)]
        self.apply_to(model)
        try:
            yield model
        finally:
            for cell, value in before:
                cell.assign(value)

    def _check(self, what: str, found: Mapping[str, Cell]) -> None:
        shapes = {path: cell.shape for path, cell in found.items()}
        if shapes != {path: cell.shape for path, cell in self.averages.items()}:
            raise ModuleError(
                f"{type(self).__name__}.{what}: the model is not like the one that the average was made from.",
                "the same model, or a copy",
            )


class EMA(Averaged):
    r"""The exponential moving average \(\bar w \leftarrow \beta \bar w + (1 - \beta) w\).

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[1.0]])
    >>> ema = wl.optim.EMA(model, decay=0.75)
    >>> model.weight = wl.tensor([[5.0]])
    >>> ema.update(model)
    >>> with ema.swapped(model):
    ...     print(model.weight)
    parameter([[2.]])
    >>> model.weight
    parameter([[5.]])

    It starts from the weights of the model. `bias_correction` forgets these: the average is then
    \(\sum_i \beta^{t-i} w_i / \sum_i \beta^{t-i}\) of the updates alone. `warmup` takes \(\min(\beta,
    \frac{1+t}{10+t})\), so that the first, bad, weights are forgotten sooner. `update` may be inside a compiled step.
    Running statistics and other state of the model are copied.
    """

    def __init__(
        self, model: Module, decay: float = 0.999, *, bias_correction: bool = False, warmup: bool = False
    ) -> None:
        if not 0 <= as_number("EMA", "decay", decay) < 1:
            raise InputError(f"EMA: decay={decay}.", "a decay from 0 to below 1, such as 0.999")
        if bias_correction and warmup:
            raise InputError("EMA: both bias_correction and warmup.", "one of them")
        super().__init__(model)
        self.decay, self.bias_correction, self.warmup = float(decay), bias_correction, warmup

    def share(self) -> Tensor:
        t = arrays.astype(self.count, dtypes.float64)
        if self.bias_correction:
            return (1.0 - self.decay) / (1.0 - self.decay**t)
        if self.warmup:
            return 1.0 - arrays.minimum((1.0 + t) / (10.0 + t), self.decay)
        return arrays.full_like(t, 1.0 - self.decay)


class SWA(Averaged):
    r"""The plain mean of the weights at all updates, \(\bar w = \frac1n \sum_i w_i\): stochastic weight averaging.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[1.0]])
    >>> swa = wl.optim.SWA(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     model.weight = wl.tensor([[value]])
    ...     swa.update(model)  # usually at the end of an epoch, with a high or cyclic rate
    >>> swa.values()["weight"]
    tensor([[3.]])

    Running statistics of normalisations belong to the weights of their time; compute them anew for the averaged model.
    """

    def share(self) -> Tensor:
        return 1.0 / arrays.astype(self.count, dtypes.float64)


def _cells(model: Module) -> list[tuple[str, Parameter | Buffer]]:
    """Parameters and buffers; random streams stay the model's own."""
    buffers = [(path, cell) for path, cell in model.named_buffers() if isinstance(cell, Buffer)]
    return [*model.named_parameters(), *buffers]


def _state_of(cell: Tensor) -> Tensor:
    """Averages of 16-bit weights would not move by small shares."""
    return arrays.astype(cell, dtypes.float32) if dtypes.is_half(cell.dtype) else arrays.asarray(cell)
