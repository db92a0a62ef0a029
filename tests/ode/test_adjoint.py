"""The adjoint method: its gradients are those of the solution, and it keeps no steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import TraceError
from wonderland.ode import odeint, odeint_adjoint

F64 = wl.float64
START = wl.tensor([1.0, 0.5], dtype=F64)
TIMES = wl.tensor([0.3, 1.0, 1.5], dtype=F64)
TIGHT = {"rtol": 1e-10, "atol": 1e-11}


class Field(nn.Module):
    """A field with parameters, one of which is not trained."""

    def __init__(self):
        self.layer = nn.Linear(2, 2, dtype=F64, key=wl.random.key(1))
        self.scale = nn.Parameter(wl.tensor(0.8, dtype=F64), trainable=False)

    def forward(self, x, t):
        return self.scale * wl.tanh(self.layer(x)) + wl.sin(t)


def loss(solve, **settings):
    return lambda f, x, t: (solve(f, x, t, **settings)[1:] ** 2).sum()


@pytest.mark.book("9-99", name="wl.ode.odeint_adjoint")
def test_closed_form():
    f = lambda x, t, rate: -rate * x
    solve = lambda x, rate, T: odeint_adjoint(f, x, T, args=(rate,), **TIGHT)
    x, rate, T = (wl.tensor(v, dtype=F64) for v in (3.0, 2.0, 0.7))
    by_x, by_rate, by_time = wl.grad(solve, argnums=(0, 1, 2))(x, rate, T)
    assert by_x.item() == pytest.approx(math.exp(-1.4), rel=1e-8)
    assert by_rate.item() == pytest.approx(-0.7 * 3 * math.exp(-1.4), rel=1e-8)
    assert by_time.item() == pytest.approx(-2 * 3 * math.exp(-1.4), rel=1e-8)


@pytest.mark.book("9-99", name="wl.ode.odeint_adjoint")
def test_gradients_of_parameters_state_and_times_are_those_of_the_exact_solution():
    f = Field()
    np.testing.assert_array_equal(odeint_adjoint(f, START, TIMES), odeint(f, START, TIMES))
    exact = wl.grad(loss(odeint, **TIGHT), argnums=(0, 1, 2))(f, START, TIMES)
    for gradient in (
        wl.grad(loss(odeint_adjoint, **TIGHT), argnums=(0, 1, 2)),
        wl.jit(wl.grad(loss(odeint_adjoint, **TIGHT), argnums=(0, 1, 2))),
    ):
        by_f, by_x, by_times = gradient(f, START, TIMES)
        assert set(by_f) == {"layer.weight", "layer.bias"}
        for path, value in by_f.items():
            np.testing.assert_allclose(value, exact[0][path], rtol=1e-7)
        np.testing.assert_allclose(by_x, exact[1], rtol=1e-7)
        np.testing.assert_allclose(by_times, exact[2], rtol=1e-7)
    loss(odeint_adjoint, **TIGHT)(f, START, TIMES).backward()
    np.testing.assert_allclose(f.layer.weight.grad, exact[0]["layer.weight"], rtol=1e-7)


@pytest.mark.book("9-99", name=("wl.ode.odeint_adjoint", "wl.ode.odeint"))
@pytest.mark.parametrize("method, order", [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_the_two_gradients_meet_as_steps_get_small(method, order):
    f, gaps = Field(), []
    for steps in (4, 8):
        settings = {"method": method, "steps": steps}
        through = wl.grad(loss(odeint, **settings))(f, START, TIMES)
        around = wl.grad(loss(odeint_adjoint, **settings))(f, START, TIMES)
        gaps.append(max(np.abs(through[path] - around[path]).max() for path in through))
    assert gaps[1] > 0
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(order, abs=0.4)


@pytest.mark.book("9-99", name=("wl.ode.odeint_adjoint", "wl.saved"))
def test_memory_does_not_grow_with_the_steps():
    f = Field()

    def kept(solve, n):
        return wl.saved(lambda x: solve(f, x, 1.0, "rk4", steps=n).sum(), START).bytes

    assert kept(odeint, 50) > 5 * kept(odeint, 5)
    assert kept(odeint_adjoint, 50) == kept(odeint_adjoint, 5) < kept(odeint, 5)


def test_a_tree_of_states_in_a_batch():
    f = lambda s, t, w: {"x": s["v"], "v": -w * s["x"]}
    state = {"x": wl.ones((3,), dtype=F64), "v": wl.zeros((3,), dtype=F64)}
    w = wl.tensor([1.0, 2.0, 3.0], dtype=F64)
    total = lambda solve: lambda s, w: solve(f, s, [0.0, 1.0], args=(w,), **TIGHT)["x"].sum()
    found = wl.grad(total(odeint_adjoint), argnums=(0, 1))(state, w)
    exact = wl.grad(total(odeint), argnums=(0, 1))(state, w)
    for part in ("x", "v"):
        np.testing.assert_allclose(found[0][part], exact[0][part], atol=1e-8)
    np.testing.assert_allclose(found[1], exact[1], atol=1e-8)
    each = wl.vmap(lambda w: odeint_adjoint(lambda x, t, w: -w * x, 1.0, 1.0, args=(w,)))
    np.testing.assert_allclose(each(w), np.exp(-w.numpy()), rtol=1e-5)


def test_second_derivatives():
    solve = lambda rate: odeint_adjoint(lambda x, t, rate: -rate * x, START, 1.0, args=(rate,), **TIGHT).sum()
    rate = wl.tensor(2.0, dtype=F64)
    assert wl.grad(wl.grad(solve))(rate).item() == pytest.approx(1.5 * math.exp(-2), rel=1e-6)


def test_what_f_refers_to_is_not_silently_constant():
    with pytest.raises(TraceError, match="outside the JVP transformation"):
        wl.grad(lambda rate: odeint_adjoint(lambda x, t: -rate * x, 1.0, 1.0))(2.0)
