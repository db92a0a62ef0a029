"""Whole derivatives: Jacobians, Hessians and their products with vectors. Book, sections 2.2 and 6.4.1.

A Jacobian is assembled from products with basis vectors, all of them at once under `vmap`: one column per
input from forward mode, one row per output from reverse mode. Everything else on this page is a composition
of `jvp`, `vjp`, `grad`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Concatenate

import numpy as np

from .. import arrays
from ..core import trees
from ..core.arguments import named_after
from ..core.context import user_level
from ..core.dtypes import DType, default_float, is_complex, is_inexact
from ..core.errors import GradientError, InputError
from ..core.tensor import Tensor
from ..primitives.creation import check_size, zeros_like
from .batching import vmap
from .forward import call_with_tangents, jvp
from .inputs import Inputs, argument_positions, check_function, output_leaves
from .reverse import Recording, grad, push_forward
from .signatures import Function, P, Result, Varied

__all__ = [
    "LargeJacobianWarning",
    "derivative",
    "directional_derivative",
    "hessian",
    "hvp",
    "is_linear",
    "jacfwd",
    "jacobian",
    "jacrev",
]

LARGE = 1 << 30  # bytes from which a Jacobian is worth a warning


class LargeJacobianWarning(UserWarning):
    """A Jacobian of a gigabyte or more is about to be stored; products with it rarely need it."""


def jacobian(
    f: Callable[P, object],
    argnums: int | tuple[int, ...] = 0,
    *,
    mode: str | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function[P, Any]:
    r"""A function that returns the Jacobian \(J_{ij} = \partial f_i / \partial x_j\): outputs times inputs.

    >>> import wonderland as wl
    >>> W = wl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> wl.jacobian(lambda x: W @ x)(wl.ones(3))
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    >>> X, W = wl.ones((4, 3)), wl.ones((3, 2))
    >>> wl.jacobian(lambda X, W: X @ W, argnums=1)(X, W).shape
    (4, 2, 3, 2)

    Its shape is the output's followed by the input's, its dtype the output's. For trees it is a tree like the
    output whose leaves are trees like the argument; a tuple of `argnums` adds a tuple in between, and a
    module stands for the dict of its trainable parameters.

    `mode` is "forward" (a column per input, no value kept for later), "reverse" (a row per output), or None: f is run
    once and the mode with fewer products is taken. With `has_aux` f returns (value, aux) and the result is (Jacobian,
    aux). For complex arguments only a holomorphic f has a Jacobian: say `holomorphic=True`.

    A Jacobian has as many entries as outputs times inputs, and batch axes count in both. One that cannot fit
    into memory is refused, a large one gives a `LargeJacobianWarning`. Book, D.2.7, sections 2.2.3 and 6.4.1.
    """
    check_function("jacobian", f)
    if mode not in (None, "forward", "reverse"):
        raise InputError(f"jacobian: there is no mode {mode!r}.", '"forward", "reverse" or None for the cheaper one')

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        inputs = Inputs("jacobian", args, argument_positions("jacobian", argnums, len(args)))
        _check_complex(inputs.values, holomorphic)
        n = sum(v.size for v in inputs.values)
        if mode == "forward":
            values, structure, aux, blocks = _forward(f, inputs, kwargs, has_aux, holomorphic)
        else:
            recording = Recording("jacobian", f, inputs, kwargs, has_aux)
            values, structure, aux = recording.values, recording.structure, recording.aux
            _check_outputs(values, n, holomorphic)
            complex_rows = not holomorphic and any(is_complex(v.dtype) for v in values)
            if mode == "reverse" and complex_rows:
                raise GradientError(
                    "jacobian: reverse mode needs real outputs, the function returned complex ones.",
                    'mode="forward", or holomorphic=True for a holomorphic function of complex inputs',
                )
            by_rows = mode == "reverse" or (sum(v.size for v in values) < n and not complex_rows)
            blocks = _rows(recording) if by_rows else _columns(recording)
        trees_like_args = [inputs.gather(row) for row in blocks]
        result = trees.unflatten(structure, [like[0] if isinstance(argnums, int) else like for like in trees_like_args])
        return (result, aux) if has_aux else result

    return named_after(f, "jacobian", wrapper)  # type: ignore[arg-type]  # see Function


def jacfwd(
    f: Callable[P, object],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function[P, Any]:
    r"""`jacobian` by forward mode: column j is \(J e_j\). Best for few inputs.

    >>> import wonderland as wl
    >>> wl.jacfwd(lambda t: wl.stack([wl.cos(t), wl.sin(t)]))(0.0)
    tensor([-0., 1.])
    """
    return jacobian(f, argnums, mode="forward", has_aux=has_aux, holomorphic=holomorphic)


def jacrev(
    f: Callable[P, object],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function[P, Any]:
    r"""`jacobian` by reverse mode: row i is \(e_i^\top J\). Best for few outputs. Book, section 6.4.1.

    >>> import wonderland as wl
    >>> wl.jacrev(lambda x: (x**2).sum())(wl.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return jacobian(f, argnums, mode="reverse", has_aux=has_aux, holomorphic=holomorphic)


def hessian(f: Callable[P, object], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Function[P, Any]:
    r"""A function that returns the second derivatives \(H_{ij} = \partial^2 f / \partial x_i \partial x_j\).

    >>> import wonderland as wl
    >>> wl.hessian(lambda x: x[0] ** 2 * x[1])(wl.tensor([1.0, 3.0]))
    tensor([[6., 2.],
            [2., 0.]])

    Forward over reverse mode: `jacfwd(jacrev(f))`. The shape is that of f's value (usually none), then the input's
    twice; for trees it is nested twice. Products with vectors need no Hessian, see `hvp`. Book, section 6.4.2.
    """
    first = jacobian(f, argnums, mode="reverse", has_aux=has_aux)
    return named_after(f, "hessian", jacobian(first, argnums, mode="forward", has_aux=has_aux))


def hvp(f: Callable[..., object], primals: object, tangents: object) -> Any:
    r"""The product \(H v\) of the Hessian of a scalar function with a direction, without the Hessian.

    >>> import wonderland as wl
    >>> wl.hvp(lambda x: (x**3).sum(), wl.tensor([1.0, 2.0]), wl.tensor([1.0, 0.5]))
    tensor([6., 6.])

    The gradient is differentiated along v (forward over reverse mode): the cost is a few evaluations of f,
    whatever the number of inputs. A tuple of primals stands for several arguments, and the result is a tuple,
    too. Book, section 6.4.2 (footnote 4).
    """
    several = isinstance(primals, tuple)
    primals, tangents = _as_tuple(primals), _as_tuple(tangents)
    gradient = grad(f, tuple(range(len(primals))))
    product = jvp(gradient, primals, tangents)[1]
    return product if several else product[0]


def directional_derivative(f: Callable[..., Result], x: object, v: object) -> Result:
    r"""\(D_v f(x) = \lim_{h\to 0} (f(x + h v) - f(x))/h = \langle \nabla f(x), v\rangle\).

    >>> import wonderland as wl
    >>> print(wl.directional_derivative(lambda x: (x**2).sum(), wl.tensor([1.0, 2.0]), wl.tensor([0.0, 1.0])))
    tensor(4.)

    v is not normalised. Tuples x and v stand for several arguments. Book, E.2.20 and E.2.21.
    """
    return jvp(f, _as_tuple(x), _as_tuple(v))[1]


def derivative(f: Callable[Concatenate[Tensor, P], Result]) -> Function[Concatenate[Varied, P], Result]:
    r"""The ordinary derivative \(f'(x)\) of a function of one number; further arguments are passed on.

    >>> import wonderland as wl
    >>> print(wl.derivative(lambda v: wl.cos(v**2))(1.0))
    tensor(-1.6829419)
    >>> print(wl.derivative(wl.derivative(lambda x: x**3))(2.0))
    tensor(12.)

    The result has the shape of f's value: a curve gives its velocity. Book, section 2.2.1.
    """

    def wrapper(x: Varied, *args: P.args, **kwargs: P.kwargs) -> Result:
        x = arrays.asarray(x)
        if x.shape != () or is_complex(x.dtype):
            raise GradientError(
                f"derivative: the argument is {x.dtype}{list(x.shape)}, not one real number.",
                "wl.grad or wl.jacobian for tensors, wl.vmap(wl.derivative(f)) for many numbers",
            )
        x = x if is_inexact(x.dtype) else arrays.astype(x, default_float)
        return jvp(lambda x: f(x, *args, **kwargs), (x,), (arrays.ones_like(x),))[1]

    return named_after(f, "derivative", wrapper)  # type: ignore[arg-type]  # see Function


def is_linear(f: Callable[..., object], *examples: object, rtol: float = 1e-6, seed: int = 0) -> bool:
    r"""Whether \(f(a x + b y) = a f(x) + b f(y)\), tried on random x and y with the shapes of the examples.

    >>> import wonderland as wl
    >>> wl.is_linear(lambda x: 3 * x[::-1], wl.zeros(4)), wl.is_linear(lambda x: 3 * x + 1, wl.zeros(4))
    (True, False)

    Computes in float64. Book, section 2.1.2 (box on linearity).
    """
    rng = np.random.default_rng(seed)
    leaves, structure = trees.flatten(examples)
    shapes = [arrays.asarray(leaf).shape for leaf in leaves]
    a, b = 0.75, -1.25  # exact in binary

    def draw() -> list[Tensor]:
        return [arrays.asarray(rng.normal(size=shape)) for shape in shapes]

    def evaluate(values: list[Tensor]) -> tuple[list[Tensor], trees.Structure]:
        return output_leaves("is_linear", f(*trees.unflatten(structure, values)))

    x, y = draw(), draw()
    mixed, kind = evaluate([a * u + b * v for u, v in zip(x, y, strict=True)])
    (at_x, kind_x), (at_y, kind_y) = evaluate(x), evaluate(y)
    if not kind == kind_x == kind_y:
        return False
    for results in zip(mixed, at_x, at_y, strict=True):
        z, u, v = (np.asarray(arrays.stop_gradient(w)) for w in results)
        if not z.shape == u.shape == v.shape:
            return False
        scale = max(1.0, *(float(np.max(np.abs(w), initial=0.0)) for w in (z, u, v)))
        if not bool(np.all(np.abs(z - (a * u + b * v)) <= rtol * scale)):
            return False
    return True


# --- assembling a Jacobian: blocks[i][j] has the shape of output leaf i followed by that of input leaf j


def _forward(
    f: Callable[..., object], inputs: Inputs, kwargs: dict[str, object], has_aux: bool, holomorphic: bool
) -> tuple[list[Tensor], trees.Structure, Any, list[list[Tensor]]]:
    """All columns while f runs: the tangents carry the batch, the values do not and are computed once."""
    n = sum(v.size for v in inputs.values)
    found: list[Any] = []  # what f gave besides the tangents; none of it is batched

    def along(*tangents: Tensor) -> list[Tensor]:
        made = call_with_tangents("jacobian", f, inputs, tangents, kwargs, has_aux)
        _check_outputs(made.values, n, holomorphic)
        found[:] = made.values, made.structure, made.aux
        return made.filled_tangents()

    columns = vmap(along, axis_size=n)(*_basis(inputs.values))
    values, structure, aux = found
    return values, structure, aux, _split_columns(columns, values, inputs.values)


def _columns(recording: Recording) -> list[list[Tensor]]:
    """Columns by evaluating a recorded derivative along each input."""

    def along(*tangents: Tensor) -> list[Tensor]:
        made = push_forward(recording.out_tangents, recording.tangents, list(tangents))
        return [zeros_like(v) if t is None else t for v, t in zip(recording.values, made, strict=True)]

    columns = vmap(along)(*_basis(recording.inputs.values))
    return _split_columns(columns, recording.values, recording.inputs.values)


def _rows(recording: Recording) -> list[list[Tensor]]:
    """Rows by transposing a recorded derivative for each output."""
    values, inputs = recording.values, recording.inputs.values
    stacked = vmap(lambda *cts: recording.adjoints(list(cts), free=False))(*_basis(values))
    blocks, start = [], 0
    for v in values:
        rows = slice(start, start + v.size)
        blocks.append(
            [arrays.astype(s[rows].reshape(v.shape + x.shape), v.dtype) for s, x in zip(stacked, inputs, strict=True)]
        )
        start += v.size
    return blocks


def _split_columns(columns: list[Tensor], values: list[Tensor], inputs: list[Tensor]) -> list[list[Tensor]]:
    blocks = []
    for v, column in zip(values, columns, strict=True):
        last = arrays.moveaxis(column, 0, -1)
        row, start = [], 0
        for x in inputs:
            row.append(last[..., start : start + x.size].reshape(v.shape + x.shape))
            start += x.size
        blocks.append(row)
    return blocks


def _basis(values: list[Tensor]) -> list[Tensor]:
    """The basis vectors of all leaves together: for each leaf, its part of every one of them along axis 0."""
    total = sum(v.size for v in values)
    parts, start = [], 0
    for v in values:
        check_size("jacobian", (total, *v.shape), v.dtype)
        parts.append(arrays.eye(total, v.size, k=-start, dtype=v.dtype).reshape((total, *v.shape)))
        start += v.size
    return parts


# --- checks


def _check_complex(inputs: list[Tensor], holomorphic: bool) -> None:
    if not holomorphic and any(is_complex(v.dtype) for v in inputs):
        raise GradientError(
            "jacobian: an argument is complex, and only a holomorphic function has one derivative there.",
            "holomorphic=True, or a function of the real and imaginary parts",
        )
    if holomorphic and not all(is_complex(v.dtype) for v in inputs):
        raise GradientError("jacobian: holomorphic=True, but an argument is real.", "holomorphic=False")


def _check_outputs(values: list[Tensor], n: int, holomorphic: bool) -> None:
    """The outputs have a derivative, and the Jacobian with n columns fits into memory."""
    nbytes = 0
    for v in values:
        if not is_inexact(v.dtype):
            raise GradientError(
                f"jacobian: the function returned {v.dtype}, which has no derivative.",
                "return floating values; others with has_aux=True",
            )
        if holomorphic and not is_complex(v.dtype):
            raise GradientError(f"jacobian: holomorphic=True, but the function returned {v.dtype}.", "a complex value")
        nbytes += _extent(v.shape, n, v.dtype)
    if nbytes >= LARGE:
        warnings.warn(
            f"jacobian: {sum(v.size for v in values):,} outputs by {n:,} inputs take {nbytes / 2**30:,.1f} "
            "GiB. Products with it are cheap: wl.vjp, wl.jvp, wl.hvp.",
            LargeJacobianWarning,
            stacklevel=user_level(),
        )


def _extent(shape: tuple[int, ...], n: int, dtype: DType) -> int:
    check_size("jacobian", (*shape, n), dtype)
    return math.prod(shape) * n * dtype.itemsize


def _as_tuple(x: object) -> tuple[object, ...]:
    return x if isinstance(x, tuple) else (x,)
