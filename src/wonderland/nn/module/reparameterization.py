"""Layers whose weight is computed from other parameters. Book, sections 9.2.1 and 9.3.

A wrapper takes the weight of a layer away, keeps the numbers that make it, and runs the layer with the weight that
they make. `remove()` gives the layer back with that weight.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ... import arrays
from ...core.context import modules
from ...core.errors import InputError, ModuleError
from ...core.primitive import Aval
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...random.continuous import normal
from ...random.streams import Source
from ..functional.noise import check_std
from ..layers.dropout import own_stream
from .hooks import call_with_hooks
from .module import Module
from .parameter import Buffer, Parameter

__all__ = ["Reparameterized", "SparseReparam", "WeightNoise", "Masked"]

R = TypeVar("R", bound="Reparameterized")


class Reparameterized(Module):
    """A layer with a weight that `effective()` computes; a subclass makes its parameters in `begin`.

    >>> import wonderland as wl
    >>> class Positive(wl.nn.Reparameterized):
    ...     def begin(self, weight):
    ...         self.log = wl.nn.Parameter(wl.log(abs(weight)))
    ...     def effective(self):
    ...         return wl.exp(self.log)
    >>> layer = Positive(wl.nn.Linear(2, 3))
    >>> bool((layer.weight > 0).all()), [path for path, _ in layer.named_parameters()]
    (True, ['layer.bias', 'log'])
    >>> layer.remove()
    Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, layer: Module, name: str = "weight") -> None:
        weight = vars(layer).get(name) if isinstance(layer, Module) else None
        if not isinstance(weight, Parameter):
            raise ModuleError(
                f"{type(self).__name__}: {_shown(layer)} has no parameter {name!r}.",
                "a layer with this parameter; a lazy layer has it after its first input",
            )
        self.layer = layer
        self.name = name
        self.begin(weight.value)
        for part in vars(self).values():
            if isinstance(part, Parameter):
                part.trainable = weight.trainable
        setattr(layer, name, Aval(weight.shape, weight.dtype))  # its shape stays, for what asks the layer

    def begin(self, weight: Tensor) -> None:
        """Make the parameters from the weight that the layer has."""
        raise NotImplementedError

    def effective(self) -> Tensor:
        """The weight that the layer is run with."""
        raise NotImplementedError

    @property
    def weight(self) -> Tensor:
        """The weight that the layer is run with, while training or not."""
        return self.effective()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        # a twin of the layer, which shares everything but the weight, so that other threads do not see it
        twin = type(self.layer).__tree_new__()
        vars(twin).update(vars(self.layer))
        vars(twin)[self.name] = self.effective()
        called = modules.called
        depth = len(called)
        called.append(self.layer)
        try:
            return call_with_hooks(self.layer, args, kwargs, twin.forward)
        finally:
            del called[depth:]

    def remove(self) -> Any:
        """The layer with its present weight as an ordinary parameter; this wrapper is of no use afterwards."""
        setattr(self.layer, self.name, Parameter(self.effective()))
        return self.layer

    def extra_repr(self) -> str:
        return "" if self.name == "weight" else f"name={self.name!r}"


class SparseReparam(Reparameterized):
    r"""\(w = a \odot b\): the square penalty on a and b is twice the \(\ell_1\) norm of w at best. Book, E.9.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.SparseReparam(wl.nn.Linear.from_matrix([[4.0], [-1.0]]))
    >>> print(layer.weight.tolist(), layer.penalty())
    [[4.0], [-1.0]] tensor(10.)

    \(\min_{a \odot b = w} \lVert a\rVert^2 + \lVert b\rVert^2 = 2\lVert w\rVert_1\), which `penalty()` has at the
    start, with \(|a| = |b| = \sqrt{|w|}\). So weight decay on a and b makes w sparse, at the price of twice the memory.
    A weight that starts from 0 stays there, as both gradients are 0.
    """

    def begin(self, weight: Tensor) -> None:
        if not bool((weight != 0).any()):
            raise InputError(
                "SparseReparam: all weights are 0, where the gradients of both factors are 0, too.",
                "a layer with random weights",
            )
        root = arrays.sqrt(arrays.abs(weight))
        self.a = Parameter(arrays.sign(weight) * root)
        self.b = Parameter(root)

    def effective(self) -> Tensor:
        return self.a * self.b

    def penalty(self) -> Tensor:
        r"""\(\lVert a\rVert^2 + \lVert b\rVert^2 \ge 2\lVert w\rVert_1\), to be added to the loss."""
        return arrays.sum(arrays.square(self.a)) + arrays.sum(arrays.square(self.b))


class WeightNoise(Reparameterized):
    r"""\(w + \epsilon\), \(\epsilon \sim N(0, \mathrm{std}^2)\), in every forward pass while training.

    >>> import wonderland as wl
    >>> layer = wl.nn.WeightNoise(wl.nn.Linear.from_matrix([[2.0]]), 0.1).eval()
    >>> layer(wl.ones(1))
    tensor([2.])

    The gradient with respect to the noisy weight moves w. `key` gives it a random stream of its own.
    """

    def __init__(self, layer: Module, std: float, name: str = "weight", key: Source = None) -> None:
        self.std = check_std("WeightNoise", std)
        self.stream = own_stream(key)
        super().__init__(layer, name)

    def begin(self, weight: Tensor) -> None:
        self.mean = Parameter(weight)

    def effective(self) -> Tensor:
        if not self.training or not self.std:
            return self.mean
        return self.mean + normal(self.mean.shape, 0.0, self.std, key=self.stream, dtype=self.mean.dtype)

    @property
    def weight(self) -> Tensor:
        """The weight without noise."""
        return self.mean

    def remove(self) -> Any:
        setattr(self.layer, self.name, self.mean)
        return self.layer

    def extra_repr(self) -> str:
        return f"std={self.std}"


class Masked(Reparameterized):
    r"""\(w \odot m\) with a fixed mask m of zeros and ones: sparse connections, or weights that were pruned.

    >>> import wonderland as wl
    >>> layer = wl.nn.Masked(wl.nn.Linear.from_matrix([[2.0], [3.0]]), [[True], [False]])
    >>> layer(wl.ones(2))
    tensor([2.])

    Masked weights are 0 from the start and get no gradient, so that no optimizer moves them.
    """

    def __init__(self, layer: Module, mask: ArrayLike, name: str = "weight") -> None:
        given = arrays.asarray(mask)
        weight = getattr(layer, name, None)
        if isinstance(weight, Parameter) and given.shape != weight.shape:
            raise InputError(
                f"Masked: a mask of shape {given.shape} for a {name} of shape {weight.shape}.", "the same shape"
            )
        self.mask = Buffer(given != 0)
        super().__init__(layer, name)

    def begin(self, weight: Tensor) -> None:
        self.kept = Parameter(arrays.where(self.mask, weight, 0.0))

    def effective(self) -> Tensor:
        return arrays.where(self.mask, self.kept, 0.0)


def _shown(layer: object) -> str:
    return layer._describe() if isinstance(layer, Module) else f"a {type(layer).__name__}"
