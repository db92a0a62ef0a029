r"""Gradients through time: what each step contributes, how far back results depend on inputs. Book, section 13.2.2.

For \(s_i = f(s_{i-1}, x_i; \theta)\) the derivative of the last state by the parameters that all steps share is a sum,

\(\partial_\theta s_n = \sum_{i=1}^n \tilde s_i\, \partial_\theta f(s_{i-1}, x_i), \quad \tilde s_i = J_n J_{n-1} \cdots
J_{i+1}, \quad J_j = \partial_s f(s_{j-1}, x_j)\)

The factors stand in this order. With eigenvalues below 1 the terms of early steps vanish, above 1 they explode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import arrays
from ...core import dtypes, trees
from ...core.arguments import as_int
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...linalg.spectra import spectral_radius
from ...storage.svg import SVG
from ...transforms.derivatives import jacobian
from ...tree import ravel
from ...viz.heatmap import heatmap
from ...viz.plot import Curve, plot
from ..module.functional_call import functional_call
from ..module.module import Module

__all__ = [
    "BPTTTerms", "bptt_terms", "lag_picture", "sensitivity", "sensitivity_by_lag", "sensitivity_picture",
    "spectral_radii",
]  # fmt: skip

Leaves: TypeAlias = Any  # a tree of arrays, like that of the parameters
MOST_CELLS = 32  # along an axis of a picture; longer sequences are shown in blocks
DECADES = 6  # from the darkest shade to none


class BPTTTerms(NamedTuple):
    """The parts of the derivative of the last state, of d numbers, by parameters, as `bptt_terms` gives them.

    - `states` (n + 1, d): those before, between and after the steps.
    - `jacobians` (n, d, d): those of each state by the one before.
    - `direct`: of each state by the parameters, as if the state before were constant; a tree like that of the
      parameters, of arrays (n, d, *shape).
    - `terms`: the same, times the Jacobians of all later steps. They add up to the derivative.
    """

    states: Array
    jacobians: Array
    direct: Leaves
    terms: Leaves

    @property
    def norms(self) -> Array:
        """The size of each step's contribution, (n,): the norm over all parameters."""
        squares = [(np.abs(leaf) ** 2).reshape(len(leaf), -1).sum(axis=1) for leaf in trees.leaves(self.terms)]
        return np.sqrt(np.sum(squares, axis=0))

    def total(self, last: int | None = None) -> Leaves:
        """The sum of the terms, of all or, as in truncated backpropagation, of the `last` so many steps.

        >>> import wonderland as wl
        >>> found = wl.nn.bptt_terms(lambda a, x, s: a * s + x, wl.ones(4), 0.0, 0.5)
        >>> found.total(), found.total(last=1)  # of 1 + a + a² + a³ by a; the state before the last step
        (array([2.75], dtype=float32), array([1.75], dtype=float32))
        """
        n = len(self.jacobians)
        first = 0 if last is None else max(0, n - as_int("total", "last", last, 0))
        return trees.map(lambda leaf: leaf[first:].sum(axis=0), self.terms)


def bptt_terms(
    cell: Callable[..., object], xs: ArrayLike, state: object = None, parameters: object = None
) -> BPTTTerms:
    r"""What each step adds to the derivative of the last state by parameters that all share. Book, E.13.16, E.13.17.

    >>> import wonderland as wl
    >>> f = lambda A, x, s: wl.tanh(s @ A + x)
    >>> found = wl.nn.bptt_terms(f, wl.ones((20, 2)), wl.zeros(2), 0.5 * wl.eye(2))
    >>> found.terms.shape, bool(found.norms[0] < 1e-6 * found.norms[-1])
    ((20, 2, 2, 2), True)

    `cell` is a module, called as `cell(x_i, s)`, of which the trainable parameters are taken, by their paths; or a
    function `f(theta, x_i, s)` with its `parameters` theta, a tree. It gives the next state, a tensor or a tree of
    them, which is seen as one vector of d numbers. `xs` (n, ...) are the inputs. Without a `state` a module begins with
    zeros. This is a tool to look at short recurrences with: it makes all Jacobians.
    """
    name = "bptt_terms"
    inputs = arrays.asarray(xs)
    if not inputs.ndim:
        raise ShapeError(f"{name}: inputs of shape ().", "(steps, ...)")
    if isinstance(cell, Module):
        if parameters is not None:
            raise InputError(f"{name}: a module has parameters of its own.", "parameters=None, or a function")
        theta: Leaves = {path: arrays.asarray(p) for path, p in cell.named_parameters() if p.trainable}
        step: Callable[..., object] = lambda theta, x, s: functional_call(cell, theta, x, s)  # noqa: E731
        if state is None:
            if not inputs.shape[0]:
                raise InputError(f"{name}: no steps and no state.", "a state, or one step")
            state = trees.map(arrays.zeros_like, cell(inputs[0]))
    elif state is None or parameters is None:
        raise InputError(f"{name}: a function without a state or parameters.", "bptt_terms(f, xs, state, parameters)")
    else:
        theta, step = trees.map(arrays.asarray, parameters), cell
    s, back = ravel(trees.map(arrays.asarray, state))

    def flat(theta: Leaves, x: Tensor, s: Tensor) -> Tensor:
        after = ravel(step(theta, x, back(s)))[0]
        if after.shape != s.shape:
            raise ShapeError(f"{name}: a state of {s.size} numbers became one of {after.size}.", "one size")
        return after

    by_parameters, by_state = jacobian(flat, 0), jacobian(flat, 2)
    states, factors, direct = [np.asarray(s)], [], []
    for x in inputs:
        factors.append(np.asarray(by_state(theta, x, s)))
        direct.append(trees.map(np.asarray, by_parameters(theta, x, s)))
        s = flat(theta, x, s)
        states.append(np.asarray(s))
    d = s.size
    product = np.eye(d, dtype=states[0].dtype)  # J_n ... J_{i+1}
    terms = []
    for factor, part in zip(factors[::-1], direct[::-1], strict=True):
        terms.append(trees.map(lambda leaf, p=product: np.tensordot(p, leaf, axes=1), part))
        product = product @ factor
    stacked = [_stacked(parts, theta, d) for parts in (direct, terms[::-1])]
    return BPTTTerms(np.stack(states), np.array(factors).reshape(-1, d, d), *stacked)


def _stacked(parts: Sequence[Leaves], theta: Leaves, d: int) -> Leaves:
    if not parts:
        return trees.map(lambda p: np.zeros((0, d, *p.shape)), theta)
    return trees.map(lambda *leaves: np.stack(leaves), *parts)


# --- results and inputs


def sensitivity(layer: Callable[[Tensor], object], x: ArrayLike) -> Array:
    r"""\(\|\partial y_t / \partial x_s\|\), how much result t of a layer depends on input s: (time, time). Notes, 5.1.

    >>> import wonderland as wl
    >>> smooth = lambda x: wl.nn.functional.linear_recurrence(0.5, x)  # y_t = y_{t-1}/2 + x_t
    >>> wl.nn.sensitivity(smooth, wl.ones((1, 4, 1)))
    array([[1.   , 0.   , 0.   , 0.   ],
           [0.5  , 1.   , 0.   , 0.   ],
           [0.25 , 0.5  , 1.   , 0.   ],
           [0.125, 0.25 , 0.5  , 1.   ]], dtype=float32)

    The layer takes sequences (batch, time, features) and gives (batch, time, out), each row for itself; x may be one
    sequence, (time, features). It is the norm of the matrix (out, features) of derivatives, over a batch its root mean
    square. Above the diagonal it is exactly 0 for a layer that does not look ahead. A linear recurrence forgets as
    \(\rho^{t-s}\), with the spectral radius \(\rho\) of its matrix. All derivatives are made, so time should be short.
    """
    name = "sensitivity"
    x = arrays.asarray(x)
    if not dtypes.is_inexact(x.dtype):
        raise DTypeError(f"{name}: inputs of {x.dtype} have no derivative.", "vectors, such as those of an embedding")
    if x.ndim not in (2, 3):
        raise ShapeError(f"{name}: an input of shape {x.shape}.", "(batch, time, features) or (time, features)")
    batch = x if x.ndim == 3 else x[None]

    def results(x: Tensor) -> Tensor:
        y = layer(x)
        if not isinstance(y, Tensor) or y.shape[:2] != batch.shape[:2]:
            found = f"shape {y.shape}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise ShapeError(f"{name}: the layer gave {found} for {batch.shape}.", "results (batch, time, ...)")
        return arrays.sum(arrays.reshape(y, (*y.shape[:2], -1)), axis=0)  # rows are alone, so their sum tells them all

    found = np.asarray(jacobian(results, mode="reverse")(batch))  # (time, out, batch, time, features)
    return np.sqrt((np.abs(found) ** 2).sum(axis=(1, 4)).mean(axis=1))


def sensitivity_by_lag(values: ArrayLike) -> Array:
    """The mean of a `sensitivity` (time, time) along its diagonals: entry k is how much is left after k steps.

    >>> import wonderland as wl
    >>> wl.nn.sensitivity_by_lag([[1.0, 0.0], [0.5, 1.0]])
    array([1. , 0.5])
    """
    table = _table("sensitivity_by_lag", values)
    return np.array([np.diagonal(table, -k).mean() for k in range(len(table))])


def sensitivity_picture(values: ArrayLike, title: str = "") -> SVG:
    """A `sensitivity` as shades of its logarithm, the text of an SVG picture: rows are results, columns inputs.

    >>> import wonderland as wl
    >>> wl.nn.sensitivity_picture([[1.0, 0.0], [0.5, 1.0]]).count('class="cell"')
    4

    The darkest shade is the largest number, none is a millionth of it or less. Long sequences are shown in blocks, of
    each the largest number. `lag_picture` has the same as a curve.
    """
    table = _table("sensitivity_picture", values)
    block = -(-len(table) // MOST_CELLS)
    edges = range(0, len(table), block)
    table = np.array([[table[i : i + block, j : j + block].max() for j in edges] for i in edges])
    with np.errstate(divide="ignore"):
        shares = 1 + np.log10(table / (table.max() or 1.0)) / DECADES
    names = [str(i) for i in edges]
    return heatmap(
        table,
        shares=np.clip(np.nan_to_num(shares, neginf=0.0), 0.0, 1.0),
        rows=names,
        columns=names,
        title=title or "sensitivity of results to inputs",
        x_label="input",
        y_label="result",
    )


def lag_picture(values: ArrayLike | dict[str, ArrayLike], title: str = "") -> str:
    """Gradients by lag, as a curve: powers of 10 against steps back; the text of an SVG picture.

    >>> import wonderland as wl
    >>> wl.nn.lag_picture({"0.9": 0.9 ** wl.arange(9), "1.1": 1.1 ** wl.arange(9)}).count("<polyline")
    2

    `values` are what `sensitivity_by_lag` gave, or a dict of such curves by name.
    """
    curves = values if isinstance(values, dict) else {"": values}
    drawn = []
    for name, curve in curves.items():
        sizes = np.asarray(arrays.asarray(curve), np.float64)
        if sizes.ndim != 1 or not sizes.size:
            raise ShapeError(f"lag_picture: a curve of shape {sizes.shape}.", "(lags,)")
        drawn.append(Curve(np.arange(len(sizes)), sizes, name))
    said = title or "how far back gradients reach"
    return plot(drawn, title=said, x_label="steps back", y_label="norm", x_scale="whole", y_scale="log")


def _table(name: str, values: ArrayLike) -> Array:
    table = np.asarray(arrays.asarray(values), np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise ShapeError(f"{name}: values of shape {table.shape}.", "(time, time), as `sensitivity` gives them")
    return table


# --- the matrices that a state is multiplied by


def spectral_radii(model: Module, pattern: str = r"weight_hh") -> dict[str, float]:
    r"""\(\rho\) of the matrices by which states are multiplied, by the paths of their parameters. Book, section 13.2.2.

    >>> import wonderland as wl
    >>> model = wl.nn.RNN(3, 4)
    >>> model.weight_hh_l0.assign(0.5 * wl.eye(4))
    >>> wl.nn.spectral_radii(model)
    {'weight_hh_l0': 0.5}

    `pattern` is a regular expression that paths contain. A parameter (h, g h) of g gates side by side gives g radii,
    `path[0]` and so on. While training, in the records of every epoch:
    `callbacks=[wl.train.LambdaCallback(on_epoch_end=lambda trainer, record: record.update(spectral_radii(...)))]`.
    """
    found: dict[str, float] = {}
    for path, p in [*model.named_parameters(), *model.named_buffers()]:
        if re.search(pattern, path) is None:
            continue
        if p.ndim != 2 or not p.shape[0] or p.shape[1] % p.shape[0]:
            raise ShapeError(f"spectral_radii: {path} of shape {p.shape}.", "(h, h), or (h, g h); another pattern")
        h = p.shape[0]
        gates = p.shape[1] // h
        for i in range(gates):
            block = arrays.astype(p[:, i * h : (i + 1) * h], dtypes.float64)
            found[path if gates == 1 else f"{path}[{i}]"] = float(spectral_radius(block))
    if not found:
        raise InputError(f"spectral_radii: no parameter has {pattern!r} in its path.", "another pattern")
    return found
