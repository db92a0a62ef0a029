"""Instance, response and scale normalization; over which axes; and the invariances of the notes' table."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError, TraceError

F = nn.functional
rng = np.random.default_rng(0)
X = rng.normal(2.0, 3.0, size=(4, 6, 5, 8))
A, B = rng.normal(size=8), rng.normal(size=8)


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def response(x, size, alpha, beta, k):
    out = np.empty_like(x)
    for c in range(x.shape[-1]):
        near = x[..., max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        out[..., c] = x[..., c] / (k + alpha / size * (near**2).sum(-1)) ** beta
    return out


FUNCTIONS = [
    (lambda x: F.instance_norm(x, weight=A, bias=B), standard(X, (1, 2)) * A + B),
    (lambda x: F.instance_norm(x, A, B**2, use_input_stats=False), (X - A) / np.sqrt(B**2 + 1e-5)),
    (lambda x: F.local_response_norm(x, 5, 1e-2, 0.75, 2.0), response(X, 5, 1e-2, 0.75, 2.0)),
    (lambda x: F.local_response_norm(x, 4, 0.1), response(X, 4, 0.1, 0.75, 1.0)),
    (lambda x: F.scale_norm(x, 3.0), 3.0 * X / np.linalg.norm(X, axis=-1, keepdims=True)),
]


@pytest.mark.book("9-78", name=("wl.nn.functional.instance_norm", "wl.nn.functional.local_response_norm"))
@pytest.mark.parametrize("f, expected", FUNCTIONS)
def test_formulas(f, expected):
    np.testing.assert_allclose(f(wl.asarray(X)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wl.jit(f)(wl.asarray(X)), expected, rtol=1e-9, atol=1e-12)
    wl.check_grads(lambda x: (f(x) ** 3).sum(), (wl.asarray(X[:2, :2]),))


@pytest.mark.book("9-78", "9-77", name=("wl.nn.InstanceNorm2d", "wl.nn.GroupNorm"))
@pytest.mark.parametrize("layer, axes", [(nn.InstanceNorm1d, 1), (nn.InstanceNorm2d, 2), (nn.InstanceNorm3d, 3)])
def test_instance_norm(layer, axes):
    x = rng.normal(3.0, 2.0, size=(4, *(5,) * axes, 6))
    places = tuple(range(1, axes + 1))
    norm = layer(6, eps=0.0, dtype=wl.float64)
    y = norm(wl.asarray(x)).numpy()
    np.testing.assert_allclose(y.mean(places), 0.0, atol=1e-12)
    np.testing.assert_allclose(y.var(places), 1.0)
    np.testing.assert_allclose(norm(wl.asarray(x[1])), y[1], rtol=1e-10)  # without the axis of examples
    np.testing.assert_allclose(nn.GroupNorm(6, 6, eps=0.0, dtype=wl.float64)(wl.asarray(x)), y, rtol=1e-10)
    np.testing.assert_allclose(norm.eval()(wl.asarray(x)), y)
    assert norm.num_parameters() == 0
    assert layer(6, affine=True).num_parameters() == 12


def test_instance_norm_with_running_statistics():
    norm = nn.InstanceNorm2d(8, track_running_stats=True, dtype=wl.float64)
    wl.jit(lambda norm, x: norm(x))(norm, wl.asarray(X))
    np.testing.assert_allclose(norm.running_mean, 0.1 * X.mean((1, 2)).mean(0))
    np.testing.assert_allclose(norm.running_var, 0.9 + 0.1 * X.var((1, 2), ddof=1).mean(0))
    mean, variance = norm.running_mean.numpy(), norm.running_var.numpy()
    np.testing.assert_allclose(norm.eval()(wl.asarray(X)), (X - mean) / np.sqrt(variance + 1e-5), rtol=1e-10)


@pytest.mark.book("9-73", "9-74", "9-75", "A3-76", name=("wl.nn.LayerNorm", "wl.nn.functional.layer_norm"))
def test_over_which_axes_layers_are_normalized():
    rows = rng.normal(5.0, 2.0, size=(4, 3))
    y = nn.LayerNorm(3, eps=0.0, dtype=wl.float64)(wl.asarray(rows)).numpy()
    np.testing.assert_allclose(y.mean(1), np.zeros(4), atol=1e-12)  # 4 means, one for each row
    np.testing.assert_allclose(y.var(1), np.ones(4))
    images = wl.asarray(X)
    whole = nn.LayerNorm(X.shape[1:], eps=0.0, dtype=wl.float64)(images).numpy()  # variant A
    np.testing.assert_allclose(whole.mean((1, 2, 3)), np.zeros(4), atol=1e-12)
    assert np.abs(whole.mean(-1)).max() > 0.1
    pixels = nn.LayerNorm(8, eps=0.0, dtype=wl.float64)(images).numpy()  # variant B
    np.testing.assert_allclose(pixels.mean(-1), np.zeros((4, 6, 5)), atol=1e-12)
    assert nn.LayerNorm(X.shape[1:]).num_parameters() == 2 * 6 * 5 * 8
    assert nn.LayerNorm(8).num_parameters() == 16


@pytest.mark.book("9-77", name="wl.nn.GroupNorm")
def test_one_group_is_a_layer():
    one = nn.GroupNorm(1, 8, dtype=wl.float64)(wl.asarray(X))
    np.testing.assert_allclose(one, F.layer_norm(wl.asarray(X), X.shape[1:]), rtol=1e-10)


@pytest.mark.book("9-79", name="wl.nn.RMSNorm")
def test_rms_norm_of_centred_numbers_is_layer_norm():
    x = X - X.mean(-1, keepdims=True)
    rms = nn.RMSNorm(8, eps=1e-5, dtype=wl.float64)(wl.asarray(x))
    np.testing.assert_allclose(rms, nn.LayerNorm(8, dtype=wl.float64)(wl.asarray(x)), rtol=1e-9)


@pytest.mark.book("A3-77", "C-09", name=("wl.nn.LayerNorm", "wl.nn.functional.layer_norm"))
def test_the_denominator_is_the_standard_deviation():
    x = np.array([1.0, 2.0, 3.0])
    literal = (x - x.mean()) / np.sqrt(x.std())
    np.testing.assert_allclose(literal, [-1.1067, 0, 1.1067], atol=1e-4)  # as printed: the variance is not 1
    y = nn.LayerNorm(3, dtype=wl.float64)(wl.asarray(x)).numpy()
    np.testing.assert_allclose(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5), rtol=1e-10)
    np.testing.assert_allclose(y.var(), 1.0, rtol=1e-4)


def batch(x, w):
    return F.batch_norm(x @ w, training=True, eps=0.0)


def fixed_lengths(x, w):
    """Weight normalization with lengths of 1: what counts is the direction."""
    layer = nn.WeightNorm(nn.Linear.from_matrix(w))
    layer.g = wl.ones_like(layer.g)
    return layer(x)


def layer(x, w):
    return F.layer_norm(x @ w, w.shape[1], eps=0.0)


TABLE = {  # in the order of the notes
    "weight matrix re-scaled": ("YYY", lambda x, w: (x, 3.0 * w)),
    "weight matrix re-centred": ("NNY", lambda x, w: (x, w + rng.normal(size=(w.shape[0], 1)))),
    "weight vector re-scaled": ("YYN", lambda x, w: (x, w * np.array([1.0, 5.0, 1.0, 1.0]))),
    "data re-scaled": ("YNY", lambda x, w: (2.5 * x, w)),
    "data re-centred": ("YNN", lambda x, w: (x + rng.normal(size=x.shape[1]), w)),
    "single case re-scaled": ("NNY", lambda x, w: (x * np.array([1.0, 4.0, 1.0, 1.0, 1.0])[:, None], w)),
}


@pytest.mark.book("A3-78", name=("wl.nn.WeightNorm", "wl.nn.functional.batch_norm", "wl.nn.functional.layer_norm"))
@pytest.mark.parametrize("change", TABLE)
@pytest.mark.parametrize(
    "which, norm", list(enumerate([batch, fixed_lengths, layer])), ids=["batch", "weight", "layer"]
)
def test_invariances(which, norm, change):
    invariant, transform = TABLE[change]
    x, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 4))
    before = norm(wl.asarray(x), wl.asarray(w)).numpy()
    after = norm(*map(wl.asarray, transform(x, w))).numpy()
    assert np.allclose(before, after, atol=1e-10) == (invariant[which] == "Y")


@pytest.mark.book("9-80", name=("wl.nn.ReZero", "wl.nn.ScaleNorm"))
def test_scale_norm_and_models_without_normalizers():
    y = nn.ScaleNorm(8, dtype=wl.float64)(wl.asarray(X)).numpy()
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.sqrt(8))
    assert nn.ScaleNorm(8).num_parameters() == 1
    assert nn.ScaleNorm(2)(wl.zeros(2)).tolist() == [0.0, 0.0]
    deep = nn.Sequential(*[nn.ReZero(nn.Sequential(nn.Linear(8, 8), nn.ReLU())) for _ in range(50)])
    x = wl.asarray(X, dtype=wl.float32)
    np.testing.assert_array_equal(deep(x), x)  # no normalizer, and yet no explosion


def test_batch_norm_in_training_under_vmap_says_what_differs():
    norm = nn.BatchNorm1d(3)
    with pytest.raises(TraceError, match=r"Buffer of shape .* differs from example to example"):
        wl.vmap(norm)(wl.random.normal((2, 5, 3)))
    assert not norm.running_mean.numpy().any()
    norm.eval()
    assert wl.vmap(norm)(wl.ones((2, 5, 3))).shape == (2, 5, 3)
    alone = nn.BatchNorm1d(3, track_running_stats=False)
    x = wl.random.normal((2, 5, 3))
    np.testing.assert_allclose(wl.vmap(alone)(x)[1], alone(x[1]), rtol=1e-5, atol=1e-6)


def test_bad_input():
    with pytest.raises(ShapeError, match=r"InstanceNorm2d.*an input of shape \(5, 8\)"):
        nn.InstanceNorm2d(8)(wl.ones((5, 8)))
    with pytest.raises(InputError, match="1 positions per channel"):
        nn.InstanceNorm2d(8)(wl.ones((2, 1, 1, 8)))
    with pytest.raises(ShapeError, match="has no positions"):
        F.instance_norm(wl.ones((2, 3)))
    with pytest.raises(InputError, match="one of the running statistics is missing"):
        F.instance_norm(wl.ones((2, 3, 3)), wl.ones(3))
    with pytest.raises(InputError, match="size=0 is too small"):
        nn.LocalResponseNorm(0)
    with pytest.raises(ShapeError, match="ScaleNorm"):
        nn.ScaleNorm(3)(wl.ones((2, 4)))
