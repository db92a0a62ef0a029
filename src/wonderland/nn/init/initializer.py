"""What an initialiser is, and the sizes and gains that scaled ones depend on."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...arrays.conversion import as_shape
from ...core import dtypes
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike, ShapeLike
from ...random.streams import take_key

__all__ = ["Initializer", "fans", "calculate_gain"]

MODES = ("fan_in", "fan_out", "mean")


class Initializer:
    """How a parameter starts: a function of its shape, a key and a dtype, with its settings.

    >>> import wonderland as wl
    >>> init = wl.nn.init.normal(std=0.02)
    >>> init, init((3, 2), wl.random.key(0)).shape
    (normal(mean=0.0, std=0.02), (3, 2))

    Without a key the global stream gives one. Two initialisers with equal settings are equal.
    """

    def __init__(self, draw: Callable[..., Tensor], **settings: object) -> None:
        self.draw = draw
        self.settings = settings

    def __call__(self, shape: ShapeLike, key: KeyLike = None, dtype: DTypeLike | None = None) -> Tensor:
        name = self.name
        wanted = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        if not dtypes.is_floating(wanted):
            raise DTypeError(f"{name}: parameters do not start from numbers of {wanted}.", "a floating dtype")
        return self.draw(as_shape(name, shape), take_key(name, key), wanted, **self.settings)

    @property
    def name(self) -> str:
        return self.draw.__name__.strip("_")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Initializer) and (self.draw, self.settings) == (other.draw, other.settings)

    def __hash__(self) -> int:
        return hash((self.draw, tuple(self.settings.items())))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.settings.items())})"


def fans(shape: ShapeLike) -> tuple[int, int]:
    """How many inputs reach an output, and how many outputs an input, for weights (*kernel, in, out).

    >>> import wonderland as wl
    >>> wl.nn.init.fans((300, 100)), wl.nn.init.fans((3, 3, 16, 32))
    ((300, 100), (144, 288))
    """
    sizes = as_shape("fans", shape)
    if len(sizes) < 2:
        raise ShapeError(
            f"fans: a tensor of shape {sizes} does not connect inputs with outputs.",
            "a weight of shape (..., in, out); start a bias from wl.nn.init.zeros()",
        )
    places = math.prod(sizes[:-2])
    return sizes[-2] * places, sizes[-1] * places


def fan(name: str, shape: ShapeLike, mode: str) -> float:
    """The number that a variance is divided by."""
    inputs, outputs = fans(shape)
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", " or ".join(map(repr, MODES)))
    return max({"fan_in": inputs, "fan_out": outputs, "mean": (inputs + outputs) / 2}[mode], 1)


_GAINS = {
    "linear": 1.0,
    "identity": 1.0,
    "conv": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""The factor by which weights before a non-linearity are larger: \(\sqrt2\) for ReLU, which halves the variance.

    >>> import wonderland as wl
    >>> wl.nn.init.calculate_gain("relu"), wl.nn.init.calculate_gain("leaky_relu", 1.0)
    (1.4142135623730951, 1.0)

    "linear", "sigmoid" 1, "tanh" 5/3, "relu" \(\sqrt2\), "leaky_relu" \(\sqrt{2/(1 + \alpha^2)}\) with `param` as
    \(\alpha\) (0.01), "selu" 3/4, as in PyTorch.
    """
    name = nonlinearity if isinstance(nonlinearity, str) else getattr(nonlinearity, "__name__", "?")
    if name == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if name.startswith("conv") or name in _GAINS:
        return _GAINS.get(name, 1.0)
    known = [*(n for n in _GAINS if n != "conv"), "leaky_relu"]
    raise InputError(
        f"calculate_gain: nothing is known of {nonlinearity!r}.", f"one of {', '.join(known)}, or a number"
    )
