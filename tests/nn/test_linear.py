"""The linear layer, lazy and not."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ModuleError, ShapeError


@pytest.mark.book("C-01", "2.21", name="wl.nn.Linear")
@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (0, 3), (2, 0, 3), (1, 1, 1, 3)])
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
def test_rows_times_matrix_plus_bias(shape, dtype):
    layer = nn.Linear(3, 4, dtype=dtype)
    assert layer.weight.shape == (3, 4)
    assert layer.bias.shape == (4,)
    x = wl.random.normal(shape, dtype=dtype)
    y = layer(x)
    assert y.shape == (*shape[:-1], 4)
    assert y.dtype == dtype
    expected = x.numpy() @ layer.weight.numpy() + layer.bias.numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer(wl.asarray(x.numpy()[..., ::1])), expected, rtol=1e-5, atol=1e-6)
    assert layer.output_shape(shape, dtype) == y.shape


@pytest.mark.book("2.21", name=("wl.nn.Linear", "wl.vmap"))
def test_a_batch_is_a_loop_over_rows():
    layer = nn.Linear(3, 4, bias=False, dtype=wl.float64)
    x = wl.random.normal((6, 3), dtype=wl.float64)
    together = layer(x)
    np.testing.assert_allclose(together, wl.stack([layer(row) for row in x]), rtol=1e-12, atol=1e-14)
    matvec = lambda row: layer.weight.T @ row
    np.testing.assert_allclose(together, wl.vmap(matvec)(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(together, wl.vmap(layer)(x), rtol=1e-12, atol=1e-14)


@pytest.mark.book("A3-27", name="wl.nn.Linear")
def test_gradients_of_a_linear_unit():
    unit = nn.Linear.from_matrix([[2.0]], [1.0])
    by_path, by_input = wl.grad(lambda unit, x: unit(x).sum(), argnums=(0, 1))(unit, wl.tensor([3.0]))
    assert by_input.tolist() == [2.0]
    assert by_path["weight"].tolist() == [[3.0]]
    assert by_path["bias"].tolist() == [1.0]


@pytest.mark.book("C-01", name="wl.nn.Linear.from_matrix")
def test_matrices_of_either_orientation():
    W = np.arange(6.0).reshape(2, 3)
    b = np.array([10.0, 20.0])
    x = np.array([1.0, -1.0, 2.0])
    layer = nn.Linear.from_matrix(W, b, layout="out in")
    np.testing.assert_allclose(layer(x), W @ x + b)
    assert (layer.in_features, layer.out_features, layer.dtype) == (3, 2, wl.float64)
    assert layer.weight.shape == (3, 2)
    np.testing.assert_array_equal(nn.Linear.from_matrix(W.T, b)(x), layer(x))
    z = nn.Linear.from_matrix(wl.tensor([[1j, 2.0]]))
    assert z(wl.ones(1)).tolist() == [1j, 2.0]
    with pytest.raises(ShapeError, match=r"weight of shape \(3,\)"):
        nn.Linear.from_matrix(np.ones(3))
    with pytest.raises(ShapeError, match=r"bias of shape \(3,\) does not fit 2 outputs"):
        nn.Linear.from_matrix(W, np.ones(3), layout="out in")


def test_parameters_start_uniform():
    layer = nn.Linear(400, 300, key=wl.random.key(1))
    for values in (layer.weight.numpy(), layer.bias.numpy()):
        bound = 1 / np.sqrt(400)
        assert np.abs(values).max() <= bound
        np.testing.assert_allclose(values.std(), bound / np.sqrt(3), rtol=0.1)
        assert abs(values.mean()) < 0.1 * bound
    same = nn.Linear(400, 300, key=wl.random.key(1))
    np.testing.assert_array_equal(layer.weight, same.weight)
    assert not np.array_equal(nn.Linear(3, 3).weight, nn.Linear(3, 3).weight)
    wl.random.seed(5)
    first = nn.Linear(3, 3).state_dict()
    wl.random.seed(5)
    np.testing.assert_array_equal(nn.Linear(3, 3).state_dict()["weight"], first["weight"])
    assert nn.Linear(0, 2)(wl.ones((3, 0))).shape == (3, 2)
    assert nn.Linear(2, 0)(wl.ones((3, 2))).shape == (3, 0)


@pytest.mark.book("6-13", name=("wl.nn.LazyLinear", "wl.nn.Linear"))
@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(4), lambda: nn.Linear(None, 4)])
def test_the_first_input_decides_the_shape(make):
    model = nn.Sequential(nn.Linear(2, 3), make())
    for call in (
        model.parameters,
        model.named_parameters,
        model.buffers,
        model.num_parameters,
        lambda: wl.grad(lambda m: m(wl.ones(2)).sum())(model),
        lambda: model.astype(wl.float64),
        model.freeze,
    ):
        with pytest.raises(
            ModuleError,
            match=r"the (Lazy)?Linear\(in_features=None, out_features=4, bias=True\) at '1' has no weight",
        ):
            call()
    assert model(wl.ones((5, 2))).shape == (5, 4)
    assert model[1].weight.shape == (3, 4)
    assert model.num_parameters() == 9 + 16
    with pytest.raises(ShapeError) as caught:
        model[1](wl.ones((5, 7)))
    assert "Linear(in_features=3, out_features=4, bias=True): an input of shape (5, 7) has 7 features" in str(
        caught.value
    )


@pytest.mark.book("6-13", name="wl.nn.LazyLinear")
def test_a_lazy_layer_equals_one_with_given_sizes():
    key = wl.random.key(3)
    lazy, given = nn.LazyLinear(4, key=key), nn.Linear(3, 4, key=key)
    x = wl.random.normal((2, 3))
    np.testing.assert_array_equal(lazy(x), given(x))
    wl.random.seed(1)
    lazy = nn.LazyLinear(4)
    wl.random.seed(1)
    np.testing.assert_array_equal(nn.Linear(3, 4)(x), lazy(x))


@pytest.mark.parametrize(
    "use",
    [
        lambda layer, x: wl.jit(layer)(x),
        lambda layer, x: wl.jit(lambda m, x: m(x))(layer, x),
        lambda layer, x: wl.grad(lambda x: layer(x).sum())(x),
        lambda layer, x: wl.vmap(layer)(x),
        lambda layer, x: wl.eval_shape(layer, x),
        lambda layer, x: wl.eval_shape(lambda x: layer(wl.random.normal(x.shape) + x), x),
        lambda layer, x: layer.output_shape(x.shape),
        lambda layer, x: layer.summary(x),
    ],
)
def test_a_transformation_may_give_the_first_input(use):
    layer, given = nn.LazyLinear(4, key=wl.random.key(3)), nn.Linear(3, 4, key=wl.random.key(3))
    x = wl.ones((2, 3))
    use(layer, x)
    assert type(layer.weight.value) is wl.Tensor
    np.testing.assert_array_equal(layer(x), given(x))


def test_jit_of_two_lazy_layers():
    f = wl.jit(lambda layer, x: layer(x))
    layers = [nn.LazyLinear(2) for _ in range(2)]
    x = wl.ones((1, 3))
    outputs = [f(layer, x) for layer in layers]
    assert not np.array_equal(layers[0].weight, layers[1].weight)
    for layer, y in zip(layers, outputs, strict=True):
        np.testing.assert_allclose(y, layer(x), rtol=1e-6)
        np.testing.assert_allclose(f(layer, x), layer(x), rtol=1e-6)


class Net(nn.Module):
    def __init__(self):
        self.blocks = [nn.Linear(3, 4), nn.Linear(5, 6)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_errors_name_the_path_the_settings_and_the_shape():
    with pytest.raises(ShapeError) as caught:
        Net()(wl.ones((2, 3)))
    text = str(caught.value)
    assert "Linear(in_features=5, out_features=6, bias=True)" in text
    assert "shape (2, 4) has 4 features" in text
    assert "in module: blocks.1 (Linear)" in text
    assert "test_linear.py" in text
    with pytest.raises(ShapeError, match=r"shape \(\) has no axis"):
        nn.Linear(3, 4)(1.0)
    with pytest.raises(ShapeError, match=r"shape \(\) has no axis"):
        nn.LazyLinear(4)(1.0)
    with pytest.raises(InputError, match="out_features=None is not a size"):
        nn.Linear(3, None)
    with pytest.raises(InputError, match="in_features=-1 is not a size"):
        nn.Linear(-1, 3)
    with pytest.raises(DTypeError, match="int32"):
        nn.Linear(1, 3, dtype=wl.int32)
    with pytest.raises(DTypeError, match="str"):
        nn.Linear(3, 4)("text")


def test_a_bfloat16_layer():
    layer = nn.Linear(3, 4, dtype=wl.bfloat16)
    y = layer(wl.ones((2, 3), dtype=wl.bfloat16))
    assert y.dtype == wl.bfloat16
    gradients = wl.grad(lambda m, x: m(x).sum().astype(wl.float32))(layer, wl.ones((2, 3), dtype=wl.bfloat16))
    assert gradients["weight"].dtype == wl.bfloat16
    assert "dtype=bfloat16" in repr(layer)
