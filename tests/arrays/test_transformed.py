"""Every public function means the same eagerly, under `jit`, under `vmap`, and on sliced inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import arrays

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, size=(3, 4))
Y = RNG.uniform(0.1, 0.9, size=(3, 4))
POSITIONS = np.array([[2, 0, 1, 1], [0, 0, 2, 1], [1, 2, 0, 2]])
Call = Callable[..., Any]

ONE = """
abs absolute acos asin asinh atan atanh ceil conj cos cosh erf erfc erfinv exp exp2 expm1 floor imag
isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round rsqrt sign
signbit sin sinh sqrt square tan tanh trunc angle relu sigmoid softplus log_sigmoid softmax log_softmax
logit logsumexp nan_to_num clip norm sq_norm normalize all any max min amax amin sum prod mean std var
count_nonzero argmax argmin argsort sort cumsum cumprod diff ravel flatten squeeze transpose
matrix_transpose flip atleast_1d atleast_2d expand_dims unsqueeze tril triu zeros_like ones_like empty_like
diagonal trace stop_gradient unstack
arccos arcsin arcsinh arctan arctanh cbrt conjugate deg2rad degrees fabs iscomplex isneginf isposinf isreal rad2deg
radians rint sinc nanmean nansum nanprod nanvar nanstd nanmax nanmin nanargmax nanargmin nancumsum nancumprod nanmedian
median ptp average cov corrcoef cummax cummin logcumsumexp ediff1d gradient trapezoid flipud fliplr rot90 atleast_3d
"""
TWO = """
add subtract multiply divide floor_divide remainder pow power atan2 copysign hypot logaddexp maximum minimum
nextafter equal not_equal less less_equal greater greater_equal isclose logical_and logical_or logical_xor
arctan2 float_power fmod heaviside logaddexp2 mod true_divide fmax fmin append
xlogy complex isin inner vecdot cosine_similarity pairwise_sq_distances kron broadcast_arrays
"""
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift left_shift right_shift"


def of_one(name: str) -> Call:
    return lambda x, y, i: getattr(wl, name)(x)


def of_two(name: str) -> Call:
    return lambda x, y, i: getattr(wl, name)(x, y)


def of_bits(name: str) -> Call:
    return lambda x, y, i: getattr(wl, name)(i, i + 1)


CALLS: dict[str, Call] = {
    **{name: of_one(name) for name in ONE.split()},
    **{name: of_two(name) for name in TWO.split()},
    **{name: of_bits(name) for name in BITS.split()},
    "acosh": lambda x, y, i: wl.acosh(x + 1),
    "arccosh": lambda x, y, i: wl.arccosh(x + 1),
    "argpartition": lambda x, y, i: wl.argpartition(x, 1),
    "array_split": lambda x, y, i: wl.array_split(x, 3, axis=1),
    "bincount": lambda x, y, i: (wl.bincount(i[0], length=4), wl.bincount(i[1], weights=x[0], length=3)),
    "block": lambda x, y, i: wl.block([[x, y], [y, x]]),
    "bucketize": lambda x, y, i: wl.bucketize(x, wl.tensor([0.3, 0.6])),
    "column_stack": lambda x, y, i: wl.column_stack([x[:, 0], y]),
    "delete": lambda x, y, i: wl.delete(x, [0, 2], axis=1),
    "diag_indices": lambda x, y, i: x[wl.diag_indices(3)],
    "digitize": lambda x, y, i: wl.digitize(x, wl.tensor([0.7, 0.3])),
    "dsplit": lambda x, y, i: wl.dsplit(wl.stack([x, y], axis=2), 2),
    "dstack": lambda x, y, i: wl.dstack([x, y]),
    "histogram": lambda x, y, i: tuple(wl.histogram(x, 3, (0.0, 0.5), weights=y, density=True)),
    "histogram_bin_edges": lambda x, y, i: wl.histogram_bin_edges(x, 3),
    "hsplit": lambda x, y, i: wl.hsplit(x, 2),
    "insert": lambda x, y, i: wl.insert(x, 1, y[:, :2], axis=1),
    "interp": lambda x, y, i: wl.interp(y, wl.sort(x[0]), x[1]),
    "invert": lambda x, y, i: wl.invert(i),
    "lerp": lambda x, y, i: wl.lerp(x, y, 0.3),
    "nanpercentile": lambda x, y, i: wl.nanpercentile(x, 30, axis=1),
    "nanquantile": lambda x, y, i: wl.nanquantile(x, [0.3, 0.8]),
    "partition": lambda x, y, i: wl.partition(x, 1),
    "percentile": lambda x, y, i: wl.percentile(x, 30, axis=1),
    "polyval": lambda x, y, i: wl.polyval(x[0], y),
    "quantile": lambda x, y, i: wl.quantile(x, [0.3, 0.8], axis=0),
    "ravel_multi_index": lambda x, y, i: wl.ravel_multi_index((i, i), (3, 3)),
    "resize": lambda x, y, i: wl.resize(x, (2, 7)),
    "select": lambda x, y, i: wl.select([x > 0.7, y > 0.5], [y, x]),
    "tril_indices": lambda x, y, i: x[wl.tril_indices(3)],
    "triu_indices": lambda x, y, i: x[wl.triu_indices(3, 1, 4)],
    "unravel_index": lambda x, y, i: wl.unravel_index(i, (2, 2)),
    "vander": lambda x, y, i: wl.vander(x[0], 3),
    "vsplit": lambda x, y, i: wl.vsplit(x, [1]),
    "arange": lambda x, y, i: wl.arange(4) + x,
    "asarray": lambda x, y, i: wl.asarray(x, dtype="float32"),
    "astype": lambda x, y, i: wl.astype(x, "float32"),
    "bitwise_invert": lambda x, y, i: wl.bitwise_invert(i),
    "broadcast_to": lambda x, y, i: wl.broadcast_to(x, (2, 3, 4)),
    "block_diag": lambda x, y, i: wl.block_diag(x, y[0]),
    "cdist": lambda x, y, i: (wl.cdist(x, y), wl.cdist(x, y, p=3.0)),
    "gather": lambda x, y, i: wl.gather(x, 1, i[:2, :2]),
    "index_add": lambda x, y, i: wl.index_add(x, 1, i[0], x[:, : i.shape[1]], alpha=2.0),
    "index_copy": lambda x, y, i: wl.index_copy(x, 0, wl.tensor([2, 0]), y[:2]),
    "index_fill": lambda x, y, i: wl.index_fill(x, 1, i[0], 5.0),
    "index_select": lambda x, y, i: wl.index_select(x, 1, i[0]),
    "scatter": lambda x, y, i: (wl.scatter(x, 1, i[:, :1], y), wl.scatter(x, 1, i, 2.0, reduce="add")),
    "scatter_add": lambda x, y, i: wl.scatter_add(x, 1, i, y),
    "scatter_reduce": lambda x, y, i: wl.scatter_reduce(x, 1, i, y, "amax"),
    "concat": lambda x, y, i: wl.concat([x, y], axis=1),
    "concatenate": lambda x, y, i: wl.concatenate([x, i]),
    "cross": lambda x, y, i: wl.cross(x, y, axis=0),
    "cumulative_prod": lambda x, y, i: wl.cumulative_prod(x, axis=1, include_initial=True),
    "cumulative_sum": lambda x, y, i: wl.cumulative_sum(x, axis=0),
    "diag": lambda x, y, i: (wl.diag(x), wl.diag(x[0], 1)),
    "dot": lambda x, y, i: wl.dot(x, y.T),
    "dynamic_slice": lambda x, y, i: wl.dynamic_slice(x, [i[0, 0], 1], [2, 2]),
    "dynamic_update_slice": lambda x, y, i: wl.dynamic_update_slice(x, y[:2, :2], [i[0, 0], i[1, 0]]),
    "einsum": lambda x, y, i: wl.einsum("ij,kj,kl->il", x, y, x),
    "empty": lambda x, y, i: wl.empty((3, 4)) + x,
    "eye": lambda x, y, i: wl.eye(3, 4) + x,
    "full": lambda x, y, i: wl.full((2, 2), x[0, 0]),
    "full_like": lambda x, y, i: wl.full_like(x, 2),
    "hstack": lambda x, y, i: wl.hstack([x, y]),
    "linspace": lambda x, y, i: wl.linspace(x[0, 0], y[0, 0], 5),
    "logspace": lambda x, y, i: wl.logspace(0, 1, 4) * x,
    "masked_fill": lambda x, y, i: wl.masked_fill(x, i > 0, -1.0),
    "matmul": lambda x, y, i: wl.matmul(x.T, y),
    "meshgrid": lambda x, y, i: wl.meshgrid(x[0], y[1], indexing="ij"),
    "moveaxis": lambda x, y, i: wl.moveaxis(x, 0, 1),
    "one_hot": lambda x, y, i: wl.one_hot(i, 3),
    "ones": lambda x, y, i: wl.ones((3, 4)) * x,
    "outer": lambda x, y, i: wl.outer(x[0], y[1]),
    "pad": lambda x, y, i: (wl.pad(x, 1, constant_values=2.0), wl.pad(x, 1, mode="reflect")),
    "permute_dims": lambda x, y, i: wl.permute_dims(x, (1, 0)),
    "put_along_axis": lambda x, y, i: wl.put_along_axis(x, i[:, :2], 5.0, mode="add"),
    "rearrange": lambda x, y, i: wl.rearrange(x, "a (b c) -> (c a) b", b=2),
    "reduce": lambda x, y, i: wl.reduce(x, "a (b c) -> b", "mean", b=2),
    "repeat": lambda x, y, i: (wl.repeat(x, 2, axis=1), wl.repeat(x, "a b -> b a c", c=2)),
    "reshape": lambda x, y, i: wl.reshape(x, (2, -1)),
    "roll": lambda x, y, i: wl.roll(x, 1, axis=1),
    "searchsorted": lambda x, y, i: wl.searchsorted(wl.sort(x[0]), y),
    "segment_logsumexp": lambda x, y, i: wl.segment_logsumexp(x, i[:, 0], 3),
    "segment_max": lambda x, y, i: wl.segment_max(x, i[:, 0], 3),
    "segment_mean": lambda x, y, i: wl.segment_mean(x, i[:, 0], 3),
    "segment_min": lambda x, y, i: wl.segment_min(x, i[:, 0], 3),
    "segment_prod": lambda x, y, i: wl.segment_prod(x, i[:, 0], 3),
    "segment_softmax": lambda x, y, i: wl.segment_softmax(x, i[:, 0], 3),
    "segment_sum": lambda x, y, i: wl.segment_sum(x, i[:, 0], 3),
    "split": lambda x, y, i: wl.split(x, 2, axis=1),
    "stack": lambda x, y, i: wl.stack([x, y], axis=1),
    "swapaxes": lambda x, y, i: wl.swapaxes(x, 0, 1),
    "take": lambda x, y, i: wl.take(x, i, axis=1),
    "take_along_axis": lambda x, y, i: wl.take_along_axis(x, i, axis=1),
    "array": lambda x, y, i: wl.array([x[0, 0], y[0, 0], 1.0], ndmin=2),
    "tensor": lambda x, y, i: wl.tensor([x[0, 0], y[0, 0], 1.0]),
    "tensordot": lambda x, y, i: wl.tensordot(x, y, axes=((0,), (0,))),
    "tile": lambda x, y, i: wl.tile(x, (2, 1)),
    "top_k": lambda x, y, i: tuple(wl.top_k(x, 2)),
    "topk": lambda x, y, i: tuple(wl.topk(x, 2, axis=0, largest=False)),
    "tri": lambda x, y, i: wl.tri(3, 4) * x,
    "vstack": lambda x, y, i: wl.vstack([x, y]),
    "where": lambda x, y, i: wl.where(x > y, x, y),
    "zeros": lambda x, y, i: wl.zeros((3, 4)) + x,
}
# functions of dtypes and shapes, those that give Python values, and those whose shapes depend on the data
APART = """
__array_namespace_info__ allclose argwhere array_equal broadcast_shapes can_cast einsum_path finfo flatnonzero
from_dlpack iinfo
is_binary is_simplex isdtype nonzero result_type unique unique_all unique_counts unique_inverse
unique_values
"""


def test_no_function_is_forgotten() -> None:
    functions = {name for name in arrays.__all__ if inspect.isfunction(getattr(wl, name))}  # type: ignore[attr-defined]
    assert functions == set(CALLS) | set(APART.split())


def check_same(found: Any, expected: Any) -> None:
    for a, b in zip(wl.tree.leaves(found), wl.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.book("2.37", name="wl.jit")
@pytest.mark.parametrize("name", CALLS)
def test_eager_traced_and_batched(name: str) -> None:
    f = CALLS[name]
    x, y, i = wl.asarray(X), wl.asarray(Y), wl.asarray(POSITIONS)
    expected = f(x, y, i)
    check_same(wl.jit(f)(x, y, i), expected)
    # the same example three times, then once with only the first argument batched
    several = [wl.stack([v, v, v]) for v in (x, y, i)]
    repeated = wl.tree.map(lambda leaf: wl.stack([leaf] * 3), expected)
    check_same(wl.vmap(f)(*several), repeated)
    check_same(wl.vmap(f, in_axes=(0, None, None))(several[0], y, i), repeated)
    # views: every second element of something larger, and a broadcast
    wide = [np.repeat(np.repeat(v, 2, axis=0), 2, axis=1)[::2, ::2] for v in (X, Y, POSITIONS)]
    assert not wide[0].flags.contiguous
    check_same(f(*[wl.asarray(v) for v in wide]), expected)


@pytest.mark.parametrize("name", sorted(set(CALLS)))
def test_derivatives_under_jit_and_vmap(name: str) -> None:
    """Gradients of everything that has one: traced and batched they are the same numbers."""
    f = CALLS[name]
    y, i = wl.asarray(Y), wl.asarray(POSITIONS)

    def total(x: Any) -> Any:
        inexact = ("real floating", "complex floating")
        parts = [leaf for leaf in wl.tree.leaves(f(x, y, i)) if wl.isdtype(leaf.dtype, inexact)]
        return sum((wl.real(leaf) ** 2).sum() for leaf in parts) if parts else (x * 0).sum()

    x = wl.asarray(X)
    try:
        expected = wl.grad(total)(x)
    except wl.errors.GradientError:
        assert name in ("nextafter", "segment_prod")
        return
    check_same(wl.jit(wl.grad(total))(x), expected)
    check_same(wl.grad(wl.jit(total))(x), expected)
    check_same(wl.vmap(wl.grad(total))(wl.stack([x, x])), wl.stack([expected, expected]))
    if name not in (
        "asarray",
        "astype",
        "stop_gradient",
    ):  # float32 is too coarse, and a constant has no slope
        numeric = wl.numerical_grad(total, x)
        np.testing.assert_allclose(expected.numpy(), numeric.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*The result is NaN:RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_every_type_and_rank_is_taken_or_refused_alike(name: str) -> None:
    """Other dtypes, empty and 0-d tensors: the same result eagerly and traced, or an error of our family."""
    f = CALLS[name]
    for dtype in ("bool", "int8", "bfloat16", "complex64"):
        for shape in ((3, 4), (3, 0), ()):
            x = wl.asarray(np.resize(X, shape)).astype(dtype)
            i = wl.zeros(shape, dtype="int64")
            try:
                expected = f(x, x, i)
            except wl.errors.WonderlandError:
                with pytest.raises(wl.errors.WonderlandError):
                    wl.jit(f)(x, x, i)
                continue
            found = wl.jit(f)(x, x, i)
            for a, b in zip(wl.tree.leaves(found), wl.tree.leaves(expected), strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                wide = [v.numpy().astype(complex) for v in (a, b)]
                np.testing.assert_allclose(*wide, rtol=1e-2)  # type: ignore[call-overload]
