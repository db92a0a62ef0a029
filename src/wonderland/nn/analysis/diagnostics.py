"""What happens inside a model: sizes of activations and gradients, dead and saturated units, what the factors of a
gradient are, and what an activation function is good for. Book, sections 5.4 and 6.4.3.

The layers looked at are the innermost modules; a plain function such as `wl.relu` is part of the layer before it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import arrays
from ...core.dtypes import float64, is_floating
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...random.continuous import normal
from ...random.keys import key as make_key
from ...random.streams import default_stream
from ...transforms.forward import jvp
from ...transforms.jit.jit import make_graph
from ...transforms.reverse import grad
from ..activations.activations import Elementwise
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = [
    "ActivationReport", "Factor", "GradientReport", "Signal", "activation_report", "dead_units", "delta_feature",
    "factors", "gradient_norms", "gradient_report", "saturation", "signals", "sparsity", "variance_report",
]  # fmt: skip

SATURATED = 0.01  # a slope below this passes next to nothing: sigmoid beyond 5, tanh beyond 3
VANISHING, EXPLODING = 1e-6, 1e3  # norms of gradients relative to the largest, or absolute


class Signal(NamedTuple):
    """One call of a layer: its input, its output, and the gradient that came back to its output."""

    path: str
    kind: str
    input: object
    output: Tensor
    gradient: Tensor | None


def signals(model: Module, *inputs: object, loss: Callable[..., Tensor] | None = None) -> list[Signal]:
    r"""What the innermost modules receive and return, and the gradients of a loss with respect to what they return.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.ReLU(), wl.nn.Linear(3, 1))
    >>> [(s.path, s.kind, s.output.shape, s.gradient.shape) for s in wl.nn.diagnostics.signals(model, wl.ones((5, 2)))]
    [('0', 'Linear', (5, 3), (5, 3)), ('1', 'ReLU', (5, 3), (5, 3)), ('2', 'Linear', (5, 1), (5, 1))]

    `loss` is a function of the model's output; without one, adjoints of the output are standard normal noise (always
    the same), which shows how much of any gradient comes back. Looking changes nothing: running statistics and random
    streams are put back.
    """
    paths = {id(m): path for path, m in model.named_modules() if not m.children()}
    if not paths or (len(paths) == 1 and "" in paths.values() and not model.parameters()):
        raise ModuleError(f"signals: this {type(model).__name__} has no layers to look at.", "a model made of modules")
    seen: list[Signal] = []

    def run(probes: list[Tensor] | None) -> Tensor:
        """The loss; a probe, of zeros, is added to each output, so that its gradient is that of the output."""
        seen.clear()

        def note(module: Module, args: tuple[object, ...], output: object) -> Tensor | None:
            if not isinstance(output, Tensor) or not is_floating(output.dtype):
                return None
            i = len(seen)
            seen.append(Signal(paths[id(module)], type(module).__name__, args[0] if args else None, output, None))
            return None if probes is None else output + probes[i]

        with contextlib.ExitStack() as stack:
            for module in model.modules():
                if id(module) in paths:
                    stack.enter_context(module.register_forward_hook(note))
            output = model(*inputs)
        if loss is not None:
            return loss(output)
        if not isinstance(output, Tensor):
            raise InputError(f"signals: the model returned a {type(output).__name__}.", "loss=, a function of it")
        return (output * normal(output.shape, key=make_key(0), dtype=output.dtype)).sum()

    with _unchanged(model):
        run(None)
        forward = list(seen)
    with _unchanged(model):  # so that the second pass draws the same random numbers
        gradients = grad(run)([arrays.zeros_like(s.output) for s in forward])
    return [s._replace(gradient=g) for s, g in zip(forward, gradients, strict=True)]


@contextlib.contextmanager
def _unchanged(model: Module) -> Iterator[None]:
    """Put the state of a model, and of the global random stream, back afterwards."""
    before = [(cell, cell.value) for cell in (*model.buffers(), default_stream)]
    try:
        yield
    finally:
        for cell, value in before:
            cell.assign(value)


class Spread(NamedTuple):
    """The sizes of a layer's output and of its gradient."""

    path: str
    kind: str
    activation_std: float
    gradient_std: float
    zeros: float


def variance_report(model: Module, *inputs: object, loss: Callable[..., Tensor] | None = None) -> list[Spread]:
    """Standard deviations of activations (forwards) and gradients (backwards), layer by layer; see `signals`.

    >>> import wonderland as wl
    >>> layers = [wl.nn.Linear(64, 64, init="kaiming_normal", bias_init="zeros") for i in range(9)]
    >>> model = wl.nn.Sequential(*[part for layer in layers for part in (layer, wl.nn.ReLU())])
    >>> report = wl.nn.init.variance_report(model, wl.random.normal((100, 64), key=wl.random.key(0)))
    >>> all(0.3 < row.activation_std < 3 for row in report)
    True
    """
    rows = []
    for s in signals(model, *inputs, loss=loss):
        y, g = (np.asarray(t, dtype=np.float64) for t in (s.output, s.gradient))
        rows.append(Spread(s.path, s.kind, float(y.std()), float(g.std()), sparsity(y)))
    return rows


# --- gradients of parameters


def gradient_norms(grads: Mapping[str, ArrayLike]) -> dict[str, Tensor]:
    r"""\(\lVert g \rVert_2\) of each gradient, by the parameters' paths; may be part of a compiled step.

    >>> import wonderland as wl
    >>> wl.nn.diagnostics.gradient_norms({"weight": wl.tensor([3.0, 4.0])})
    {'weight': tensor(5.)}
    """
    return {path: arrays.sqrt((arrays.asarray(g) * g).sum()) for path, g in grads.items() if g is not None}


class GradientReport(NamedTuple):
    """What norms of gradients say: a word for each parameter, and one for all of them."""

    verdict: str
    parameters: dict[str, str]

    @property
    def healthy(self) -> bool:
        return self.verdict == "healthy"


def gradient_report(
    norms: Mapping[str, ArrayLike], vanishing: float = VANISHING, exploding: float = EXPLODING
) -> GradientReport:
    """Which gradients are "not finite", "exploding", "zero", "vanishing" or "healthy"; the verdict is the worst.

    >>> import wonderland as wl
    >>> wl.nn.diagnostics.gradient_report({"0.weight": 1e-9, "8.weight": 1.0})
    GradientReport(verdict='vanishing', parameters={'0.weight': 'vanishing', '8.weight': 'healthy'})

    `norms` are those of `gradient_norms`, or gradients themselves. Norms above `exploding` explode; those below the
    fraction `vanishing` of the largest vanish.
    """
    sizes = {path: float(np.linalg.norm(np.asarray(value, dtype=np.float64))) for path, value in norms.items()}
    if not sizes:
        raise InputError("gradient_report: there are no gradients.", "gradient_norms(grads) of wl.grad")
    largest = max((s for s in sizes.values() if math.isfinite(s)), default=0.0)

    def word(size: float) -> str:
        if not math.isfinite(size):
            return "not finite"
        if size == 0:
            return "zero"
        if size > exploding:
            return "exploding"
        return "vanishing" if size < vanishing * largest else "healthy"

    words = {path: word(size) for path, size in sizes.items()}
    order = ("not finite", "exploding", "zero", "vanishing", "healthy")
    return GradientReport(min(words.values(), key=order.index), words)


# --- units


def sparsity(x: ArrayLike) -> float:
    """The fraction of zeros.

    >>> import wonderland as wl
    >>> wl.nn.diagnostics.sparsity(wl.relu(wl.tensor([-1.0, 2.0, -3.0, 4.0])))
    0.5
    """
    data = np.asarray(x)
    return float(np.mean(data == 0)) if data.size else 0.0


def dead_units(model: Module, data: Any) -> dict[str, list[int]]:
    """The units of layers with weights that no gradient reaches, for any example: dead ones. Book, section 5.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.Linear.from_matrix([[1.0, 1.0]], [0.0, -100.0])
    >>> model = wl.nn.Sequential(layer, wl.relu, wl.nn.Linear(2, 1))
    >>> wl.nn.diagnostics.dead_units(model, wl.ones((5, 1)))
    {'0': [1]}

    `data` is a tensor of inputs, or batches such as a loader gives: inputs, or tuples that begin with them. A unit is
    an entry of the last axis. A layer is listed if it has dead units.
    """
    alive: dict[str, Any] = {}
    for batch in [data] if isinstance(data, (Tensor, np.ndarray)) else data:
        x = batch[0] if isinstance(batch, (tuple, list)) else batch
        for s in signals(model, x):
            if s.gradient is None or not s.output.ndim or not _has_weights(model, s.path):
                continue
            reached = np.asarray(s.gradient).reshape(-1, s.output.shape[-1]).any(axis=0)
            alive[s.path] = alive.get(s.path, False) | reached
    if not alive:
        raise InputError("dead_units: no layer with weights was called.", "a model with layers, and some data")
    return {path: np.flatnonzero(~a).tolist() for path, a in alive.items() if not a.all()}


def _has_weights(model: Module, path: str) -> bool:
    return any(p.ndim > 1 for p in model.get_submodule(path).parameters())


def saturation(model: Module, *inputs: object, threshold: float = SATURATED) -> dict[str, float]:
    r"""The fraction of units of each activation module with a slope \(|\phi'|\) below a threshold. Book, 6.4.3.

    >>> import wonderland as wl
    >>> wl.nn.diagnostics.saturation(wl.nn.Sequential(wl.nn.Tanh()), wl.tensor([-3.0, 0.0, 1.0, 9.0]))
    {'0': 0.5}
    """
    return {f.path: f.saturated for f in factors(model, *inputs, threshold=threshold) if f.saturated is not None}


class Factor(NamedTuple):
    """What a layer multiplies gradients by: at most `weight_norm`, or slopes."""

    path: str
    kind: str
    weight_norm: float | None
    mean_slope: float | None
    max_slope: float | None
    saturated: float | None


def factors(model: Module, *inputs: object, threshold: float = SATURATED) -> list[Factor]:
    r"""The factors of a gradient by layer: the spectral norm of weights, and the slopes \(|\phi'|\) of activations.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear.from_matrix([[3.0]]), wl.nn.Sigmoid())
    >>> linear, sigmoid = wl.nn.diagnostics.factors(model, wl.zeros((1, 1)))
    >>> linear.weight_norm, sigmoid.max_slope
    (3.0, 0.25)

    Slopes of sigmoid, tanh and ReLU never exceed 1, so gradients that explode come from the weights. A kernel of a
    convolution is taken as a matrix from all its inputs to the outputs.
    """
    found = []
    for s in signals(model, *inputs):
        module = model.get_submodule(s.path)
        weight = vars(module).get("weight")
        norm = None
        if isinstance(weight, Parameter) and weight.ndim > 1:
            matrix = np.asarray(weight, dtype=np.float64).reshape(-1, weight.shape[-1])
            norm = float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
        slopes = None
        if isinstance(module, Elementwise):
            slopes = np.abs(np.asarray(_slopes(module, s.input), dtype=np.float64))
        if norm is None and slopes is None:
            continue
        if slopes is None or not slopes.size:
            found.append(Factor(s.path, s.kind, norm, None, None, None))
        else:
            low = float(np.mean(slopes < threshold))
            found.append(Factor(s.path, s.kind, norm, float(slopes.mean()), float(slopes.max()), low))
    return found


def _slopes(phi: Callable[[Tensor], Tensor], x: Any) -> Tensor:
    """The derivative of an elementwise function at each number."""
    x = arrays.asarray(x)
    return jvp(phi, (x,), (arrays.ones_like(x),))[1]


def delta_feature(model: Callable[..., Tensor], x: ArrayLike, feature: int, factor: float = 2.0) -> Tensor:
    r"""\(f(x') - f(x)\), where one feature of x is multiplied by a factor. Book, section 5.1.

    >>> import wonderland as wl
    >>> linear = wl.nn.Linear.from_matrix([[2.0], [5.0]], [7.0])
    >>> wl.nn.diagnostics.delta_feature(linear, wl.tensor([3.0, 1.0]), 0)
    tensor([6.])

    A linear model gives \(w_j x_j\) whatever the other features are.
    """
    x = arrays.asarray(x)
    if not x.ndim or not -x.shape[-1] <= feature < x.shape[-1]:
        raise InputError(f"delta_feature: an input of shape {x.shape} has no feature {feature}.", "its last axis")
    factors = np.ones(x.shape[-1])
    factors[feature] = factor
    return model(x * arrays.asarray(factors, dtype=x.dtype)) - model(x)


# --- activation functions


class ActivationReport(NamedTuple):
    """Six things to wish of an activation function."""

    nonlinear: bool
    differentiable: bool
    zero_at_zero: bool
    linear_near_zero: bool
    bounded_gradient: bool
    cheap: bool
    max_slope: float
    operations: int


def activation_report(phi: Callable[[Tensor], Tensor]) -> ActivationReport:
    r"""Whether \(\phi\) is non-linear, differentiable, 0 at 0, about linear near 0, of bounded slope, and cheap.

    >>> import wonderland as wl
    >>> report = wl.nn.diagnostics.activation_report
    >>> report(wl.sigmoid).zero_at_zero, report(wl.relu).differentiable, all(report(wl.tanh)[:6])
    (False, False, True)

    Examined with numbers: kinks at multiples of 0.01 up to 8, slopes up to 1000 (bounded: at most 10); linear near 0
    means that the tangent at 0 is right to a tenth up to 0.1; cheap means at most four operations for each number.
    """

    def value(x: Array) -> Array:
        return np.asarray(phi(arrays.asarray(x, dtype=float64)))

    grid = np.arange(-800, 801) / 100
    h = 1e-6
    centre, left, right = value(grid), value(grid - h), value(grid + h)
    jumps = np.abs((right - centre) - (centre - left)) / h
    middle = value(grid[1:-1])
    bends = np.abs(value(grid[2:]) - 2 * middle + value(grid[:-2]))
    far = np.concatenate([grid, np.linspace(-1000.0, 1000.0, 4001)])
    slopes = np.abs(np.asarray(_slopes(phi, arrays.asarray(far, dtype=float64))))
    slope = float(np.asarray(_slopes(phi, arrays.zeros(1, dtype=float64)))[0])
    near = np.linspace(-0.1, 0.1, 41)
    origin = float(value(np.zeros(1))[0])
    deviation = np.abs(value(near) - origin - slope * near).max()
    graph = make_graph(phi)(arrays.zeros(3, dtype=float64))
    operations = sum(e.primitive.name != "stop_gradient" for e in graph.equations)  # which computes nothing
    return ActivationReport(
        nonlinear=bool(bends.max() > 1e-9 * max(1.0, np.abs(centre).max())),
        differentiable=bool(np.isfinite(jumps).all() and jumps.max() < 1e-2 * max(1.0, slopes[: len(grid)].max())),
        zero_at_zero=abs(origin) < 1e-12,
        linear_near_zero=bool(slope != 0 and deviation <= 0.1 * abs(slope) * 0.1),
        bounded_gradient=bool(np.isfinite(slopes).all() and slopes.max() <= 10),
        cheap=operations <= 4,
        max_slope=float(slopes.max()),
        operations=operations,
    )
