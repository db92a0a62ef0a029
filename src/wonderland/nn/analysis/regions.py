"""The linear pieces of a network with ReLUs: which there are, and how many there can be. Book, section 5.4."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np

from ...arrays import asarray
from ...core.arguments import as_int
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..activations.activations import Activation, Elementwise
from ..activations.piecewise import LeakyReLU, ReLU
from ..activations.trainable_activations import PReLU
from ..module.module import Module

__all__ = ["activation_patterns", "linear_regions", "region_growth", "region_lower_bound", "region_upper_bound"]


def activation_patterns(model: Module, x: ArrayLike) -> np.ndarray:
    """Which ReLUs are on, for each input: bools (n, units), from all activation modules in the order of their calls.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear.from_matrix([[1.0, -1.0]]), wl.nn.ReLU())
    >>> wl.nn.regions.activation_patterns(model, wl.tensor([[2.0], [-2.0]]))
    array([[ True, False],
           [False,  True]])

    A unit is on where its input is positive. Between inputs of the same pattern the model is linear (affine).
    """
    found: list[np.ndarray] = []
    x = asarray(x)

    def note(module: Module, args: tuple[Tensor, ...]) -> None:
        found.append(np.asarray(args[0]).reshape(x.shape[0], -1) > 0)

    with contextlib.ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, Elementwise):
                if not _is_rectifier(module):
                    raise ModuleError(
                        f"activation_patterns: {module._describe()} is not piecewise linear with its kink at 0.",
                        "ReLU, LeakyReLU or PReLU",
                    )
                stack.enter_context(module.register_forward_pre_hook(note))
        model(x)
    if not found:
        raise ModuleError(
            "activation_patterns: no activation module was called; functions cannot be seen.",
            "wl.nn.ReLU() instead of wl.relu",
        )
    return np.concatenate(found, axis=1)


def _is_rectifier(module: Elementwise) -> bool:
    named = isinstance(module, Activation) and getattr(module.function, "__name__", "") == "relu"
    return named or isinstance(module, (ReLU, LeakyReLU, PReLU))


def linear_regions(model: Module, x: ArrayLike) -> int:
    """The number of linear regions that the points x (n, features) fall into: a count from below.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear.from_matrix([[1.0, 1.0]], [0.0, -1.0]), wl.nn.ReLU())
    >>> wl.nn.regions.linear_regions(model, wl.linspace(-2.0, 2.0, 100)[:, None])
    3
    """
    return len(np.unique(activation_patterns(model, x), axis=0))


def region_upper_bound(in_features: int, widths: Sequence[int]) -> int:
    r"""At most so many regions: \(\prod_l \sum_{j \le D} \binom{Z_l}{j}\), which never exceeds \(2^H\).

    >>> import wonderland as wl
    >>> wl.nn.regions.region_upper_bound(2, [4, 4, 4]), wl.nn.regions.region_upper_bound(9, [2, 3])
    (1331, 32)

    H is the number of all hidden units. A layer of Z units cuts a region of D dimensions into no more pieces than Z
    hyperplanes do, and D is at most the size of the input.
    """
    d = as_int("region_upper_bound", "in_features", in_features, 1)
    sizes = [as_int("region_upper_bound", "a width", z, 1) for z in widths]
    return math.prod(sum(math.comb(z, j) for j in range(min(d, z) + 1)) for z in sizes)


def region_lower_bound(in_features: int, width: int, depth: int) -> int:
    r"""So many regions can be reached: \(\lfloor Z/D \rfloor^{(L-1)D} \sum_{j \le D} \binom{Z}{j}\), for Z >= D.

    >>> import wonderland as wl
    >>> wl.nn.regions.region_lower_bound(2, 4, 3)
    176

    L is the number of hidden layers, each of Z units. Polynomial in the width, exponential in the depth; see
    `region_growth` for its order.
    """
    d, z, layers = _sizes("region_lower_bound", in_features, width, depth)
    return (z // d) ** ((layers - 1) * d) * sum(math.comb(z, j) for j in range(d + 1))


def region_growth(in_features: int, width: int, depth: int) -> int:
    r"""The order of the number of regions that can be reached: \((Z/D)^{(L-1)D}\,Z^D\), rounded down in Z/D.

    >>> import wonderland as wl
    >>> wl.nn.regions.region_growth(2, 4, 3)
    256

    Some print a binomial coefficient in place of Z/D, which would exceed the upper bound.
    """
    d, z, layers = _sizes("region_growth", in_features, width, depth)
    return (z // d) ** ((layers - 1) * d) * z**d


def _sizes(name: str, in_features: int, width: int, depth: int) -> tuple[int, int, int]:
    d, z = as_int(name, "in_features", in_features, 1), as_int(name, "width", width, 1)
    if z < d:
        raise InputError(f"{name}: a width of {z} is below the {d} inputs.", "a width of at least in_features")
    return d, z, as_int(name, "depth", depth, 1)
