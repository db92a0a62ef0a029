"""What all distributions share: parameters, shapes, draws, and the answers that follow from others."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

from .. import arrays
from ..arrays import stop_gradient
from ..arrays.conversion import as_shape, convert
from ..core import trees
from ..core.broadcasting import broadcast_shapes
from ..core.dtypes import DType, is_floating, promote_types
from ..core.errors import GradientError, InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike, ShapeLike
from ..random.arguments import check, floating_parameters, parameter

Shape = tuple[int, ...]


if TYPE_CHECKING:
    from .expectation import Moments as Given  # what is given to the class below from above, see core/giving.py
else:
    Given = object


class Distribution(Given):
    """A probability distribution, or a batch of them. Book, section 3.2.2 and appendix A.

    >>> import wonderland as wl
    >>> d = wl.distributions.Normal(wl.tensor([0.0, 5.0]), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((3,)).shape
    ((2,), (), (3, 2))

    `parameters` names the attributes that determine it: numbers, or tensors whose shapes broadcast to `batch_shape`,
    one distribution for every element. A draw has the shape `(*shape, *batch_shape, *event_shape)`. Distributions are
    trees of their parameters, so they can be arguments and results of functions under `jit`, `grad` and `vmap`.
    """

    parameters: ClassVar[tuple[str, ...]] = ()
    has_rsample: ClassVar[bool] = False  # whether `rsample` carries derivatives to the parameters
    discrete: ClassVar[bool] = False
    bounds: tuple[Tensor | float, Tensor | float] = (-arrays.inf, arrays.inf)  # of a continuous distribution of numbers

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        trees.register(cls, _flatten, functools.partial(_unflatten, cls))

    # --- shapes and parameters

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name; `type(d)(**d.params)` is the same distribution."""
        return {name: getattr(self, name) for name in self.parameters}

    @property
    def batch_shape(self) -> Shape:
        """The shape of the batch of distributions: that of the parameters, broadcast together."""
        return broadcast_shapes(type(self).__name__, *(x.shape for x in self.params.values()))

    @property
    def event_shape(self) -> Shape:
        """The shape of one draw of one distribution: () for numbers, (d,) for vectors."""
        return ()

    @property
    def dtype(self) -> DType:
        """The dtype of the parameters."""
        return functools.reduce(promote_types, (x.dtype for x in trees.leaves(self)))

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{type(self).__name__}({listed})"

    # --- draws

    def sample(self, shape: ShapeLike = (), key: KeyLike = None) -> Tensor:
        """Draws of shape (*shape, *batch_shape, *event_shape), without derivatives.

        `key` is a key or a stream of `wl.random`; without one the global stream gives it.
        """
        return stop_gradient(self._draw(self._sizes(shape), key))

    def rsample(self, shape: ShapeLike = (), key: KeyLike = None) -> Tensor:
        """Draws as functions of the parameters and noise, so that derivatives flow to the parameters."""
        if not self.has_rsample:
            raise GradientError(
                f"{type(self).__name__}: its draws jump, so they are no differentiable function of the parameters.",
                "sample and the derivative of log_prob (the score), or a continuous relaxation",
            )
        return self._draw(self._sizes(shape), key)

    def _sizes(self, shape: ShapeLike) -> Shape:
        return (*as_shape(f"{type(self).__name__}.sample", shape), *self.batch_shape)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        raise self._unknown("sample")

    # --- what each distribution says

    def log_prob(self, value: ArrayLike) -> Tensor:
        """The logarithm of the probability or of the density at a value; -inf outside the support."""
        raise self._unknown("log_prob")

    def prob(self, value: ArrayLike) -> Tensor:
        """The probability, or the density (which may exceed 1), at a value."""
        return arrays.exp(self.log_prob(value))

    def cdf(self, value: ArrayLike) -> Tensor:
        """The probability of a draw up to a value."""
        raise self._unknown("cdf")

    def icdf(self, probability: ArrayLike) -> Tensor:
        """The quantile: the value up to which draws have a probability."""
        raise self._unknown("icdf")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise self._unknown("mean")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise self._unknown("variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return arrays.sqrt(self.variance)

    def entropy(self) -> Tensor:
        """The expected value of -log_prob, in nats."""
        raise self._unknown("entropy")

    def support(self) -> Tensor:
        """All values of a discrete distribution, along a new first axis."""
        raise self._unknown("support")

    # --- for subclasses

    def _unknown(self, what: str) -> InputError:
        return InputError(
            f"{type(self).__name__}: there is no formula for its {what}.", "wl.distributions.monte_carlo estimates it"
        )

    def _value(self, what: str, value: ArrayLike) -> Tensor:
        """A value to be looked up: a floating tensor."""
        value = parameter(f"{type(self).__name__}.{what}", value)
        if isinstance(value, Tensor) and is_floating(value.dtype):
            return value
        return convert(value, self.dtype)

    def _probability(self, value: ArrayLike) -> Tensor:
        name = f"{type(self).__name__}.icdf"
        check(name, "a probability", value, lambda v: (v >= 0) & (v <= 1), "from 0 to 1")
        return self._value("icdf", value)

    def _spread(self, x: ArrayLike) -> Tensor:
        """A number per distribution, for all of the batch."""
        return arrays.broadcast_to(x, self.batch_shape)


def accepted(name: str, *parameters: ArrayLike, together: bool = True) -> list[Tensor]:
    """Parameters as tensors of one floating dtype, whose shapes broadcast if they belong `together`."""
    lists = [arrays.asarray(x) if isinstance(x, (list, tuple)) else x for x in parameters]
    target, values = floating_parameters(name, None, *lists)
    tensors = [v for v in values if isinstance(v, Tensor)]
    if len(tensors) < len(values):
        tensors = [convert(v, target) for v in values]
    if together:
        broadcast_shapes(name, *(v.shape for v in tensors))
    return [convert(v, functools.reduce(promote_types, (v.dtype for v in tensors))) for v in tensors]


def positive(name: str, what: str, x: ArrayLike) -> None:
    """Refuse a parameter that is known and not above 0, or not finite."""
    check(name, what, x, lambda v: (v > 0) & (v < arrays.inf), f"{what} > 0")


def finite(name: str, what: str, x: ArrayLike) -> None:
    """Refuse a parameter that is known to be NaN or infinite."""
    check(name, what, x, lambda v: abs(v) < arrays.inf, "a finite number")


def _flatten(d: Distribution) -> tuple[list[Tensor], tuple[tuple[str, object], ...]]:
    rest = tuple((k, v) for k, v in sorted(vars(d).items()) if k not in d.parameters)
    return [getattr(d, name) for name in d.parameters], rest


def _unflatten(cls: type[Distribution], rest: tuple[tuple[str, object], ...], children: list[Tensor]) -> Distribution:
    made = object.__new__(cls)  # the parameters were checked when they came in
    vars(made).update(zip(cls.parameters, children, strict=True))
    vars(made).update(rest)
    return made


class LocationScale(Distribution):
    """The base of distributions with a location and a scale, in both of which `rsample` is differentiable."""

    parameters = ("loc", "scale")
    has_rsample = True

    def __init__(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        name = type(self).__name__
        self.loc, self.scale = accepted(name, loc, scale)
        finite(name, "loc", self.loc)
        positive(name, "scale", self.scale)
