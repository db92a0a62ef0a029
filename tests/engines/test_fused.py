"""Functions that are one operation where large tensors are computed with at once: the numbers of what they do."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.core import evaluation
from wonderland.nn import functional as F  # noqa: N812
from wonderland.transforms import reverse
from wonderland.transforms.pulling import recorded

DRAWN = np.random.default_rng(0)
X, W, B = (DRAWN.normal(size=shape) for shape in ((601, 65), (65,), (65,)))
M = DRAWN.normal(size=(65, 65)) / 8

FUNCTIONS = {
    "gelu": lambda x, w, b: F.gelu(x),
    "gelu_tanh": lambda x, w, b: F.gelu(x, approximate="tanh"),
    "silu": lambda x, w, b: F.silu(x),
    "mish": lambda x, w, b: F.mish(x),
    "softmax": lambda x, w, b: wl.softmax(x, axis=0),
    "log_softmax": lambda x, w, b: wl.log_softmax(x),
    "layer_norm": lambda x, w, b: F.layer_norm(x, 65, w, b),
    "standardized": lambda x, w, b: F.layer_norm(x, 65),
    "rms_norm": lambda x, w, b: F.rms_norm(x, 65, w),
    "affine": lambda x, w, b: F.linear(x, wl.asarray(M, dtype=x.dtype) * w[:, None], b),
}


KERNELS = {"gelu_tanh": "gelu", "rms_norm": "scaled"}  # where the name is another


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A kernel at once."""
    monkeypatch.setattr(evaluation._seen, "enough", lambda kind, work, together: True)
    monkeypatch.setattr(evaluation, "_kernels", {})


def names():
    return {key[0].name for key in evaluation._kernels}


def of_numpy(f, *args):
    """What f gives with the reference, where nothing is fused."""
    with wl.using_backend("numpy"):
        return f(*args)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_agree_with_the_formula(name, dtype):
    f = FUNCTIONS[name]
    args = [wl.asarray(a.astype(dtype)) for a in (X, W, B)]
    slope = wl.asarray(DRAWN.normal(size=f(*args).shape).astype(dtype))

    def loss(x, w, b):
        return (f(x, w, b) * slope).sum()

    assert KERNELS.get(name, name) in names()
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(f(*args), of_numpy(f, *args), **close)
    for found, expected in zip(wl.grad(loss, (0, 1, 2))(*args), of_numpy(wl.grad(loss, (0, 1, 2)), *args), strict=True):
        np.testing.assert_allclose(found, expected, **close)
    along = [wl.asarray(DRAWN.normal(size=a.shape).astype(dtype)) for a in args]
    for found, expected in zip(wl.jvp(f, args, along), of_numpy(wl.jvp, f, args, along), strict=True):
        np.testing.assert_allclose(found, expected, **close)


@pytest.mark.parametrize("name", ["gelu", "layer_norm", "affine"])
def test_second_derivatives_are_those_of_the_formula(name):
    f, args = FUNCTIONS[name], [wl.asarray(a) for a in (X[:9], W, B)]

    def slope(x):
        return wl.grad(lambda x: (f(x, *args[1:]) ** 2).sum())(x).sum()

    np.testing.assert_allclose(wl.grad(slope)(args[0]), of_numpy(wl.grad(slope), args[0]), rtol=1e-9, atol=1e-9)


def test_the_imperative_style_keeps_one_record():
    x = wl.asarray(X).requires_grad_()
    y = F.gelu(x)
    assert y._node[0].name == "gelu"
    assert y._node[0].args[0]._node[0].name == "leaf"
    y.sum().backward()
    np.testing.assert_allclose(x.grad, of_numpy(wl.grad(lambda x: F.gelu(x).sum()), wl.asarray(X)), rtol=1e-9)


def test_elsewhere_it_is_the_function_as_it_is_written():
    x = wl.asarray(X)
    assert "erf" in str(wl.make_graph(F.gelu)(x))
    np.testing.assert_allclose(wl.vmap(F.gelu)(x), of_numpy(F.gelu, x), rtol=1e-12)
    with wl.autocast("bfloat16"):
        F.gelu(x)
    assert not names()
    with wl.debug.nans(), pytest.raises(wl.errors.NonFiniteError, match="multiply"):
        F.gelu(wl.full_like(x, -wl.inf))  # -inf * 0


def test_a_layer_is_one_operation():
    layer = nn.Linear(65, 65)
    x = wl.asarray(X.astype(np.float32))
    np.testing.assert_allclose(layer(x), X @ layer.weight.numpy() + layer.bias.numpy(), rtol=1e-4, atol=1e-5)
    assert names() == {"affine"}


def test_small_ones_with_a_known_derivative_are_one_record_of_grad(monkeypatch):
    counts = []
    monkeypatch.setattr(reverse, "of_tangents", lambda seeds, wanted: counts.append(len(recorded([seeds[0][0]]))))
    x, w, b = wl.ones((2, 3)), wl.ones((3, 4)), wl.ones(4)
    gradients = wl.grad(lambda w, b: F.linear(x, w, b).sum(), argnums=(0, 1))(w, b)
    assert counts == [2]  # the affine map and the sum
    assert [g.tolist() for g in gradients] == [[[2.0] * 4] * 3, [2.0] * 4]
    wl.grad(lambda x: F.silu(x).sum())(x)
    assert counts[1] > 2
    with wl.autocast("bfloat16"):
        wl.grad(lambda w: F.linear(x, w, b).sum())(w)
    assert counts[2] > 2


SMALL = {
    "affine": lambda x, w, b: F.linear(x, w, b),
    "mean": lambda x, w, b: wl.mean(x),
    "mean_of_rows": lambda x, w, b: wl.mean(x, axis=-1) * x.mean(axis=0, keepdims=True).sum(),
    "mse": lambda x, w, b: F.mse_loss(x, w.T),
    "mse_the_other_way": lambda x, w, b: F.mse_loss(b, x[0, :4] * w.sum(axis=0)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", SMALL)
def test_small_ones_have_the_numbers_of_the_formula(name, dtype):
    f = SMALL[name]
    args = [wl.asarray(DRAWN.normal(size=shape), dtype=dtype) for shape in ((4, 6), (6, 4), (4,))]

    def loss(*args):
        return wl.real(f(*args) * 0.5).astype("float64").sum()

    close = {"rtol": 3e-2, "atol": 3e-2} if "16" in dtype else {"rtol": 1e-4, "atol": 1e-5}
    value = f(*args)
    expected = of_numpy(f, *args)
    assert value.dtype == expected.dtype == dtype
    assert value.shape == expected.shape
    np.testing.assert_allclose(value.astype("complex128"), expected.astype("complex128"), **close)
    found, wanted = wl.grad(loss, (0, 1, 2))(*args), of_numpy(wl.grad(loss, (0, 1, 2)), *args)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.astype("complex128"), other.astype("complex128"), **close)


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_have_derivatives_of_every_order(name):
    f = SMALL[name]
    args = [wl.asarray(DRAWN.normal(size=shape)) for shape in ((4, 6), (6, 4), (4,))]

    def slope(x):
        return (wl.grad(lambda x: (f(x, *args[1:]) ** 3).sum())(x) ** 2).sum()

    x, step = args[0], 1e-6 * wl.asarray(DRAWN.normal(size=(4, 6)))
    expected = (slope(x + step) - slope(x - step)) / 2
    np.testing.assert_allclose((wl.grad(slope)(x) * step).sum(), expected, rtol=1e-5)
    np.testing.assert_allclose(wl.jvp(slope, (x,), (step,))[1], expected, rtol=1e-5)
    leaf = wl.tensor(x.numpy(), requires_grad=True)
    (f(leaf, *args[1:]) ** 3).sum().backward(create_graph=True)
    once = leaf.grad
    leaf.grad = None
    (once**2).sum().backward()
    np.testing.assert_allclose((leaf.grad * step).sum(), expected, rtol=1e-5)
    np.testing.assert_allclose(wl.vmap(lambda x: f(x, *args[1:]))(wl.stack([x, -x]))[1], f(-x, *args[1:]), rtol=1e-12)


def test_operands_of_several_types_are_promoted_as_ever():
    x, w, b = wl.ones((2, 3)), wl.ones((3, 4), dtype="int32"), wl.ones(4, dtype="float64")
    assert F.linear(x, w, b).dtype == of_numpy(F.linear, x, w, b).dtype
    assert F.linear(x, w, wl.ones(4)).dtype == wl.float32
    assert F.mse_loss(x, wl.ones((2, 3), dtype="float64")).dtype == wl.float64
    assert wl.mean(wl.arange(4)).item() == 1.5


def test_layers_leave_one_record_for_backward():
    layer = nn.Linear(3, 2)
    loss = F.mse_loss(layer(wl.ones((4, 3))), wl.zeros((4, 2)))
    assert loss._node[0].name == "mean_square"
    assert loss._node[0].args[0]._node[0].name == "affine"


def test_means_of_nothing_are_as_ever():
    with pytest.warns(RuntimeWarning, match="no elements"):
        assert np.isnan(wl.mean(wl.zeros((0, 3)), axis=0)).all()
    assert wl.mean(wl.zeros((0, 3)), axis=1).shape == (0,)
    assert wl.mean(wl.zeros((3, 0, 2)), axis=(0, 2)).shape == (0,)
    with pytest.warns(RuntimeWarning, match="no elements"):
        assert np.isnan(F.mse_loss(wl.zeros((0, 3)), wl.zeros((0, 3))))
    with pytest.raises(wl.errors.AxisError, match="mean"):
        wl.mean(wl.ones(3), axis=1)


@pytest.mark.filterwarnings("error")
def test_what_overflows_does_so_without_a_warning():
    x = wl.full((3, 3), 3e38)
    assert np.isinf(F.mse_loss(x, -x).item())
    assert np.isinf(F.linear(x, x, x[0]).numpy()).all()
    assert np.isinf(wl.mean(x).item())
