"""Neural differential equations: as residual networks, as layers that are trained and inverted."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import GradientError, InputError, ShapeError
from wonderland.models import Autonomous, NeuralODE, ODEFunc

F = nn.functional
F64 = wl.float64


def field(**settings):
    return ODEFunc(2, 5, **({"dtype": F64, "key": wl.random.key(0)} | settings))


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.book("9-94", name="wl.models.ODEFunc")
def test_a_field_is_a_network_of_state_and_time():
    f, x = field(), numbers(3, 2)
    both = np.concatenate([x.numpy(), np.full((3, 1), 0.5)], axis=1)
    np.testing.assert_allclose(f(x, 0.5), f.mlp(both), rtol=1e-12)
    assert np.abs(f(x, 0.5) - f(x, 1.0)).max() > 1e-3
    still = field(time=False)
    np.testing.assert_array_equal(still(x, 0.5), still(x, 1.0))
    assert f.num_parameters() == (3 + 1) * 5 + (5 + 1) * 2
    with pytest.raises(ShapeError, match=r"state of shape \(4, 3\)"):
        f(wl.ones((4, 3)), 0.0)


@pytest.mark.book("9-97", name=("wl.nn.ResidualStack", "wl.models.NeuralODE", "wl.models.Autonomous"))
@pytest.mark.parametrize("steps", [1, 10])
def test_a_residual_network_with_shared_weights_is_eulers_method(steps):
    stack = nn.ResidualStack(
        lambda: nn.Sequential(nn.Linear(2, 5, dtype=F64), nn.Tanh(), nn.Linear(5, 2, dtype=F64)),
        steps,
        shared=True,
        step_size=1 / steps,
    )
    layer = NeuralODE(Autonomous(stack.blocks[0]), 1.0, "euler", steps)
    x = numbers(4, 2)
    np.testing.assert_array_equal(layer(x), stack(x))  # to the last bit
    ours, theirs = (wl.grad(lambda m: (m(x) ** 2).sum())(model) for model in (layer, stack))
    for path, value in theirs.items():
        np.testing.assert_allclose(ours[path.replace("blocks.0", "f.f")], value, rtol=1e-10)


@pytest.mark.book("9-98", "9-99", name="wl.models.NeuralODE")
def test_solvers_and_gradients_agree():
    f, x = field(), numbers(4, 2)
    tight = {"rtol": 1e-9, "atol": 1e-10}
    layers = {
        "adaptive": NeuralODE(f, **tight),
        "adjoint": NeuralODE(f, adjoint=True, **tight),
        "rk4": NeuralODE(f, method="rk4", steps=40),
    }
    values = {name: layer(x) for name, layer in layers.items()}
    grads = {name: wl.grad(lambda m: (m(x) ** 2).sum())(layer) for name, layer in layers.items()}
    for name in ("adjoint", "rk4"):
        np.testing.assert_allclose(values[name], values["adaptive"], rtol=1e-7)
        for path, value in grads["adaptive"].items():
            np.testing.assert_allclose(grads[name][path], value, rtol=1e-6, atol=1e-9)
    with pytest.raises(GradientError, match="odeint_adjoint"):
        wl.jit(wl.grad(lambda m: m(x).sum()))(layers["adaptive"])


def test_trajectories_and_inverses():
    layer, x = NeuralODE(field(), T=0.7, rtol=1e-9, atol=1e-10), numbers(4, 2)
    path = layer.trajectory(x, [0.0, 0.35, 0.7])
    assert path.shape == (3, 4, 2)
    np.testing.assert_array_equal(path[0], x)
    np.testing.assert_allclose(path[-1], layer(x), rtol=1e-7)
    np.testing.assert_allclose(layer.inverse(layer(x)), x, atol=1e-7)
    assert "T=0.7, method='dopri5'" in repr(layer)
    other = NeuralODE(field(key=wl.random.key(1)), T=0.7, rtol=1e-9, atol=1e-10)
    other.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(other(x), layer(x))


@pytest.mark.book("9-98", "9-99", name="wl.models.NeuralODE")
def test_it_learns_a_rotation_by_the_adjoint_equation():
    angle = 0.5 * math.pi
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    x = numbers(40, 2).numpy().astype(np.float32)
    y = (x @ turn).astype(np.float32)
    model = NeuralODE(Autonomous(nn.Linear(2, 2, bias=False)), adjoint=True)
    optimizer = wl.optim.Adam(model, lr=0.1)

    @wl.jit
    def step(model, optimizer, x, y):
        value, grads = wl.value_and_grad(lambda m: F.mse_loss(m(x), y))(model)
        optimizer.step(grads)
        return value

    losses = [step(model, optimizer, x, y).item() for _ in range(100)]
    assert losses[-1] < 1e-3 < losses[0]
    # the matrix whose exponential is the rotation
    np.testing.assert_allclose(model.f.f.weight, [[0.0, angle], [-angle, 0.0]], atol=0.05)


def test_bad_input():
    with pytest.raises(InputError, match="not a function"):
        NeuralODE(3)
    with pytest.raises(InputError, match="how many steps"):
        NeuralODE(field(), method="rk4")(numbers(4, 2))
    with pytest.raises(ShapeError, match="derivative of shape"):
        NeuralODE(Autonomous(nn.Linear(2, 3, dtype=F64)))(numbers(4, 2))
