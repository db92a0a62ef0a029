"""Residual, skip and dense connections: identities, gradients, shapes, parameters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError

F = nn.functional


def zeros(n):
    return nn.Linear.from_matrix(wl.zeros((n, n)), wl.zeros(n))


def path(n, activation=nn.Tanh):
    return nn.Sequential(nn.Linear(n, n), activation())


@pytest.mark.book("9-82", "A3-67", name="wl.nn.Residual")
def test_a_path_of_zeros_is_the_identity():
    x = wl.random.normal((5, 4))
    np.testing.assert_array_equal(nn.Residual(zeros(4))(x), x)
    f = nn.Linear(4, 4)
    np.testing.assert_allclose(nn.Residual(f)(x), f(x) + x)
    np.testing.assert_allclose(wl.jit(nn.Residual(f))(x), f(x) + x, rtol=1e-6)
    with pytest.raises(ShapeError, match=r"Residual: f makes \(5, 3\) .* \(5, 4\)(.|\n)*shortcut="):
        nn.Residual(nn.Linear(4, 3))(x)
    with pytest.raises(ShapeError, match=r"f makes \(5, 1\)"):  # which would broadcast
        nn.Residual(nn.Linear(4, 1))(x)


@pytest.mark.book("9-84", name=("wl.nn.Residual", "wl.nn.BasicBlock"))
def test_projection_shortcut():
    x = wl.random.normal((2, 6, 6, 3))
    f = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    block = nn.Residual(f, shortcut=nn.Conv2d(3, 8, 1, stride=2, bias=False))
    assert block(x).shape == (2, 3, 3, 8)
    np.testing.assert_allclose(block(x), f(x) + block.shortcut(x), rtol=1e-5, atol=1e-6)
    assert nn.BasicBlock(3, 8, stride=2)(x).shape == (2, 3, 3, 8)
    with pytest.raises(ShapeError):
        nn.Residual(f, shortcut=nn.Conv2d(3, 8, 1))(x)  # without the stride


@pytest.mark.book("9-83", name=("wl.nn.Residual", "wl.nn.BasicBlock"))
def test_a_last_scale_of_zero_starts_from_the_identity():
    x = wl.random.normal((2, 6, 6, 4))
    block = nn.BasicBlock(4, zero_init=True)
    np.testing.assert_array_equal(block(x), x)
    assert not block.residual.f[-1].weight.numpy().any()
    assert block.residual.f[1].weight.numpy().all()
    x = wl.random.normal((3, 4))
    np.testing.assert_array_equal(nn.Residual(nn.Linear(4, 4), zero_init=True)(x), x)
    with pytest.raises(ModuleError, match="zero_init"):
        nn.Residual(wl.tanh, zero_init=True)


@pytest.mark.book("9-87", name="wl.nn.BasicBlock")
@pytest.mark.parametrize("c", [4, 7])
def test_the_books_block(c):
    block = nn.BasicBlock(c)
    assert block.num_parameters() == 2 * 9 * c * c + 4 * c
    x = wl.random.normal((2, 5, 5, c))
    f = block.residual.f
    expected = f[4](f[3](wl.relu(f[1](f[0](x))))) + x
    np.testing.assert_allclose(block(x), expected, rtol=1e-5, atol=1e-5)
    assert (block(x) < 0).any()
    assert not (nn.BasicBlock(c, post_act=True)(x) < 0).any()


@pytest.mark.book("9-85", "A3-68", name=("wl.nn.Residual", "wl.vjp"))
def test_the_adjoint_goes_past():
    f, x, v = path(4), wl.random.normal((3, 4)), wl.random.normal((3, 4))
    through = wl.vjp(f, x)[1](v)[0]
    np.testing.assert_allclose(wl.vjp(nn.Residual(f), x)[1](v)[0], through + v, rtol=1e-5, atol=1e-6)
    deep = nn.Sequential(*[nn.Residual(zeros(4)) for _ in range(20)])
    np.testing.assert_array_equal(wl.vjp(deep, x)[1](v)[0], v)

    def size_of_gradient(wrap):
        model = nn.Sequential(*[wrap(path(8)) for _ in range(50)])
        x = wl.random.normal((3, 8), key=wl.random.key(0))
        return float(wl.linalg.vector_norm(wl.grad(lambda x: model(x).sum())(x)))

    assert size_of_gradient(lambda f: f) < 1e-6
    assert size_of_gradient(nn.Residual) > 1.0


@pytest.mark.book("9-81", "A3-65", "A3-66", name=("wl.nn.Residual", "wl.nn.Module.register_forward_hook"))
def test_deep_networks_train_only_with_residual_connections():
    rng = np.random.default_rng(0)
    x = wl.asarray(rng.normal(size=(32, 6)), dtype=wl.float32)
    y = wl.asarray(np.sin(x.numpy().sum(1, keepdims=True)), dtype=wl.float32)

    def final(wrap):
        wl.random.seed(1)
        model = nn.Sequential(nn.Linear(6, 8), *[wrap(path(8)) for _ in range(50)], nn.Linear(8, 1))
        optimizer = wl.optim.Adam(model, lr=1e-3)

        @wl.jit
        def step(model, optimizer):
            loss, grads = wl.value_and_grad(lambda model: F.mse_loss(model(x), y))(model)
            optimizer.step(grads)
            return loss

        return [step(model, optimizer).item() for _ in range(80)][-1], model

    (plain, _), (residual, model) = final(lambda f: f), final(nn.Residual)
    assert plain > 0.9 * y.numpy().var()  # no better than the mean
    assert residual < 0.5 * plain
    steps = []  # a layer is a step: the representation after each of them can be looked at
    for block in model[1:51]:
        block.register_forward_hook(lambda module, args, output: steps.append(output.numpy()))
    model(x)
    changes = [np.abs(b - a).mean() for a, b in itertools.pairwise(steps)]
    assert len(steps) == 50
    assert 0 < max(changes) < np.abs(steps[-1]).mean()


@pytest.mark.book("9-86", name=("wl.nn.lint", "wl.nn.Residual"))
def test_a_relu_at_the_end_of_the_path_lets_values_only_grow():
    x = wl.random.normal((2, 5, 5, 4))
    grows = nn.Residual(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()))
    assert (grows(x) - x).min() >= 0
    assert (nn.BasicBlock(4)(x) - x).min() < 0
    assert [finding.rule for finding in nn.lint(grows)] == ["bias-before-norm", "residual-ends-positive"][::-1]
    assert nn.lint(nn.Sequential(nn.BasicBlock(4))) == []
    assert [f.path for f in nn.lint(nn.Sequential(nn.Residual(nn.Sequential(nn.Linear(2, 2), wl.relu))))] == ["0"]
    assert len(nn.lint(nn.Residual(nn.FCBlock(2, 2, dropout=0.1)))) == 1
    assert nn.lint(nn.Residual(nn.FCBlock(2, 2, activation="tanh", dropout=0.1))) == []
    assert nn.lint(nn.Skip(nn.ReLU(), "mean")) == []
    assert len(nn.lint(nn.Skip(nn.ReLU()))) == 1


@pytest.mark.book("A3-69", name="wl.nn.Skip")
def test_skips_and_how_they_combine():
    x = wl.random.normal((3, 4), dtype=wl.float64)
    f = nn.Linear(4, 4, dtype=wl.float64)
    a, b = x.numpy(), f(x).numpy()
    expected = {
        "add": a + b,
        "mean": (a + b) / 2,
        "max": np.maximum(a, b),
        "concat": np.concatenate([a, b], -1),
        "attention": (a + b) / 2,  # the query starts from 0
    }
    for combine, value in expected.items():
        layer = nn.Skip(f, combine, features=4)
        np.testing.assert_allclose(layer(x), value, rtol=1e-6)
        np.testing.assert_allclose(wl.jit(layer)(x), value, rtol=1e-6)
        wl.check_grads(lambda x, layer=layer: (layer(x) ** 2).sum(), (x,))
    attention = nn.Skip(f, "attention", features=4).astype(wl.float64)
    q = np.array([1.0, -1.0, 0.5, 2.0])
    attention.query = wl.asarray(q)
    scores = np.exp(np.stack([a @ q, b @ q]) / 2)
    scores /= scores.sum(0)
    np.testing.assert_allclose(attention(x), scores[0][:, None] * a + scores[1][:, None] * b, rtol=1e-6)
    assert nn.Skip(f, "concat")(x).shape == (3, 8)
    with pytest.raises(InputError, match="combine='sum'"):
        nn.Skip(f, "sum")
    with pytest.raises(InputError, match="features="):
        nn.Skip(f, "attention")
    with pytest.raises(ShapeError, match="Skip: f makes"):
        nn.Skip(nn.Linear(4, 3, dtype=wl.float64), "max")(x)


@pytest.mark.book("A3-70", "A3-71", name="wl.nn.DenseBlock")
def test_dense_connections():
    d, z = 5, 3
    counts = []
    for layers in range(1, 6):
        block = nn.DenseBlock(d, z, layers, bias=False)
        sizes = [layer.weight.size for layer in block.layers]
        assert sizes == [(d + i * z) * z for i in range(layers)]  # each matrix grows linearly
        counts.append(block.num_parameters())
        assert counts[-1] == sum((d + (i - 1) * z) * z for i in range(1, layers + 1))
    assert set(np.diff(counts, 2)) == {z * z}  # and their sum quadratically
    block = nn.DenseBlock(d, z, 2, activation=None)
    x = wl.random.normal((4, d))
    first = block.layers[0](x)
    second = block.layers[1](wl.concat([x, first], axis=-1))
    np.testing.assert_allclose(block(x), wl.concat([x, first, second], axis=-1), rtol=1e-6)
    gradient = wl.grad(lambda x: block(x)[:, :d].sum())(x)
    np.testing.assert_array_equal(gradient, np.ones((4, d)))  # the input goes to the end by itself
    images = nn.DenseBlock(2, 4, 2, layer=lambda i, o: nn.Conv2d(i, o, 3, padding=1))
    assert images(wl.ones((1, 5, 5, 2))).shape == (1, 5, 5, 10)


@pytest.mark.book("A3-84", name=("wl.nn.Residual", "wl.nn.ReZero", "wl.nn.LayerScale"))
def test_small_updates_keep_the_variance():
    depth, n = 50, 16
    x = wl.random.normal((200, n), key=wl.random.key(0))

    def variance(wrap):
        wl.random.seed(0)
        blocks = [nn.Linear(n, n) for _ in range(depth)]
        for block in blocks:
            block.weight = wl.random.normal((n, n), 0.0, (1 / n) ** 0.5)  # f keeps the variance, so the sum doubles it
        return float(nn.Sequential(*[wrap(block) for block in blocks])(x).var())

    assert variance(nn.Residual) > 1e6
    np.testing.assert_allclose(variance(lambda f: nn.Residual(f, init_scale=depth**-0.5)), np.e, rtol=0.5)
    np.testing.assert_allclose(variance(nn.ReZero), float(x.var()), rtol=1e-6)
    scaled = variance(lambda f: nn.Residual(nn.Sequential(f, nn.LayerScale(n, 0.1))))
    np.testing.assert_allclose(scaled, 1.01**depth, rtol=0.4)
    block = nn.ReZero(nn.Linear(4, 4))
    gradient = wl.grad(lambda m: m(wl.ones(4)).sum())(block)
    assert float(gradient["scale"]) != 0.0  # the first step moves it away from 0
    assert not gradient["f.weight"].numpy().any()


def test_a_stack_with_shared_weights_is_eulers_method():
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]])
    n = 50
    stack = nn.ResidualStack(lambda: nn.Linear.from_matrix(matrix), n, shared=True, step_size=1 / n)
    x = np.array([[1.0, 0.0]])
    expected = x @ np.linalg.matrix_power(np.eye(2) + matrix / n, n)
    np.testing.assert_allclose(stack(wl.asarray(x)), expected, rtol=1e-12)
    np.testing.assert_allclose(stack(wl.asarray(x)), [[np.cos(1), np.sin(1)]], atol=0.02)  # of a rotation
    assert stack.num_parameters() == 4
    free = nn.ResidualStack(lambda: nn.Linear(2, 2, bias=False), 3)
    assert free.num_parameters() == 12
    assert nn.ResidualStack(lambda: nn.Linear(2, 2), 0)(wl.ones(2)).tolist() == [1.0, 1.0]
    grads = wl.grad(lambda m: m(wl.asarray(x)).sum())(stack)
    assert list(grads) == ["blocks.0.weight"]
    with pytest.raises(ModuleError, match="a function that makes one"):
        nn.ResidualStack(nn.Linear(2, 2), 3)


@pytest.mark.book("9-61", name="wl.nn.FCBlock")
def test_the_order_in_a_block():
    block = nn.FCBlock(3, 4, norm="layer", activation="tanh", dropout=0.1)
    assert [type(part).__name__ for part in block] == ["Linear", "LayerNorm", "Tanh", "Dropout"]
    assert block[0].bias is not None
    assert [type(part).__name__ for part in nn.FCBlock(3, 4, activation=None)] == ["Linear"]
    assert isinstance(nn.FCBlock(3, 4, norm=lambda n: nn.GroupNorm(2, n))[1], nn.GroupNorm)
    with pytest.raises(InputError, match="norm='batchnorm'"):
        nn.FCBlock(3, 4, norm="batchnorm")
